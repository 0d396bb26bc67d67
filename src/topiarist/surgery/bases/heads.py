"""Heads of attention in the parameters of a network, and which of them may meet in a sum over their dims."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from topiarist.devices import in_float64
from topiarist.surgery.layers import Holders
from topiarist.tracing import Place, Space
from topiarist.tracing.spaces import Indices

THIRDS, HALVES = 3, 2  # queries, keys and values in one parameter; queries and keys, or keys and values


@dataclass(frozen=True)
class HeadDims:
    """The dims of one head in a module: written there, as those of queries are, or read.

    Parameters
    ----------
    module : str
        The module that holds the parameters.
    tensors : tuple of (str, int)
        Its parameters that have the dims, a matrix first, and along which axis.
    positions : array (n_dims,)
        Where the dims lie along that axis; those of one unit of the space follow each other.
    reads : bool
        Whether the module reads the dims.
    argument : int
        Which of the tensors that the module is called with the matrix meets.
    """

    module: str
    tensors: tuple[tuple[str, int], ...]
    positions: Indices = field(repr=False)
    reads: bool = False
    argument: int = 0

    def matrix(self, model: nn.Module) -> Tensor:
        """Return the weights (n_dims, n_others) in float64."""
        name, axis = self.tensors[0]
        tensor: Tensor = getattr(model.get_submodule(self.module), name).detach().to("cpu", torch.float64)
        return tensor.index_select(axis, torch.from_numpy(self.positions)).movedim(axis, 0).flatten(1)

    def constants(self, model: nn.Module) -> Tensor:
        """Return the biases (n_dims,) in float64, zeros where there are none."""
        module, total = model.get_submodule(self.module), torch.zeros(len(self.positions), dtype=torch.float64)
        for name, _ in self.tensors[1:]:
            total = total + getattr(module, name).detach().to("cpu", torch.float64)[self.positions]
        return total

    def mix(self, model: nn.Module, holders: Holders, mixing: Tensor) -> None:
        """Let new dims be sums of the old ones, in place: h_new = h_old · mixing (n_dims, n_dims)."""
        module = model.get_submodule(self.module)
        for name, axis in self.tensors:
            tensor = getattr(module, name).detach()
            chosen = torch.from_numpy(self.positions).to(tensor.device)
            old = in_float64(tensor.index_select(axis, chosen).movedim(axis, -1))
            new = (old @ mixing.to(old.device)).to(tensor).movedim(-1, axis)
            holders.put(module, name, tensor.index_copy(axis, chosen, new))


@dataclass(frozen=True)
class Contraction:
    """Heads that meet in a sum over their dims: queries and keys, or values and the layer that reads them.

    Several heads in a row of `many` meet one head of `few` where those are shared, as keys are in grouped attention.
    """

    many: tuple[HeadDims, ...]
    few: tuple[HeadDims, ...]

    @property
    def heads(self) -> tuple[HeadDims, ...]:
        """Return all heads."""
        return (*self.many, *self.few)

    def groups(self) -> Iterator[tuple[tuple[HeadDims, ...], HeadDims]]:
        """Yield the heads that meet each head of `few`."""
        each = len(self.many) // len(self.few)
        for number, head in enumerate(self.few):
            yield self.many[number * each : (number + 1) * each], head


Source = tuple[HeadDims, ...]


def products_within(model: nn.Module, space: Space) -> list[Contraction]:
    """Return who might meet as queries and keys, likeliest first: two layers, or two parts of one."""
    sources = sources_of(model, space.producers)
    pairs = [(one, other) for place, one in enumerate(sources) for other in sources[place + 1 :]]
    for source in sources:
        pairs += [(parts[0], parts[1]) for parts in _parted(source)]
    return [made for pair in pairs if (made := _joined(*pair)) is not None]


def readings_within(model: nn.Module, space: Space, taken: Contraction | None) -> list[Contraction]:
    """Return who might meet as values and their reader, likeliest first; heads that are `taken` are left out."""
    others = set() if taken is None else {_key(head) for head in taken.heads}
    found = []
    for reader in sources_of(model, space.consumers):
        for source in sources_of(model, space.producers):
            writer = tuple(head for head in source if _key(head) not in others)
            found += [_joined(writer, reader)] if writer else []
    return [made for made in found if made is not None]


def sources_of(model: nn.Module, places: Sequence[Place]) -> list[Source]:
    """Return the heads in each matrix that meets a space, together with its bias."""
    together: defaultdict[tuple[str, bytes, tuple[int, ...]], list[Place]] = defaultdict(list)
    for place in places:
        together[place.module, place.positions.tobytes(), place.positions.shape].append(place)
    found = []
    for (path, _, _), same in together.items():
        module = model.get_submodule(path)
        tensors = [each for place in same for each in place.tensors]
        if any(name not in module._parameters or place.scattered for place in same for name, _ in place.tensors):
            continue
        matrices = [each for each in tensors if module.get_parameter(each[0]).ndim > 1]
        biases = [each for each in tensors if each not in matrices]
        if len(matrices) == 1 or not biases:
            found += [_source(module, path, (matrix, *biases), same[0]) for matrix in matrices]
    return found


def _source(module: nn.Module, path: str, tensors: tuple[tuple[str, int], ...], place: Place) -> Source:
    heads = []
    for number in range(place.positions.shape[1]):
        positions = place.positions[:, number].reshape(-1)
        argument = number // module.num_heads if isinstance(module, nn.MultiheadAttention) else 0
        heads.append(HeadDims(path, tensors, positions, place.role == "reads", argument))
    return tuple(heads)


def _parted(source: Source) -> Iterator[list[Source]]:
    """Yield a source in parts of equal length: one after the other, or head by head."""
    for count in (THIRDS, HALVES):
        if len(source) % count == 0 and len(source) >= count:
            each = len(source) // count
            yield [source[number * each : (number + 1) * each] for number in range(count)]
            if each > 1:
                yield [source[number::count] for number in range(count)]


def _joined(one: Source, other: Source) -> Contraction | None:
    many, few = (one, other) if len(one) >= len(other) else (other, one)
    sizes = {len(head.positions) for head in (*many, *few)}
    return Contraction(many, few) if len(many) % len(few) == 0 and len(sizes) == 1 else None


def _key(head: HeadDims) -> tuple[str, str, bytes]:
    return head.module, head.tensors[0][0], head.positions.tobytes()
