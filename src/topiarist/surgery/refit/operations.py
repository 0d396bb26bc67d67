"""Parameters that operations of forward read units with: found where they run, and fitted unit by unit.

A parameter of the network's own may meet units in `linear`, a product of matrices, `einsum` or a convolution. What is
read there, in both networks, tells how the units that were are expressed by those that are left, h_old ≈ M · h_new; the
parameter becomes W · M along the axis that reads. So do transposed convolutions, whose layers are no plain readers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from topiarist.surgery.refit.moments import Moments
from topiarist.tracing import Place

_PRODUCTS = ("matmul", "__matmul__", "mm", "bmm")
_CONVOLUTIONS = tuple(f"conv{way}{axes}d" for way in ("", "_transpose") for axes in (1, 2, 3))
Arrive = Callable[[str, Tensor], None]


@dataclass(frozen=True)
class OwnReader:
    """A parameter by name that reads units along one of its axes."""

    name: str
    axis: int

    def of(self, model: nn.Module) -> Tensor:
        """Return the parameter."""
        return model.get_parameter(self.name)


def own_readers(model: nn.Module, places: Sequence[Place]) -> list[OwnReader]:
    """Return the places that are parameters which nothing else in the network holds."""
    named = list(model.named_parameters(remove_duplicate=False))
    found = []
    for place in places:
        held = [name for name, parameter in named if place.parameter is not None and name == place.name]
        shared = sum(parameter is model.get_parameter(place.name) for _, parameter in named) if held else 0
        if shared == 1 and len(place.tensors) == 1:
            found.append(OwnReader(place.name, place.dimension))
    return list(dict.fromkeys(found))


class OperationsWatched(TorchFunctionMode):
    """Calls `arrive` before operations that read with some parameters, with what they read, units second.

    The operation then runs with the parameter that the network has by then.
    """

    def __init__(self, model: nn.Module, readers: Mapping[str, OwnReader], arrive: Arrive) -> None:
        super().__init__()
        self.model, self.readers, self.arrive = model, readers, arrive

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation."""
        named = kwargs or {}
        for reader in self.readers.values():
            own = reader.of(self.model)
            number = next((place for place, each in enumerate(args) if _is_view(each, own)), None)
            if number is None:
                continue
            found = _read_by(func.__name__, args, number, _axis_in(args[number], own, reader.axis))
            if found is not None:
                self.arrive(reader.name, _units_second(*found))
                again = _like(reader.of(self.model), args[number])
                return func(*args[:number], again, *args[number + 1 :], **named)
        return func(*args, **named)


def _is_view(value: Any, parameter: Tensor) -> bool:
    if not isinstance(value, Tensor) or value.numel() != parameter.numel() or value.device != parameter.device:
        return False
    return value.untyped_storage().data_ptr() == parameter.untyped_storage().data_ptr()


def _axis_in(view: Tensor, parameter: Tensor, axis: int) -> int | None:
    """Return which axis of a view of a parameter is one of the parameter's; None where that is not clear."""
    if view is parameter:
        return axis
    wanted = parameter.stride(axis), parameter.shape[axis]
    found = [place for place in range(view.ndim) if (view.stride(place), view.shape[place]) == wanted]
    return found[0] if len(found) == 1 else None


def _like(parameter: Tensor, view: Tensor) -> Tensor:
    """Return a view of a parameter that lies as another one did."""
    if view.shape == parameter.shape and view.stride() == parameter.stride():
        return parameter
    return parameter.as_strided(view.shape, view.stride(), view.storage_offset())


def _read_by(name: str, args: Sequence[Any], number: int, axis: int | None) -> tuple[Tensor, int] | None:
    """Return what an operation reads with an axis of one of its arguments, and along which axis; None for nothing."""
    if axis is None:
        return None
    if name == "einsum" and isinstance(args[0], str):
        return _read_by_einsum(args, number, axis)
    if name == "linear" and number == 1 and axis == 1:
        return args[0], args[0].ndim - 1
    ordinary = name in _CONVOLUTIONS and number == 1 and axis == (0 if "transpose" in name else 1)
    if ordinary and args[0].shape[-args[1].ndim + 1] == args[1].shape[axis]:  # without groups
        return args[0], args[0].ndim - args[1].ndim + 1
    first = 1 if name == "addmm" else 0
    if name not in (*_PRODUCTS, "addmm") or number not in (first, first + 1):
        return None
    from_the_right = args[number].ndim - axis
    if number == first and from_the_right == 1 and args[first + 1].ndim > 1:
        return args[first + 1], args[first + 1].ndim - 2
    if number == first + 1 and from_the_right == (2 if args[number].ndim > 1 else 1):
        return args[first], args[first].ndim - 1
    return None


def _read_by_einsum(args: Sequence[Any], number: int, axis: int) -> tuple[Tensor, int] | None:
    inputs, _, output = args[0].replace(" ", "").partition("->")
    terms = inputs.split(",")
    if "." in inputs or len(terms) != len(args) - 1:
        return None
    letter = terms[number - 1][axis]
    others = [place for place, term in enumerate(terms) if letter in term and place != number - 1]
    if len(others) != 1 or letter in output:
        return None
    return args[1 + others[0]], terms[others[0]].index(letter)


def _units_second(read: Tensor, axis: int) -> Tensor:
    """Return a tensor as (n_samples, n_units, n_positions)."""
    if axis == 0:
        return read.flatten(1).unsqueeze(0) if read.ndim > 1 else read.reshape(1, -1, 1)
    return read.movedim(axis, 1).unsqueeze(-1).flatten(2)


class OwnReaderFit:
    """A parameter that reads units, by least squares between the units that were and those that are left.

    `kept` is what is left along its other axes, None where all is.
    """

    def __init__(
        self,
        old: Tensor,
        now: Tensor,
        reader: OwnReader,
        kept: Mapping[int, Tensor | None],
        rows_of: Callable[[Tensor, int], Tensor],
    ) -> None:
        self.old, self.now, self.reader, self.rows_of = old.detach(), now.detach(), reader, rows_of
        for axis, left in kept.items():
            if left is not None:
                self.old = self.old.index_select(axis, left.to(self.old.device))
        self.moments, self.seen = Moments(), 0

    def add(self, before: Any, now: Any) -> None:
        """Add what is read in both networks."""
        for dense, taken in zip(before.taken, now.taken, strict=True):
            if dense.shape[:1] + dense.shape[2:] == taken.shape[:1] + taken.shape[2:]:  # no row is a unit that is gone
                self.moments.add(self.rows_of(taken, self.seen), self.rows_of(dense, self.seen))
        self.seen += len(now.taken[0])

    def values(self) -> dict[str, Tensor]:
        """Return the parameter; nothing where its other axes are not those that it had."""
        axis = self.reader.axis
        old, now = (each.movedim(axis, -1) for each in (self.old, self.now))
        if old.shape[:-1] != now.shape[:-1] or not self.moments.count:
            return {}
        prior = torch.zeros(old.shape[-1], now.shape[-1], dtype=torch.float64)
        mix = self.moments.solve(prior, centred=False)[0]
        return {self.reader.name.rpartition(".")[2]: (old @ mix.to(old)).movedim(-1, axis).contiguous()}


def probe(
    model: nn.Module, paths: Sequence[str], readers: Mapping[str, OwnReader], run: Callable[[], None]
) -> Iterator[str]:
    """Yield layers and parameters in the order in which a run uses them, each time that it does."""
    seen: list[str] = []
    handles = [
        model.get_submodule(path).register_forward_pre_hook(lambda _, __, path=path: seen.append(path))
        for path in paths
    ]
    try:
        with OperationsWatched(model, readers, lambda name, _: seen.append(name)):
            run()
    finally:
        for handle in handles:
            handle.remove()
    yield from seen
