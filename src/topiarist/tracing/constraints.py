"""What a network's code asks of its integers: every number that decides a size, and the units that it counts."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

from topiarist.tracing.integers import (
    COMPARISONS,
    LISTENERS,
    Computed,
    Copies,
    Expression,
    Literal,
    Size,
    TrackedInt,
    expression_of,
    expressions_within,
    tracked,
)
from topiarist.tracing.labels import Labels, Vector
from topiarist.tracing.operation import line_of_user
from topiarist.tracing.pieces import piece_lengths
from topiarist.tracing.tracer import Tracer

SCALING = ("mul", "mul_", "div", "div_", "true_divide", "multiply", "divide")


@dataclass(frozen=True, eq=False)
class Constraint:
    """A number in the code that must stay equal to a count of positions.

    Parameters
    ----------
    expression, old : Expression, int
        Where the number comes from, and what it is now.
    vector : Vector, optional
        The units along the axis that it counts; without, the number must not change.
    sign : int
        -1 where it counts from the end.
    function, place, line : str
        What it is given to, in which module and where in the code.
    soft : bool
        Whether it multiplies or divides values, as the root of a number of dims does: weights can make up for that.
    """

    expression: Expression
    old: int
    vector: Vector | None
    sign: int
    function: str
    place: str
    line: str
    soft: bool = False

    @property
    def is_comparison(self) -> bool:
        """Return whether it is the answer to a comparison that must stay."""
        return isinstance(self.expression, Computed) and self.expression.function in COMPARISONS

    def required(self, labels: Labels, copies: Copies) -> int:
        """Return what the number has to become."""
        return self.old if self.vector is None else self.sign * labels.count(self.vector, copies)

    def __str__(self) -> str:
        where = f"'{self.place}'" if self.place else "the network's forward"
        if isinstance(self.expression, Literal):
            return (
                f"`{self.function}` in {where} has the number {self.expression}{self.line}: write -1, a size of the"
                " tensor or an attribute there"
            )
        if self.is_comparison:
            return f"{where} compares numbers of units ({self.expression}{self.line}), and the answer would change"
        what = "needs another number than" if self.vector is not None else "uses"
        return f"`{self.function}` in {where} {what} {self.expression}{self.line}"


class IntegerWatch(TorchFunctionMode):
    """Sees every call of torch's functions, and notes what numbers they are given."""

    def __init__(self, tracer: Tracer, constraints: list[Constraint]) -> None:
        super().__init__()
        self.tracer = tracer
        self.constraints = constraints
        self.quiet = False  # inside of layers whose integers follow from their parameters

    def __torch_function__(self, func: Any, types: Sequence[Any], args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        output = func(*args, **kwargs)
        if self.quiet:
            return output
        name = getattr(func, "__name__", "")
        if name == "__get__":
            return torch.Size(self._sizes(args[0], output)) if isinstance(output, torch.Size) else output
        if name == "size":
            if isinstance(output, torch.Size):
                return torch.Size(self._sizes(args[0], output))
            place = args[1] if len(args) > 1 else kwargs["dim"]
            return self._sizes(args[0], args[0].shape)[place]
        handler = HANDLERS.get(name)
        if handler is not None:
            handler(self, name, args, kwargs, output)
        else:
            self._must_stay(name, (args, kwargs))
        return output

    def __enter__(self) -> "IntegerWatch":
        LISTENERS.append(self)
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        LISTENERS.remove(self)

    def used_as_value(self, number: TrackedInt, how: str) -> None:
        """Note a number that becomes a value: it must not change."""
        if not self.quiet:
            self.note(how, number, None, soft=True)

    def compared(self, comparison: Computed, found: bool) -> None:
        """Note a comparison: two numbers that are equal have to stay so, and any other answer has to stay as it is."""
        sides = comparison.left, comparison.right
        if self.quiet or not self._is_ours(comparison):
            return
        if found is (comparison.function is operator.eq) and comparison.function in (operator.eq, operator.ne):
            for size, other in (sides, sides[::-1]):
                if isinstance(size, Size):
                    self._add("==", other, len(size.vector), size.vector)
                    return
        self._add("comparison", comparison, int(found), None)

    def _sizes(self, tensor: Tensor, sizes: Sequence[int]) -> list[int]:
        """Return the sizes of a tensor; those of axes with units remember that."""
        axes = self.tracer.axes(tensor)
        pairs = zip(sizes, axes, strict=True)
        return [
            int(size) if vector is None else tracked(size, Size(vector, self.tracer.labels)) for size, vector in pairs
        ]

    def note(self, name: str, number: Any, vector: Vector | None, sign: int = 1, *, soft: bool = False) -> None:
        """Note a number that counts units, or one that must not change."""
        if isinstance(number, bool) or not isinstance(number, int):
            return
        if vector is None and not isinstance(number, TrackedInt):
            return
        if isinstance(number, TrackedInt) and not self._is_ours(number.expression):
            return
        self._add(name, expression_of(number), int(number), vector, sign, soft)

    def _add(
        self, name: str, expression: Expression, old: int, vector: Vector | None, sign: int = 1, soft: bool = False
    ) -> None:
        place, line = self.tracer.modules[-1], line_of_user()
        self.constraints.append(Constraint(expression, old, vector, sign, name.strip("_"), place, line, soft))

    def _is_ours(self, expression: Expression) -> bool:
        """Return whether a number belongs to this run: some code keeps numbers from one run to the next."""
        sizes = (part for part in expressions_within(expression) if isinstance(part, Size))
        return all(size.owner is self.tracer.labels for size in sizes)

    def _must_stay(self, name: str, given: Any) -> None:
        for leaf in tree_leaves(given):
            if isinstance(leaf, TrackedInt):
                self.note(name, leaf, None, soft=name in SCALING)


def _listed(args: Any, kwargs: Any, start: int, *names: str) -> list[Any]:
    """Return the sizes that a function is given: one by one, in one sequence, or by name."""
    given = next((kwargs[name] for name in names if name in kwargs), None)
    if given is None:
        given = args[start:]
        if len(given) >= 1 and isinstance(given[0], (tuple, list, torch.Size)):
            given = given[0]
    return list(given) if isinstance(given, (tuple, list, torch.Size)) else [given]


def _note_sizes(watch: IntegerWatch, name: str, sizes: Sequence[Any], given: Tensor) -> None:
    axes = watch.tracer.axes(given)
    if len(sizes) == len(axes):
        for size, vector in zip(sizes, axes, strict=True):
            if isinstance(size, int) and size != -1:
                watch.note(name, size, vector)


def _shaped(watch: IntegerWatch, name: str, args: Any, kwargs: Any, output: Any) -> None:
    if isinstance(output, Tensor) and not (len(args) > 1 and isinstance(args[1], torch.dtype)):
        _note_sizes(watch, name, _listed(args, kwargs, 1, "size", "shape", "sizes"), output)


def _made(watch: IntegerWatch, name: str, args: Any, kwargs: Any, output: Any) -> None:
    start = 1 if name.startswith("new_") else 0
    _note_sizes(watch, name, _listed(args, kwargs, start, "size"), output)
    if "full" in name:
        watch._must_stay(name, (args[start + 1 :], kwargs.get("fill_value")))


def _unflattened(watch: IntegerWatch, name: str, args: Any, kwargs: Any, output: Any) -> None:
    x = _taken(args, kwargs)
    place = kwargs.get("dim", args[1] if len(args) > 1 else 0) % x.ndim
    sizes = list(kwargs["sizes"] if "sizes" in kwargs else args[2])
    before, after = [-1] * place, [-1] * (x.ndim - place - 1)
    _note_sizes(watch, name, [*before, *sizes, *after], output)


def _split(watch: IntegerWatch, name: str, args: Any, kwargs: Any, output: Any) -> None:
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


def _note_pieces(watch: IntegerWatch, name: str, whole: Vector, asked: int, vectors: Sequence[Vector | None]) -> None:
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


def _narrowed(watch: IntegerWatch, name: str, args: Any, kwargs: Any, output: Any) -> None:
    place, start, length = (
        kwargs.get(key, args[at] if len(args) > at else None) for at, key in enumerate(("dim", "start", "length"), 1)
    )
    vector = watch.tracer.axes(_taken(args, kwargs))[place]
    if vector is not None:
        _note_bound(watch, name, vector, start)
        watch.note(name, length, watch.tracer.axes(output)[place])


def _note_bound(watch: IntegerWatch, name: str, vector: Vector, bound: Any) -> None:
    """Note where a slice begins or ends; the border of the axis needs no number."""
    if not isinstance(bound, int) or isinstance(bound, bool):
        return
    size = len(vector)
    if bound < 0:
        watch.note(name, bound, vector[bound:], sign=-1)
    elif 0 < bound < size or isinstance(bound, TrackedInt):
        watch.note(name, bound, vector[:bound])


def _picked(watch: IntegerWatch, name: str, args: Any, kwargs: Any, output: Any) -> None:
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
            _note_bound(watch, "slice", vector, each.start)
            _note_bound(watch, "slice", vector, each.stop)
            if each.step not in (None, 1):
                watch.constraints.append(
                    Constraint(
                        Literal(len(vector)), len(vector), vector, 1, "slice", watch.tracer.modules[-1], line_of_user()
                    )
                )
        place += _axes_used(each)


def _axes_used(index: Any) -> int:
    """Return how many axes of a tensor an index is for."""
    if index is None or index is Ellipsis or isinstance(index, bool):
        return 0
    return index.ndim if isinstance(index, Tensor) and index.dtype == torch.bool else 1


def _normalised(watch: IntegerWatch, name: str, args: Any, kwargs: Any, output: Any) -> None:
    shape = list(kwargs["normalized_shape"] if "normalized_shape" in kwargs else args[1])
    for size, vector in zip(shape, watch.tracer.axes(output)[-len(shape) :], strict=True):
        watch.note(name, size, vector)


def _grouped(watch: IntegerWatch, name: str, args: Any, kwargs: Any, output: Any) -> None:
    position = {"group_norm": 1, "conv1d": 6, "conv2d": 6, "conv3d": 6}.get(name, 6)
    key = "num_groups" if name == "group_norm" else "groups"
    groups = kwargs.get(key, args[position] if len(args) > position else 1)
    if groups != 1:
        watch.note(name, groups, watch.tracer.groups)


def _repeated(watch: IntegerWatch, name: str, args: Any, kwargs: Any, output: Any) -> None:
    times = _listed(args, kwargs, 1, "repeats", "dims")
    taken = _taken(args, kwargs)
    new = output.ndim - taken.ndim
    for place, time in enumerate(times):
        single = place < new or taken.shape[place - new] == 1
        watch.note(name, time, watch.tracer.axes(output)[place] if single and time != 1 else None)


def _attended(watch: IntegerWatch, name: str, args: Any, kwargs: Any, output: Any) -> None:
    """Note that attention divides by the root of the dims of its queries, unless it is told a scale."""
    if kwargs.get("scale", args[6] if len(args) > 6 else None) is None:
        vector = watch.tracer.axes(args[0] if args else kwargs["query"])[-1]
        if vector is not None:
            watch.note(name, tracked(len(vector), Size(vector, watch.tracer.labels)), None, soft=True)


def _squeezed(watch: IntegerWatch, name: str, args: Any, kwargs: Any, output: Any) -> None:
    """Note that axes must keep more than one position: else they would be left out."""
    x = _taken(args, kwargs)
    asked = kwargs.get("dim", args[1] if len(args) > 1 else None)
    places = range(x.ndim) if asked is None else [asked] if isinstance(asked, int) else asked
    for place in places:
        vector = watch.tracer.axes(x)[place]
        if vector is not None and len(vector) > 1:
            watch.compared(Computed(operator.ne, Size(vector, watch.tracer.labels), Literal(1)), True)


def _no_number(watch: IntegerWatch, name: str, args: Any, kwargs: Any, output: Any) -> None:
    """Let functions be that are given the numbers of axes, not of units."""


Handler = Callable[[IntegerWatch, str, Any, Any, Any], None]
HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("view", "reshape", "expand", "broadcast_to"), _shaped),
    **dict.fromkeys(("zeros", "ones", "empty", "full", "rand", "randn"), _made),
    **dict.fromkeys(("new_zeros", "new_ones", "new_empty", "new_full"), _made),
    **dict.fromkeys(("split", "split_with_sizes", "chunk", "tensor_split"), _split),
    **dict.fromkeys(("layer_norm", "rms_norm"), _normalised),
    **dict.fromkeys(("group_norm", "conv1d", "conv2d", "conv3d"), _grouped),
    **dict.fromkeys(("repeat", "tile"), _repeated),
    **dict.fromkeys(("permute", "transpose", "flatten", "unsqueeze", "dim", "movedim", "swapaxes"), _no_number),
    "scaled_dot_product_attention": _attended,
    "unflatten": _unflattened,
    "squeeze": _squeezed,
    "narrow": _narrowed,
    "__getitem__": _picked,
}
