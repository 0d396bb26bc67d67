"""Follows what a network passes on as it is: the residual stream, which blocks read, and add to.

In one run, every tensor remembers what it was made of where that is still in it: a sum of its terms, a view or a copy
of the tensor viewed, a norm of what it reads. A module whose result leads back to its own input that way, through one
addition or more, is a residual block: y = x + f(x), or a norm of that.

    x ──┬─ norm ─ attention ─ + ─┬─ norm ─ perceptron ─ + ── y      y ← sum ← sum ← x: one way, two additions
        └─────────────────────┘ └──────────────────────┘
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.hooks import RemovableHandle

from topiarist.models.evaluation import NORMS
from topiarist.tracing.multiplications import MADE_OF_OTHERS, MULTIPLICATIONS
from topiarist.tracing.running import ExampleInput, arguments, call, described, own_errors, quietly, sharing_copy
from topiarist.tracing.trace import tensors_in

MOVES = frozenset(
    (
        *("view", "_unsafe_view", "reshape", "transpose", "permute", "t", "squeeze", "unsqueeze"),
        *("contiguous", "clone", "alias", "detach", "_to_copy"),
    )
)
ACTIVATIONS = frozenset(
    ("relu", "hardtanh", "gelu", "silu", "leaky_relu", "hardswish", "elu", "mish", "sigmoid", "tanh")
)
Move = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Link:
    """A tensor that is still in another: moved, as a term of a sum, or behind a norm or an activation, by name."""

    source: "StreamNode"
    kind: Literal["moved", "added", "norm", "activation"]
    name: str = ""
    move: Move | None = None


@dataclass(frozen=True, eq=False)
class StreamNode:
    """A tensor at one time; `module` ran when it was made."""

    links: tuple[Link, ...] = ()
    module: str = ""


@dataclass(eq=False)
class ModuleCall:
    """One call of a module: what it read and returned, as nodes, and its multiplications.

    `arguments` are by the names that forward has for them; `is_positive` says that no number that it read is below 0.
    """

    arguments: dict[str, Any]
    taken: StreamNode | None
    taken_shape: tuple[int, ...] = ()
    is_positive: bool = False
    result: Any = None
    given: StreamNode | None = None
    given_shape: tuple[int, ...] = ()
    macs: int = 0


@dataclass
class Streams:
    """The calls of each module in one run, and the number of samples."""

    calls: dict[str, list[ModuleCall]] = field(default_factory=dict)
    samples: int = 1


def follow_streams(model: nn.Module, example_input: ExampleInput) -> Streams:
    """Run a network once, on a copy that shares its parameters, and return what its modules passed on."""
    network = sharing_copy(model)
    mode = _Follower()
    modules: list[str] = [""]
    with (
        own_errors(lambda error: described(network, modules[-1])),
        quietly(network),
        _watched(network, mode, modules),
    ):
        if callable(example_input) and not isinstance(example_input, Tensor):
            with mode:
                call(network, example_input)
        else:
            args, kwargs = arguments(network, example_input)
            batched = [tensor for tensor in tensors_in((args, kwargs)) if tensor.ndim]
            mode.streams.samples = len(batched[0]) if batched else 1
            with mode:
                network(*args, **kwargs)
    return mode.streams


class _Follower(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """Sees every operation, and remembers what is still in its result."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.streams = Streams()
        self.running: list[tuple[str, ModuleCall]] = []
        self._nodes: dict[int, tuple[Tensor, StreamNode]] = {}  # tensors stay alive, so that no two have one identity

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # or the compiler is loaded, only to be told to stay away

    def node(self, tensor: Tensor) -> StreamNode:
        """Return what is known of a tensor."""
        if id(tensor) not in self._nodes:
            self._nodes[id(tensor)] = tensor, StreamNode()
        return self._nodes[id(tensor)][1]

    def note(self, tensor: Tensor, links: Sequence[Link]) -> None:
        """Remember what a tensor was made of."""
        self._nodes[id(tensor)] = tensor, StreamNode(tuple(links), self.running[-1][0] if self.running else "")

    def __torch_dispatch__(self, func: Any, types: Sequence[Any], args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        packet = func.overloadpacket
        if packet in MADE_OF_OTHERS:
            with self:
                return func.decompose(*args, **kwargs)
        name = func._schema.name.removeprefix("aten::")
        plain = name[:-1] if func._schema.is_mutable and name.endswith("_") else name
        before = [self.node(each) if isinstance(each, Tensor) else None for each in args[:2]]
        output = func(*args, **kwargs)
        if packet in MULTIPLICATIONS:
            macs = MULTIPLICATIONS[packet](output, *args)
            for _, each in self.running:
                each.macs += macs
        if isinstance(output, Tensor):
            self.note(output, list(_links(plain, before, func, args, kwargs, output)))
        return output


def _links(
    name: str, before: Sequence[StreamNode | None], func: Any, args: Any, kwargs: Any, output: Tensor
) -> Iterator[Link]:
    """Yield what is still in the result of an operation; `before` are its first two arguments before it ran."""
    first = before[0] if before else None
    if name in MOVES and first is not None:
        yield Link(first, "moved", move=lambda tensor: func(tensor, *args[1:], **kwargs))
    elif name in ACTIVATIONS and first is not None:
        yield Link(first, "activation", name)
    elif name in ("add", "sub"):
        for number, source in enumerate(before):
            whole = number == 0 or (name == "add" and kwargs.get("alpha", 1) == 1)
            if source is not None and whole and args[number].shape == output.shape and output.is_floating_point():
                yield Link(source, "added")


@contextmanager
def _watched(model: nn.Module, mode: _Follower, modules: list[str]) -> Iterator[None]:
    """Follow which module runs, what it reads and what it returns."""
    handles: list[RemovableHandle] = []
    try:
        for path, module in model.named_modules():
            if not isinstance(module, torch.jit.ScriptModule):
                handles += _hook(path, module, mode, modules)
        yield
    finally:
        for handle in handles:
            handle.remove()


def _hook(path: str, module: nn.Module, mode: _Follower, modules: list[str]) -> list[RemovableHandle]:
    def enter(_: nn.Module, args: Any, kwargs: Any) -> None:
        modules.append(path)
        named = _by_name(module, args, kwargs)
        first = next(iter(tensors_in(next(iter(named.values()), None))), None)
        begun = ModuleCall(named, None)
        if first is not None and first.is_floating_point():
            begun.taken, begun.taken_shape = mode.node(first), tuple(first.shape)
            begun.is_positive = first.numel() > 0 and float(first.detach().min()) >= 0
        mode.running.append((path, begun))

    def leave(_: nn.Module, args: Any, kwargs: Any, given: Any) -> None:
        modules.pop()
        ended = mode.running.pop()[1]
        first = next(iter(tensors_in(given)), None)
        ended.result = given
        if first is not None and first.is_floating_point():
            if ended.taken is not None and is_norm(module) and tuple(first.shape) == ended.taken_shape:
                mode.note(first, [Link(ended.taken, "norm", path)])
            ended.given, ended.given_shape = mode.node(first), tuple(first.shape)
        mode.streams.calls.setdefault(path, []).append(ended)

    first = module.register_forward_pre_hook(enter, with_kwargs=True, prepend=True)
    return [first, module.register_forward_hook(leave, with_kwargs=True)]


def is_norm(module: nn.Module) -> bool:
    """Return whether a module is a norm, one of torch's or of a class that is called so, with nothing in it."""
    return isinstance(module, NORMS) or ("norm" in type(module).__name__.lower() and not module._modules)


def _by_name(module: nn.Module, args: Any, kwargs: Any) -> dict[str, Any]:
    """Return the arguments of a call by the names that forward has for them; those without one by their number."""
    try:
        names = [
            name
            for name, each in inspect.signature(module.forward).parameters.items()
            if each.kind in (each.POSITIONAL_OR_KEYWORD, each.POSITIONAL_ONLY)
        ]
    except (TypeError, ValueError):
        names = []
    names += [str(number) for number in range(len(names), len(args))]
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    order = {name: number for number, name in enumerate(names)}
    return {name: given[name] for name in sorted(given, key=lambda name: order.get(name, len(order)))}


def ways(given: StreamNode, taken: StreamNode, most: int = 2) -> list[tuple[Link, ...]]:
    """Return the ways by which a tensor is still in another, from the first to the last link, so many at most."""
    found: list[tuple[Link, ...]] = []
    waiting: list[tuple[StreamNode, tuple[Link, ...]]] = [(given, ())]
    while waiting and len(found) < most:
        node, links = waiting.pop()
        if node is taken and links:
            found.append(links[::-1])
            continue
        waiting += [(link.source, (*links, link)) for link in node.links]
    return found
