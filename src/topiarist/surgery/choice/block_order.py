"""In which order residual blocks are best given up: always the one whose removal costs least for what it frees.

The cost is how much further the answers are from those of the whole network when the block is passed over, without any
compensation: one forward pass of some calibration samples per block. After each block, the cheapest of the others are
looked at again, as blocks make up for each other.
"""

from collections.abc import Callable, Sequence

from torch import nn

from topiarist.surgery.choice.distance import AnswerDistance
from topiarist.surgery.depth.blocks import Block
from topiarist.surgery.depth.passing_over import pass_over
from topiarist.surgery.edits.kinds import RemoveBlock
from topiarist.tracing.running import sharing_copy

AGAIN = 6  # blocks that are looked at again after each removal: those that were cheapest before


def without_blocks(model: nn.Module, blocks: Sequence[Block]) -> nn.Module:
    """Return a copy that shares its parameters with a network, and passes over some blocks."""
    network = sharing_copy(model)
    pass_over(network, RemoveBlock(blocks={block.name: block.passage for block in blocks}))
    return network


def order_blocks(
    model: nn.Module, blocks: Sequence[Block], distance: AnswerDistance, freed: Callable[[Block], float]
) -> list[Block]:
    """Return blocks in the order in which they are given up; `freed` is the part of a budget that each frees.

    A block that lies in another, or holds it, is left out once that one goes.
    """
    order: list[Block] = []
    left = list(blocks)
    costs: dict[str, float] = {}
    while left:
        looked_at = left if not costs else sorted(left, key=lambda block: costs[block.name])[:AGAIN]
        before = distance.of(without_blocks(model, order)) if order else 0.0
        for block in looked_at:
            further = distance.of(without_blocks(model, [*order, block])) - before
            costs[block.name] = max(further, 0.0) / max(freed(block), 1e-12)
        best = min(looked_at, key=lambda block: costs[block.name])
        order.append(best)
        left = [each for each in left if each is not best and not _nested(each.name, best.name)]
    return order


def _nested(one: str, other: str) -> bool:
    return one.startswith(f"{other}.") or other.startswith(f"{one}.")
