"""Recommendation: what the widths and the depth of a network should be, as far as it and labelled samples tell.

The recommendation module of neural network surgery (section 3.2) knows singular values of the weights; here the
activations, the loss of edits that are tried out and the gradients of units that are not there yet come to it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.models.copying import copied
from topiarist.models.evaluation import count_parameters
from topiarist.surgery import layers
from topiarist.surgery.growth import Growth, expected_growth
from topiarist.surgery.layer_damage import (
    Factorising,
    Folding,
    predicted_factorisings,
    predicted_folding,
)
from topiarist.surgery.readings import Readings, activity_from, read_spaces
from topiarist.surgery.recommendation_record import Table, record_of, rendered, tables_of
from topiarist.surgery.reexpressions import free_space
from topiarist.surgery.scores import Scores, hidden_layers, score_spectra, weighted_layers
from topiarist.surgery.sensitivity import (
    SHARES,
    Removal,
    check_shares,
    predicted_removals,
)
from topiarist.surgery.spectra import Spectrum, activity_spectrum, weight_spectrum
from topiarist.surgery.trials import Samples, is_finite, loss_with, mean_loss
from topiarist.surgery.unit_health import Health, health_from
from topiarist.tracing import Anatomy, Inputs, anatomy

Value = TypeVar("Value")
Option = TypeVar("Option", Removal, Factorising)


def recommend(
    model: nn.Module,
    example_input: Inputs,
    *,
    calibration: Tensor,
    labels: Tensor,
    seed: int = 0,
    shares: Sequence[float] = SHARES,
    found: Anatomy | None = None,
) -> "Recommendation":
    """Look at a network as it is now; each part of the recommendation is computed when it is first asked for.

    `calibration` (n_samples, …) are samples with their `labels` (n_samples,); `shares` of the units of each space are
    removed on trial; `seed` decides the fresh units; `found` is the network's anatomy, where it is known.
    """
    check_shares(shares)
    samples = Samples(calibration, labels)
    check_weights(model)
    known = anatomy(model, example_input, partial=True) if found is None else found
    with torch.inference_mode(False):
        return Recommendation(copied(model), known, samples, seed, tuple(shares))


def check_weights(model: nn.Module) -> None:
    """Refuse a network whose tensors are not all finite."""
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_floating_point() and not is_finite(tensor):
            raise ModelError(f"'{name}' holds values that are no finite numbers: nothing can be recommended")


@dataclass(frozen=True, eq=False)
class Recommendation:
    """What is known of a network, space by space and layer by layer; `recommend` makes it.

    It holds a copy, so that all parts are of the network as it was. Nothing is computed twice.
    """

    model: nn.Module = field(repr=False)
    found: Anatomy = field(repr=False)
    samples: Samples = field(repr=False)
    seed: int
    shares: tuple[float, ...]
    _known: dict[tuple[object, ...], Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def spaces(self) -> dict[str, int]:
        """Give the widths of the spaces that can change, in the order in which they are written."""
        return {name: space.size for name, space in self.found.free.items()}

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """Name the linear layers and convolutions in the order in which they run."""
        return weighted_layers(self.model, self.found)

    @cached_property
    def parameters(self) -> int:
        """Give how many parameters the network has."""
        return count_parameters(self.model)

    @cached_property
    def loss(self) -> float:
        """Give the mean cross-entropy on the samples."""
        return mean_loss(self.model, self.samples)

    @cached_property
    def scores(self) -> dict[str, Scores]:
        """Give the paper's scores of the hidden layers, in the order in which they run."""
        hidden = hidden_layers(self.model, self.found)
        units = [len(self.weight(name)) for name in hidden]
        return dict(zip(hidden, score_spectra([self.weights(name) for name in hidden], units), strict=True))

    def activations(self, space: str) -> Spectrum:
        """Give the spectrum of the activations of a space, all zero where no one reads it."""

        def compute() -> Spectrum:
            seen = activity_from(self.model, self.found, self.readings(space))
            return Spectrum((0.0,) * self.spaces[space], 0.0) if seen is None else activity_spectrum(seen)

        return self.once(compute, "activations", space)

    def health(self, space: str) -> Health:
        """Give the units of a space that do no work."""
        return self.once(lambda: health_from(self.readings(space)), "health", space)

    def removals(self, space: str, *, measured: bool = False) -> tuple[Removal, ...]:
        """Give what is lost with each share of the units of a space; `measured` also tries each removal out."""
        if measured:
            predicted = self.removals(space)
            return self.once(
                lambda: self.tried(predicted),
                "measured removals",
                space,
            )
        return self.once(
            lambda: predicted_removals(self.model, self.found, space, self.readings(space), self.shares),
            *("removals", space),
        )

    def growth(self, space: str, *, by: int | None = None) -> Growth:
        """Give what fresh units of a space promise, half as many as there are and at least 2 unless `by` is given."""
        return self.once(
            lambda: expected_growth(self.model, self.found, space, self.samples, by=by, seed=self.seed),
            *("growth", space, by),
        )

    def weights(self, layer: str) -> Spectrum:
        """Give the spectrum of the weights of a layer."""
        return self.once(lambda: weight_spectrum(self.weight(layer)), "weights", layer)

    def folding(self, layer: str, *, measured: bool = False) -> Folding | None:
        """Give what is lost where a layer folds into the next one; None where it cannot."""
        self.weight(layer)
        before = self.loss if measured else None
        return self.once(
            lambda: predicted_folding(self.model, self.found, layer, self.samples, before=before),
            *("folding", layer, measured),
        )

    def factorisings(self, layer: str, *, measured: bool = False) -> tuple[Factorising, ...]:
        """Give what is lost where a layer becomes two, for ranks that keep 99, 95 and 90 %; none where it cannot."""
        if measured:
            predicted = self.factorisings(layer)
            return self.once(
                lambda: self.tried(predicted),
                "measured factorisings",
                layer,
            )
        spectrum = self.weights(layer)
        return self.once(lambda: predicted_factorisings(self.model, layer, spectrum), "factorisings", layer)

    def rows(self, *, measured: bool = False) -> dict[str, Table]:
        """Give all of it as tables, one of spaces and one of layers: a list of rows by heading each."""
        self.read(self.spaces)
        return tables_of(self, measured=measured)

    def to_record(self, *, measured: bool = False) -> dict[str, Any]:
        """Give all of it as what JSON is made of."""
        self.read(self.spaces)
        return record_of(self, measured=measured)

    def __str__(self) -> str:
        return rendered(self.rows())

    def readings(self, space: str) -> Readings:
        """Give what the readers of a space see."""
        free_space(self.found, space)
        self.read([space])
        return cast(Readings, self._known["readings", space])

    def read(self, spaces: Iterable[str]) -> None:
        """Watch the readers of those spaces that were not watched yet, all in one pass."""
        new = [name for name in spaces if ("readings", name) not in self._known]
        if new:
            read = read_spaces(self.model, self.found, new, self.samples.batches(self.model))
            self._known.update({("readings", name): readings for name, readings in read.items()})

    def weight(self, layer: str) -> Tensor:
        """Give the weights of a linear layer or a convolution."""
        if layer not in self.layers:
            raise ModelError(f"there is no layer '{layer}': known are {', '.join(self.layers)}")
        return layers.weight_of(self.model.get_submodule(layer))

    def tried(self, predicted: tuple[Option, ...]) -> tuple[Option, ...]:
        """Give predictions with what the edits really add to the loss."""
        losses = [loss_with(self.model, option.edit, self.found, self.samples) for option in predicted]
        return tuple(replace(option, increase=loss - self.loss) for option, loss in zip(predicted, losses, strict=True))

    def once(self, compute: Callable[[], Value], *key: object) -> Value:
        """Give what was computed for a key, now or before."""
        if key not in self._known:
            self._known[key] = compute()
        return cast(Value, self._known[key])
