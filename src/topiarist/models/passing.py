"""What stands in the place of a block that was removed: it passes its first argument on."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

Form = Literal["argument", "tuple", "list", "dict"]
_OF_EVERY_MODULE = frozenset({*vars(nn.Module()), "training"})
_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.Size)


class PassedBlock(nn.Module):
    """Returns what it is given first, in the container that the block returned; norms that stay are run on the way.

    Code around a block may ask it for more than its result, as `nn.TransformerEncoder` asks its first layer how
    batches lie: attributes of the block, and of the modules in it, that hold no tensors are still there.

    Parameters
    ----------
    block : nn.Module
        The block that goes; its norms that stay are moved from it.
    takes : Sequence[str]
        The names of forward's first arguments, as many as are passed on.
    form : {"argument", "tuple", "list", "dict"}
        The first argument as it is, or a container.
    gives : mapping
        What a container holds, in order, by key or by number: an argument by its name, or None.
    kept : Sequence[str]
        The norms that stay, by their names in the block, in the order in which they run.

    Examples
    --------
    >>> PassedBlock(nn.Linear(3, 3))(torch.ones(1, 3))
    tensor([[1., 1., 1.]])
    """

    def __init__(
        self,
        block: nn.Module,
        takes: Sequence[str] = ("input",),
        form: Form = "argument",
        gives: Mapping[str, str | None] | None = None,
        kept: Sequence[str] = (),
    ) -> None:
        super().__init__()
        _leave_attributes(self, block, set(kept))
        self.taken_names, self.form, self.given_names = tuple(takes), form, dict(gives or {})
        self.kept_names = tuple(kept)
        for name in kept:
            _put_module(self, name, block.get_submodule(name))
        self.training = block.training

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return the first argument."""
        named = {**dict(zip(self.taken_names, args, strict=False)), **kwargs}
        first = self.taken_names[0]
        for name in self.kept_names:
            named[first] = self.get_submodule(name)(named[first])
        if self.form == "argument":
            return named[first]
        given = {key: None if name is None else named[name] for key, name in self.given_names.items()}
        if self.form == "dict":
            return given
        return tuple(given.values()) if self.form == "tuple" else list(given.values())

    def extra_repr(self) -> str:
        """Return what is passed on."""
        return f"passes {self.taken_names[0]!r} on"


class Remains:
    """What is left of a module in a block that was removed: its attributes that hold no tensors."""


def _leave_attributes(target: Any, module: nn.Module, kept: set[str], prefix: str = "") -> None:
    """Copy what code around a module may ask of it, as far as it holds no tensors."""
    own = {name: value for name, value in vars(module).items() if name not in _OF_EVERY_MODULE and _is_plain(value)}
    vars(target).update(own)
    for name, child in module.named_children():
        path = f"{prefix}{name}"
        if not any(f"{each}.".startswith(f"{path}.") for each in kept):
            remains = Remains()
            _leave_attributes(remains, child, kept, f"{path}.")
            vars(target)[name] = remains


def _is_plain(value: Any, depth: int = 3) -> bool:
    """Return whether a value is a number, a text, settings, or a container of such: nothing with tensors in it."""
    if isinstance(value, _PLAIN):
        return True
    if isinstance(value, (Tensor, nn.Module, type)) or callable(value) or not depth:
        return False
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(_is_plain(each, depth - 1) for each in value)
    held = value if isinstance(value, dict) else getattr(value, "__dict__", None)
    return held is not None and all(_is_plain(each, depth - 1) for each in held.values())


def _put_module(target: nn.Module, path: str, module: nn.Module) -> None:
    """Put a module where it was in a block, so that its parameters keep their names."""
    *above, name = path.split(".")
    for each in above:
        if each not in target._modules:
            target._modules[each] = nn.Module()
        target = target.get_submodule(each)
    target._modules[name] = module
