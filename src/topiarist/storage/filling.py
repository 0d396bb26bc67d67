"""Puts the tensors of a file into a module of the same names and shapes."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.storage.state import named_tensors, tied_names


def fill(model: nn.Module, tensors: Mapping[str, Tensor]) -> nn.Module:
    """Load tensors into a module in place and give it back; it takes their types and keeps its device.

    The module is left as it was where a name or a shape does not fit.
    """
    own = named_tensors(model)
    weights = share(tensors, tied_names(own))
    check(own, weights)
    for name, tensor in own.items():
        if tensor.dtype != weights[name].dtype:
            tensor.data = tensor.data.to(weights[name].dtype)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ModelError(f"{type(model).__name__} refuses the weights: {error}") from error
    return model


def share(tensors: Mapping[str, Tensor], ties: dict[str, str]) -> dict[str, Tensor]:
    """Give tensors for all names of those that are tied in the module; a file may hold one name of each."""
    known = {kept: tensors[name] for name, kept in ties.items() if name in tensors} | dict(tensors)
    shared = {name: known[kept] for name, kept in ties.items() if kept in known} | known
    for name, kept in ties.items():
        if name in shared and shared[name] is not shared[kept] and not torch.equal(shared[name], shared[kept]):
            raise ModelError(f"'{name}' and '{kept}' are tied in the module but differ in the file")
    return shared


def check(asked: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> None:
    """Name the first tensor of the module that the file does not fit, or the first of the file that has no place."""
    for name, tensor in asked.items():
        if name not in found:
            raise ModelError(f"the module asks for '{name}', which the file does not hold")
        if describe(tensor) != describe(found[name]):
            raise ModelError(f"'{name}' is {describe(tensor)} in the module, {describe(found[name])} in the file")
    surplus = [name for name in found if name not in asked]
    if surplus:
        raise ModelError(f"the file holds '{surplus[0]}', which the module does not have")


def describe(tensor: Tensor) -> str:
    """Give shape and kind of number, the two that must fit."""
    kind = "real" if tensor.is_floating_point() else "complex" if tensor.is_complex() else "whole"
    return f"{tuple(tensor.shape)} of {kind} numbers"
