"""What the test part says, which no decision saw."""

from topiarist.rightsizing.record.decisions import Agreement
from topiarist.settings import Record


class EstimateRecord(Record):
    """A metric's value for one network, with a confidence interval; None where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None


class EachRecord(Record):
    """The primary metric of one class, target or label on the test part, and how many samples have it."""

    samples: int
    before: EstimateRecord
    after: EstimateRecord


class ConfirmationRecord(Record):
    """The chosen network against the baseline on the test part, which no decision saw; all metrics by name.

    `low` and `high` are one-sided bounds of the difference; `score` is the metric that decides, with intervals of
    `confidence`.
    """

    before: dict[str, float | None]
    after: dict[str, float | None]
    score: EachRecord
    confidence: float = 0.95
    each: tuple[EachRecord, ...] = ()
    difference: float
    low: float
    high: float
    p: float
    proven: bool
    won: float | None = None
    lost: float | None = None
    r2_difference: float | None = None
    samples: int
    power: float
    samples_needed: int


class CalibrationRecord(Record):
    """The temperature of the chosen network, fitted on the validation part, and what it does on the test part."""

    temperature: float
    samples: int
    before: dict[str, float | None]
    after: dict[str, float | None]


class ConfusionRecord(Record):
    """Samples of each class (rows) that were taken for each class, on the test part."""

    before: tuple[tuple[int, ...], ...] = ()
    after: tuple[tuple[int, ...], ...] = ()


def agreement_of(test: ConfirmationRecord | None, margin: float) -> Agreement | None:
    """Return what the test part says: only bounds that lie within the margin confirm, only such beyond contradict."""
    if test is None:
        return None
    if test.proven and test.low >= -margin:
        return "confirms"
    return "contradicts" if test.high < -margin else "does not contradict"
