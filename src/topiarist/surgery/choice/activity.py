"""What the units of a space do, over all samples, positions and readers: second moments of their activations."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from topiarist.surgery import layers
from topiarist.surgery.calibration import CalibrationBatches, watch_readers
from topiarist.surgery.choice.evidence import blind_spot
from topiarist.surgery.choice.reading_sums import activations
from topiarist.surgery.refit.fits import MOST_POSITIONS
from topiarist.surgery.refit.moments import Moments
from topiarist.tracing import Anatomy
from topiarist.tracing.steps import Step

PASSED_ON = (nn.Dropout, nn.AlphaDropout, nn.Identity, nn.Flatten)
PASSING_OPERATIONS = ("view", "_unsafe_view", "clone")  # what `flatten` runs
ROUNDING = 1e-13  # of the mean square: E[x²] − E[x]² is no more exact than that
NOTHING = 1e-12
Floats = NDArray[numpy.float64]


@dataclass(frozen=True)
class Activity:
    """Units of a space over all samples, positions and readers.

    `products` (n_units, n_units) are means of products of two units, `means` (n_units,) their means. `shiftable` says
    that a constant can move into the biases of all readers; `sigmoid` that all readers see what a sigmoid returned.
    """

    products: Floats
    means: Floats
    shiftable: bool
    sigmoid: bool

    def about(self, centre: float | Floats) -> Floats:
        """Return the means of products of units, each taken about its centre."""
        centres = numpy.broadcast_to(centre, self.means.shape)
        crossed = numpy.outer(self.means, centres)
        about: Floats = self.products - crossed - crossed.T + numpy.outer(centres, centres)
        return about

    @cached_property
    def constant(self) -> NDArray[numpy.bool_]:
        """Return which units vary no more than rounding does, or next to nothing beside the others."""
        variances = self.varied.diagonal()
        floor = numpy.maximum(ROUNDING * self.products.diagonal(), NOTHING * variances.max())
        constant: NDArray[numpy.bool_] = variances <= floor
        return constant

    @cached_property
    def varied(self) -> Floats:
        """Return the products of what a refit can use: about the means, or about zero where no constant can move."""
        return self.about(self.means if self.shiftable else 0.0)


def activity_of(
    model: nn.Module,
    anatomy: Anatomy,
    name: str,
    batches: CalibrationBatches,
    *,
    most_positions: int | None = MOST_POSITIONS,
) -> Activity | None:
    """Watch the units of a space; None where no one reads it, or where its readers do not see all there is to see."""
    moments = Moments()
    space = anatomy[name]
    readers = space.readers if blind_spot(space) is None else ()
    places = {place.module: place for place in readers}

    def remember(path: str, taken: Tensor) -> None:
        moments.add(activations(model, places[path], taken, most_positions))

    if places:
        watch_readers(model, {path: anatomy.calls[path].count for path in places}, batches, remember)
    return activity_from(model, anatomy, moments, [place.module for place in readers]) if readers else None


def activity_from(model: nn.Module, anatomy: Anatomy, moments: Moments, readers: Sequence[str]) -> Activity:
    """Return what units do, from their moments over all layers that read them."""
    products, _, means, _ = moments.central(centred=False)
    return Activity(
        products=products.to("cpu", torch.float64).numpy(),
        means=means.to("cpu", torch.float64).numpy(),
        shiftable=not any(layers.pads_with_zeros(model.get_submodule(path)) for path in readers),
        sigmoid=all(_follows_sigmoid(model, anatomy.calls[path].step) for path in readers),
    )


def _follows_sigmoid(model: nn.Module, step: Step) -> bool:
    """Return whether what a layer reads was returned by a sigmoid, whatever only passed it on."""
    if not step.inputs:
        return False
    before = step.inputs[0]
    if before.kind == "layer":
        module = model.get_submodule(before.name)
        found, passed = isinstance(module, nn.Sigmoid), isinstance(module, PASSED_ON)
    else:
        operation = before.name if before.kind == "operation" else ""
        found, passed = operation == "sigmoid", operation in PASSING_OPERATIONS
    return found or (passed and _follows_sigmoid(model, before))
