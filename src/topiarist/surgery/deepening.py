"""Deepen: an identity layer, so that a network gains a layer and computes the same.

With the activation that the network has there, where that is idempotent as ReLU is; otherwise linear.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.errors import ModelError
from topiarist.models.evaluation import numbers_of
from topiarist.randomness import isolated
from topiarist.surgery.containers import find_layer, insert_after
from topiarist.surgery.edits import DeepenNetwork
from topiarist.tracing import Anatomy
from topiarist.tracing.anatomy import Seen
from topiarist.tracing.function_rules import known_name

IDEMPOTENT = (nn.ReLU, nn.ReLU6, nn.Hardtanh)
IDEMPOTENT_FUNCTIONS = {"relu": nn.ReLU, "relu6": nn.ReLU6}
KERNEL = 3


def deepen_network(model: nn.Module, edit: DeepenNetwork, found: Anatomy, structure_only: bool) -> None:
    """Insert an identity layer after a layer, in place."""
    layer = find_layer(model, edit.after)
    seen = found.calls.get(edit.after)
    if seen is None:
        raise ModelError(f"'{edit.after}' does not run as one layer: name a layer that does")
    with isolated(0):  # what torch draws for the new layer is overwritten
        new = {"deeper": identity_layer(layer, seen, edit.after)}
    if edit.batch_norm:
        new["deeper_norm"] = identity_norm(seen, edit.after)
    if isinstance(layer, IDEMPOTENT):
        new["deeper_activation"] = copied(layer)
    elif (follower := following_activation(model, seen)) is not None:
        new = {"deeper_activation": follower, **new}  # the one that follows comes right after the new layer
    like = next((parameter for parameter in layer.parameters()), numbers_of(model))
    for module in new.values():
        module.to(like.device, like.dtype).train(layer.training)
        if structure_only:
            forget(module)
    insert_after(model, edit.after, seen.node, new)


def identity_layer(layer: nn.Module, seen: Seen, name: str) -> nn.Module:
    """Give the layer that changes nothing: an identity matrix, or a convolution with a Dirac kernel."""
    if seen.axis is None:
        raise ModelError(f"cannot deepen after '{name}': it gives no units")
    units = seen.shape[seen.axis]
    if seen.axis == -1:
        linear = nn.Linear(units, units)
        return with_values(linear, nn.init.eye_)
    spatial = len(seen.shape) - 2
    if seen.axis != -spatial - 1 or spatial not in (1, 2):
        raise ModelError(f"cannot deepen after '{name}': its units lie along axis {seen.axis} of {seen.shape}")
    kernel: Any = kernel_like(layer, spatial)
    kind = nn.Conv1d if spatial == 1 else nn.Conv2d
    padding: Any = tuple(size // 2 for size in kernel)
    convolution = kind(units, units, kernel, padding=padding)
    return with_values(convolution, nn.init.dirac_)


def with_values(layer: nn.Linear | nn.Conv1d | nn.Conv2d, fill: Callable[[Tensor], Tensor]) -> nn.Module:
    """Give a layer weights, and no bias."""
    fill(layer.weight)
    assert layer.bias is not None
    nn.init.zeros_(layer.bias)
    return layer


def kernel_like(layer: nn.Module, spatial: int) -> tuple[int, ...]:
    """Give a kernel with a centre: that of the layer before, or 3."""
    sizes = layer.kernel_size if isinstance(layer, _ConvNd) else (KERNEL,) * spatial
    return tuple(size if size % 2 else KERNEL for size in sizes)


def identity_norm(seen: Seen, name: str) -> nn.Module:
    """Give the batch norm that, with its own statistics, changes nothing."""
    assert seen.axis is not None
    if seen.axis == -1 and len(seen.shape) != 2:
        raise ModelError(
            f"cannot put a batch norm after '{name}': its units lie along the last of {len(seen.shape)} axes"
        )
    kind = nn.BatchNorm2d if len(seen.shape) == 4 else nn.BatchNorm1d
    norm = kind(seen.shape[seen.axis]).double()  # or 1 - ε would be rounded
    assert norm.running_var is not None
    norm.running_var.fill_(1 - norm.eps)
    return norm


def following_activation(model: nn.Module, seen: Seen) -> nn.Module | None:
    """Give a copy of the idempotent activation that alone follows a layer; None where there is none."""
    users = list(seen.node.users)
    if len(users) != 1 or seen.count != 1:
        return None
    user: fx.Node = users[0]
    if user.op == "call_module":
        module = model.get_submodule(str(user.target))
        return copied(module) if isinstance(module, IDEMPOTENT) else None
    made = IDEMPOTENT_FUNCTIONS.get(known_name(user) or "") if user.op != "output" else None
    return None if made is None else made()


def copied(activation: nn.Module) -> nn.Module:
    """Give a copy of an activation that leaves its input alone."""
    copy = deepcopy(activation)
    if hasattr(copy, "inplace"):
        vars(copy)["inplace"] = False
    return copy


def forget(module: nn.Module) -> None:
    """Mark the tensors of a new layer as having no values yet."""
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point():
                tensor.fill_(torch.nan)
