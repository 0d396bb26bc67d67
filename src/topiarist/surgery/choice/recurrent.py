"""Units of torch's recurrent layers: with all of their weights and biases zero, they are zero at every step."""

from typing import Any

import torch
from torch import nn

from topiarist.models.buffers import keeping_buffers
from topiarist.models.evaluation import evaluating, numbers_of
from topiarist.randomness import isolated
from topiarist.tracing import Anatomy, ExampleInput, Place, Space
from topiarist.tracing.running import call

_LAYERS = (nn.LSTM, nn.GRU, nn.RNN)


def recurrent_places(model: nn.Module, space: Space, anatomy: Anatomy) -> tuple[Place, ...]:
    """Return where a recurrent layer writes the units of a space, biases too; nothing where anything else does.

    The layer must run once, and nothing else may write its units, or read them with parameters of its own.
    """
    modules = {place.module for place in space.places if place.parameter is not None}
    if len(modules) != 1 or space.escaped or space.averaged:
        return ()
    (path,) = modules
    own = tuple(place for place in (*space.producers, *space.passes) if place.parameter is not None)
    known = anatomy.calls.get(path)
    only = all(place.parameter is not None for place in space.producers)
    if type(model.get_submodule(path)) not in _LAYERS or known is None or known.count != 1 or not only:
        return ()
    return own


def begins_with_zeros(model: nn.Module, path: str, example_input: ExampleInput) -> bool:
    """Return whether a recurrent layer is given no first state, which could be anything."""
    given: list[Any] = []

    def note(_: nn.Module, args: Any, kwargs: Any) -> None:
        given.append(kwargs.get("hx", args[1] if len(args) > 1 else None))

    handle = model.get_submodule(path).register_forward_pre_hook(note, with_kwargs=True)
    try:
        with evaluating(model), isolated(0, numbers_of(model).device), keeping_buffers(model), torch.no_grad():
            call(model, example_input)
    finally:
        handle.remove()
    return all(state is None for state in given)
