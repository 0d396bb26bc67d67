"""The edits that the published Surgeon knows, each with its score by the singular values of a hidden layer.

Neural network surgery, section 3.2. Truncated SVD is named in the text and in the appendix without a score; its score,
its rank and where its singular values go are those of the published code.
"""

from collections.abc import Iterator

from torch import nn

from topiarist.methods.surgeon.branches import Branch
from topiarist.methods.surgeon.evolution import EditCandidate, Evolution
from topiarist.surgery import (
    DeepenNetwork,
    Edit,
    FactoriseLayer,
    FoldLayer,
    ProjectSpace,
    Scores,
    WidenSpace,
    layers,
    paper_scores,
)
from topiarist.surgery.advice.spectra import ABSOLUTE_FLOOR, RELATIVE_FLOOR
from topiarist.surgery.choice.costs import Costs
from topiarist.surgery.choice.evidence import blind_spot
from topiarist.tracing import Space

KINDS = ("widen", "deepen", "project", "fold", "factorise")


def rank(candidate: EditCandidate) -> tuple[float, int]:
    """Order candidates by merit, then by the parameters that they leave: the paper's second key."""
    return -candidate.merit, candidate.parameters


def candidates_of(
    branch: Branch,
    evolution: Evolution,
    decision: int,
    *,
    relative: float = RELATIVE_FLOOR,
    absolute: float = ABSOLUTE_FLOOR,
) -> Iterator[EditCandidate]:
    """Yield all edits that the paper knows, scored by the singular values of each hidden layer."""
    found = evolution.anatomy_of(branch)
    if found is None:
        return
    costs = Costs(branch.model, found)
    hidden = [(name, space) for name, space in found.free.items() if _is_plain(space)]
    weights = [layers.weight_of(branch.model.get_submodule(space.producers[0].module)) for _, space in hidden]
    seed = evolution.seed("widen", decision)
    scored = paper_scores(weights, relative=relative, absolute=absolute)
    for (name, space), scores in zip(hidden, scored, strict=True):
        reason = f"{scores.negligible} of {space.size} singular values are negligible"
        for kind, edit, merit, size in edits_of(branch.model, name, space, scores, costs, seed):
            said = f"score {merit:.3f}: {reason}"
            yield EditCandidate(branch=branch, kind=kind, edits=(edit,), reason=said, merit=merit, parameters=size)


def _is_plain(space: Space) -> bool:
    """Return whether one layer writes a space and one reads it, and nothing else sees its units."""
    together = (*space.producers, *space.consumers)
    plain = all(place.parameter is None for place in together) and blind_spot(space) is None
    return plain and len(space.producers) == len(space.consumers) == 1


def edits_of(
    model: nn.Module, name: str, space: Space, scores: Scores, costs: Costs, seed: int
) -> Iterator[tuple[str, Edit, float, int]]:
    """Yield the edits of one hidden layer with their scores, and how many parameters the network would have."""
    layer, reader = space.producers[0].module, space.readers[0].module
    weight, read = (layers.weight_of(model.get_submodule(path)) for path in (layer, reader))
    units, whole = space.size, costs.parameters({})
    few = max(2, units // 10)
    for by in (few, 10 * few):
        wider = costs.parameters({name: units + by})
        yield "widen", WidenSpace(space=name, by=by, seed=seed, even=True), scores.add_neurons, wider
    deeper = whole + units * (units * weight[0, 0].numel() + 1)
    yield "deepen", DeepenNetwork(after=layer), scores.add_layer, deeper
    left = max(1, units - scores.negligible)
    if left < units:
        yield "project", ProjectSpace(space=name, to=left), scores.remove_neurons, costs.parameters({name: left})
    folded = costs.parameters({name: 0}) + weight[0].numel() * (read.numel() // units)
    yield "fold", FoldLayer(layer=layer, linearise=True), scores.remove_layer, folded
    # A layer of full rank, with a score of 0, still becomes two, as in the published code: a linear layer more.
    thin = min(left, weight[0].numel())
    factorised = whole - weight.numel() + thin * (weight[0].numel() + units)
    yield "factorise", FactoriseLayer(layer=layer, rank=thin, balanced=False), scores.truncate, factorised
