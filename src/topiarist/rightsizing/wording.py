"""The result of a rightsizing in a sentence."""

from typing import Protocol

from topiarist.rightsizing.record import BASELINE, RightsizingRecord

AS_FAST = (0.95, 1.05)
LEAST_MS = 0.01  # below which two times differ by chance: calling a network takes longer
SMALLEST_SHOWN = 0.001
FOUR_DIGITS = 10_000  # from which on no decimals are shown


class Worded(Protocol):
    """What must be known of a metric to speak of it: a `Metric`, or its record."""

    @property
    def title(self) -> str:
        """What it is called."""

    @property
    def share(self) -> bool:
        """Whether it is a share of samples."""

    @property
    def relative(self) -> bool:
        """Whether margins and differences are shares of the baseline's value."""


def sentence(record: RightsizingRecord) -> str:
    """Return how much smaller and faster the network is, what that cost, and how sure that is."""
    status = record.verdict.status
    if status == "unreachable":
        margin = margin_words(record.metric, record.settings.max_drop)
        return f"No network was found that fits the budget and is not worse by more than {margin}."
    before, after = record.networks[0], record.chosen
    if status == "unchanged":
        return f"{before.file_kb:.1f} KB, {_quality(record)}: no smaller network is good enough."
    sizes = f"From {before.file_kb:.1f} KB to {after.file_kb:.1f} KB: {record.gains.size:.1f} × smaller"
    return f"{sizes}, {_speed(record)}, {_quality(record)}, {_certainty(record)}."


def _certainty(record: RightsizingRecord) -> str:
    verdict, margin = record.verdict, margin_words(record.metric, record.settings.max_drop)
    rung = next(each for each in record.decision.rungs if each.ratio == record.chosen.ratio)
    if verdict.status == "proven":
        doubt = "; the test part by itself lost more" if verdict.confirmed is False else ""
        return f"not worse within {margin} ({shown_p(rung.p)}{doubt})"
    needed = f"{rung.samples_needed:,} samples would tell, {rung.samples:,} were there"
    return f"unproven within {margin} ({needed})"


def _quality(record: RightsizingRecord) -> str:
    """Return the metric before and after, on the test part or, where there is none, over the folds."""
    metric = record.metric
    if record.test is not None:
        sides = (record.test.before[metric.name], record.test.after[metric.name])
    else:
        sides = (record.networks[0].judged_score, record.chosen.judged_score)
    before, after = (value_words(metric, side or 0.0, decimals=1) for side in sides)
    if record.verdict.status == "unchanged":
        return f"{metric.title} {before}"
    return f"{metric.title} {before.removesuffix(' %')} → {after}"


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


def value_words(metric: Worded, value: float, *, decimals: int = 2) -> str:
    """Return a value of a metric: a share in per cent, another number with four digits."""
    if metric.share:
        return f"{100 * value:.{decimals}f} %"
    return f"{value:,.0f}" if abs(value) >= FOUR_DIGITS else f"{value:.4g}"


def margin_words(metric: Worded, margin: float, *, digits: int = 6) -> str:
    """Return a loss: as points, as per cent of the baseline's value, or as a number.

    Examples
    --------
    >>> from topiarist.statistics import find_metric
    >>> margin_words(find_metric("classes", "accuracy"), 0.01), margin_words(find_metric("numbers", "rmse"), 0.02)
    ('1 point', '2 %')
    """
    if not metric.share and not metric.relative:
        return f"{margin:.{digits}g}"
    number = f"{100 * margin:.{digits}g}"
    if metric.relative:
        return f"{number} %"
    return f"{number} point{'' if number == '1' else 's'}"


def change_words(metric: Worded, difference: float) -> str:
    """Return a difference, positive where it is better: as points with their sign, or as so much better or worse."""
    if metric.share:
        return f"{100 * difference:+.2f} points".replace("-", "−")
    if metric.relative:
        return f"{metric.title} {100 * abs(difference):.2f} % {'smaller' if difference >= 0 else 'larger'}"
    return f"{metric.title} {abs(difference):.4f} {'better' if difference >= 0 else 'worse'}"


def shown_p(p: float) -> str:
    """Return a p-value as it is printed."""
    return "p < 0.001" if p < SMALLEST_SHOWN else f"p = {p:.2g}"
