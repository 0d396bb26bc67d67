"""Project: a space keeps the first singular directions of the layer that writes it (the Surgeon's "removing neurons").

W = V Σ Uᵀ, a row a unit; V_r are the first columns of V. The layer becomes V_rᵀ W with the bias V_rᵀ b, its reader R
becomes R V_r. The activation between them is ignored, as in the paper, so a network with one computes something else.
Without one, nothing of W is lost from its rank on; of b, what lies outside of V_r is.
"""

import numpy
import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.surgery import layers
from topiarist.surgery.edits import ProjectSpace
from topiarist.surgery.reexpressions import free_space
from topiarist.surgery.width import Reexpression, change_widths
from topiarist.tracing import Anatomy, Place, Space


def project_space(model: nn.Module, edit: ProjectSpace, found: Anatomy, structure_only: bool) -> None:
    """Project a space, in place; without values, no weight of the two layers comes from an old one."""
    space = free_space(found, edit.space)
    refuse_unless_alone(model, space, found)
    if edit.to > space.size:
        raise ModelError(f"cannot project {space.size} units of '{space.name}' to {edit.to}")
    copies = (numpy.arange(space.size) < edit.to).astype(numpy.int64)
    if structure_only:
        nothing_old = Reexpression(copies=copies, fresh=edit.to)
        change_widths(model, found.spaces, {space.name: nothing_old}, structure_only=True)
        return
    writer = model.get_submodule(space.producers[0].module)
    weight, bias = layers.weight_of(writer), layers.bias_of(writer)
    if not bool(weight.isfinite().all()):
        raise ModelError(f"'{space.name}' cannot be projected: its layer has weights that are no finite numbers")
    directions = first_directions(weight, edit.to)
    change_widths(model, found.spaces, {space.name: Reexpression(copies=copies, mix=directions)})
    layers.put(writer, "weight", projected(weight, directions))
    if bias is not None:
        layers.put(writer, "bias", projected(bias, directions))


def first_directions(weight: Tensor, count: int) -> Tensor:
    """Give the first left singular vectors (n_units, count) of a layer; the largest entry of each is positive.

    Behind those that the layer has come others that are orthogonal to them: units with no weights in, only a bias.
    """
    rows = weight.to(torch.float64).flatten(1)
    left = torch.linalg.svd(rows, full_matrices=len(rows) > rows.shape[1])[0][:, :count]
    largest = left.gather(0, left.abs().argmax(0, keepdim=True))
    return torch.where(largest < 0, -left, left)


def projected(tensor: Tensor, directions: Tensor) -> Tensor:
    """Give what the new units have of a tensor with a row for each old one."""
    return torch.einsum("um,u...->m...", directions, tensor.to(torch.float64)).to(tensor)


def refuse_unless_alone(model: nn.Module, space: Space, found: Anatomy) -> None:
    """Refuse a space unless one layer writes it, one reads it, and between them each unit goes its way alone."""
    reason = obstacle(model, space, found)
    if reason is not None:
        raise ModelError(f"'{space.name}' cannot be projected: {reason}")


def obstacle(model: nn.Module, space: Space, found: Anatomy) -> str | None:
    """Say why the units of a space cannot be mixed; None where they can."""
    if space.passes:
        place = space.passes[0]
        kind = "a parameter" if place.parameter is not None else type(model.get_submodule(place.module)).__name__
        return f"'{place.name}' ({kind}) has values for each of its units"
    if len(space.producers) != 1:
        return f"{named(space.producers)} write it together, as in an addition"
    if len(space.consumers) != 1:
        return f"{named(space.consumers)} read it, not one layer alone" if space.consumers else "no layer reads it"
    writer, reader = space.producers[0], space.consumers[0]
    if found.calls[writer.module].count != 1:
        return f"'{writer.name}' runs more than once"
    if space.modulated:
        return "forward combines it with values that do not come from its layer"
    if writer.positions.size != space.size:
        return f"'{writer.name}' writes each of its units more than once"
    if reader.positions.size != reader.length or reader.positions.shape[1] != 1:
        return f"'{reader.name}' reads it together with others, as after a concatenation"
    return None


def named(places: tuple[Place, ...]) -> str:
    """Name layers in a sentence."""
    return " and ".join(f"'{place.name}'" for place in places)
