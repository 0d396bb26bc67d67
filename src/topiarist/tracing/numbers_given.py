"""What each of torch's functions is given numbers for: sizes of axes, borders of slices, counts of groups."""

import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy
import torch
from torch import Tensor

from topiarist.tracing.integers import Computed, Literal, Size, TrackedInt, expression_of, tracked
from topiarist.tracing.pieces import piece_lengths
from topiarist.tracing.vectors import Vector

if TYPE_CHECKING:
    from topiarist.tracing.constraints import IntegerWatch


def _listed(args: Any, kwargs: Any, start: int, *names: str) -> list[Any]:
    """Return the sizes that a function is given: one by one, in one sequence, or by name."""
    given = next((kwargs[name] for name in names if name in kwargs), None)
    if given is None:
        given = args[start:]
        if len(given) >= 1 and isinstance(given[0], (tuple, list, torch.Size)):
            given = given[0]
    return list(given) if isinstance(given, (tuple, list, torch.Size)) else [given]


def _note_sizes(watch: "IntegerWatch", name: str, sizes: Sequence[Any], given: Tensor) -> None:
    axes = watch.tracer.axes(given)
    if len(sizes) == len(axes):
        for size, vector in zip(sizes, axes, strict=True):
            if isinstance(size, (int, numpy.integer)) and size != -1:
                watch.note(name, size, vector)


def _shaped(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    if isinstance(output, Tensor) and not (len(args) > 1 and isinstance(args[1], torch.dtype)):
        _note_sizes(watch, name, _listed(args, kwargs, 1, "size", "shape", "sizes"), output)


def _strided(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    """Note the sizes that are asked for; steps from place to place follow the tensor itself, or the proof refuses."""
    _note_sizes(watch, name, list(kwargs["size"] if "size" in kwargs else args[1]), output)


def _made(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    start = 1 if name.startswith("new_") else 0
    _note_sizes(watch, name, _listed(args, kwargs, start, "size"), output)
    if "full" in name:
        watch._must_stay(name, (args[start + 1 :], kwargs.get("fill_value")))


def _unflattened(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    x = _taken(args, kwargs)
    place = kwargs.get("dim", args[1] if len(args) > 1 else 0) % x.ndim
    sizes = list(kwargs["sizes"] if "sizes" in kwargs else args[2])
    before, after = [-1] * place, [-1] * (x.ndim - place - 1)
    _note_sizes(watch, name, [*before, *sizes, *after], output)


def _split(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    x = _taken(args, kwargs)
    names = (
        "split_size_or_sections",
        "split_size",
        "split_sizes",
        "chunks",
        "indices_or_sections",
        "sections",
        "indices",
    )
    asked = next((kwargs[key] for key in names if key in kwargs), None)
    asked = args[1] if asked is None else asked
    place = kwargs.get("dim", args[2] if len(args) > 2 else 0) % x.ndim
    vectors = [watch.tracer.axes(piece)[place] for piece in output]
    whole = watch.tracer.axes(x)[place]
    if whole is None:
        watch._must_stay(name, asked)
    elif isinstance(asked, int):
        _note_pieces(watch, name, whole, asked, vectors)
    elif name == "tensor_split":
        for bound in asked:
            _note_bound(watch, name, whole, bound)
    else:
        for size, vector in zip(asked, vectors, strict=True):
            watch.note(name, size, vector)


def _note_pieces(watch: "IntegerWatch", name: str, whole: Vector, asked: int, vectors: Sequence[Vector | None]) -> None:
    """Note that every piece must stay as long as it is, less what is cut from it."""
    if name == "split":
        watch.note(name, asked, vectors[0])
    else:
        watch.note(name, asked, None)
    size = Size(whole, watch.tracer.labels)
    lengths = piece_lengths(name, size, expression_of(asked), len(vectors))
    for length, vector in zip(lengths, vectors, strict=True):
        if vector is not None:
            watch.note(name, tracked(len(vector), length), vector)


def _taken(args: Any, kwargs: Any) -> Tensor:
    """Return the tensor that a function is given first, or by name."""
    found: Tensor = args[0] if args else kwargs["input"]
    return found


def _narrowed(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    place, start, length = (
        kwargs.get(key, args[at] if len(args) > at else None) for at, key in enumerate(("dim", "start", "length"), 1)
    )
    vector = watch.tracer.axes(_taken(args, kwargs))[place]
    if vector is not None:
        _note_bound(watch, name, vector, start)
        watch.note(name, length, watch.tracer.axes(output)[place])


def _note_bound(watch: "IntegerWatch", name: str, vector: Vector, bound: Any) -> None:
    """Note where a slice begins or ends; the border of the axis needs no number."""
    if not isinstance(bound, int) or isinstance(bound, bool):
        return
    size = len(vector)
    if bound < 0:
        watch.note(name, bound, vector[bound:], sign=-1)
    elif 0 < bound < size or isinstance(bound, TrackedInt):
        watch.note(name, bound, vector[:bound])


def _picked(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    x, asked = args[0], args[1] if isinstance(args[1], tuple) else (args[1],)
    axes = watch.tracer.axes(x)
    used = sum(_axes_used(each) for each in asked)
    place = 0
    for each in asked:
        if each is Ellipsis:
            place += x.ndim - used
            continue
        if isinstance(each, slice) and place < len(axes) and axes[place] is not None:
            vector = axes[place]
            assert vector is not None
            step = each.step or 1
            watch.note("slice", step, None)
            if len(vector) % step:
                watch.note("slice", len(vector), vector)  # another number of units would shift the others
            if not isinstance(each.start, int) or not 0 <= each.start < step:
                _note_bound(watch, "slice", vector, each.start)
            _note_bound(watch, "slice", vector, each.stop)
        place += _axes_used(each)


def _written(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    """Note where a slice begins and ends that is written to; numbers that are written must not change."""
    watch._must_stay(name, args[1:])
    _picked(watch, name, args, kwargs, output)


def _axes_used(index: Any) -> int:
    """Return how many axes of a tensor an index is for."""
    if index is None or index is Ellipsis or isinstance(index, bool):
        return 0
    return index.ndim if isinstance(index, Tensor) and index.dtype == torch.bool else 1


def _normalised(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    shape = list(kwargs["normalized_shape"] if "normalized_shape" in kwargs else args[1])
    for size, vector in zip(shape, watch.tracer.axes(output)[-len(shape) :], strict=True):
        watch.note(name, size, vector)


def _grouped(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    position = {"group_norm": 1, "conv1d": 6, "conv2d": 6, "conv3d": 6}.get(name, 6)
    key = "num_groups" if name == "group_norm" else "groups"
    groups = kwargs.get(key, args[position] if len(args) > position else 1)
    if groups != 1:
        watch.note(name, groups, watch.tracer.groups)


def _repeated(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    times = _listed(args, kwargs, 1, "repeats", "dims")
    taken = _taken(args, kwargs)
    new = output.ndim - taken.ndim
    for place, time in enumerate(times):
        single = place < new or taken.shape[place - new] == 1
        watch.note(name, time, watch.tracer.axes(output)[place] if single and time != 1 else None)


def _interleaved(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    """Note that every position becomes so many in a row."""
    x = _taken(args, kwargs)
    repeats, place = (
        kwargs.get(key, args[at] if len(args) > at else None) for at, key in enumerate(("repeats", "dim"), 1)
    )
    after = watch.tracer.axes(output)[0 if place is None else place]
    if not isinstance(repeats, int) or place is None or after is None:
        watch._must_stay(name, (args, kwargs))
        return
    before = watch.tracer.axes(x)[place]
    size = Literal(x.shape[place]) if before is None else Size(before, watch.tracer.labels)
    watch.note(name, tracked(len(after), Computed(operator.mul, size, expression_of(repeats))), after)


def _attended(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    """Note that attention divides by the root of the dims of its queries, unless it is told a scale."""
    if kwargs.get("scale", args[6] if len(args) > 6 else None) is None:
        vector = watch.tracer.axes(args[0] if args else kwargs["query"])[-1]
        if vector is not None:
            watch.note(name, tracked(len(vector), Size(vector, watch.tracer.labels)), None, soft=True)


def _attended_whole(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    """Note what torch's attention of several heads computes with: one width, and so many heads of as many dims."""
    given = dict(zip(("query", "key", "value", "width", "heads", "in_proj_weight"), args, strict=False))
    given |= kwargs
    width, heads = (given.get(short, given.get(long)) for short, long in _ATTENTION_NUMBERS)
    tracer = watch.tracer
    watch.note(name, width, tracer.axes(given["query"])[-1])
    separate = [given.get(key) for key in ("q_proj_weight", "k_proj_weight", "v_proj_weight")]
    if separate[0] is None or not isinstance(width, int) or not isinstance(heads, int):
        watch._must_stay(name, (args, kwargs))
        return
    for weight in separate:
        rows = None if weight is None else tracer.axes(weight)[0]
        if rows is not None:
            across, dims = tracer.labels.split(
                rows, [int(heads), int(width) // int(heads)], lambda: "they are no heads"
            )
            watch.note(name, heads, across)
            watch.note(name, width // heads, dims)
            if dims is not None:  # it divides by the root of their number
                watch.note(name, tracked(len(dims), Size(dims, tracer.labels)), None)


def _squeezed(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    """Note that axes must keep more than one position: else they would be left out."""
    x = _taken(args, kwargs)
    asked = kwargs.get("dim", args[1] if len(args) > 1 else None)
    places = range(x.ndim) if asked is None else [asked] if isinstance(asked, int) else asked
    for place in places:
        vector = watch.tracer.axes(x)[place]
        if vector is not None and len(vector) > 1:
            watch.compared(Computed(operator.ne, Size(vector, watch.tracer.labels), Literal(1)), True)


def _recurrent(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    """Note that a projection of hidden units must not become as wide as they are: torch would not know it as one."""
    watch._must_stay(name, (args, kwargs))
    states = next((each for each in args if isinstance(each, (tuple, list)) and len(each) == 2), ())
    if len(states) == 2 and states[0].shape[-1] != states[1].shape[-1]:
        vectors = (watch.tracer.axes(state)[-1] for state in states)
        sizes = [Size(vector, watch.tracer.labels) for vector in vectors if vector is not None]
        if len(sizes) == 2:
            watch.compared(Computed(operator.ne, sizes[1], sizes[0]), True)


def _no_number(watch: "IntegerWatch", name: str, args: Any, kwargs: Any, output: Any) -> None:
    """Let functions be that are given the numbers of axes, not of units."""


Handler = Callable[["IntegerWatch", str, Any, Any, Any], None]


_ATTENTION_NUMBERS = (("width", "embed_dim_to_check"), ("heads", "num_heads"))
HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("view", "reshape", "expand", "broadcast_to"), _shaped),
    **dict.fromkeys(("zeros", "ones", "empty", "full", "rand", "randn"), _made),
    **dict.fromkeys(("new_zeros", "new_ones", "new_empty", "new_full"), _made),
    **dict.fromkeys(("split", "split_with_sizes", "chunk", "tensor_split"), _split),
    **dict.fromkeys(("layer_norm", "rms_norm"), _normalised),
    **dict.fromkeys(("group_norm", "conv1d", "conv2d", "conv3d"), _grouped),
    **dict.fromkeys(("repeat", "tile"), _repeated),
    **dict.fromkeys(("permute", "transpose", "flatten", "unsqueeze", "dim", "movedim", "swapaxes"), _no_number),
    **dict.fromkeys(("max_unpool1d", "max_unpool2d", "max_unpool3d"), _no_number),  # of a size, the last ones count
    "as_strided": _strided,
    "repeat_interleave": _interleaved,
    "scaled_dot_product_attention": _attended,
    "multi_head_attention_forward": _attended_whole,
    "lstm": _recurrent,
    "unflatten": _unflattened,
    "squeeze": _squeezed,
    "narrow": _narrowed,
    "__getitem__": _picked,
    "__setitem__": _written,
}
