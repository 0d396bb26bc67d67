"""What the paper of the faces claims, claim by claim, and whether it came out here.

A claim is a number or a range of the paper. Ours is a mean over repeats × folds with the 95 % interval of the corrected
resampled t (Nadeau and Bengio, 2003). The rule is one for all: the claim is reproduced where our mean lies at most
min(half the interval, cap) + tolerance from the paper's number or range. The cap keeps a few networks with a wide
interval from proving everything.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy
from scipy.stats import t

from topiarist.reproductions.faces import paper

Answer = Literal["reproduced", "not reproduced", "not testable on this data"]
CONFIDENCE = 0.95
ROUNDING = 1e-9
RULE = (
    "A claim is reproduced where our mean lies at most min(half of our 95 % interval, cap) + tolerance away from the"
    " paper's number or range. The interval is that of the corrected resampled t over repeats × folds. Cap and"
    " tolerance are 2 and 0.5 points for an accuracy, 1.5 and 0.5 points for a gain, 5 % and 5 % of the paper's number"
    " for a size (at least 1 unit each), 5 and 5 points for a share of units; the mean absolute error of Table 1 may be"
    " at most 1.5 points."
)


@dataclass(frozen=True)
class Estimate:
    """A mean over networks and its 95 % interval; of one network there is none."""

    mean: float
    half: float
    n: int

    @property
    def low(self) -> float:
        """The lower end."""
        return self.mean - self.half

    @property
    def high(self) -> float:
        """The upper end."""
        return self.mean + self.half


def estimate(values: Sequence[float], test_to_train: float) -> Estimate:
    """Return mean ± t · √((1/n + test_to_train) s²), with n − 1 degrees of freedom.

    Example: 50 accuracies with s = 4.5 over 5 × 10 folds: 2.01 · √(1/50 + 1/9) · 4.5 = 3.3 points.
    """
    array = numpy.asarray(values, dtype=numpy.float64)
    if len(array) < 2:
        return Estimate(float(array.mean()), 0.0, len(array))
    error = math.sqrt((1 / len(array) + test_to_train) * float(array.var(ddof=1)))
    return Estimate(float(array.mean()), float(t.ppf((1 + CONFIDENCE) / 2, len(array) - 1)) * error, len(array))


@dataclass(frozen=True, kw_only=True)
class Claim:
    """What the paper says: a range [low, high] (a number has both ends the same), and how near ours has to be."""

    part: str
    text: str
    low: float
    high: float
    unit: str
    tolerance: float
    cap: float
    shown: str = ""

    @property
    def name(self) -> str:
        """Where the paper says it, and what it says."""
        return self.text if self.part in self.text else f"{self.part}: {self.text}"

    @property
    def number(self) -> str:
        """The paper's number or range in words."""
        if self.shown:
            return self.shown
        if self.low == self.high:
            return f"{self.low:{'+' if self.unit == 'points' else ''}g} {self.unit}"
        if math.isinf(self.high):
            return f"{self.low:g} {self.unit} or more"
        return (
            f"at most {self.high:g} {self.unit}"
            if math.isinf(self.low)
            else f"{self.low:g} to {self.high:g} {self.unit}"
        )

    def holds(self, found: Estimate) -> bool:
        """Apply the rule."""
        margin = min(found.half, self.cap) + self.tolerance + ROUNDING
        return self.low - margin <= found.mean <= self.high + margin


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A claim, what came out here, and the answer."""

    claim: Claim
    ours: Estimate
    answer: Answer
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values; an open end of a range is null."""
        ends = {
            name: value if math.isfinite(value) else None for name, value in asdict(self.claim).items() if name in ENDS
        }
        return {
            "part": self.claim.part,
            "claim": self.claim.text,
            "paper": self.claim.number,
            "paper_low": ends["low"],
            "paper_high": ends["high"],
            "unit": self.claim.unit,
            "ours": self.ours.mean,
            "low": self.ours.low,
            "high": self.ours.high,
            "networks": self.ours.n,
            "tolerance": self.claim.tolerance,
            "cap": self.claim.cap,
            "note": self.note,
            "verdict": self.answer,
        }


ENDS = ("low", "high")


def judge(claim: Claim, found: Estimate, *, testable: bool, note: str = "") -> Verdict:
    """Return the verdict; on other data than the paper's, a claim is not testable."""
    if not testable:
        return Verdict(claim=claim, ours=found, answer="not testable on this data", note=note)
    answer: Answer = "reproduced" if claim.holds(found) else "not reproduced"
    return Verdict(claim=claim, ours=found, answer=answer, note=note)


def accuracy_claim(part: str, text: str, number: float) -> Claim:
    """An accuracy in per cent."""
    return Claim(part=part, text=text, low=number, high=number, unit="%", tolerance=0.5, cap=2.0)


def gain_claim(part: str, text: str, low: float, high: float | None = None) -> Claim:
    """A difference of accuracies in points."""
    end = low if high is None else high
    return Claim(part=part, text=text, low=low, high=end, unit="points", tolerance=0.5, cap=1.5)


def size_claim(part: str, text: str, low: float, high: float) -> Claim:
    """A number of units that is left: tolerances follow the paper's number, not the start, which may be far above."""
    near = max(1.0, 0.05 * high)
    return Claim(part=part, text=text, low=low, high=high, unit="units", tolerance=near, cap=near)


def share_claim(part: str, text: str, low: float, high: float) -> Claim:
    """A share of the units that is removed, in per cent."""
    return Claim(part=part, text=text, low=low, high=high, unit="% removed", tolerance=5.0, cap=5.0)


def counted(verdicts: Iterable[Verdict]) -> Mapping[Answer, int]:
    """Count the answers."""
    found: dict[Answer, int] = {"reproduced": 0, "not reproduced": 0, "not testable on this data": 0}
    for verdict in verdicts:
        found[verdict.answer] += 1
    return found


def table_1_claim(rate: float, size: int) -> Claim:
    """One cell of Table 1."""
    return accuracy_claim("Table 1", f"learning rate {rate:g}, {size} units", paper.TABLE_1[rate][size])
