"""A residual stream in another basis, so that the units which go matter least: rotated first, then sliced.

With an orthogonal T, the stream T·x has the norm of x, and where T keeps the vector of ones, its mean. A layer norm
without scale and shift, which its readers take over, then returns T times what it did. Of what the norms return, the
first principal components lie in the units that stay (as in SliceGPT, Ashkboos et al., 2024, there for RMS norms).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from topiarist.randomness import generator
from topiarist.surgery import layers
from topiarist.surgery.bases.heads import HeadDims
from topiarist.surgery.bases.readings import moments_read
from topiarist.surgery.calibration import CalibrationBatches
from topiarist.surgery.layers import Holders
from topiarist.tracing import Anatomy, Place
from topiarist.tracing.steps import Step


@dataclass(frozen=True)
class ResidualStream:
    """All that meets a residual stream: what writes it, and for each norm the linear layers that read it."""

    written: tuple[HeadDims, ...]
    norms: dict[str, tuple[HeadDims, ...]]
    centred: bool  # whether norms subtract the mean

    @property
    def readers(self) -> list[HeadDims]:
        """Return the layers that read the stream, all behind norms."""
        return [reader for readers in self.norms.values() for reader in readers]

    @property
    def tensors(self) -> list[str]:
        """Return the names of all parameters that a change of basis may change."""
        own = [f"{each.module}.{name}" for each in (*self.written, *self.readers) for name, _ in each.tensors]
        own += [f"{reader.module}.bias" for reader in self.readers]
        own += [f"{norm}.{name}" for norm in self.norms for name in ("weight", "bias")]
        return [name.removeprefix(".") for name in dict.fromkeys(own)]

    def absorb_scales(self, model: nn.Module, holders: Holders) -> None:
        """Let the readers of each norm take over its scale and shift, in place."""
        for path, readers in self.norms.items():
            norm = model.get_submodule(path)
            scale, shift = layers.weight_of(norm), getattr(norm, "bias", None)
            for reader in readers:
                module = model.get_submodule(reader.module)
                weight, bias = layers.weight_of(module), layers.bias_of(module)
                if shift is not None and bias is not None:
                    holders.put(module, "bias", bias + weight @ shift.detach())
                holders.put(module, "weight", weight * scale)
            holders.put(norm, "weight", torch.ones_like(scale))
            if shift is not None:
                holders.put(norm, "bias", torch.zeros_like(shift.detach()))

    def turn(self, model: nn.Module, holders: Holders, basis: Tensor) -> None:
        """Let units be T·x, in place."""
        for each in (*self.written, *self.readers):
            each.mix(model, holders, basis.T)


def stream_of(model: nn.Module, anatomy: Anatomy, name: str) -> ResidualStream | None:
    """Return the parts of a residual stream; None where it does not look like one whose readers stand behind norms."""
    space = anatomy[name]
    norms = {place.module: model.get_submodule(place.module) for place in space.passes if is_scaled(model, place)}
    others = [place for place in space.passes if place.module not in norms]
    places = (*space.producers, *space.passes, *space.consumers)
    plain = all(place.positions.shape == (place.length, 1, 1) and not place.scattered for place in places)
    kinds = {isinstance(norm, nn.LayerNorm) for norm in norms.values()}
    if not plain or len(kinds) != 1 or not space.consumers or space.size < 2:
        return None
    behind: dict[str, list[HeadDims]] = {path: [] for path in norms}
    for place in space.consumers:
        found = _norm_before(anatomy, place, frozenset(norms))
        module = model.get_submodule(place.module)
        shifted = found is not None and getattr(norms[found], "bias", None) is not None
        if found is None or not isinstance(module, nn.Linear) or not layers.is_plain(module):
            return None
        if shifted and module.bias is None:
            return None
        behind[found].append(_dims(place))
    written = tuple(_dims(place) for place in (*space.producers, *others))
    return ResidualStream(written, {path: tuple(readers) for path, readers in behind.items()}, kinds == {True})


def is_scaled(model: nn.Module, place: Place) -> bool:
    """Return whether a place is a layer norm or an RMS norm over the units alone, with a scale for each."""
    module = model.get_submodule(place.module)
    if place.parameter is not None or not isinstance(module, nn.LayerNorm | nn.RMSNorm):
        return False
    return len(module.normalized_shape) == 1 and layers.is_plain(module)


def _dims(place: Place) -> HeadDims:
    return HeadDims(place.module, place.tensors, place.positions.reshape(-1), place.role == "reads")


def _norm_before(anatomy: Anatomy, place: Place, norms: frozenset[str]) -> str | None:
    """Return the norm that returned what a layer reads, whatever only picked or reshaped it between."""
    if place.parameter is not None or place.module not in anatomy.calls:
        return None
    step: Step | None = anatomy.calls[place.module].step
    while step is not None and len(step.inputs) == 1:
        step = step.inputs[0]
        if step.kind == "layer":
            return step.name if step.name in norms else None
    return None


def principal_basis(
    model: nn.Module, stream: ResidualStream, stays: Sequence[bool], batches: CalibrationBatches
) -> Tensor | None:
    """Return the basis in which units that stay hold the principal components of what norms return.

    `model` has norms without scale and shift. Each norm counts the same; what is constant does not count where all
    readers have biases, which take it over.
    """
    read = [(readers[0].module, 0) for readers in stream.norms.values() if readers]
    moments = moments_read(model, read, batches)
    if len(moments) != len(set(read)):
        return None
    shiftable = all(layers.bias_of(model.get_submodule(reader.module)) is not None for reader in stream.readers)
    grams = [each.covariance if shiftable else each.second for each in moments.values()]
    products = torch.stack([gram / gram.diagonal().sum() for gram in grams]).sum(0)
    return slicing_basis(products, torch.tensor(stays), centred=stream.centred)


def random_basis(size: int, *, centred: bool) -> Tensor:
    """Return a basis in which every unit is mixed with all others."""
    drawn = torch.randn(size, size, generator=generator(0, "basis of a stream"), dtype=torch.float64)
    return slicing_basis(drawn @ drawn.T, torch.arange(size) % 2 == 0, centred=centred)


def slicing_basis(products: Tensor, stays: Tensor, *, centred: bool) -> Tensor:
    """Return an orthogonal T (n, n) such that the units T·x that stay hold the first principal components of x.

    With `centred`, T keeps the vector of ones, and the mean over the k units that stay has none of the components. With
    u₁ … and the columns of E (k, k − 1) orthonormal and orthogonal to ones, and φ² = 1/k − 1/n, the rows that stay are

        E [u₁ … u_{k−1}]ᵀ + 1 (1/n + φ u_last)ᵀ
    """
    size, count = len(stays), int(stays.sum())
    basis = torch.empty(size, size, dtype=torch.float64)
    if not centred:
        directions = torch.linalg.eigh(products).eigenvectors.flip(1)
        basis[stays], basis[~stays] = directions[:, :count].T, directions[:, count:].T
        return basis
    across = _across_ones(size)
    directions = across @ torch.linalg.eigh(across.T @ products @ across).eigenvectors.flip(1)
    last, even = directions[:, -1], torch.full((size,), 1 / size, dtype=torch.float64)
    rest = size - count
    step = (1 / count - 1 / size) ** 0.5
    basis[stays] = _across_ones(count) @ directions[:, : count - 1].T + (even + step * last)
    basis[~stays] = _across_ones(rest) @ directions[:, count - 1 : -1].T + (even - count / rest * step * last)
    return basis


def _across_ones(size: int) -> Tensor:
    """Return an orthonormal basis (size, size − 1) of all that is orthogonal to the vector of ones."""
    start = torch.cat([torch.ones(size, 1, dtype=torch.float64), torch.eye(size, dtype=torch.float64)[:, 1:]], 1)
    orthonormal: Tensor = torch.linalg.qr(start).Q
    return orthonormal[:, 1:]
