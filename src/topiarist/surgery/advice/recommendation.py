"""Recommendation: what the widths and the depth of a network should be, as far as it and labelled samples tell.

The recommendation module of neural network surgery (section 3.2) knows singular values of the weights; here the
activations, the loss of edits that are tried out and the gradients of units that are not there yet come to it.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.files import JsonObject
from topiarist.models.copying import copied
from topiarist.models.evaluation import count_parameters
from topiarist.surgery import layers
from topiarist.surgery.advice import options, spectra
from topiarist.surgery.advice.readings import Health, Readings, activity_read, health_from, read_spaces
from topiarist.surgery.advice.tables import Table, record_of, rendered, tables_of
from topiarist.surgery.advice.trials import LabelledSamples, is_finite, mean_loss, trial
from topiarist.surgery.choice.evidence import blind_spot
from topiarist.tasks import Task
from topiarist.tracing import Anatomy, ExampleInput, ensure_anatomy

Asked = ParamSpec("Asked")
Value = TypeVar("Value")
Option = TypeVar("Option", options.Removal, options.Factorising)


def recommend(
    model: nn.Module,
    example_input: ExampleInput,
    *,
    calibration: Tensor,
    labels: Tensor,
    seed: int = 0,
    shares: Sequence[float] = options.SHARES,
    anatomy: Anatomy | None = None,
    task: Task | None = None,
) -> "Recommendation":
    """Look at a network as it is now, and change nothing.

    Parameters
    ----------
    model, example_input
        The network, and a batch that it reads.
    calibration, labels : Tensor
        Samples (n_samples, …) and their classes (n_samples,), or what another task learns.
    seed : int
        Decides the fresh units that are tried.
    shares : sequence of float
        The shares of the units of each space that are removed on trial.
    anatomy : Anatomy, optional
        That of the network, where it is known.
    task : Task, optional
        What is predicted; classes unless given.

    Returns
    -------
    Recommendation
        Each part of it is computed when it is first asked for.

    Raises
    ------
    ModelError, DataError
        The network cannot be traced or has weights that are not finite; the samples and labels do not fit each other.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    >>> x, y = torch.randn(64, 8), torch.arange(64) % 4
    >>> recommend(model, x[:2], calibration=x, labels=y).health("0").dead
    ()
    """
    options.check_shares(shares)
    samples = LabelledSamples(calibration, labels, task)
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.is_floating_point() and not is_finite(tensor):
            raise ModelError(f"'{name}' holds values that are not finite numbers: nothing can be recommended")
    found = ensure_anatomy(model, example_input, anatomy)
    with torch.inference_mode(False):
        return Recommendation(copied(model), found, samples, seed, tuple(shares))


def _once(compute: Callable[Concatenate[Any, Asked], Value]) -> Callable[Concatenate[Any, Asked], Value]:
    """Let a part of a recommendation be computed once for each of its arguments."""

    @wraps(compute)
    def remembered(self: Any, /, *asked: Asked.args, **named: Asked.kwargs) -> Value:
        key = compute.__name__, asked, tuple(named.items())
        if key not in self._known:
            self._known[key] = compute(self, *asked, **named)
        return cast(Value, self._known[key])

    return remembered


@dataclass(frozen=True, eq=False)
class Recommendation:
    """What is known of a network, space by space and layer by layer; `recommend` makes it.

    It holds a copy, so that all parts are of the network as it was. Nothing is computed twice.

    Parameters
    ----------
    model, anatomy, samples
        The copy, its anatomy, and the labelled samples.
    seed, shares : int, tuple[float, ...]
        As for `recommend`.
    """

    model: nn.Module = field(repr=False)
    anatomy: Anatomy = field(repr=False)
    samples: LabelledSamples = field(repr=False)
    seed: int
    shares: tuple[float, ...]
    _known: dict[object, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def spaces(self) -> dict[str, int]:
        """Return the widths of the spaces that can change, in the order in which they are written.

        Spaces whose readers do not tell all of their units, as those of queries, are left out.
        """
        free = self.anatomy.free
        return {name: space.size for name, space in free.items() if blind_spot(space) is None}

    @cached_property
    def layers(self) -> tuple[str, ...]:
        """Name the linear layers and convolutions in the order in which they run."""
        return spectra.weighted_layers(self.model, self.anatomy)

    @cached_property
    def parameters(self) -> int:
        """Return how many parameters the network has."""
        return count_parameters(self.model)

    @cached_property
    def loss(self) -> float:
        """Return the mean cross-entropy on the samples."""
        return mean_loss(self.model, self.samples)

    @cached_property
    def scores(self) -> dict[str, spectra.Scores]:
        """Return the paper's scores of the hidden layers, in the order in which they run."""
        hidden = spectra.hidden_layers(self.model, self.anatomy)
        units = [len(self.weight(name)) for name in hidden]
        return dict(zip(hidden, spectra.score_spectra([self.weights(name) for name in hidden], units), strict=True))

    @_once
    def activations(self, space: str) -> spectra.Spectrum:
        """Return the spectrum of the activations of a space, all zero where no one reads it."""
        activity = activity_read(self.model, self.anatomy, self.readings(space))
        size = self.anatomy[space].size
        return spectra.Spectrum((0.0,) * size, 0.0) if activity is None else spectra.activity_spectrum(activity)

    @_once
    def health(self, space: str) -> Health:
        """Return the units of a space that do no work."""
        return health_from(self.readings(space))

    @_once
    def removals(self, space: str, *, measured: bool = False) -> tuple[options.Removal, ...]:
        """Return what is lost with each share of the units of a space; `measured` also tries each removal out."""
        if measured:
            return self._tried(self.removals(space))
        name = options.judged_space(self.anatomy, space).name
        return options.predicted_removals(self.model, self.anatomy, name, self.readings(name), self.shares)

    @_once
    def growth(self, space: str, *, by: int | None = None) -> options.Growth:
        """Return what fresh units of a space promise, half as many as there are and at least 2 unless `by` is given."""
        name = options.judged_space(self.anatomy, space).name
        return options.expected_growth(self.model, self.anatomy, name, self.samples, by=by, seed=self.seed)

    @_once
    def weights(self, layer: str) -> spectra.Spectrum:
        """Return the spectrum of the weights of a layer."""
        return spectra.weight_spectrum(self.weight(layer))

    @_once
    def folding(self, layer: str, *, measured: bool = False) -> options.Folding | None:
        """Return what is lost where a layer folds into the next one; None where it cannot."""
        self.weight(layer)
        before = self.loss if measured else None
        return options.predicted_folding(self.model, self.anatomy, layer, self.samples, before=before)

    @_once
    def factorisings(self, layer: str, *, measured: bool = False) -> tuple[options.Factorising, ...]:
        """Return what is lost where a layer becomes two, for ranks that keep 99, 95 and 90 %; none where it cannot."""
        if measured:
            return self._tried(self.factorisings(layer))
        return options.predicted_factorisings(self.model, layer, self.weights(layer))

    def _tried(self, predicted: tuple[Option, ...]) -> tuple[Option, ...]:
        """Return predictions with what the edits really add to the loss."""
        tried = (trial(self.model, each.edit, self.anatomy, self.samples.batches(self.model)) for each in predicted)
        losses = [mean_loss(network, self.samples) for network in tried]
        return tuple(replace(each, increase=loss - self.loss) for each, loss in zip(predicted, losses, strict=True))

    def rows(self, *, measured: bool = False) -> dict[str, Table]:
        """Return all of it as tables, one of spaces and one of layers: a list of rows by heading each."""
        self.read(self.spaces)
        return tables_of(self, measured=measured)

    def to_record(self, *, measured: bool = False) -> JsonObject:
        """Return all of it as what JSON is made of."""
        self.read(self.spaces)
        return record_of(self, measured=measured)

    def __str__(self) -> str:
        return rendered(self.rows())

    def readings(self, space: str) -> Readings:
        """Return what the readers of a space see."""
        name = options.judged_space(self.anatomy, space).name
        self.read([name])
        return cast(Readings, self._known["readings", name])

    def read(self, spaces: Iterable[str]) -> None:
        """Watch the readers of those spaces that were not watched yet, all in one pass."""
        new = [name for name in spaces if ("readings", name) not in self._known]
        if new:
            read = read_spaces(self.model, self.anatomy, new, self.samples.batches(self.model))
            self._known.update({("readings", name): readings for name, readings in read.items()})

    def weight(self, layer: str) -> Tensor:
        """Return the weights of a linear layer or a convolution."""
        if layer not in self.layers:
            raise ModelError(f"there is no layer '{layer}': known are {', '.join(self.layers)}")
        return layers.weight_of(self.model.get_submodule(layer))
