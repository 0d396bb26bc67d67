"""Looks at what a layer takes and gives while a network runs, and stops the network as soon as it is seen."""

from typing import Any

from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.models.evaluation import evaluating
from topiarist.randomness import isolated

Watched = tuple[Tensor, Tensor]


class EnoughError(Exception):
    """The layer was seen; the rest of the network need not run."""


def watch(model: nn.Module, path: str, calls: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Watched]:
    """Run a network on a batch until a layer has run so often; give what it took and gave each time."""
    module = model.get_submodule(path)
    seen: list[Watched] = []

    def remember(_: nn.Module, taken: tuple[Any, ...], named: dict[str, Any], given: Tensor) -> None:
        seen.append((first_of(taken, named).detach().clone(), given.detach().clone()))  # others may write into them
        if len(seen) == calls:
            raise EnoughError

    handle = module.register_forward_hook(remember, with_kwargs=True)
    try:
        with evaluating(model), isolated(0):
            run_until_enough(model, args, kwargs)
    finally:
        handle.remove()
    return seen


def run_until_enough(model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Run a network until a hook has seen enough."""
    try:
        model(*args, **kwargs)
    except EnoughError:
        pass
    except (RuntimeError, ValueError, TypeError) as error:
        reason = str(error).split("\n")[0]
        raise ModelError(f"the network cannot read the calibration data: {reason}") from error


def first_of(taken: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
    """Give the tensor that a layer is called with, by position or by name."""
    found: Tensor = taken[0] if taken else named["input"]
    return found
