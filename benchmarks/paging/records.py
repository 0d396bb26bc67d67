"""What all results have in common: when, on what, with which versions; and figures that need no rows of their own."""

import statistics
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

from pydantic import Field

from topiarist.settings import Record

Role = Literal["ours", "variant", "rival", "aim", ""]  # a variant is ours with something left out or added
Cell = str | int | float | None


class Measure(NamedTuple):
    """What is better, more or less of it ("" where neither is), and how several values become one."""

    better: Literal["more", "less", ""]
    summary: Callable[[Sequence[float]], float]


MEASURES: dict[str, Measure] = {
    "accuracy, %": Measure("more", statistics.fmean),
    "macro accuracy, %": Measure("more", statistics.fmean),
    "R²": Measure("more", statistics.fmean),
    "score": Measure("more", statistics.fmean),
    "fitness": Measure("more", statistics.fmean),
    "hypervolume": Measure("more", statistics.fmean),
    "points lost": Measure("less", statistics.fmean),
    "false claims, %": Measure("less", statistics.fmean),
    "seconds": Measure("less", min),  # of rounds: the one least disturbed
    "seconds of a fit": Measure("less", statistics.fmean),  # over seeds, each with a table of its own
    "processor seconds": Measure("", min),
    "milliseconds": Measure("less", min),
    "milliseconds of a search": Measure("less", statistics.fmean),  # over seeds, of each the best of its rounds
    "error, %": Measure("less", max),
    "share of latency": Measure("", statistics.median),
    "log loss": Measure("less", statistics.fmean),
    "loss": Measure("less", statistics.fmean),  # that of the task
    "times the samples' bytes": Measure("less", max),
    "GB": Measure("less", max),
    "MB": Measure("less", max),
    "KB": Measure("less", statistics.fmean),
    "times fewer parameters": Measure("", statistics.fmean),
    "count": Measure("", statistics.fmean),
    "zeros, %": Measure("", statistics.fmean),
    "difference": Measure("", max),  # the largest, between two that should be the same
}


class Measurement(Record):
    """When, on what, with which versions and which code something was measured.

    The commit is the last one that changed the library. Where figures were copied from the page as it was when it was
    written by hand, `transcribed` is set, and date and commit are those of the lines that were copied.
    """

    version: int = 1
    command: str = ""
    date: str = ""
    processor: str = ""
    packages: dict[str, str] = Field(default_factory=dict)
    commit: str = ""
    transcribed: bool = False


class Figure(Record):
    """One quantity of one contender in one case: a value per seed or round, or a mean with its spread."""

    table: str = ""
    case: str
    contender: str
    measure: str
    values: tuple[float, ...]
    spread: float | None = None  # the standard deviation, where the single values are not known
    role: Role = ""

    @property
    def value(self) -> float:
        """Return the values as one."""
        return MEASURES[self.measure].summary(self.values)

    @property
    def deviation(self) -> float | None:
        """Return the standard deviation over the values; None where there is one alone."""
        return statistics.stdev(self.values) if len(self.values) > 1 else self.spread


class Grid(Record):
    """A table as it is printed."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Sheet(Measurement):
    """Results of a benchmark without rows of its own: figures, tables as printed, and notes on them."""

    figures: tuple[Figure, ...] = ()
    grids: dict[str, Grid] = Field(default_factory=dict)
    notes: dict[str, str] = Field(default_factory=dict)

    def find(self, case: str, contender: str, measure: str, table: str = "") -> Figure:
        """Return the figure that is asked for."""
        key = (table, case, contender, measure)
        return next(each for each in self.figures if (each.table, each.case, each.contender, each.measure) == key)


class Comparison(Record):
    """Ours beside one rival, or beside what we set out for, in one case."""

    case: str
    measure: str
    better: Literal["more", "less"]
    ours: float
    theirs: float
    rival: str
    aim: bool = False
    spread: float | None = None  # of the difference: a smaller one may be luck

    @property
    def lost(self) -> bool:
        """Whether the rival is ahead, or the aim is missed."""
        return self.theirs > self.ours if self.better == "more" else self.theirs < self.ours
