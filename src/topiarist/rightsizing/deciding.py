"""Decides which size is small enough and good enough: sizes are tested one after the other, the largest first.

In each fold, and at each size, the best network by the validation part is taken, whichever method made it, and trained
on; then its answers to the samples that no decision saw are compared with the baseline's. The sizes are tested in a
fixed order until one fails, each at the full level: no correction for many tests is due (Maurer, Hothorn and Lehmacher,
1995).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy

from topiarist.rightsizing.effort import MethodName
from topiarist.rightsizing.folds import Answers, Fold
from topiarist.rightsizing.making import Made, Target
from topiarist.statistics import PairedEvidence, compare_answers

DEEPER = 1.5  # times the distance of a network with more layers


@dataclass(frozen=True)
class Candidate:
    """A network of one fold, its answers to the samples judged, and its distance from the teacher."""

    made: Made
    answers: Answers
    distance: float


@dataclass(frozen=True)
class Rung:
    """All networks of one size, by fold and in it by method, and the finalist of each fold with its method.

    The last fold is that of the networks to keep.
    """

    target: Target
    folds: Sequence[Mapping[MethodName, Candidate]]
    winners: Sequence[MethodName]
    finalists: Sequence[Candidate]

    @property
    def answers(self) -> Answers:
        """The answers of the finalists in all folds but the last."""
        return numpy.concatenate([finalist.answers for finalist in self.finalists[:-1]])


def nearest(fold: Mapping[MethodName, Candidate]) -> MethodName:
    """Give the method whose network is nearest to the teacher, the first of equals.

    Factorisation makes two layers of one, which take longer to call: its network must be clearly nearer.
    """
    return min(fold, key=lambda name: fold[name].distance * (DEEPER if name == "factorisation" else 1.0))


def joint(candidates: Sequence[Candidate]) -> Candidate:
    """Give the nearest of networks that differ by luck alone, with the share of them that is right as its answers."""
    best = min(candidates, key=lambda candidate: candidate.distance)
    return replace(best, answers=numpy.mean([candidate.answers for candidate in candidates], axis=0))


@dataclass(frozen=True)
class Judgement:
    """What is known of a size: the evidence, and whether the turn of its test came, all larger ones being proven."""

    rung: Rung
    evidence: PairedEvidence
    tested: bool

    @property
    def proven(self) -> bool:
        """Whether it is proven not to be worse."""
        return self.tested and self.evidence.proven


def judge(rungs: Sequence[Rung], baseline: Answers, *, margin: float, alpha: float) -> list[Judgement]:
    """Test sizes in their order; after the first that fails, none is proven."""
    found: list[Judgement] = []
    for rung in rungs:
        evidence = compare_answers(rung.answers, baseline, margin=margin, alpha=alpha)
        found.append(Judgement(rung, evidence, tested=not found or found[-1].proven))
    return found


def baseline_answers(folds: Sequence[Fold]) -> Answers:
    """Give the answers of the baselines in all folds but the last."""
    return numpy.concatenate([numpy.zeros(0), *(fold.baseline_answers for fold in folds[:-1])])
