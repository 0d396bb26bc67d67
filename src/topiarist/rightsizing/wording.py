"""The result of a rightsizing in a sentence."""

from typing import Protocol

from topiarist.rightsizing.record import (
    BASELINE,
    FARTHER_NOTE,
    GUESSING,
    IN_DEVIATIONS,
    OWN_NOTE,
    RightsizingRecord,
    RungRecord,
)
from topiarist.statistics.proofs.evidence import MOST_SAMPLES

AS_FAST = (0.95, 1.05)
LEAST_MS = 0.01  # below which two times differ by chance: calling a network takes longer
SMALLEST_SHOWN = 0.001
MOST_DIGITS = 16  # that a float64 has
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
    """Return how much smaller and faster the network is, what that cost, and how sure that is.

    Score, p and samples are those of the one comparison that decided.
    """
    status, metric = record.verdict.status, record.metric
    if status == "unreachable":
        better = " is better than guessing" if any(rung.verdict == GUESSING for rung in record.decision.rungs) else ""
        margin = margin_words(metric, record.settings.max_drop)
        return f"No network was found that fits the budget,{better} and is not worse by more than {margin}.".replace(
            "budget, and", "budget and"
        )
    before, after = record.networks[0], record.chosen
    if status == GUESSING:
        return f"{before.file_kb:.1f} KB, {_baseline_quality(record)}: {_against_guess(record)}."
    if status == "unchanged":
        return f"{before.file_kb:.1f} KB, {_baseline_quality(record)}: {_why_unchanged(record)}."
    rung = record.rung(after.id)
    times = record.gains.size or 1.0
    smaller = f"{times:.1f} × smaller" if times >= AS_FAST[1] else "hardly smaller"
    gains = ", ".join(filter(None, (smaller, speed_words(record))))
    sides = [value_words(metric, value, decimals=1) for value in (rung.baseline_score, rung.score)]
    quality = f"{metric.title} {sides[0].removesuffix(' %')} → {sides[1]} over {rung.samples:,} samples"
    return f"From {before.file_kb:.1f} KB to {after.file_kb:.1f} KB: {gains}; {quality}, {_certainty(record, rung)}."


def _certainty(record: RightsizingRecord, rung: RungRecord) -> str:
    margin = margin_words(record.metric, record.settings.max_drop)
    margin += f" {IN_DEVIATIONS}" if record.compared != record.metric else ""
    if rung.verdict == "proven":
        said = {
            "confirms": "; the test part confirms it",
            "does not contradict": "; the test part does not contradict it (too few samples to tell)",
            "contradicts": "; the test part contradicts it",
        }
        return f"not worse within {margin} ({shown_p(rung.p)}){said.get(record.verdict.agreement or '', '')}"
    said = {
        "confirms": "; the test part by itself shows it",
        "contradicts": f"; the test part shows that it loses more than {margin}",
    }
    told = said.get(record.verdict.agreement or "", "")
    return f"not proven within {margin} ({_missing(record, rung)}){told}"


def _missing(record: RightsizingRecord, rung: RungRecord) -> str:
    """Return why a size is not proven: the power that there was, and the samples that a proof takes."""
    if OWN_NOTE in rung.notes:
        return f"the network to keep lost more than is allowed on the validation part, {shown_p(rung.p)}"
    strict = f" above the {rung.level:g} that its test asks for" if rung.level < rung.p <= record.settings.alpha else ""
    if FARTHER_NOTE in rung.notes and rung.times_as_far:
        times = f"{rung.times_as_far:.2g} ×"
        strict += f" for {times} the loss, as the network to keep is {times} as far from its teacher as those judged"
    p, power = f"{shown_p(rung.p, beside=rung.level)}{strict}", f"the power was {percent(rung.power)}"
    if rung.power >= record.decision.wanted_power:
        return f"{p}, although {power}"
    if rung.samples_needed >= MOST_SAMPLES:
        return f"{p}; {power}, and no number of samples would make it {percent(record.decision.wanted_power)}"
    return f"{p}; {power}, {rung.samples_needed:,} samples would make it {percent(record.decision.wanted_power)}"


def _baseline_quality(record: RightsizingRecord) -> str:
    guess, metric = record.decision.guess, record.metric
    known = "not known" if guess.baseline_score is None else value_words(metric, guess.baseline_score, decimals=1)
    return f"{metric.title} {known} over {guess.samples:,} samples"


def _against_guess(record: RightsizingRecord) -> str:
    guess = record.decision.guess
    has = "" if guess.score is None else f", which has {value_words(record.metric, guess.score, decimals=1)}"
    return f"no better than guessing ({guess.answer}{has})"


def _why_unchanged(record: RightsizingRecord) -> str:
    verdicts = {rung.verdict for rung in record.decision.rungs}
    if not verdicts:
        return f"no smaller network {'was tested in time' if record.plan.cut_short else 'could be made'}"
    lost = f"lost more than {margin_words(record.metric, record.settings.max_drop)}"
    if verdicts == {"rejected"}:
        return f"no smaller network is good enough, all that were tried {lost}"
    if verdicts <= {"rejected", GUESSING}:
        return f"all smaller networks that were tried {lost} or are no better than guessing"
    return "no smaller network was chosen"


def why_of(record: RightsizingRecord) -> tuple[str, ...]:
    """Return what the choice rests on, size by size: that of the chosen one and the next, or all where none is."""
    if record.verdict.status == GUESSING:
        return (_guess_line(record),)
    rungs, names = record.decision.rungs, [rung.network for rung in record.decision.rungs]
    if record.verdict.status in ("proven", "unproven"):
        place = names.index(record.verdict.chosen)
        rungs = rungs[place : place + 2]
    return tuple(rung_words(record, rung) for rung in rungs)


def _guess_line(record: RightsizingRecord) -> str:
    guess, metric = record.decision.guess, record.compared
    found = f"{change_words(metric, guess.difference)} over {guess.samples:,} samples"
    return f"against {guess.answer}, the baseline shows {found}, which may be luck"


def rung_words(record: RightsizingRecord, rung: RungRecord) -> str:
    """Return the verdict on a size with the figures that it follows from."""
    metric, size = record.compared, f"{rung.ratio:.3g} × smaller"
    margin = margin_words(metric, record.settings.max_drop)
    found = f"{change_words(metric, rung.difference)} over {rung.samples:,} samples"
    if rung.verdict == "proven":
        return f"{size} is proven not to be worse by more than {margin}: {found}, {shown_p(rung.p)}"
    if rung.verdict == "rejected":
        sure = "and that it loses more is shown" if rung.inferior else "though so few samples do not show that it does"
        return f"{size} is rejected: {found}, more than {margin}, {sure}"
    if rung.verdict == GUESSING:
        guess = f"{change_words(metric, rung.guess_difference)} against {record.decision.guess.answer} may be luck"
        return f"{size} is no better than guessing: {guess}"
    turn = "" if rung.tested else ", its turn did not come after a larger size that was not proven"
    offered = next((offer.file for offer in record.verdict.offered if offer.network == rung.network), None)
    file = "" if offered is None else f"; it is offered as {offered}"
    return f"{size} is not proven: {found}, {_missing(record, rung)}{turn}{file}"


def speed_words(record: RightsizingRecord) -> str:
    """Return how much faster the network is, in ONNX Runtime and in torch, as far as both were timed."""
    before, after = record.network(BASELINE), record.chosen
    timed = {
        "ONNX Runtime": _speed(before.onnx_latency_ms, after.onnx_latency_ms),
        "torch": _speed(before.latency_ms, after.latency_ms),
    }
    known = {where: words for where, words in timed.items() if words is not None}
    if len(set(known.values())) == 1:
        return f"{next(iter(known.values()))} in {' and in '.join(known)}"
    return " and ".join(f"{words} in {where}" for where, words in known.items())


def _speed(before: float | None, after: float | None) -> str | None:
    """Return a ratio of times in words; those that differ by chance are the same."""
    if not before or not after:
        return None
    gain = before / after
    if AS_FAST[0] <= gain <= AS_FAST[1] or abs(before - after) < LEAST_MS:
        return "as fast"
    return f"{gain:.1f} × faster" if gain > 1 else f"{1 / gain:.1f} × slower"


def value_words(metric: Worded, value: float, *, decimals: int = 2) -> str:
    """Return a value of a metric: a share in per cent, another number with four digits."""
    if metric.share:
        return percent(value, decimals=decimals)
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


def percent(share: float, *, decimals: int = 0) -> str:
    """Return a share in per cent."""
    return f"{100 * share:.{decimals}f} %"


def shown_p(p: float, *, beside: float = 1.0) -> str:
    """Return a p-value as it is printed: with two digits, or as many as tell it apart from the level `beside` it.

    Examples
    --------
    >>> shown_p(0.0404), shown_p(0.0404, beside=0.04), shown_p(0.0002)
    ('p = 0.04', 'p = 0.0404', 'p < 0.001')
    """
    if p < SMALLEST_SHOWN:
        return "p < 0.001"
    digits = next((digits for digits in range(2, MOST_DIGITS) if f"{p:.{digits}g}" != f"{beside:.{digits}g}"), 2)
    return f"p = {p:.{digits}g}"
