"""The claims of the Surgeon's paper, each with its number, ours with an interval, and whether it is reproduced.

Claims are tested with the published setting alone, on the validation part, which is what the paper reports, and against
plain training with SGD, which is its baseline. A number is reproduced where it lies within our 95 % interval, if that
is narrow enough to say something, and only runs of the paper's length on all of its samples can test it.
"""

import math
import re
from collections.abc import Iterator, Sequence
from statistics import fmean

from scipy import stats

from topiarist.reproductions.claims import NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED, Claim, mean_interval
from topiarist.reproductions.surgeon.comparison import Comparison
from topiarist.reproductions.surgeon.paper import EPOCHS, REDRAWS, REDUCTION, RUNS, TABLE_3, TRAINED_EPOCHS
from topiarist.reproductions.surgeon.tables import AT_CHANCE
from topiarist.statistics import Interval

CONFIDENCE = 0.95
RESCUED = ("SVHN", "CIFAR-10", "EuroSAT")  # section 4.2: there the small baseline does not learn
OTHER_DATA = "not the paper's data"
OTHER_LENGTH = "the paper has all samples and 100 epochs"
UNDECIDED = "undecided: too few runs for an interval that is narrow enough"
MARGIN = 1.0  # point of accuracy: the paper gives two places
HYPHEN = re.compile(r"(?<!\w)-(?=\d)")  # before a number, not inside a name such as CIFAR-10
NARROW = 5.0  # per cent: half of an interval that can test a number near 0, as those of the large topologies are


def judge_surgeon_claims(comparisons: Sequence[Comparison]) -> list[Claim]:
    """Judge every claim by the networks of the published setting; none without any."""
    published = [each for each in comparisons if each.setting == "published"]
    papers = [each for each in published if each.data.row is not None]
    if not published:
        return []
    general, why_not = papers or published, "" if papers else OTHER_DATA
    return [
        _reaches_the_baseline(general, why_not),
        _rescues(general, why_not),
        *_rows(papers),
        *_averages(general, why_not),
        *([] if papers else _untested_rows()),
    ]


def _judge(
    claim: str,
    published: str,
    ours: str = "–",
    interval: str | None = None,
    *,
    holds: bool = False,
    fails: bool = False,
    why_not: str = "",
    notes: Sequence[str] = (),
) -> Claim:
    """Return the verdict on a claim that was found to hold, to fail, or neither; `why_not` is why it is not tested."""
    why_not = why_not or ("" if holds or fails else UNDECIDED)
    decided = NOT_TESTABLE if why_not else (NOT_REPRODUCED if fails else REPRODUCED)
    shown = [None if text is None else HYPHEN.sub("−", text) for text in (published, ours, interval)]
    return Claim(claim, str(shown[0]), str(shown[1]), shown[2], decided, "; ".join(filter(None, [why_not, *notes])))


def _interval(values: Sequence[float]) -> Interval:
    """Return a mean with its interval, which one value leaves unbounded."""
    return mean_interval(values) or Interval(fmean(values), -math.inf, math.inf)


def _written(interval: Interval, form: str = "+.1f") -> str | None:
    return f"[{interval.low:{form}}, {interval.high:{form}}]" if math.isfinite(interval.low) else None


def _judge_number(
    claim: str,
    published: float,
    values: Sequence[float],
    *,
    narrow: float,
    why_not: str,
    notes: Sequence[str] = (),
    form: str = "+.1f",
    unit: str = " %",
) -> Claim:
    """Compare a number with the interval of ours, half of which must not be wider than `narrow` to confirm it."""
    text = f"{published:{form}}{unit}"
    if not values:
        return _judge(claim, text, why_not=why_not, notes=notes)
    found = _interval(values)
    inside = found.low <= published <= found.high
    holds, ours = inside and found.high - found.low <= 2 * narrow, f"{found.value:{form}}{unit}"
    return _judge(claim, text, ours, _written(found, form), holds=holds, fails=not inside, why_not=why_not, notes=notes)


def _reaches_the_baseline(comparisons: Sequence[Comparison], why_not: str) -> Claim:
    """Judge that the Surgeon is nowhere worse than plain training."""
    claim = "The Surgeon reaches or outperforms plain training everywhere (section 4.2)"
    published = f"{len(TABLE_3)} of {len(TABLE_3)}"
    tested = [each for each in comparisons if not any(each.at_chance("sgd", "validation"))]
    if not tested:
        return _judge(claim, published, why_not=AT_CHANCE)
    points = [[100 * gain for gain in each.gains("surgeon", "sgd", "validation")] for each in tested]
    gains = [_interval(each) for each in points]
    worst, where = min(zip(gains, tested, strict=True), key=lambda pair: pair[0].value)
    reached = f"{sum(gain.value >= 0 for gain in gains)} of {len(gains)}"
    ours = f"{reached}; lowest: {where.data.name}, {where.topology}, {worst.value:+.1f} points"
    holds, fails = all(gain.low >= -MARGIN for gain in gains), any(gain.high < 0 for gain in gains)
    notes = ("reproduced where every interval lies above −1 point", _amount(tested[0]))
    return _judge(claim, published, ours, _written(worst), holds=holds, fails=fails, why_not=why_not, notes=notes)


def _rescues(comparisons: Sequence[Comparison], why_not: str) -> Claim:
    """Judge that Surgeons learn where plain training of the same seed stays at chance."""
    learnt = []
    for each in comparisons:
        plain, surgeon = each.at_chance("sgd", "validation"), each.at_chance("surgeon", "validation")
        learnt += [not dead for stuck, dead in zip(plain, surgeon, strict=True) if stuck]
    claim = "What does not learn by plain training learns with the Surgeon (section 4.2)"
    published = f"on average, small topology: {', '.join(RESCUED)}"
    if not learnt:
        return _judge(claim, published, why_not="no plain training ends at chance")
    wilson = stats.binomtest(sum(learnt), len(learnt)).proportion_ci(CONFIDENCE, method="wilson")
    low, high = 100 * float(wilson.low), 100 * float(wilson.high)
    ours, interval = f"{sum(learnt)} of {len(learnt)} runs", f"[{low:.0f} %, {high:.0f} %]"
    notes = ("reproduced where the interval lies above one half",)
    return _judge(claim, published, ours, interval, holds=low > 50, fails=high < 50, why_not=why_not, notes=notes)


def _rows(papers: Sequence[Comparison]) -> Iterator[Claim]:
    """Judge the rows of Table 3, the relative gain and the change of parameters."""
    for each in papers:
        row, name = TABLE_3[str(each.data.row), each.topology], f"{each.data.row}, {each.topology}"
        why_not, notes = "" if _as_in_the_paper(each) else OTHER_LENGTH, (_amount(each),)
        gains = each.gains("surgeon", "sgd", "validation")
        if row.gain is not None:
            claim, narrow = f"Relative gain of accuracy: {name} (Table 3)", max(NARROW, row.gain)
            if any(each.at_chance("sgd", "validation")):
                yield _judge_number(claim, row.gain, [], narrow=narrow, why_not=AT_CHANCE)
            else:
                level = fmean(run.accuracy["validation"] for run in each.runs("sgd"))
                relative = [100 * gain / level for gain in gains]
                yield _judge_number(claim, row.gain, relative, narrow=narrow, why_not=why_not, notes=notes)
        if row.change is not None:
            claim, narrow = f"Change of parameters: {name} (Table 3)", max(NARROW, abs(row.change[0]))
            yield _judge_number(claim, row.change[0], each.changes, narrow=narrow, why_not=why_not, notes=notes)
        if (each.data.row, each.topology) == ("Fashion-MNIST", "large"):
            kept = [change for change, gain in zip(each.changes, gains, strict=True) if gain >= 0]
            best = min(kept, default=0.0)
            claim = "A run reaches plain training with about 14 % fewer parameters: Fashion-MNIST, large (Figure 4)"
            ours = f"{best:+.1f} %" if kept else "no run reaches plain training"
            holds, said = best <= REDUCTION, ("the smallest network of those that reach it", *notes)
            yield _judge(claim, f"{REDUCTION:+.0f} %", ours, holds=holds, fails=not holds, why_not=why_not, notes=said)


def _averages(comparisons: Sequence[Comparison], why_not: str) -> Iterator[Claim]:
    """Judge what an evolution takes in all, and how often candidates are drawn again."""
    if not why_not and not all(map(_as_in_the_paper, comparisons)):
        why_not = OTHER_LENGTH
    surgeons = [run for each in comparisons for run in each.runs("surgeon")]
    claim = f"Training in all, as a multiple of that of the result: {TRAINED_EPOCHS} epochs for {EPOCHS} (section 4.2)"
    ratio, ratios = TRAINED_EPOCHS / EPOCHS, [run.trained_epochs / run.epochs for run in surgeons]
    notes = ("recuperation is counted; with few samples its batches are many epochs",)
    yield _judge_number(claim, ratio, ratios, narrow=ratio / 2, why_not=why_not, notes=notes, form=".2f", unit="")
    draws = [[each.number for each in run.evolution.decisions] for run in surgeons]  # decisions by their numbers
    redraws = [len(numbers) / len(set(numbers)) - 1 for numbers in draws if numbers]
    claim = "Redraws per decision (section 4.2)"
    yield _judge_number(claim, REDRAWS, redraws, narrow=REDRAWS / 2, why_not=why_not, form=".2f", unit="")


def _untested_rows() -> Iterator[Claim]:
    """Return the ranges of Table 3, no row of which can be compared."""
    gains = [row.gain for row in TABLE_3.values() if row.gain is not None]
    changes = [row.change[0] for row in TABLE_3.values() if row.change is not None]
    for claim, values in {"Relative gain of accuracy": gains, "Change of parameters": changes}.items():
        yield _judge(f"{claim} (Table 3)", f"{min(values):+.1f} to {max(values):+.1f} %", why_not=OTHER_DATA)


def _as_in_the_paper(of: Comparison) -> bool:
    """Return whether runs have all samples of a data set and as many epochs as the paper's."""
    whole = sum(part.samples for part in of.data.parts.values()) == len(of.data.source.features)
    return whole and all(run.epochs == EPOCHS for run in of.runs("surgeon"))


def _amount(of: Comparison) -> str:
    """Return how much was run: the paper has all samples, 100 epochs and 15 runs."""
    count, epochs = len(of.seeds), of.runs("surgeon")[0].epochs
    runs = f"{count} run{'s' if count > 1 else ''} of {RUNS}"
    return f"{of.data.parts['train'].samples:,} samples, {epochs} of {EPOCHS} epochs, {runs}"
