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
from topiarist.tracing.rules.reduction import BATCH_NORMS, MEANS
from topiarist.tracing.tracer import Tracer
from topiarist.tracing.vectors import Axes, Vector

STEADY = 0.37  # what every random number is in a proof: networks of two shapes would draw different ones
TURNED = frozenset({"t", "transpose", "permute", "detach"})  # as silent as what was turned, at the same place in memory
SMALLEST_VARIANCE = 1e-3  # that a batch norm is given: of a silent channel's rounding errors nothing is made
NARROW = frozenset({torch.float32, torch.float16, torch.bfloat16})
Gone = NDArray[numpy.bool_]


def steadied(func: Any, output: Any) -> Any:
    """Return what an operation gave, random numbers replaced by one number."""
    if torch.Tag.nondeterministic_seeded in func.tags:
        for tensor in tree_leaves(output):
            if isinstance(tensor, Tensor) and tensor.is_floating_point():
                tensor.fill_(STEADY)
    return output


def widened(func: Any, kwargs: Any) -> Any:
    """Return the keyword arguments of an operation, float64 in the place of a narrower type that it is asked for."""
    if kwargs.get("dtype") not in NARROW or func._schema.name == "aten::view":  # which reads the same bits
        return kwargs
    return {**kwargs, "dtype": torch.float64}


class Steady(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Runs a network with one number in the place of all random ones; with `wide`, in float64 throughout."""

    def __init__(self, *, wide: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._wide = wide

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        return steadied(func, func(*args, **(widened(func, kwargs) if self._wide else kwargs)))


class Measuring(Steady):  # type: ignore[no-untyped-call]
    """Runs a network and gives its batch norms the means and variances of what they read.

    Random weights let a signal die in deep networks; behind such norms it is as large as before in every layer.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.name.removeprefix("aten::") in BATCH_NORMS:
            named = [argument.name for argument in func._schema.arguments]
            asked = {**dict(zip(named, args, strict=False)), **(kwargs or {})}
            x, mean, variance = asked["input"], asked.get("running_mean"), asked.get("running_var")
            if mean is not None and variance is not None and not asked.get("training") and x.numel() > x.shape[1]:
                others = [place for place in range(x.ndim) if place != 1]
                mean.copy_(x.mean(others))
                variance.copy_(x.var(others, correction=0).clamp(min=SMALLEST_VARIANCE))
        return super().__torch_dispatch__(func, types, args, kwargs)


class Reference(Tracer):  # type: ignore[no-untyped-call]
    """Runs a network as if some units were not there; its parameters and buffers are left as they are.

    `leaves` are those of the trace, `gone` says which units of its labels are not there. With `steady`, one number
    stands for all random ones; with `wide`, all is computed in float64. `silenced` remembers parameters without those
    units, by name, for other runs with the same values.
    """

    def __init__(
        self,
        model: nn.Module,
        labels: Labels,
        leaves: dict[str, Leaf],
        gone: Gone,
        *,
        steady: bool = True,
        silenced: dict[str, Tensor] | None = None,
        wide: bool = False,
    ) -> None:
        self._known, self._steady, self._wide = leaves, steady, wide
        super().__init__(model, labels)
        self._held = {id(leaf.tensor): name for name, leaf in self.leaves.items()}
        self.hide(gone, silenced)

    def hide(self, gone: Gone, silenced: dict[str, Tensor] | None = None) -> None:
        """Let other units be gone from now on."""
        self.gone = numpy.concatenate([gone, numpy.zeros(max(len(self.labels) - len(gone), 0), bool)])
        self._silenced: dict[int, Tensor] = {}
        self._of_parameters = {} if silenced is None else silenced

    def _leaf_axes(self, name: str, tensor: Tensor) -> Any:
        known = self._known.get(name)  # forward may have made a buffer since
        return [None] * tensor.ndim if known is None or known.tensor.shape != tensor.shape else known.axes

    def _without(self, tensor: Any) -> Any:
        """Return a parameter or buffer with zeros in the place of what is not there; anything else as it is."""
        if not isinstance(tensor, Tensor) or id(tensor) not in self._held:
            return tensor
        if id(tensor) not in self._silenced:
            self._silenced[id(tensor)] = self._without_gone(tensor, self._held[id(tensor)])
        return self._silenced[id(tensor)]

    def _without_gone(self, tensor: Tensor, name: str) -> Tensor:
        axes = self.axes(tensor)
        if all(self._alive(vector) is None for vector in axes):
            return tensor
        found = self._of_parameters.get(name)
        if found is None:
            found = tensor.detach().clone()
            self._silence(found, axes)
        if isinstance(tensor, nn.Parameter):  # what forward writes into is another in each run
            self._of_parameters[name] = found
        self.set_axes(found, axes)
        return found

    def _living(self, vector: Vector | None) -> Gone | None:
        """Return which positions are there; None where all are."""
        if vector is None:
            return None
        missing = len(self.labels) - len(self.gone)
        if missing > 0:  # units that came up on the way
            self.gone = numpy.concatenate([self.gone, numpy.zeros(missing, bool)])
        living = self.labels.alive(vector, self.gone)
        return None if living.all() else living

    def _alive(self, vector: Vector | None) -> Tensor | None:
        """Return the positions that are there; None where all are."""
        living = self._living(vector)
        return None if living is None else torch.from_numpy(numpy.flatnonzero(living))

    def _silence(self, tensor: Tensor, axes: Axes) -> None:
        if not (tensor.is_floating_point() or tensor.is_complex()) or _is_spread(tensor):
            return
        for axis, vector in enumerate(axes):
            living = self._living(vector)
            if living is not None:
                dead = torch.from_numpy(numpy.flatnonzero(~living))
                tensor.data.index_fill_(axis, dead.to(tensor.device), 0.0)

    def follow(self, operation: Operation) -> None:
        """Let the labels follow, and silence what is not there."""
        super().follow(operation)
        if operation.name in TURNED:
            return
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
        kwargs = widened(func, kwargs) if self._wide else kwargs
        if not func._schema.is_mutable:
            args, kwargs = tree_map(self._without, (args, kwargs))
        elif args:
            self._silenced.pop(id(args[0]), None)  # a buffer gets other values, as a running mean does
        if name in MEANS:
            return self._mean(func, args, kwargs)
        if name == "native_layer_norm":
            return self._layer_norm(func, args)
        if name == "native_group_norm":
            return self._group_norm(func, args)
        if name in BATCH_NORMS:
            return self._batch_norm(func, args, kwargs)
        if name == "convolution":
            return self._convolution(func, args)
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

    def _convolution(self, func: Callable[..., Any], args: Any) -> Any:
        """Run a convolution without the channels that are not there: what they are multiplied with is zero.

        Nearly all of the time that the proof of a convolutional network takes is spent here.
        """
        x, weight, bias, *settings, transposed, more, groups = args
        reads, writes = (0, 1) if transposed else (1, 0)
        axes = self.axes(weight)
        taken, given = self._alive(axes[reads]), self._alive(axes[writes])
        silenced = groups == 1 and weight.is_floating_point() and not _is_spread(weight)
        if not silenced or any(kept is not None and not len(kept) for kept in (taken, given)):
            return func(*args)
        if taken is not None:
            x, weight = x.index_select(1, taken.to(x.device)), weight.index_select(reads, taken.to(x.device))
        if given is None:
            return func(x, weight, bias, *settings, transposed, more, groups)
        given = given.to(x.device)
        bias = None if bias is None else bias.index_select(0, given)
        few = func(x, weight.index_select(writes, given), bias, *settings, transposed, more, groups)
        return _enlarged(few, 1, args[1].shape[writes], given)

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

    def _batch_norm(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run a batch norm without what is not there along other axes than that of channels: they are averaged over."""
        x, axes = args[0], self.axes(args[0])
        found = {place: self._alive(axes[place]) for place in range(x.ndim) if place != 1}
        alive = {place: kept.to(x.device) for place, kept in found.items() if kept is not None}
        if not alive:
            return func(*args, **kwargs)
        taken = x
        for place, kept in alive.items():
            taken = taken.index_select(place, kept)
        given, *rest = func(taken, *args[1:], **kwargs)
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
        given = _enlarged(given, place, like.shape[place], kept)
    return given


def _enlarged(given: Tensor, place: int, size: int, kept: Tensor) -> Tensor:
    shape = list(given.shape)
    shape[place] = size
    return given.new_zeros(shape).index_copy_(place, kept, given)


def _is_spread(tensor: Tensor) -> bool:
    """Return whether several positions of a tensor are one place in memory, as after an expand."""
    return any(stride == 0 and size > 1 for stride, size in zip(tensor.stride(), tensor.shape, strict=True))
