"""Masks: weights that stay zero in anybody's training loop, and units that are gone for a moment without a cut."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.errors import ModelError
from topiarist.models.attention import free_attention
from topiarist.surgery.calibration import first_of
from topiarist.surgery.choice.evidence import blind_spot
from topiarist.surgery.width.reexpressions import UnitNumbers, check_units, unit_numbers
from topiarist.tracing import Anatomy, ExampleInput, Place, Space, ensure_anatomy
from topiarist.tracing.finding import trace_again
from topiarist.tracing.reference import Reference
from topiarist.tracing.running import Args, Kwargs, plain_kernels


class Masks:
    """Weights of a network that stay zero in any training loop.

    Parameters
    ----------
    model : nn.Module
        The network, whose masked weights become zero at once.
    masks : Mapping[str, Tensor]
        By the name of a parameter, a tensor of its shape; False is a weight that stays zero.

    Raises
    ------
    ModelError
        There is no such parameter, or the mask has another shape.

    Examples
    --------
    >>> model = nn.Linear(2, 1)
    >>> masks = Masks(model, {"weight": torch.tensor([[True, False]])})
    >>> masks.step()  # after each `optimizer.step()`
    >>> masks.sparsity
    0.5
    """

    def __init__(self, model: nn.Module, masks: Mapping[str, Tensor]) -> None:
        parameters = dict(model.named_parameters())
        for name, mask in masks.items():
            if name not in parameters:
                raise ModelError(f"the network has no parameter '{name}'")
            if mask.shape != parameters[name].shape:
                asked, found = tuple(parameters[name].shape), tuple(mask.shape)
                raise ModelError(f"the mask of '{name}' must have shape {asked}; found {found}")
        self.masks = {
            name: mask.detach().to(parameters[name].device, torch.bool, copy=True) for name, mask in masks.items()
        }
        paths = [name.rpartition(".") for name in self.masks]
        self._owners = [(model.get_submodule(path), name) for path, _, name in paths]
        self._weights: list[Tensor] = []
        self._factors: list[Tensor] = []
        self._zeros: list[Tensor] = []
        self.step()

    @classmethod
    def of_zeros(cls, model: nn.Module) -> "Masks":
        """Hold the weights that are zero now; biases and norms are left alone."""
        weights = {name: parameter for name, parameter in model.named_parameters() if parameter.ndim > 1}
        return cls(model, {name: weight.detach() != 0 for name, weight in weights.items()})

    @torch.no_grad()
    def step(self) -> None:
        """Make the masked weights zero again; call it after each step of the optimizer."""
        current: list[Tensor] = [getattr(module, name) for module, name in self._owners]
        if list(map(id, current)) != list(map(id, self._weights)):  # a parameter was replaced
            self._weights = current
            self._factors = [mask.to(weight) for mask, weight in zip(self.masks.values(), current, strict=True)]
            self._zeros = [weight.new_zeros(()) for weight in current]
        for zero, weight, factor in zip(self._zeros, current, self._factors, strict=True):
            torch.addcmul(zero, weight, factor, out=weight)  # 0 + weight × factor: never −0

    @property
    def sparsity(self) -> float:
        """Return the fraction of weights, of those that have a mask, that are masked."""
        total = sum(mask.numel() for mask in self.masks.values())
        return sum(int((~mask).sum()) for mask in self.masks.values()) / total if total else 0.0


class UnitMasks:
    """Units that are gone for a moment, to see what their removal would do without cutting.

    Where linear layers and convolutions see all there is to see of the units, these read zeros. Elsewhere, as in
    attention and under norms, the network runs under watch: the units are zero wherever they occur, means and norms run
    over the others, and no gradients are recorded.

    Parameters
    ----------
    model, example_input, anatomy
        The network, a batch that it reads, and its anatomy, where it is known.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    >>> with UnitMasks(model, torch.zeros(1, 8)).without({"0": [3, 5]}):
    ...     scores = model(torch.zeros(1, 8))
    """

    def __init__(self, model: nn.Module, example_input: ExampleInput, *, anatomy: Anatomy | None = None) -> None:
        self.model = model
        self.anatomy = ensure_anatomy(model, example_input, anatomy)
        self._example_input = example_input
        self._watched: Anatomy | None = None
        self._reference: Reference | None = None

    @contextmanager
    def without(self, units: Mapping[str, UnitNumbers]) -> Iterator[nn.Module]:
        """Let the network compute what it would if units were removed, inside the block."""
        named = {name: list(unit_numbers(given)) for name, given in self.anatomy.by_space(units).items()}
        spaces = {name: self.anatomy.free_space(name) for name in named}
        for name, space in spaces.items():
            check_units(space, named[name])
        plain = all(blind_spot(space) is None for space in spaces.values())
        with self._hooks(spaces, named) if plain else self._watch(named):
            yield self.model

    @contextmanager
    def _hooks(self, spaces: Mapping[str, Space], units: Mapping[str, list[int]]) -> Iterator[None]:
        """Let the readers of units see zeros."""
        hidden = [(place, _hide(place, units[name])) for name, space in spaces.items() for place in space.consumers]
        handles = [
            self.model.get_submodule(place.module).register_forward_pre_hook(hook, with_kwargs=True)
            for place, hook in hidden
        ]
        try:
            with free_attention(self.model):
                yield
        finally:
            for handle in handles:
                handle.remove()

    @contextmanager
    def _watch(self, units: Mapping[str, list[int]]) -> Iterator[None]:
        """Run the network as if units were not there; an inner block adds to what is gone in the outer one."""
        known = self._traced()
        assert known.trace is not None
        outer = self._reference
        labels = known.trace.tracer.labels.copy() if outer is None else outer.labels
        gone = numpy.zeros(len(labels), bool) if outer is None else outer.gone.copy()
        for name, numbers in units.items():
            gone[known.spaces[name].units[numbers]] = True
        if outer is not None:
            before = outer.gone
            outer.hide(gone)
            try:
                yield
            finally:
                outer.hide(before)
            return
        with torch.no_grad(), free_attention(self.model), plain_kernels(self.model):
            self._reference = Reference(self.model, labels, known.trace.tracer.leaves, gone, steady=False)
            try:
                with self._reference:
                    yield
            finally:
                self._reference = None

    def _traced(self) -> Anatomy:
        """Return an anatomy whose trace is of the network as it is now; one that followed from a cut has none."""
        if self._watched is None:
            whole = self.anatomy.valid_for == "all"
            known = self.anatomy if whole else trace_again(self.model, self._example_input, self.anatomy)
            self._watched = known
        return self._watched


def _hide(place: Place, units: list[int]) -> Any:
    """Return the hook that hides units from a reader."""
    mask = numpy.ones(place.length)
    mask[place.positions[units].reshape(-1)] = 0

    def hook(module: nn.Module, taken: Args, named: Kwargs) -> tuple[Args, Kwargs]:
        x = first_of(taken, named)
        shape = (-1, *(1,) * len(module.kernel_size)) if isinstance(module, _ConvNd) else (-1,)
        return (x * torch.from_numpy(mask).to(x).reshape(shape),), {}

    return hook
