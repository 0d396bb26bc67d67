"""What a network computes without some of its units: they are zero wherever they occur, and means run over the others.

The reference of every proof: the network runs as it is, nothing is cut, and no integer is rewritten.
"""

from collections.abc import Callable
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from topiarist.tracing.labels import Labels
from topiarist.tracing.leaves import Leaf
from topiarist.tracing.operation import Operation
from topiarist.tracing.rules.reduction import MEANS
from topiarist.tracing.tracer import Tracer
from topiarist.tracing.vectors import Axes, Vector

STEADY = 0.37  # what every random number is in a proof: networks of two shapes would draw different ones
Gone = NDArray[numpy.bool_]


def steadied(func: Any, output: Any) -> Any:
    """Return what an operation gave, random numbers replaced by one number."""
    if torch.Tag.nondeterministic_seeded in func.tags:
        for tensor in tree_leaves(output):
            if isinstance(tensor, Tensor) and tensor.is_floating_point():
                tensor.fill_(STEADY)
    return output


class Steady(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Runs a network with one number in the place of all random ones."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return steadied(func, func(*args, **(kwargs or {})))


class Reference(Tracer):  # type: ignore[no-untyped-call]
    """Runs a network as if some units were not there; its parameters and buffers are left as they are.

    `leaves` are those of the trace, `gone` says which units of its labels are not there. With `steady`, one number
    stands for all random ones.
    """

    def __init__(
        self, model: nn.Module, labels: Labels, leaves: dict[str, Leaf], gone: Gone, *, steady: bool = True
    ) -> None:
        self._known, self._steady = leaves, steady
        super().__init__(model, labels)
        self._held = {id(leaf.tensor) for leaf in self.leaves.values()}
        self.hide(gone)

    def hide(self, gone: Gone) -> None:
        """Let other units be gone from now on."""
        self.gone = numpy.concatenate([gone, numpy.zeros(max(len(self.labels) - len(gone), 0), bool)])
        self._silenced: dict[int, Tensor] = {}

    def _leaf_axes(self, name: str, tensor: Tensor) -> Any:
        known = self._known.get(name)  # forward may have made a buffer since
        return [None] * tensor.ndim if known is None or known.tensor.shape != tensor.shape else known.axes

    def _without(self, tensor: Any) -> Any:
        """Return a parameter or buffer with zeros in the place of what is not there; anything else as it is."""
        if not isinstance(tensor, Tensor) or id(tensor) not in self._held:
            return tensor
        if id(tensor) not in self._silenced:
            axes = self.axes(tensor)
            hidden = any(self._alive(vector) is not None for vector in axes)
            self._silenced[id(tensor)] = tensor.detach().clone() if hidden else tensor
            if hidden:
                self._silence(self._silenced[id(tensor)], axes)
                self.set_axes(self._silenced[id(tensor)], axes)
        return self._silenced[id(tensor)]

    def _alive(self, vector: Vector | None) -> Tensor | None:
        """Return the positions that are there; None where all are."""
        if vector is None:
            return None
        missing = len(self.labels) - len(self.gone)
        if missing > 0:  # units that came up on the way
            self.gone = numpy.concatenate([self.gone, numpy.zeros(missing, bool)])
        alive = self.labels.alive(vector, self.gone)
        return None if alive.all() else torch.from_numpy(numpy.flatnonzero(alive))

    def _silence(self, tensor: Tensor, axes: Axes) -> None:
        for axis, vector in enumerate(axes):
            alive = self._alive(vector)
            if alive is not None and tensor.is_floating_point() and not _is_spread(tensor):
                kept = torch.zeros(tensor.shape[axis], dtype=torch.bool)
                kept[alive] = True
                tensor.data.index_fill_(axis, (~kept).nonzero().flatten().to(tensor.device), 0.0)

    def follow(self, operation: Operation) -> None:
        """Let the labels follow, and silence what is not there."""
        super().follow(operation)
        for tensor in operation.outputs:
            if id(tensor) not in self._held:
                self._silence(tensor, self.axes(tensor))

    def give_like(self, tensor: Tensor, shown: Tensor, axes: Axes) -> None:
        """Set the label vectors of a tensor, and silence what is not there."""
        super().give_like(tensor, shown, axes)
        self._silence(tensor, axes)

    def seen(self, args: Any) -> Any:
        """Return the arguments of a call without what is not there."""
        return tree_map(self._without, args)

    def note_product(self, axes: Any, tensors: Any) -> None:
        """Remember nothing: a reference may run for long."""

    def compute(self, name: str, func: Any, args: Any, kwargs: Any) -> Any:
        """Run an operation; means and norms see only what is there."""
        if not func._schema.is_mutable:
            args, kwargs = tree_map(self._without, (args, kwargs))
        if name in MEANS:
            return self._mean(func, args, kwargs)
        if name == "native_layer_norm":
            return self._layer_norm(func, args)
        if name == "native_group_norm":
            return self._group_norm(func, args)
        given = func(*args, **kwargs)
        return steadied(func, given) if self._steady else given

    def _mean(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        x = args[0]
        asked = args[1] if len(args) > 1 else kwargs.get("dim")
        places = range(x.ndim) if asked is None or asked == [] else [asked] if isinstance(asked, int) else asked
        for place in {place % x.ndim for place in places} if x.ndim else ():
            alive = self._alive(self.axes(args[0])[place])
            x = x if alive is None else x.index_select(place, alive.to(x.device))
        return func(x, *args[1:], **kwargs)

    def _layer_norm(self, func: Callable[..., Any], args: Any) -> Any:
        x, shape, weight, bias, epsilon = args
        axes = self.axes(x)
        found = {place: self._alive(axes[place]) for place in range(-len(shape), 0)}
        alive = {place: kept.to(x.device) for place, kept in found.items() if kept is not None}
        if not alive:
            return func(*args)
        taken = [x, weight, bias]
        for place, kept in alive.items():
            taken = [None if tensor is None else tensor.index_select(place, kept) for tensor in taken]
        given, *rest = func(taken[0], list(taken[0].shape[-len(shape) :]), taken[1], taken[2], epsilon)
        return (_spread_out(given, x, alive), *rest)

    def _group_norm(self, func: Callable[..., Any], args: Any) -> Any:
        x, weight, bias, samples, channels, size, groups, epsilon = args
        alive = self._alive(self.axes(x)[1])
        if alive is None:
            return func(*args)
        alive = alive.to(x.device)
        taken = x.index_select(1, alive)
        kept_weight, kept_bias = (None if each is None else each.index_select(0, alive) for each in (weight, bias))
        left = len(torch.unique(alive // (channels // groups)))
        given, *rest = func(taken, kept_weight, kept_bias, samples, len(alive), size, left, epsilon)
        return (_spread_out(given, x, {1: alive}), *(x.new_zeros(samples, groups) for _ in rest))


def _spread_out(given: Tensor, like: Tensor, alive: dict[int, Tensor]) -> Tensor:
    """Put what was computed for some positions where they are, zeros elsewhere."""
    for place, kept in alive.items():
        shape = list(given.shape)
        shape[place] = like.shape[place]
        given = given.new_zeros(shape).index_copy(place, kept, given)
    return given


def _is_spread(tensor: Tensor) -> bool:
    """Return whether several positions of a tensor are one place in memory, as after an expand."""
    return any(stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape, strict=True))
