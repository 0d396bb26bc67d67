"""What is written down of each model on each split: typed, and plain values in JSON."""

from benchmarks.paging.records import Measurement
from topiarist.settings import Record


class TableScore(Record):
    """One model on one split: accuracy or R² on the test part, size of its file, processor seconds of its training.

    Of what rightsizing hands out, also its parameters and the verdict.
    """

    table: str
    split: int
    contender: str
    task: str
    rows: int
    tested: int
    score: float
    kilobytes: float | None = None
    seconds: float | None = None
    parameters: int | None = None
    verdict: str | None = None

    @property
    def key(self) -> tuple[str, int, str]:
        """What was measured."""
        return self.table, self.split, self.contender


class TableResults(Measurement):
    """All scores that were measured."""

    scores: tuple[TableScore, ...] = ()
