"""Chooses the network: the smallest that is proven not to be worse, or the best that can be had, and says which."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from topiarist.rightsizing.deciding import Judgement
from topiarist.rightsizing.descending import LITTLE, Descent

SMALLEST_SHOWN = 0.001
Status = Literal["proven", "unproven", "unchanged"]


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why; without a judgement, the baseline stays."""

    status: Status
    judgement: Judgement | None
    why: tuple[str, ...]


def choose(descent: Descent, judged: Sequence[Judgement], *, margin: float, baseline_fits: bool) -> Choice | None:
    """Choose among the sizes that were judged; None where nothing fits the budget and is good enough."""
    possible = [each for each in judged if descent.keeps_budget(each.rung)]
    proven = [each for each in possible if each.proven]
    if proven:
        return Choice("proven", proven[-1], (proof(proven[-1], margin), *limit_of(judged, proven[-1])))
    close = [each for each in possible if each.evidence.difference >= -LITTLE * margin]
    if close:
        return Choice("unproven", close[-1], (doubt(close[-1], margin),))
    if baseline_fits:
        return Choice("unchanged", None, nothing_smaller(judged, margin))
    return None


def proof(judgement: Judgement, margin: float) -> str:
    """Say what proves a size."""
    found = judgement.evidence
    return (
        f"{judgement.rung.target.ratio:.3g} × smaller is proven not to be worse by more than {points(margin)}:"
        f" {signed(found.difference)} over {found.samples:,} samples, {shown_p(found.p)}"
    )


def limit_of(judged: Sequence[Judgement], chosen: Judgement) -> tuple[str, ...]:
    """Say why the next size is not it."""
    after = judged[judged.index(chosen) + 1 :]
    if not after:
        return ()
    found = after[0].evidence
    ratio = after[0].rung.target.ratio
    return (f"{ratio:.3g} × smaller is not proven: {signed(found.difference)}, {shown_p(found.p)}",)


def doubt(judgement: Judgement, margin: float) -> str:
    """Say what is missing for a proof."""
    found = judgement.evidence
    return (
        f"{judgement.rung.target.ratio:.3g} × smaller showed {signed(found.difference)} over {found.samples:,} samples,"
        f" which cannot prove a loss below {points(margin)}: the power was {found.power:.0%},"
        f" and {found.samples_needed:,} samples would make it 80 %"
    )


def nothing_smaller(judged: Sequence[Judgement], margin: float) -> tuple[str, ...]:
    """Say why the baseline stays."""
    if not judged:
        return ("no smaller network could be made",)
    found, ratio = judged[0].evidence, judged[0].rung.target.ratio
    showed = f"already {ratio:.3g} × smaller showed {signed(found.difference)} over {found.samples:,} samples"
    return (f"{showed}; {points(margin)} may be lost",)


def points(share: float) -> str:
    """Write a share as points."""
    number = 100 * share
    return f"{number:g} point{'' if number == 1 else 's'}"


def signed(share: float) -> str:
    """Write a difference of shares as points with their sign."""
    return f"{100 * share:+.2f} points"


def shown_p(p: float) -> str:
    """Write a p as people do."""
    return "p < 0.001" if p < SMALLEST_SHOWN else f"p = {p:.2g}"
