"""Layers and parameters that a network keeps where torch does not see them: in a plain list, tuple or dict."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from topiarist.tracing.tracer import Tracer

_OF_EVERY_MODULE = frozenset(vars(nn.Module()))
_DEEPEST = 3  # lists in lists


@dataclass(frozen=True)
class Unregistered:
    """A tensor of a layer, or a parameter, that is not registered; `holder` is what it is kept in."""

    tensor: Tensor
    place: str
    holder: str
    is_layer: bool

    @property
    def reason(self) -> str:
        """Return why its units are fixed, and what to do about it."""
        kind = "Module" if self.is_layer else "Parameter"
        better = f"nn.{kind}{'Dict' if self.holder == 'dict' else 'List'}"
        what = "layer" if self.is_layer else "parameter"
        return f"the {what} {self.place} is not registered: keep it in an {better}, not in a {self.holder}"


def find_unregistered(model: nn.Module) -> list[Unregistered]:
    """Return the tensors of all layers, and all parameters, that lists and dicts of a network hold and torch misses.

    Layers without values, on the meta device, only lend their code to `torch.func.functional_call`.
    """
    known = {id(tensor) for tensor in (*model.parameters(), *model.buffers())}
    found: list[Unregistered] = []
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if name in _OF_EVERY_MODULE:
                continue
            for place, holder, item in _items(value, f"self.{name}", type(value).__name__, _DEEPEST):
                tensors = [*item.parameters(), *item.buffers()] if isinstance(item, nn.Module) else [item]
                where = f"{place} of '{path}'" if path else place
                is_layer = isinstance(item, nn.Module)
                missed = (tensor for tensor in tensors if id(tensor) not in known and not tensor.is_meta)
                found += [Unregistered(tensor, where, holder, is_layer) for tensor in missed]
    return found


def _items(value: Any, place: str, holder: str, depth: int) -> Iterator[tuple[str, str, nn.Module | nn.Parameter]]:
    """Yield the modules and parameters in a value, with where they lie and in what."""
    if isinstance(value, (nn.Module, nn.Parameter)):
        yield place, holder, value
    elif depth and isinstance(value, (list, tuple)):
        for number, item in enumerate(value):
            yield from _items(item, f"{place}[{number}]", type(value).__name__, depth - 1)
    elif depth and isinstance(value, dict):
        for key, item in value.items():
            yield from _items(item, f"{place}[{key!r}]", "dict", depth - 1)


def fix_unregistered(model: nn.Module, tracer: Tracer) -> None:
    """Let tensors that are not registered have fixed units, with the reason."""
    for each in find_unregistered(model):
        axes = [tracer.labels.create(size) for size in each.tensor.shape]
        for vector in axes:
            tracer.labels.fix(vector, each.reason)
        tracer.set_axes(each.tensor, [*axes])
