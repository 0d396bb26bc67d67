"""How sizes were tested, the test of each, and what was decided."""

from typing import Literal

from topiarist.settings import Record

GUESSING: Literal["no better than guessing"] = "no better than guessing"
OWN_NOTE = "p is that of the network to keep, which lost more than is allowed on the validation part"
FARTHER_NOTE = "p is for a larger loss: the network to keep is farther from its teacher than those that were judged"
RecordStatus = Literal["proven", "unproven", "unchanged", "no better than guessing", "unreachable"]
SizeVerdict = Literal["proven", "not proven", "rejected", "no better than guessing"]
Agreement = Literal["confirms", "does not contradict", "contradicts"]


class OfferRecord(Record):
    """A network that is smaller than the chosen one, not proven and not rejected, and its file beside the others."""

    network: str
    file: str


class VerdictRecord(Record):
    """What was decided; `agreement` is what the test part says of it, `power` and samples are of the deciding test."""

    status: RecordStatus
    sentence: str
    agreement: Agreement | None
    chosen: str
    offered: tuple[OfferRecord, ...] = ()
    why: tuple[str, ...]
    power: float | None
    samples: int | None
    samples_needed: int | None


class EachProofRecord(Record):
    """The test of one target or label by itself; `p` and `proven` are Holm's over all of them, `low` is of it alone."""

    difference: float
    low: float
    p: float
    proven: bool


class RungRecord(Record):
    """The test of one size; the figures are those of `statistics.compare`.

    `difference` is positive where the smaller network is better. `won`, `lost` and `discordant` are of decisions alone,
    `r2_difference` of numbers. `verdict` follows from the figures: see `verdict_of`; `level` is that of the test, which
    p may not exceed; `inferior` is whether the size was shown to lose more than is allowed. p is for a loss that is
    `times_as_far` as large: None where the network to keep has no finite answers. `guess_difference` and
    `guess_low` are against the best constant answer; `each` has the tests one by one where they were asked for.
    """

    ratio: float
    network: str
    verdict: SizeVerdict
    inferior: bool
    tested: bool
    level: float
    score: float
    baseline_score: float
    difference: float
    low: float
    high: float
    p: float
    won: float | None = None
    lost: float | None = None
    discordant: float | None = None
    r2_difference: float | None = None
    samples: int
    power: float
    samples_needed: int
    times_as_far: float | None = 1.0
    guess_difference: float
    guess_low: float
    beats_guess: bool
    chosen_by_fold: tuple[str, ...]
    each: tuple[EachProofRecord, ...] = ()
    notes: tuple[str, ...] = ()


class GuessRecord(Record):
    """The best constant answer of the training parts over the same samples, and how the baseline compares with it."""

    answer: str
    score: float | None
    baseline_score: float | None
    difference: float
    low: float
    samples: int
    beaten: bool


class DecisionRecord(Record):
    """How sizes were tested, and the test of each; the samples needed are those that give `wanted_power`."""

    test: str
    order: str
    wanted_power: float
    guess: GuessRecord
    rungs: tuple[RungRecord, ...]


def verdict_of(
    difference: float, p: float, *, margin: float, level: float, tested: bool, beats_guess: bool
) -> SizeVerdict:
    """Return the word for a size.

    It is *rejected* only where the loss that was observed exceeds the margin, as it does wherever a loss beyond the
    margin is shown; *proven* where the opposite is shown in its turn, and that it is better than guessing.
    """
    if difference < -margin:
        return "rejected"
    if not beats_guess:
        return GUESSING
    return "proven" if tested and p <= level else "not proven"
