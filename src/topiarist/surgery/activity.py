"""What the units of a space do: their activations over calibration data, as its readers see them, in second moments."""

from dataclasses import dataclass
from functools import cached_property

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, fx, nn

from topiarist.surgery import layers
from topiarist.surgery.calibration import Batches
from topiarist.surgery.evidence import activations
from topiarist.surgery.moments import Moments
from topiarist.surgery.refit import MOST_POSITIONS, enough_samples
from topiarist.surgery.watching import watch
from topiarist.tracing import Anatomy
from topiarist.tracing.function_rules import known_name

PASSED_ON = (nn.Dropout, nn.AlphaDropout, nn.Identity, nn.Flatten)
ROUNDING = 1e-13  # of the mean square: E[x²] − E[x]² is no more exact than that
NOTHING = 1e-12
Floats = NDArray[numpy.float64]


@dataclass(frozen=True)
class Activity:
    """Units of a space over all samples, positions and readers.

    `products` (n_units, n_units) are means of products of two units, `means` (n_units,) their means. `shiftable` says
    that a constant can move into the biases of all readers; `sigmoid` that all readers see what a sigmoid gave.
    """

    products: Floats
    means: Floats
    shiftable: bool
    sigmoid: bool

    def about(self, centre: float | Floats) -> Floats:
        """Give the means of products of units, each taken about its centre."""
        centres = numpy.broadcast_to(centre, self.means.shape)
        crossed = numpy.outer(self.means, centres)
        about: Floats = self.products - crossed - crossed.T + numpy.outer(centres, centres)
        return about

    @cached_property
    def constant(self) -> NDArray[numpy.bool_]:
        """Say which units vary no more than rounding does, or next to nothing beside the others."""
        variances = self.varied.diagonal()
        floor = numpy.maximum(ROUNDING * self.products.diagonal(), NOTHING * variances.max())
        constant: NDArray[numpy.bool_] = variances <= floor
        return constant

    @cached_property
    def varied(self) -> Floats:
        """Give the products of what a refit can use: about the means, or about zero where no constant can move."""
        return self.about(self.means if self.shiftable else 0.0)


def activity_of(
    model: nn.Module, found: Anatomy, name: str, batches: Batches, *, most_positions: int | None = MOST_POSITIONS
) -> Activity | None:
    """Watch the units of a space; None where no one reads it."""
    readers = found.spaces[name].consumers
    if not readers:
        return None
    moments = Moments()
    for place in readers:
        layer = found.calls[place.module]
        enough = enough_samples(model.get_submodule(place.module), layer, found.samples)
        for args, kwargs in batches if most_positions is None else batches.some(enough):
            for taken, _ in watch(model, place.module, layer.count, args, kwargs):
                seen = activations(model, place, taken, most_positions)
                moments.add(seen, seen[:, :0])
    products, _, means, _ = moments.central(centred=False)
    modules = [model.get_submodule(place.module) for place in readers]
    return Activity(
        products=as_array(products),
        means=as_array(means),
        shiftable=not any(layers.pads_with_zeros(module) for module in modules),
        sigmoid=all(follows_sigmoid(model, found.calls[place.module].node) for place in readers),
    )


def as_array(tensor: Tensor) -> Floats:
    """Give the numbers of a tensor."""
    values: Floats = tensor.to("cpu", torch.float64).numpy()
    return values


def follows_sigmoid(model: nn.Module, node: fx.Node) -> bool:
    """Say whether what a layer reads was given by a sigmoid, whatever only passed it on."""
    before = node.args[0] if node.args else None
    if not isinstance(before, fx.Node):
        return False
    if before.op != "call_module":
        return known_name(before) == "sigmoid" or (
            known_name(before) in ("flatten", "dropout") and follows_sigmoid(model, before)
        )
    module = model.get_submodule(str(before.target))
    return isinstance(module, nn.Sigmoid) or (isinstance(module, PASSED_ON) and follows_sigmoid(model, before))
