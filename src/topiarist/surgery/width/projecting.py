"""Project: a space keeps the first singular directions of the layer that writes it (the Surgeon's "removing neurons").

W = V Σ Uᵀ, a row per unit; V_r are the first columns of V. The layer becomes V_rᵀ W with the bias V_rᵀ b, its reader R
becomes R V_r. The activation between them is ignored, as in the paper, so a network with one computes something else.
Without one, nothing of W is lost from its rank on; of b, what lies outside of V_r is.
"""

import numpy
import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.surgery import layers
from topiarist.surgery.edits.kinds import ProjectSpace
from topiarist.surgery.width.change import Reexpression, change_widths
from topiarist.tracing import Anatomy, Place, Space


def project_space(model: nn.Module, edit: ProjectSpace, anatomy: Anatomy, structure_only: bool) -> Anatomy:
    """Project a space, in place; without values, no weight of the two layers comes from an old one."""
    space = anatomy.free_space(edit.space)
    reason = obstacle(model, space, anatomy)
    if reason is not None:
        raise ModelError(f"'{space.name}' cannot be projected: {reason}")
    if edit.to > space.size:
        raise ModelError(f"cannot project {space.size} units of '{space.name}' to {edit.to}")
    copies = (numpy.arange(space.size) < edit.to).astype(numpy.int64)
    if structure_only:
        nothing_old = {space.name: Reexpression(copies=copies, fresh=edit.to)}
        return change_widths(model, anatomy, nothing_old, structure_only=True)[1]
    writer = model.get_submodule(space.producers[0].module)
    weight, bias = layers.weight_of(writer), layers.bias_of(writer)
    if not bool(weight.isfinite().all()):
        raise ModelError(f"'{space.name}' cannot be projected: its layer has weights that are not finite numbers")
    directions = _first_directions(weight, edit.to)
    _, after = change_widths(model, anatomy, {space.name: Reexpression(copies=copies, mix=directions)})
    for name, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None:
            projected = torch.einsum("um,u...->m...", directions, tensor.to(torch.float64))
            layers.put(writer, name, projected.to(tensor))
    return after


def _first_directions(weight: Tensor, count: int) -> Tensor:
    """Return the first left singular vectors (n_units, count) of a layer; the largest entry of each is positive.

    Behind those that the layer has come others that are orthogonal to them: units with no weights in, only a bias.
    """
    rows = weight.to(torch.float64).flatten(1)
    left = torch.linalg.svd(rows, full_matrices=len(rows) > rows.shape[1])[0][:, :count]
    largest = left.gather(0, left.abs().argmax(0, keepdim=True))
    return torch.where(largest < 0, -left, left)


def obstacle(model: nn.Module, space: Space, anatomy: Anatomy) -> str | None:
    """Say why the units of a space cannot be mixed; None where they can.

    One layer must write it, one read it, and between them no unit may meet another.
    """
    if space.passes:
        place = space.passes[0]
        kind = "a parameter" if place.parameter is not None else type(model.get_submodule(place.module)).__name__
        return f"'{place.name}' ({kind}) has values for each of its units"
    if len(space.producers) != 1:
        return f"{_named(space.producers)} write it together, as in an addition"
    if len(space.consumers) != 1:
        return f"{_named(space.consumers)} read it, not one layer alone" if space.consumers else "no layer reads it"
    writer, reader = space.producers[0], space.consumers[0]
    if anatomy.calls[writer.module].count != 1:
        return f"'{writer.name}' runs more than once"
    if space.modulated:
        return "forward combines it with values that do not come from its layer"
    if writer.positions.size != space.size:
        return f"'{writer.name}' writes each of its units more than once"
    if reader.positions.size != reader.length or reader.positions.shape[1] != 1:
        return f"'{reader.name}' reads it together with others, as after a concatenation"
    return None


def _named(places: tuple[Place, ...]) -> str:
    return " and ".join(f"'{place.name}'" for place in places)
