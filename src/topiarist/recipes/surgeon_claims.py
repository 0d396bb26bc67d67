"""The claims of the Surgeon's paper, each with its number, ours with an interval, and whether it is reproduced.

Claims are tested with the published setting alone, on the validation part, which is what the paper reports, and against
plain training with SGD, which is its baseline. A number is reproduced where it lies within our 95 % interval.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import pandas

from topiarist.recipes.surgeon_paper import EPOCHS, REDRAWS, REDUCTION, TABLE_3, TRAINED_EPOCHS
from topiarist.recipes.surgeon_statistics import Interval, mean_interval, share_interval
from topiarist.recipes.surgeon_tables import AT_CHANCE, Cell

Judgement = Literal["reproduced", "not reproduced", "not testable on this data"]
NOT_TESTABLE: Judgement = "not testable on this data"
RESCUED = ("SVHN", "CIFAR-10", "EuroSAT")  # section 4.2: there the small baseline does not learn
OTHER_DATA = "not the paper's data"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One claim of the paper; `interval` is empty where there is none."""

    claim: str
    published: str
    ours: str
    interval: str
    verdict: Judgement
    note: str = ""


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
    known = [each for each in intervals if each is not None]
    found: Judgement = "not reproduced" if any(high < 0 for _, high in known) else "reproduced"
    points = f"{100 * means[lowest]:+.1f}".replace("-", "−")
    worst = f"lowest: {tested[lowest].data.name}, {tested[lowest].topology}"
    return Verdict(
        claim=claim,
        published=published,
        ours=f"{sum(mean >= 0 for mean in means)} of {len(means)}; {worst}, {points} points",
        interval=written(intervals[lowest], lambda value: f"{100 * value:+.1f}"),
        verdict=found if papers and len(known) == len(intervals) else NOT_TESTABLE,
        note="; ".join(filter(None, ["reproduced unless an interval lies below 0", missing(papers, intervals)])),
    )


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
    found: Judgement = "reproduced" if interval is not None and interval[0] > 0.5 else "not reproduced"
    return Verdict(
        claim="What does not learn by plain training learns with the Surgeon (section 4.2)",
        published=f"on average, small topology: {', '.join(RESCUED)}",
        ours=share,
        interval=written(interval, lambda value: f"{100 * value:.0f} %"),
        verdict=found if papers and stuck else NOT_TESTABLE,
        note="reproduced where the interval lies above one half" + ("" if papers else f"; {OTHER_DATA}"),
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
    inside: Judgement = "not reproduced"
    if interval is not None and interval[0] <= published <= interval[1]:
        inside = "reproduced"
    return Verdict(
        claim=claim,
        published=f"{published:+.1f} %".replace("-", "−"),
        ours=f"{mean_of(values):+.1f} %".replace("-", "−") if values else "–",
        interval=written(interval, lambda value: f"{value:+.1f}"),
        verdict=inside if interval is not None else NOT_TESTABLE,
        note=why_not or (f"one run has no interval; {amount(cell)}" if interval is None else amount(cell)),
    )


def reduction(cell: Cell) -> Verdict:
    """Judge that some run loses almost 15 % of its parameters at the accuracy of plain training."""
    gains = cell.differences("surgeon", "sgd", "validation")
    kept = [change for change, gain in zip(cell.changes, gains, strict=True) if gain >= 0]
    best = min(kept, default=0.0)
    return Verdict(
        claim="A run reaches plain training with about 14 % fewer parameters: Fashion-MNIST, large (Figure 4)",
        published=f"{REDUCTION:+.0f} %".replace("-", "−"),
        ours=f"{best:+.1f} %".replace("-", "−") if kept else "no run reaches plain training",
        interval="",
        verdict="reproduced" if best <= REDUCTION else "not reproduced",
        note=f"the smallest network of those that reach it; {amount(cell)}",
    )


def costs_epochs(cells: Sequence[Cell], papers: Sequence[Cell]) -> Verdict:
    """Judge how much training a run takes in all."""
    tested = papers or cells
    ratios = [each["surgeon"]["trained_epochs"] / each["surgeon"]["epochs"] for cell in tested for each in cell.seeds]
    return average_claim(
        f"Training in all, as a multiple of that of the result: {TRAINED_EPOCHS} epochs for {EPOCHS} (section 4.2)",
        TRAINED_EPOCHS / EPOCHS,
        ratios,
        "recuperation is counted; with few samples its batches are many epochs" if papers else OTHER_DATA,
        testable=bool(papers),
    )


def draws_again(cells: Sequence[Cell], papers: Sequence[Cell]) -> Verdict:
    """Judge how often candidates are drawn again."""
    tested = papers or cells
    counts = [redraws_per_decision(each["surgeon"]["lineage"]["decisions"]) for cell in tested for each in cell.seeds]
    known = [count for count in counts if count is not None]
    claim = "Redraws per decision (section 4.2)"
    return average_claim(claim, REDRAWS, known, "" if papers else OTHER_DATA, testable=bool(papers))


def redraws_per_decision(decisions: Sequence[dict[str, Any]]) -> float | None:
    """Return how many times others were drawn, per decision; None without any."""
    numbers = {each["number"] for each in decisions}
    return (len(decisions) - len(numbers)) / len(numbers) if numbers else None


def average_claim(claim: str, published: float, values: Sequence[float], note: str, *, testable: bool) -> Verdict:
    """Judge an average over runs by the interval of ours."""
    interval = mean_interval(values)
    inside = interval is not None and interval[0] <= published <= interval[1]
    found: Judgement = "reproduced" if inside else "not reproduced"
    return Verdict(
        claim=claim,
        published=f"{published:.2f}",
        ours=f"{mean_of(values):.2f}" if values else "–",
        interval=written(interval, lambda value: f"{value:.2f}"),
        verdict=found if testable and interval is not None else NOT_TESTABLE,
        note=note,
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


def missing(papers: Sequence[Cell], intervals: Sequence[Interval | None]) -> str:
    """Say why a claim is not tested."""
    if not papers:
        return OTHER_DATA
    return "one run has no interval" if None in intervals else ""


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
