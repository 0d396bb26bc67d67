"""The result of a rightsizing in a sentence."""

from topiarist.rightsizing.record import BASELINE, RightsizingRecord

AS_FAST = (0.95, 1.05)
LEAST_MS = 0.01  # below which two times differ by chance: calling a network takes longer
SMALLEST_SHOWN = 0.001


def sentence(record: RightsizingRecord) -> str:
    """Return how much smaller and faster the network is, what that cost, and how sure that is."""
    status = record.verdict.status
    if status == "unreachable":
        margin = points(record.settings.max_drop)
        return f"No network was found that fits the budget and is not worse by more than {margin}."
    before, after = record.networks[0], record.chosen
    if status == "unchanged":
        return f"{before.file_kb:.1f} KB, {_accuracy(record)}: no smaller network is good enough."
    sizes = f"From {before.file_kb:.1f} KB to {after.file_kb:.1f} KB: {record.gains.size:.1f} × smaller"
    return f"{sizes}, {_speed(record)}, {_accuracy(record)}, {_certainty(record)}."


def _certainty(record: RightsizingRecord) -> str:
    verdict, margin = record.verdict, points(record.settings.max_drop)
    rung = next(each for each in record.decision.rungs if each.ratio == record.chosen.ratio)
    if verdict.status == "proven":
        doubt = "; the test part by itself lost more" if verdict.confirmed is False else ""
        return f"not worse within {margin} ({shown_p(rung.p)}{doubt})"
    needed = f"{rung.samples_needed:,} samples would tell, {rung.samples:,} were there"
    return f"unproven within {margin} ({needed})"


def _accuracy(record: RightsizingRecord) -> str:
    """Return accuracy before and after, on the test part or, where there is none, over the folds."""
    if record.test is not None:
        before, after = record.test.before.accuracy, record.test.after.accuracy
    else:
        before, after = record.networks[0].judged_accuracy or 0.0, record.chosen.judged_accuracy or 0.0
    if record.verdict.status == "unchanged":
        return f"accuracy {100 * before:.1f} %"
    return f"accuracy {100 * before:.1f} → {100 * after:.1f} %"


def _speed(record: RightsizingRecord) -> str:
    """Return how much faster the network is: where it will be used if that is known, in torch otherwise."""
    gains, sides = record.gains, (record.network(BASELINE), record.chosen)
    if gains.onnx_latency is not None:
        where, gain, times = "ONNX Runtime", gains.onnx_latency, [side.onnx_latency_ms or 0.0 for side in sides]
    else:
        where, gain, times = "torch", gains.latency or 1.0, [side.latency_ms or 0.0 for side in sides]
    if AS_FAST[0] <= gain <= AS_FAST[1] or abs(times[0] - times[1]) < LEAST_MS:
        return f"as fast in {where}"
    return f"{gain:.1f} × faster in {where}" if gain > 1 else f"{1 / gain:.1f} × slower in {where}"


def points(share: float) -> str:
    """Return a share as points."""
    number = 100 * share
    return f"{number:g} point{'' if number == 1 else 's'}"


def signed(share: float) -> str:
    """Return a difference of shares as points with their sign."""
    return f"{100 * share:+.2f} points".replace("-", "−")


def shown_p(p: float) -> str:
    """Return a p-value as it is printed."""
    return "p < 0.001" if p < SMALLEST_SHOWN else f"p = {p:.2g}"
