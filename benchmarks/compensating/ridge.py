"""Ridge compensation after the fact, from the idea of GRAIL (Tang et al. 2026, arXiv 2602.23795).

For the input h of a layer that reads removed units, G = Σ h hᵀ over all calibration samples and positions of the
*whole* network. With P the positions that stay, h ≈ B h_P where B = G[:, P] (G[P, P] + λI)⁻¹, and the layer's weights
become W B; biases stay. λ is a thousandth of the mean of the diagonal of G[P, P]. Layers do not know of each other's
errors: nothing is measured on the cut network.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy

import torch
from torch import Tensor, nn

from benchmarks.compensating.problem import chunks
from topiarist.tracing import Anatomy

RIDGE = 1e-3  # of the mean diagonal: enough for numbers to stay finite; not tuned


def compensate(
    model: nn.Module, anatomy: Anatomy, units: Mapping[str, Sequence[int]], calibration: Tensor
) -> nn.Module:
    """Return a copy of a network in which the units that will go are not read, and their readers make up for them."""
    gone = removed_positions(model, anatomy, units)
    copy = deepcopy(model)
    moments = second_moments(model, sorted(gone), calibration)
    for path, positions in gone.items():
        weight = copy.get_parameter(f"{path}.weight")
        kept = [position for position in range(len(moments[path])) if position not in positions]
        mixed = fold(weight.detach(), reconstruction(moments[path], kept))
        with torch.no_grad():
            weight.zero_()
            weight[:, kept] = mixed
    return copy


def removed_positions(model: nn.Module, anatomy: Anatomy, units: Mapping[str, Sequence[int]]) -> dict[str, set[int]]:
    """Return, for each layer that reads removed units, their positions along its input."""
    gone: dict[str, set[int]] = {}
    for name, numbers in units.items():
        for place in anatomy[name].consumers:
            layer = model.get_submodule(place.module)
            grouped = isinstance(layer, nn.Conv2d) and layer.groups > 1
            if place.parameter is not None or not isinstance(layer, nn.Linear | nn.Conv2d) or grouped:
                raise ValueError(f"ridge compensation is for linear layers and convolutions; '{place.name}' is neither")
            positions = place.positions[list(numbers)].flatten().tolist()
            gone.setdefault(place.module, set()).update(positions)
    return gone


def second_moments(model: nn.Module, paths: Sequence[str], calibration: Tensor) -> dict[str, Tensor]:
    """Return G of the inputs of layers, in float64; channels are the units of convolutions."""
    found: dict[str, Tensor] = {}

    def add(path: str, taken: Tensor) -> None:
        rows = taken.movedim(1, -1) if isinstance(model.get_submodule(path), nn.Conv2d) else taken
        rows = rows.flatten(0, -2)
        found[path] = found.get(path, 0) + (rows.T @ rows).double()

    with watching(model, paths, add), torch.no_grad():
        for part in chunks(calibration):
            model(part)
    return found


@contextmanager
def watching(model: nn.Module, paths: Sequence[str], add: Callable[[str, Tensor], None]) -> Iterator[None]:
    """Show what layers read to a function, inside the block."""
    hooks = [
        model.get_submodule(path).register_forward_pre_hook(lambda _, taken, path=path: add(path, taken[0]))
        for path in paths
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def reconstruction(moments: Tensor, kept: Sequence[int]) -> Tensor:
    """Return B (n_all, n_kept) that reconstructs all positions from those that stay."""
    inner = moments[kept][:, kept]
    ridge = RIDGE * inner.diagonal().mean().clamp_min(torch.finfo(torch.float64).tiny)
    solved: Tensor = torch.linalg.solve(inner + ridge * torch.eye(len(kept), dtype=inner.dtype), moments[kept])
    return solved.T


def fold(weight: Tensor, mixing: Tensor) -> Tensor:
    """Return weights (n_out, n_kept, …) that read the kept positions as the old ones read all."""
    return torch.einsum("oi...,ik->ok...", weight.double(), mixing).to(weight.dtype)
