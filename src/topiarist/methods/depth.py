"""Blocks beside units: how many residual blocks go, where a budget is to be met by both.

For each number of blocks, in the order in which they are best given up, the widths of what is left are allotted to the
same budget, and the network is cut and refitted. The one whose answers are nearest to those of the whole network, on
calibration data without labels, is taken.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from topiarist.errors import ModelError
from topiarist.methods.job import Limits, Request
from topiarist.methods.method import Proposal
from topiarist.surgery import Block, Plan, apply, blocks, plan_of
from topiarist.surgery.choice.allotment import LimitError
from topiarist.surgery.choice.block_order import order_blocks
from topiarist.surgery.choice.costs import Measure
from topiarist.surgery.choice.distance import AnswerDistance
from topiarist.surgery.depth.block_proof import prove_blocks
from topiarist.surgery.edits.kinds import RemoveBlock

ORDERED_BY = 256  # calibration samples that tell what a block costs: a rough order is enough
JUDGED_BY = 2048  # that tell which network is nearest
ALIKE = 0.1  # limits that differ by less than this share ask for the same number of blocks
PATIENCE = 2  # numbers of blocks in a row that are no better, after which no more are tried
Make = Callable[[Request], Proposal]  # what it proposes has the network with its edits made


@dataclass(frozen=True)
class DepthCandidate:
    """A network with so many blocks less, and how far its answers are from those of the whole one."""

    count: int
    proposal: Proposal
    distance: float


def propose_with_blocks(request: Request, make: Make) -> Proposal:
    """Return the nearest of what is proposed for a network with no, one, two … blocks less, within the limits."""
    order = request.remember("order of blocks", lambda: _order(request))
    if not order:
        return make(request)
    known: dict[int, Limits] = request.remember("numbers of blocks", dict)
    count = next((count for count, limits in known.items() if _alike(limits, request.limits)), None)
    if count is not None:
        return _candidate(request, make, order, count).proposal
    best = _nearest(request, make, order)
    known[best.count] = request.limits
    for other in range(1, len(order) + 1):  # a network each
        if other not in known:
            request.memory.pop(_key(other), None)
    return best.proposal


def _nearest(request: Request, make: Make, order: list[Block]) -> DepthCandidate:
    """Return the best candidate; numbers of blocks are tried upwards, as long as more of them help."""
    best: DepthCandidate | None = None
    nearest_limit: LimitError | None = None
    worse = 0
    for count in range(len(order) + 1):
        try:
            found = _candidate(request, make, order, count)
        except LimitError as error:
            if nearest_limit is None or error.fewest < nearest_limit.fewest:
                nearest_limit = error
            continue
        except ModelError:  # the network's own code does not allow that these blocks go together, nor any more
            if not count:
                raise
            break
        if count and math.isinf(found.distance):  # it answers nothing any more
            break
        worse = 0 if best is None or found.distance < best.distance else worse + 1
        best = found if worse == 0 else best
        if worse == PATIENCE or not _has_room(found.proposal):
            break
    if best is None:
        assert nearest_limit is not None
        raise nearest_limit
    return best


def _has_room(proposal: Proposal) -> bool:
    """Return whether units had to go as well: else more blocks only lose more."""
    return any(not isinstance(edit, RemoveBlock) for edit in proposal.edits)


def _candidate(request: Request, make: Make, order: list[Block], count: int) -> DepthCandidate:
    if count == 0:
        proposal = make(request)
    else:
        shallow = request.remember(_key(count), lambda: _shallow(request, order[:count]))
        if "latency_ms" in request.limits:
            shallow.timed(request.job.runtime, request.job.threads)
        found = make(replace(shallow, limits=request.limits, share=request.share))
        first = plan_of(shallow.model).edits[len(plan_of(request.model)) :]
        named = ", ".join(f"'{block.name}'" for block in order[:count])
        reason = f"{'blocks' if count > 1 else 'block'} passed over: {named}"
        assert found.model is not None
        proposal = Proposal((*first, *found.edits), (reason, *found.reasons), found.model)
    distance = request.remember("distance of answers", lambda: _distance(request, JUDGED_BY))
    assert proposal.model is not None
    return DepthCandidate(count, proposal, distance.of(proposal.model))


def _key(count: int) -> str:
    return f"without {count} blocks"


def _shallow(request: Request, gone: list[Block]) -> Request:
    """Return the request for a network without some blocks, refitted."""
    edit = RemoveBlock(blocks={block.name: block.passage for block in gone}, refit=True)
    job = request.job
    network = apply(
        Plan((edit,)),
        request.model,
        job.example_input,
        calibration=job.calibration,
        anatomy=request.anatomy,
        settling=0,
    )
    return replace(request, model=network, memory={})


def _order(request: Request) -> list[Block]:
    """Return the blocks that may go, in the order in which they are best given up."""
    uncut = request.anatomy.ignored
    found = [
        block
        for name, block in blocks(request.model, request.job.example_input).removable.items()
        if not any(f"{each}.".startswith(f"{name}.") for each in uncut) and _is_proven(request, block)
    ]
    costs = request.costs
    totals: dict[Measure, float] = {"parameters": costs.parameters({}), "macs": costs.macs({})}

    def freed(block: Block) -> float:
        """Return the share of what is limited that a block frees; of a latency, that of the arithmetic."""
        shares = {"parameters": block.parameters / totals["parameters"], "macs": block.macs / totals["macs"]}
        asked = {"macs" if measure == "latency_ms" else measure for measure in request.limits}
        return sum(shares[measure] for measure in asked)

    return order_blocks(request.model, found, _distance(request, ORDERED_BY), freed) if found else []


def _is_proven(request: Request, block: Block) -> bool:
    try:
        edit = RemoveBlock(blocks={block.name: block.passage})
        prove_blocks(request.model, request.job.example_input, request.anatomy, edit)
    except ModelError:
        return False
    return True


def _distance(request: Request, most: int) -> AnswerDistance:
    return AnswerDistance(request.model, request.batches, most)


def _alike(one: Limits, other: Limits) -> bool:
    return set(one) == set(other) and all(math.isclose(one[each], other[each], rel_tol=ALIKE) for each in one)
