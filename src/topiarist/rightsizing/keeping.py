"""The network to keep, beside those of its size that were judged: folds judge networks made like it, on average.

A single small network may have failed where the others did not. Two things are known of it: how far its answers are
from its teacher's, and how it compares with the baseline on the validation part.
benchmarks/README.md: how often a proof is false.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from topiarist.rightsizing.candidates import Candidate
from topiarist.rightsizing.folds import Fold
from topiarist.rightsizing.judging import evidence_of
from topiarist.rightsizing.record import FARTHER_NOTE, OWN_NOTE
from topiarist.statistics import PairedEvidence

FEWEST_TO_SPEAK = 2  # samples of the validation part

# Level of the one-sided bound of the network to keep: 0.05 would miss half of those that fail by 1.6 standard errors;
# at 0.2, one that loses nothing is refused in 2 % of cases where the margin is 1.2 standard errors wide.
SPEAKS_AGAINST = 0.2

Test = Callable[[float], PairedEvidence]  # of the answers that were judged, at a margin


def times_as_far(finalists: Sequence[Candidate]) -> float:
    """Return how many times as far from its teacher the last network is as the others are on average; at least 1.

    Each distance is that of a network on the validation part of its own fold.
    """
    *judged, kept = (finalist.distance for finalist in finalists)
    usual = math.fsum(judged) / len(judged)
    if not math.isfinite(kept) or not math.isfinite(usual):
        return 1.0 if math.isfinite(kept) else math.inf
    return max(kept / usual, 1.0) if usual > 0 else 1.0


def with_distance(found: PairedEvidence, times: float, test: Test) -> PairedEvidence:
    """Return what folds show of a size, if the network to keep loses so many times what those that were judged lose.

    p is that of a margin which is smaller by the rest of the loss; a size that loses nothing keeps its own.

    Examples
    --------
    With a margin of 1 point, networks that were judged lost 0.4 points, and the one to keep is 1.5 times as far from
    its teacher: it is taken to lose 0.6 points. So 0.2 points of the margin are spent, and p is that of 0.8 points.
    """
    if times == 1 or (found.difference >= 0 and math.isfinite(times)):
        return found
    room = found.margin + (times - 1) * found.difference
    if not room > 0:
        return _with_p(found, 1.0, FARTHER_NOTE)
    stricter = test(room)
    return _with_p(found, stricter.p, FARTHER_NOTE, proven=stricter.proven)


def with_own(found: PairedEvidence, folds: Sequence[Fold], finalists: Sequence[Candidate]) -> PairedEvidence:
    """Return what folds show of a size, unless the network to keep itself speaks against it on the validation part.

    Where its bound at `SPEAKS_AGAINST` lies beyond the margin there, p is at least that of its own test. Training of
    the baselines was stopped by that part, and so flatters them. By how much is seen in the folds, whose validation
    parts flatter theirs: networks of this size lose so much more there than where they are judged.
    """
    *judged, last = zip(folds, finalists, strict=True)

    def own(margin: float) -> PairedEvidence:
        return _validated([last], margin)

    if len(last[0].data.validation) < FEWEST_TO_SPEAK or not _speaks_against(own(found.margin)):
        return found
    flattery = max(found.difference - _validated(judged, found.margin).difference, 0.0)
    speaking = own(found.margin + flattery)
    return _with_p(found, speaking.p, OWN_NOTE) if _speaks_against(speaking) else found


def _validated(made: Sequence[tuple[Fold, Candidate]], margin: float) -> PairedEvidence:
    """Compare networks with the baselines of their folds on the validation parts."""
    candidates = [fold.validated([finalist.outcome.model]) for fold, finalist in made]
    baselines = [fold.validated(fold.members) for fold, _ in made]
    return evidence_of(candidates, baselines, margin=margin, alpha=SPEAKS_AGAINST)


def _speaks_against(own: PairedEvidence) -> bool:
    """Return whether a network's own answers show that it loses more than its margin, at the level of their bound."""
    return own.high < -own.margin


def _with_p(found: PairedEvidence, p: float, note: str, *, proven: bool = False) -> PairedEvidence:
    """Return evidence with a larger p, and why; as it is where p is no larger."""
    if p <= found.p:
        return found
    return replace(found, p=p, proven=proven, notes=(*found.notes, note))
