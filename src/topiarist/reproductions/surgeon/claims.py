"""The claims of the Surgeon's paper, each with its number, ours with an interval, and whether it is reproduced.

Claims are tested with the published setting alone, on the validation part, which is what the paper reports, and against
plain training with SGD, which is its baseline. A number is reproduced where it lies within our 95 % interval, if that
is narrow enough to say something, and only runs of the paper's length on all of its samples can test it.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

import pandas

from topiarist.reproductions.claims import NOT_TESTABLE
from topiarist.reproductions.claims import Claim as Verdict
from topiarist.reproductions.claims import ClaimVerdict as Decided
from topiarist.reproductions.surgeon.paper import EPOCHS, REDRAWS, REDUCTION, TABLE_3, TRAINED_EPOCHS
from topiarist.reproductions.surgeon.statistics import Interval, mean_interval, share_interval
from topiarist.reproductions.surgeon.tables import AT_CHANCE, Cell

RESCUED = ("SVHN", "CIFAR-10", "EuroSAT")  # section 4.2: there the small baseline does not learn
OTHER_DATA = "not the paper's data"
UNDECIDED = "undecided: too few runs for an interval that is narrow enough"
MARGIN = 0.01  # of accuracy: the paper gives two places
NARROW = 5.0  # per cent: half of an interval that can test a number near 0, as those of the large topologies are


def claims_of(cells: Sequence[Cell]) -> list[Verdict]:
    """Judge every claim by the runs of the published setting."""
    published = [cell for cell in cells if cell.setting == "published"]
    papers = [cell for cell in published if cell.data.row is not None]
    if not published:
        return []
    return [
        reaches_the_baseline(published, papers),
        rescues(published, papers),
        *rows_of(papers),
        costs_epochs(published, papers),
        draws_again(published, papers),
        *([] if papers else untested_rows()),
    ]


def reaches_the_baseline(cells: Sequence[Cell], papers: Sequence[Cell]) -> Verdict:
    """Judge that the Surgeon is nowhere worse than plain training."""
    tested = [cell for cell in papers or cells if not any(cell.at_chance("sgd", "validation"))]
    claim = "The Surgeon reaches or outperforms plain training everywhere (section 4.2)"
    published = f"{len(TABLE_3)} of {len(TABLE_3)}"
    if not tested:
        return Verdict(claim=claim, published=published, ours="–", interval="", verdict=NOT_TESTABLE, note=AT_CHANCE)
    intervals = [mean_interval(cell.differences("surgeon", "sgd", "validation")) for cell in tested]
    means = [mean_of(cell.differences("surgeon", "sgd", "validation")) for cell in tested]
    lowest = min(range(len(means)), key=means.__getitem__)
    bounds = [each or (-math.inf, math.inf) for each in intervals]
    points = f"{100 * means[lowest]:+.1f}".replace("-", "−")
    worst = f"lowest: {tested[lowest].data.name}, {tested[lowest].topology}"
    verdict, note = judged(
        holds=all(low >= -MARGIN for low, _ in bounds), fails=any(high < 0 for _, high in bounds), testable=bool(papers)
    )
    return Verdict(
        claim=claim,
        published=published,
        ours=f"{sum(mean >= 0 for mean in means)} of {len(means)}; {worst}, {points} points",
        interval=written(intervals[lowest], lambda value: f"{100 * value:+.1f}"),
        verdict=verdict,
        note="; ".join(filter(None, ["reproduced where every interval lies above −1 point", note, amount(tested[0])])),
    )


def judged(*, holds: bool, fails: bool, testable: bool) -> tuple[Decided, str]:
    """Return a verdict and why there is none, where what was found neither holds nor fails."""
    if not testable:
        return NOT_TESTABLE, OTHER_DATA
    if fails:
        return "not reproduced", ""
    return ("reproduced", "") if holds else (NOT_TESTABLE, UNDECIDED)


def rescues(cells: Sequence[Cell], papers: Sequence[Cell]) -> Verdict:
    """Judge that a topology whose plain training stays at chance learns with the Surgeon."""
    tested = papers or cells
    stuck = [
        saved
        for cell in tested
        for dead, saved in zip(cell.at_chance("sgd", "validation"), above_chance(cell), strict=True)
        if dead
    ]
    interval = share_interval(sum(stuck), len(stuck)) if stuck else None
    share = "no plain training ends at chance" if not stuck else f"{sum(stuck)} of {len(stuck)} runs"
    low, high = interval or (0.0, 1.0)
    verdict, note = judged(holds=low > 0.5, fails=high < 0.5, testable=bool(papers))
    return Verdict(
        claim="What does not learn by plain training learns with the Surgeon (section 4.2)",
        published=f"on average, small topology: {', '.join(RESCUED)}",
        ours=share,
        interval=written(interval, lambda value: f"{100 * value:.0f} %"),
        verdict=verdict,
        note="; ".join(filter(None, ["reproduced where the interval lies above one half", note if stuck else ""])),
    )


def above_chance(cell: Cell) -> list[bool]:
    """Return for each seed whether the Surgeon learnt anything."""
    return [not dead for dead in cell.at_chance("surgeon", "validation")]


def rows_of(papers: Sequence[Cell]) -> Iterator[Verdict]:
    """Judge the rows of Table 3, the relative gain and the change of parameters."""
    for cell in papers:
        row, name = TABLE_3[str(cell.data.row), cell.topology], f"{cell.data.row}, {cell.topology}"
        plain = mean_of(cell.values("sgd", "validation_accuracy"))
        gains = [100 * each / plain for each in cell.differences("surgeon", "sgd", "validation")]
        dead = any(cell.at_chance("sgd", "validation"))
        if row.gain is not None:
            claim = f"Relative gain of accuracy: {name} (Table 3)"
            yield number_claim(claim, row.gain, [] if dead else gains, cell, AT_CHANCE if dead else "")
        if row.change is not None:
            changes = [
                100 * (each["surgeon"]["parameters"] / each["surgeon"]["parameters_before"] - 1) for each in cell.seeds
            ]
            yield number_claim(f"Change of parameters: {name} (Table 3)", row.change[0], changes, cell)
        if (cell.data.row, cell.topology) == ("Fashion-MNIST", "large"):
            yield reduction(cell)


def number_claim(claim: str, published: float, values: Sequence[float], cell: Cell, why_not: str = "") -> Verdict:
    """Judge a number in per cent by the interval of ours."""
    interval = mean_interval(values)
    verdict, note = judged_number(published, interval, [cell], max(NARROW, abs(published)))
    return Verdict(
        claim=claim,
        published=f"{published:+.1f} %".replace("-", "−"),
        ours=f"{mean_of(values):+.1f} %".replace("-", "−") if values else "–",
        interval=written(interval, lambda value: f"{value:+.1f}"),
        verdict=NOT_TESTABLE if why_not else verdict,
        note=why_not or "; ".join(filter(None, [note, amount(cell)])),
    )


def judged_number(
    published: float, interval: Interval | None, cells: Sequence[Cell], narrow: float
) -> tuple[Decided, str]:
    """Return whether an interval contains a number, if its half is `narrow`, or why that is not judged."""
    if not cells:
        return NOT_TESTABLE, OTHER_DATA
    if not all(map(as_in_the_paper, cells)):
        return NOT_TESTABLE, "the paper has all samples and 100 epochs"
    low, high = interval or (-math.inf, math.inf)
    inside = low <= published <= high
    return judged(holds=inside and high - low <= 2 * narrow, fails=not inside, testable=True)


def as_in_the_paper(cell: Cell) -> bool:
    """Return whether runs have all samples of a data set and as many epochs as the paper's."""
    runs = [each["surgeon"] for each in cell.seeds]
    parts = ("train_samples", "validation_samples", "test_samples")
    whole = all(sum(each[part] for part in parts) == len(cell.data.source.features) for each in runs)
    return whole and all(each["epochs"] == EPOCHS for each in runs)


def reduction(cell: Cell) -> Verdict:
    """Judge that some run loses almost 15 % of its parameters at the accuracy of plain training."""
    gains = cell.differences("surgeon", "sgd", "validation")
    kept = [change for change, gain in zip(cell.changes, gains, strict=True) if gain >= 0]
    best = min(kept, default=0.0)
    verdict, note = judged_number(REDUCTION, (best, best) if best > REDUCTION else (REDUCTION, REDUCTION), [cell], 1.0)
    return Verdict(
        claim="A run reaches plain training with about 14 % fewer parameters: Fashion-MNIST, large (Figure 4)",
        published=f"{REDUCTION:+.0f} %".replace("-", "−"),
        ours=f"{best:+.1f} %".replace("-", "−") if kept else "no run reaches plain training",
        interval="",
        verdict=verdict,
        note="; ".join(filter(None, ["the smallest network of those that reach it", note, amount(cell)])),
    )


def costs_epochs(cells: Sequence[Cell], papers: Sequence[Cell]) -> Verdict:
    """Judge how much training a run takes in all."""
    tested = papers or cells
    ratios = [each["surgeon"]["trained_epochs"] / each["surgeon"]["epochs"] for cell in tested for each in cell.seeds]
    return average_claim(
        f"Training in all, as a multiple of that of the result: {TRAINED_EPOCHS} epochs for {EPOCHS} (section 4.2)",
        TRAINED_EPOCHS / EPOCHS,
        ratios,
        "recuperation is counted; with few samples its batches are many epochs",
        papers,
    )


def draws_again(cells: Sequence[Cell], papers: Sequence[Cell]) -> Verdict:
    """Judge how often candidates are drawn again."""
    tested = papers or cells
    counts = [redraws_per_decision(each["surgeon"]["lineage"]["decisions"]) for cell in tested for each in cell.seeds]
    known = [count for count in counts if count is not None]
    return average_claim("Redraws per decision (section 4.2)", REDRAWS, known, "", papers)


def redraws_per_decision(decisions: Sequence[dict[str, Any]]) -> float | None:
    """Return how many times others were drawn, per decision; None without any."""
    numbers = {each["number"] for each in decisions}
    return (len(decisions) - len(numbers)) / len(numbers) if numbers else None


def average_claim(claim: str, published: float, values: Sequence[float], note: str, papers: Sequence[Cell]) -> Verdict:
    """Judge an average over runs by the interval of ours."""
    interval = mean_interval(values)
    verdict, why_not = judged_number(published, interval, papers, published / 2)
    return Verdict(
        claim=claim,
        published=f"{published:.2f}",
        ours=f"{mean_of(values):.2f}" if values else "–",
        interval=written(interval, lambda value: f"{value:.2f}"),
        verdict=verdict,
        note="; ".join(filter(None, [note, why_not])),
    )


def untested_rows() -> list[Verdict]:
    """Say that no row of Table 3 can be compared."""
    gains = [row.gain for row in TABLE_3.values() if row.gain is not None]
    changes = [row.change[0] for row in TABLE_3.values() if row.change is not None]
    ranges = {"Relative gain of accuracy (Table 3)": gains, "Change of parameters (Table 3)": changes}
    return [
        Verdict(
            claim=claim,
            published=f"{min(values):+.1f} to {max(values):+.1f} %".replace("-", "−"),
            ours="–",
            interval="",
            verdict=NOT_TESTABLE,
            note=OTHER_DATA,
        )
        for claim, values in ranges.items()
    ]


def amount(cell: Cell) -> str:
    """Say how much was run: the paper has all samples, 100 epochs and 15 runs."""
    first = cell.seeds[0]["surgeon"]
    runs = f"{len(cell.seeds)} run{'s' if len(cell.seeds) > 1 else ''}"
    return f"{first['train_samples']:,} samples, {first['epochs']} of {EPOCHS} epochs, {runs} of 15"


def mean_of(values: Sequence[float]) -> float:
    """Return the mean, 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def written(interval: Interval | None, write: Callable[[float], str]) -> str:
    """Write an interval, nothing where there is none."""
    return "" if interval is None else f"[{write(interval[0])}, {write(interval[1])}]".replace("-", "−")


def claims_table(verdicts: Sequence[Verdict]) -> pandas.DataFrame:
    """Return the claims as a table."""
    return pandas.DataFrame([asdict(each) for each in verdicts])
