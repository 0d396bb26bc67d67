"""A copy of a network with all that it carries, or one clear line where it cannot be copied."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

from torch import Tensor, nn

from topiarist.errors import ModelError, first_line
from topiarist.models.card import attach, card_of
from topiarist.models.rebinding import rebind_functions


@contextmanager
def copying() -> Iterator[None]:
    """Turn whatever goes wrong in copying a network into one line."""
    try:
        yield
    except Exception as error:  # whatever an attribute of the user's raises
        reason = first_line(error)
        hint = "make masks and norms of torch.nn.utils permanent first, and detach what forward keeps"
        raise ModelError(f"the network cannot be copied: {reason} ({hint})") from error


def detached_tensors(model: nn.Module) -> dict[int, Any]:
    """Return copies of tensors that a network holds besides its parameters and that carry a graph, by identity.

    Weights that hooks compute before each call, as those of torch.nn.utils.prune and of old weight norms, are such.
    """
    held = (value for module in model.modules() for value in vars(module).values())
    graphed = (value for value in held if isinstance(value, Tensor) and not value.is_leaf)
    return {id(value): value.detach().clone() for value in graphed}


def copied(model: nn.Module) -> nn.Module:
    """Return a deep copy with the same card and modes, also of a class that copies itself in its own way."""
    with copying():
        copy = deepcopy(model, detached_tensors(model))
    if type(copy) is not type(model):
        raise ModelError(f"a copy of the network is a {type(copy).__name__}, not a {type(model).__name__}")
    rebind_functions(model, copy)
    attach(copy, card_of(model))
    for own, other in zip(model.modules(), copy.modules(), strict=True):
        other.training = own.training
    for parameter, twin in zip(model.parameters(), copy.parameters(), strict=True):
        vars(twin).update(vars(parameter))  # marks such as `no_weight_decay`, which torch does not copy
    return copy
