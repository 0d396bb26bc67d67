"""A copy of a network with all that it carries, or one clear line where it cannot be copied."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy

from torch import nn

from topiarist.errors import ModelError
from topiarist.models.card import attach, card_of


@contextmanager
def copying() -> Iterator[None]:
    """Turn whatever goes wrong in copying a network into one line."""
    try:
        yield
    except Exception as error:  # whatever an attribute of the user's raises
        reason = str(error).split("\n")[0] or type(error).__name__
        hint = "make masks and norms of torch.nn.utils permanent first, and detach what forward keeps"
        raise ModelError(f"the network cannot be copied: {reason} ({hint})") from error


def copied(model: nn.Module) -> nn.Module:
    """Return a deep copy with the same card and modes, also of a class that copies itself in its own way."""
    with copying():
        copy = deepcopy(model)
    if type(copy) is not type(model):
        raise ModelError(f"a copy of the network is a {type(copy).__name__}, not a {type(model).__name__}")
    attach(copy, card_of(model))
    for own, other in zip(model.modules(), copy.modules(), strict=True):
        other.training = own.training
    for parameter, twin in zip(model.parameters(), copy.parameters(), strict=True):
        vars(twin).update(vars(parameter))  # marks such as `no_weight_decay`, which torch does not copy
    return copy
