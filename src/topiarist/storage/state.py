"""The tensors of a network by name, and which of them are one and the same."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from topiarist.errors import ModelError

NOT_IN_THE_FORMAT = (torch.complex32, torch.complex128)


def named_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Give the live entries of a network's `state_dict`, each a tensor that a model file can hold."""
    state = model.state_dict(keep_vars=True)
    for name, value in state.items():
        if not isinstance(value, Tensor):
            raise ModelError(f"a model file holds tensors only; '{name}' of the network is a {type(value).__name__}")
        if is_lazy(value) or value.is_meta:
            raise ModelError(f"'{name}' of the network has no values yet: run the network on a batch first")
        if value.layout != torch.strided or value.is_quantized or value.dtype in NOT_IN_THE_FORMAT:
            raise ModelError(f"a model file cannot hold '{name}': {value.dtype} in layout {value.layout}")
    return dict(state)


def tied_names(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Give, for each name whose tensor an earlier name already has, that earlier name."""
    first: dict[tuple[object, ...], str] = {}
    ties = {}
    for name, tensor in tensors.items():
        place = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        if tensor.numel() and first.setdefault(place, name) != name:
            ties[name] = first[place]
    return ties
