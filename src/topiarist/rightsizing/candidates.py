"""Candidates: the networks of one size, which of them is trained on, and whether smaller sizes are worth a try."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from topiarist.methods.outcome import Outcome
from topiarist.methods.registry import find_method
from topiarist.rightsizing.judging import JudgedAnswers
from topiarist.statistics import PairedEvidence

LITTLE = 0.5  # of the loss that is allowed
FALLEN_BEHIND = 1.6  # times the distance of the best, after which a method is asked no more in a fold
ASKED_AGAIN = 2  # methods of a fold, after the first size
ALIKE = 0.003  # a distance from the teacher, in nats or squared deviations, that is next to none
DEEPER = 1.5  # times the distance of a network with more layers: it must be clearly nearer to win


@dataclass(frozen=True)
class Candidate:
    """A network of one fold, its answers to the samples judged where it is, and its distance from the teacher."""

    outcome: Outcome
    answers: JudgedAnswers | None
    distance: float


@dataclass(frozen=True, kw_only=True)
class SizeResult:
    """All networks of one size, by fold and in it by method; the finalist of each fold with its method; the test.

    The last fold is that of the networks to keep. `tested` is whether the turn of the test came, all sizes before it
    in the order of tests being proven, and `level` that of its test. `guess` compares it with the best constant answer,
    and `beats_guess` is whether it is shown to be better; `times_as_far` is how many times as far from its teacher the
    network to keep is as those that were judged.
    """

    ratio: float
    folds: Sequence[Mapping[str, Candidate]]
    winners: Sequence[str]
    finalists: Sequence[Candidate]
    evidence: PairedEvidence
    guess: PairedEvidence
    beats_guess: bool
    times_as_far: float
    tested: bool
    level: float

    @property
    def name(self) -> str:
        """The name of its finalist."""
        return f"final-{self.ratio:.4g}"

    @property
    def kept(self) -> Outcome:
        """The finalist to keep."""
        return self.finalists[-1].outcome

    @property
    def proven(self) -> bool:
        """Whether it is proven to be better than a guess and not worse than the baseline: both at the full level.

        Where all of several tests must succeed, no correction is due (Berger, 1982).
        """
        return self.tested and self.evidence.proven and self.beats_guess


def promising(sizes: Sequence[SizeResult], margin: float) -> bool:
    """Return whether smaller sizes are worth a try: the last is proven, or none is and it lost little."""
    if any(size.proven for size in sizes):
        return sizes[-1].proven
    return sizes[-1].evidence.difference >= -LITTLE * margin


def still_asked(fold: Mapping[str, Candidate]) -> list[str]:
    """Return the methods of a fold to ask again: the best, and the next where it has not fallen behind."""
    best = min(candidate.distance for candidate in fold.values())
    close = [name for name, candidate in fold.items() if candidate.distance <= FALLEN_BEHIND * best + ALIKE]
    return sorted(close, key=lambda name: fold[name].distance)[:ASKED_AGAIN]


def nearest(fold: Mapping[str, Candidate]) -> str:
    """Return the method whose network is nearest to the teacher, the first of equals.

    Where two layers replace one, they take longer to call: that network must be clearly nearer.
    """
    return min(fold, key=lambda name: fold[name].distance * (DEEPER if find_method(name).traits.adds_layers else 1.0))


def joint(candidates: Sequence[Candidate]) -> Candidate:
    """Return the nearest of networks that differ by luck alone, with the answers of them all."""
    best = min(candidates, key=lambda candidate: candidate.distance)
    answers = [candidate.answers for candidate in candidates if candidate.answers is not None]
    return replace(best, answers=answers[0].with_networks(answers[1:]) if answers else None)
