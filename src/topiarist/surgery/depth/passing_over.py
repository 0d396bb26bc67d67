"""Takes residual blocks out: in their place stands a module that passes its input on."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from torch import nn
from torch.nn.modules.conv import _ConvNd

from topiarist.models.passing import PassedBlock
from topiarist.surgery import layers
from topiarist.surgery.depth.containers import find_layer, parent_of
from topiarist.surgery.edits.kinds import RemoveBlock
from topiarist.surgery.refit.fits import Readers
from topiarist.tracing import Anatomy
from topiarist.tracing.steps import Step, behind

NUMBER = "layer_idx"  # by which layers of the hub's models find their place in a cache of keys and values


def pass_over(model: nn.Module, edit: RemoveBlock) -> None:
    """Replace blocks by what passes their input on, in place."""
    for name, passage in edit.blocks.items():
        parent, own = parent_of(model, name)
        block = find_layer(model, name)
        for each in passage.kept:
            find_layer(block, each)
        passed = PassedBlock(block, passage.takes, passage.form, passage.gives, passage.kept)
        parent._modules[own] = passed
        _renumber(model, block)


def _renumber(model: nn.Module, block: nn.Module) -> None:
    """Let another layer of the same kind be the first one, where that goes: caches ask the first how long they are."""
    if not any(vars(each).get(NUMBER) == 0 for each in block.modules()):
        return
    holders = [each for each in model.modules() if type(vars(each).get(NUMBER)) is int]
    numbers = sorted({vars(each)[NUMBER] for each in holders})
    if not numbers or numbers[0] == 0:
        return
    kinds = _kinds_of_layers(model)
    alike = [number for number in numbers if not kinds or kinds[number : number + 1] == kinds[:1]]
    for each in holders:
        if alike and vars(each)[NUMBER] == alike[0]:
            vars(each)[NUMBER] = 0


def _kinds_of_layers(model: nn.Module) -> list[str]:
    """Return the kinds of attention that the layers of a model of the hub have, where its settings tell some."""
    found = getattr(getattr(model, "config", None), "layer_types", None)
    return list(found) if isinstance(found, (list, tuple)) else []


@dataclass(frozen=True)
class Behind:
    """The layers that read what changes where blocks go, and the steps that come right behind the blocks."""

    readers: Readers = field(default_factory=dict)
    changed: frozenset[Step] = frozenset()


def readers_behind(model: nn.Module, edit: RemoveBlock, anatomy: Anatomy) -> Behind:
    """Return the linear layers and convolutions that read what blocks return, in a sum, behind a norm or as it is.

    A layer behind one of them reads, once that is refitted, about what it read before. `model` still has the blocks.
    """
    calls = [call.step for call in anatomy.calls.values()]
    inside = {step for step in {*calls, *behind(calls)} if _lies_in(step, edit.blocks)}
    kept = {f"{name}.{each}" for name, passage in edit.blocks.items() for each in passage.kept}
    first = {user for step in inside for user in step.users if user not in inside}
    first |= {step for step in inside if step.name in kept}
    readers: dict[str, int | None] = {}
    waiting, seen = list(first), set(first)
    while waiting:
        step = waiting.pop()
        if step.kind == "layer" and step not in inside and _is_fitted(model, step.name):
            readers[step.name] = None
            continue
        new = [user for user in step.users if user not in seen]
        seen.update(new)
        waiting += new
    return Behind({path: None for path in anatomy.calls if path in readers}, frozenset(first))


def _lies_in(step: Step, blocks: Iterable[str]) -> bool:
    return any(name in step.modules for name in blocks)


def _is_fitted(model: nn.Module, path: str) -> bool:
    """Return whether a layer is one that is refitted: linear, or a convolution of one group."""
    module = model.get_submodule(path)
    if not layers.is_plain(module):
        return False
    return isinstance(module, nn.Linear) or (
        isinstance(module, _ConvNd) and module.groups == 1 and not module.transposed
    )
