"""The claims of the Surgeon's paper, each with its number, ours with an interval, and whether it is reproduced.

Claims are tested with the published setting alone, on the validation part, which is what the paper reports, and against
plain training with SGD, which is its baseline. A number is reproduced where it lies within our 95 % interval, if that
is narrow enough to say something, and only runs of the paper's length on all of its samples can test it.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scipy import stats

from topiarist.reproductions.surgeon.comparison import CONFIDENCE, Comparison, mean_interval
from topiarist.reproductions.surgeon.paper import EPOCHS, REDRAWS, REDUCTION, RUNS, TABLE_3, TRAINED_EPOCHS
from topiarist.reproductions.surgeon.tables import AT_CHANCE
from topiarist.reproductions.verdicts import NOT_REPRODUCED, NOT_TESTABLE, REPRODUCED, Verdict

RESCUED = ("SVHN", "CIFAR-10", "EuroSAT")  # section 4.2: there the small baseline does not learn
OTHER_DATA = "not the paper's data"
OTHER_LENGTH = "the paper has all samples and 100 epochs"
UNDECIDED = "undecided: too few runs for an interval that is narrow enough"
MARGIN = 0.01  # of accuracy: the paper gives two places
NARROW = 5.0  # per cent: half of an interval that can test a number near 0, as those of the large topologies are


@dataclass(frozen=True, kw_only=True)
class MeasuredClaim:
    """A claim, the paper's figure and ours as texts, and what ours say: that it holds, that it fails, or neither.

    `why_not` says why it cannot be tested, where that is so.
    """

    claim: str
    published: str
    ours: str = "–"
    interval: str | None = None
    holds: bool = False
    fails: bool = False
    why_not: str = ""
    notes: tuple[str, ...] = ()


def judge_claims(comparisons: Sequence[Comparison]) -> list[Verdict]:
    """Judge every claim by the networks of the published setting; none without any."""
    published = [each for each in comparisons if each.setting == "published"]
    papers = [each for each in published if each.data.row is not None]
    if not published:
        return []
    general, why_not = papers or published, "" if papers else OTHER_DATA
    claims = [
        _reaches_the_baseline(general, why_not),
        _rescues(general, why_not),
        *_rows(papers),
        *_averages(general, why_not),
        *([] if papers else _untested_rows()),
    ]
    return [_judge(claim) for claim in claims]


def _judge(claim: MeasuredClaim) -> Verdict:
    why_not = claim.why_not or ("" if claim.holds or claim.fails else UNDECIDED)
    decided = NOT_REPRODUCED if claim.fails else REPRODUCED
    return Verdict(
        claim=claim.claim,
        published=_with_minus(claim.published),
        ours=_with_minus(claim.ours),
        interval=None if claim.interval is None else _with_minus(claim.interval),
        verdict=NOT_TESTABLE if why_not else decided,
        note="; ".join(filter(None, [why_not, *claim.notes])),
    )


def _with_minus(text: str) -> str:
    """Write a true minus before a number, and leave hyphens inside names: CIFAR-10."""
    return re.sub(r"(?<!\w)-(?=\d)", "−", text)


def _number_claim(
    claim: str,
    published: float,
    values: Sequence[float],
    *,
    narrow: float,
    why_not: str,
    notes: tuple[str, ...] = (),
    form: str = "+.1f",
    unit: str = " %",
) -> MeasuredClaim:
    """Compare a number with the interval of ours, half of which must not be wider than `narrow` to confirm it."""
    if not values:
        return MeasuredClaim(claim=claim, published=f"{published:{form}}{unit}", why_not=why_not, notes=notes)
    found = mean_interval(values)
    inside = found.low <= published <= found.high
    return MeasuredClaim(
        claim=claim,
        published=f"{published:{form}}{unit}",
        ours=f"{found.value:{form}}{unit}",
        interval=f"[{found.low:{form}}, {found.high:{form}}]" if math.isfinite(found.low) else None,
        holds=inside and found.high - found.low <= 2 * narrow,
        fails=not inside,
        why_not=why_not,
        notes=notes,
    )


def _reaches_the_baseline(comparisons: Sequence[Comparison], why_not: str) -> MeasuredClaim:
    """Compare the Surgeon with plain training: it is nowhere worse."""
    claim = "The Surgeon reaches or outperforms plain training everywhere (section 4.2)"
    published = f"{len(TABLE_3)} of {len(TABLE_3)}"
    tested = [each for each in comparisons if not any(each.at_chance("sgd", "validation"))]
    if not tested:
        return MeasuredClaim(claim=claim, published=published, why_not=AT_CHANCE)
    gains = [mean_interval(each.gains("surgeon", "sgd", "validation")) for each in tested]
    worst, where = min(zip(gains, tested, strict=True), key=lambda pair: pair[0].value)
    reached = f"{sum(gain.value >= 0 for gain in gains)} of {len(gains)}"
    return MeasuredClaim(
        claim=claim,
        published=published,
        ours=f"{reached}; lowest: {where.data.name}, {where.topology}, {100 * worst.value:+.1f} points",
        interval=f"[{100 * worst.low:+.1f}, {100 * worst.high:+.1f}]" if math.isfinite(worst.low) else None,
        holds=all(gain.low >= -MARGIN for gain in gains),
        fails=any(gain.high < 0 for gain in gains),
        why_not=why_not,
        notes=("reproduced where every interval lies above −1 point", _amount(tested[0])),
    )


def _rescues(comparisons: Sequence[Comparison], why_not: str) -> MeasuredClaim:
    """Count the Surgeons that learn where plain training of the same seed stays at chance."""
    learnt = []
    for each in comparisons:
        plain, surgeon = (each.at_chance(kind, "validation") for kind in ("sgd", "surgeon"))
        learnt += [not dead for stuck, dead in zip(plain, surgeon, strict=True) if stuck]
    claim = "What does not learn by plain training learns with the Surgeon (section 4.2)"
    published = f"on average, small topology: {', '.join(RESCUED)}"
    if not learnt:
        return MeasuredClaim(claim=claim, published=published, why_not="no plain training ends at chance")
    share = stats.binomtest(sum(learnt), len(learnt)).proportion_ci(CONFIDENCE, method="wilson")
    return MeasuredClaim(
        claim=claim,
        published=published,
        ours=f"{sum(learnt)} of {len(learnt)} runs",
        interval=f"[{100 * share.low:.0f} %, {100 * share.high:.0f} %]",
        holds=bool(share.low > 0.5),
        fails=bool(share.high < 0.5),
        why_not=why_not,
        notes=("reproduced where the interval lies above one half",),
    )


def _rows(papers: Sequence[Comparison]) -> Iterator[MeasuredClaim]:
    """Compare the rows of Table 3, the relative gain and the change of parameters."""
    for each in papers:
        row, name = TABLE_3[str(each.data.row), each.topology], f"{each.data.row}, {each.topology}"
        why_not, notes = "" if _as_in_the_paper(each) else OTHER_LENGTH, (_amount(each),)
        if row.gain is not None:
            claim, narrow = f"Relative gain of accuracy: {name} (Table 3)", max(NARROW, row.gain)
            level = mean_interval([run.accuracy["validation"] for run in each.runs("sgd")]).value
            gains = [100 * gain / level for gain in each.gains("surgeon", "sgd", "validation")]
            dead = any(each.at_chance("sgd", "validation"))
            yield (
                _number_claim(claim, row.gain, [], narrow=narrow, why_not=AT_CHANCE)
                if dead
                else _number_claim(claim, row.gain, gains, narrow=narrow, why_not=why_not, notes=notes)
            )
        if row.change is not None:
            claim, change = f"Change of parameters: {name} (Table 3)", row.change[0]
            narrow = max(NARROW, abs(change))
            yield _number_claim(claim, change, each.changes, narrow=narrow, why_not=why_not, notes=notes)
        if (each.data.row, each.topology) == ("Fashion-MNIST", "large"):
            kept = [
                change
                for change, gain in zip(each.changes, each.gains("surgeon", "sgd", "validation"), strict=True)
                if gain >= 0
            ]
            smallest = min(kept, default=0.0)
            yield MeasuredClaim(
                claim="A run reaches plain training with about 14 % fewer parameters: Fashion-MNIST, large (Figure 4)",
                published=f"{REDUCTION:+.0f} %",
                ours=f"{smallest:+.1f} %" if kept else "no run reaches plain training",
                holds=smallest <= REDUCTION,
                fails=smallest > REDUCTION,
                why_not=why_not,
                notes=("the smallest network of those that reach it", *notes),
            )


def _averages(comparisons: Sequence[Comparison], why_not: str) -> Iterator[MeasuredClaim]:
    """Compare what an evolution takes in all, and how often candidates are drawn again."""
    if not why_not and not all(map(_as_in_the_paper, comparisons)):
        why_not = OTHER_LENGTH
    surgeons = [run for each in comparisons for run in each.runs("surgeon")]
    whole = f"Training in all, as a multiple of that of the result: {TRAINED_EPOCHS} epochs for {EPOCHS} (section 4.2)"
    ratio, ratios = TRAINED_EPOCHS / EPOCHS, [run.trained_epochs / run.epochs for run in surgeons]
    notes = ("recuperation is counted; with few samples its batches are many epochs",)
    yield _number_claim(whole, ratio, ratios, narrow=ratio / 2, why_not=why_not, notes=notes, form=".2f", unit="")
    draws = [[each["number"] for each in run.lineage["decisions"]] for run in surgeons]  # one each, of a decision
    redraws = [len(numbers) / len(set(numbers)) - 1 for numbers in draws if numbers]
    claim = "Redraws per decision (section 4.2)"
    yield _number_claim(claim, REDRAWS, redraws, narrow=REDRAWS / 2, why_not=why_not, form=".2f", unit="")


def _untested_rows() -> Iterator[MeasuredClaim]:
    """Return the ranges of Table 3, no row of which can be compared."""
    gains = [row.gain for row in TABLE_3.values() if row.gain is not None]
    changes = [row.change[0] for row in TABLE_3.values() if row.change is not None]
    for claim, values in {"Relative gain of accuracy": gains, "Change of parameters": changes}.items():
        published = f"{min(values):+.1f} to {max(values):+.1f} %"
        yield MeasuredClaim(claim=f"{claim} (Table 3)", published=published, why_not=OTHER_DATA)


def _as_in_the_paper(of: Comparison) -> bool:
    """Return whether runs have all samples of a data set and as many epochs as the paper's."""
    whole = sum(part.samples for part in of.data.parts.values()) == len(of.data.source.features)
    return whole and all(run.epochs == EPOCHS for run in of.runs("surgeon"))


def _amount(of: Comparison) -> str:
    """Return how much was run: the paper has all samples, 100 epochs and 15 runs."""
    count, epochs = len(of.seeds), of.runs("surgeon")[0].epochs
    runs = f"{count} run{'s' if count > 1 else ''} of {RUNS}"
    return f"{of.data.parts['train'].samples:,} samples, {epochs} of {EPOCHS} epochs, {runs}"
