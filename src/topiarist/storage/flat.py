"""A network of any inputs and outputs as one that takes tensors and returns tensors, each with a name.

An exported file knows no tuples and no mappings. Inputs are called like the arguments of forward, outputs like the keys
of what it returns, or `output_0`, `output_1`, …; names within names are joined by "_".
"""

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, TypeGuard

import numpy
import torch
from torch import Tensor, nn
from torch.utils._pytree import TreeSpec, tree_flatten_with_path, tree_map, tree_unflatten

from topiarist.errors import DataError, ModelError, TopiaristError, first_line
from topiarist.models.evaluation import evaluating, placed
from topiarist.randomness import isolated
from topiarist.tracing.trace import BESIDES

INPUT, OUTPUT = "input", "output"
Several = tuple[Any, ...] | Mapping[str, Any]


def is_several(samples: object) -> TypeGuard[Several]:
    """Return whether samples are several arguments: a mapping by name, or a tuple of tensors, arrays or mappings."""
    if isinstance(samples, tuple):
        return any(isinstance(each, (Tensor, numpy.ndarray, Mapping)) for each in samples)
    return isinstance(samples, Mapping)


@dataclass(frozen=True)
class Arguments:
    """What a network is called with: tensors by name, in order, between what is the same in every call.

    `leaves` are the arguments one after the other, None where a tensor goes; `shape` is how they are nested, and
    `signature` that of the forward that takes them.
    """

    names: tuple[str, ...]
    leaves: tuple[Any, ...]
    shape: TreeSpec
    signature: inspect.Signature

    def filled(self, tensors: Sequence[Tensor]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments by place and by name, with these tensors among them."""
        rest = iter(tensors)
        taken = [next(rest) if constant is None else constant[0] for constant in self.leaves]
        named: Any = tree_unflatten(taken, self.shape)
        bound = inspect.BoundArguments(self.signature, named)
        return bound.args, bound.kwargs


def single_argument(model: nn.Module) -> Arguments:
    """Return the arguments of a network that is called with one tensor."""
    found, _ = arguments_of(model, (torch.zeros(1),))
    return replace(found, names=(INPUT,))


def arguments_of(model: nn.Module, samples: Several) -> tuple[Arguments, tuple[Tensor, ...]]:
    """Return how a network is called with some samples, and the tensors among them."""
    signature = inspect.signature(model.forward)
    bound = _bound(model, signature, samples)
    given = tree_map(lambda leaf: torch.from_numpy(leaf) if isinstance(leaf, numpy.ndarray) else leaf, dict(bound))
    places, shape = tree_flatten_with_path(given)
    more = {name for name, each in signature.parameters.items() if each.kind is inspect.Parameter.VAR_KEYWORD}
    if len(bound) == 1 and isinstance(next(iter(bound.values())), Mapping):
        more |= set(bound)  # the keys of the only argument say enough
    tensors = {_name_of(path, more): leaf for path, leaf in places if isinstance(leaf, Tensor)}
    if not tensors or not all(tensor.numel() for tensor in tensors.values()):
        raise DataError("samples to compare an export on hold at least one tensor, and none without numbers")
    leaves = tuple(None if isinstance(leaf, Tensor) else (leaf,) for _, leaf in places)
    like = torch.empty(0)
    read = tuple(placed(tensor.detach(), like) for tensor in tensors.values())
    return Arguments(tuple(tensors), leaves, shape, signature), read


def _bound(model: nn.Module, signature: inspect.Signature, samples: Several) -> Mapping[str, Any]:
    """Return arguments by the names that forward has for them; a mapping may also be the only argument."""
    ways = [((), samples), ((samples,), {})] if isinstance(samples, Mapping) else [(samples, {})]
    for args, kwargs in ways:
        try:
            return signature.bind(*args, **kwargs).arguments
        except TypeError as error:
            reason = first_line(error)
    raise ModelError(f"the samples do not fit {type(model).__name__}.forward: {reason}")


def _name_of(path: Sequence[Any], more: Collection[str]) -> str:
    """Return the name of a place: its keys, numbers and attributes; those of `more` go without saying."""
    parts = [str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key)))) for key in path]
    return "_".join(parts[1:] if parts[0] in more else parts)


def tensors_by_name(returned: Any, taken: Sequence[str] = ()) -> dict[str, Tensor]:
    """Return the tensors among what a network returned by their names, which are none of those taken."""
    found: dict[str, Tensor] = {}
    for name, value in _leaves(returned, ""):
        if not isinstance(value, Tensor):
            kind = type(value).__name__
            raise ModelError(f"an export returns tensors, and the network returns a {kind} as '{name or OUTPUT}'")
        name = name or OUTPUT
        if value.is_complex():
            raise ModelError(f"an export returns real numbers, and '{name}' of the network is {value.dtype}")
        while name in found or name in taken:
            name = f"{OUTPUT}_{name}"
        found[name] = value
    if not found:
        raise ModelError(f"an export returns tensors, and the network returns none: {type(returned).__name__}")
    return found


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if value is None:
        return
    if isinstance(value, Mapping):
        beside = BESIDES if hasattr(value, "to_tuple") and isinstance(value.get("logits"), Tensor) else ()
        items = [(str(key), each) for key, each in value.items() if not (beside and str(key).endswith(beside))]
    elif isinstance(value, (tuple, list)):
        names = getattr(value, "_fields", None) or [str(place) for place in range(len(value))]
        name = name or ("" if hasattr(value, "_fields") else OUTPUT)
        items = list(zip(names, value, strict=True))
    elif is_dataclass(value) and not isinstance(value, type):
        items = [(field.name, getattr(value, field.name)) for field in fields(value)]
    else:
        yield name, value
        return
    for key, each in items:
        yield from _leaves(each, f"{name}_{key}" if name else key)


class FlatNetwork(nn.Module):
    """A network that takes the tensors of `arguments`, one after the other, and returns a tuple of tensors.

    `outputs` names them. `per_sample` are those with a row for each sample.
    """

    def __init__(self, network: nn.Module, arguments: Arguments, preparation: nn.Module | None = None) -> None:
        super().__init__()
        self.preparation = nn.Identity() if preparation is None else preparation
        self.network, self.arguments = network, arguments
        self.outputs: tuple[str, ...] = ()
        self.per_sample: tuple[str, ...] = ()

    def named(self, *tensors: Tensor) -> dict[str, Tensor]:
        """Return the outputs by their names."""
        args, kwargs = self.arguments.filled([self.preparation(tensor) for tensor in tensors])
        return tensors_by_name(self.network(*args, **kwargs), self.arguments.names)

    def forward(self, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs."""
        return tuple(self.named(*tensors).values())

    def learn_outputs(self, tensors: Sequence[Tensor], *, batched: bool) -> None:
        """Learn what the outputs are called, and which of them have a row for each sample, from two runs."""
        counts = (2, 1) if batched else (None, None)
        runs = []
        for seed, count in enumerate(counts):
            rows = tensors if count is None else [first_rows(tensor, count) for tensor in tensors]
            with isolated(seed):
                runs.append(answered(self, rows))
        self.outputs = tuple(runs[0])
        if runs[1].keys() != runs[0].keys():
            raise ModelError("the network returns other outputs for one sample than for two")
        if batched:
            self.per_sample = tuple(
                name
                for name, found in runs[0].items()
                if found.ndim and len(found) == 2 and runs[1][name].ndim and len(runs[1][name]) == 1
            )


def answered(network: FlatNetwork, tensors: Sequence[Tensor]) -> dict[str, Tensor]:
    """Return the outputs of a network by name; whatever its forward raises becomes one line."""
    try:
        with evaluating(network):
            return network.named(*(tensor.clone() for tensor in tensors))  # forward may write into it
    except TopiaristError:
        raise
    except Exception as error:  # whatever a user's forward raises
        shapes = ", ".join(str(tuple(tensor.shape)) for tensor in tensors)
        raise ModelError(f"the network cannot read samples of shape {shapes}: {first_line(error)}") from error


def first_rows(tensor: Tensor, count: int) -> Tensor:
    """Return the first rows of a tensor; where there are fewer, the first one again."""
    return tensor[:count] if len(tensor) >= count else torch.cat([tensor[:1]] * count)


@dataclass(frozen=True)
class OpenAnswers:
    """What torch answers, whatever that is: `network` asked for some of the samples, which are `tensors`.

    Where they are `batched`, every tensor has a row for each sample; otherwise they are one sample as a whole, such as
    the nodes and the edges of a graph.
    """

    network: FlatNetwork
    tensors: tuple[Tensor, ...]
    batched: bool

    @cached_property
    def samples(self) -> int:
        """How many samples there are."""
        return len(self.tensors[0]) if self.batched else 1

    def __call__(self, rows: slice) -> dict[str, Tensor]:
        """Return the outputs for some samples by name."""
        found = answered(self.network, [tensor[rows] for tensor in self.tensors] if self.batched else self.tensors)
        for name, tensor in found.items():
            if not tensor.isfinite().all():
                raise ModelError(
                    f"the network gives numbers that are not finite in '{name}': an export cannot be compared with it"
                )
        return found

    def check_repeatable(self) -> None:
        """Refuse a network that answers otherwise when it is asked again, with which no export can be compared."""
        runs = []
        for seed in (0, 1):
            with isolated(seed):
                runs.append(self(slice(0, 1)))
        for name, first in runs[0].items():
            if not torch.equal(first, runs[1][name]):
                raise ModelError(
                    f"the network answers otherwise when it is asked again, as '{name}' shows: it draws random numbers,"
                    " also in evaluation, and an export cannot be compared with it; return what they are drawn around"
                )


def is_batched(tensors: Sequence[Tensor]) -> bool:
    """Return whether tensors have as many rows as one another: one per sample."""
    return all(tensor.ndim for tensor in tensors) and len({len(tensor) for tensor in tensors}) == 1
