"""Deepen: an identity layer, so that a network gains a layer and computes the same.

With the activation that the network has there, where that is idempotent as ReLU is; otherwise linear.
"""

from copy import deepcopy
from typing import Any

from torch import nn
from torch.nn.modules.conv import _ConvNd

from topiarist.errors import ModelError
from topiarist.models.evaluation import numbers_of
from topiarist.randomness import isolated
from topiarist.surgery.depth.containers import find_layer, insert_after, read_by
from topiarist.surgery.edits.kinds import DeepenNetwork
from topiarist.surgery.layers import forget
from topiarist.tracing import Anatomy
from topiarist.tracing.steps import LayerCall, Step

IDEMPOTENT = (nn.ReLU, nn.ReLU6, nn.Hardtanh)
KERNEL = 3  # where the layer before has no kernel with a centre


def deepen_network(model: nn.Module, edit: DeepenNetwork, anatomy: Anatomy, structure_only: bool) -> None:
    """Insert an identity layer after a layer, in place."""
    layer = find_layer(model, edit.after)
    if "parametrizations" in edit.after.split("."):
        raise ModelError(f"cannot deepen after '{edit.after}': it computes the weight of another layer")
    call = anatomy.calls.get(edit.after)
    if call is None:
        raise ModelError(f"'{edit.after}' does not run as one layer: name a layer that does")
    reader = read_by(model, edit.after)
    if reader is not None:
        raise ModelError(f"cannot deepen after '{edit.after}': '{reader}' reads its weights beside calling it")
    if isinstance(layer, nn.RNNBase):
        raise ModelError(f"cannot deepen after '{edit.after}': it returns states besides its units")
    with isolated(0):  # what torch draws for the new layer is overwritten
        new = {"deeper": _identity_layer(layer, call, edit.after)}
    if edit.batch_norm:
        new["deeper_norm"] = _identity_norm(call, edit.after)
    if isinstance(layer, IDEMPOTENT):
        new["deeper_activation"] = _out_of_place(layer)
    elif (follower := _following_activation(model, call)) is not None:
        new = {"deeper_activation": follower, **new}  # the one that follows comes right after the new layer
    like = next((parameter for parameter in layer.parameters()), numbers_of(model))
    for module in new.values():
        module.to(like.device, like.dtype).train(layer.training)
        if structure_only:
            forget(module)
    insert_after(model, edit.after, call.step, new)


def _identity_layer(layer: nn.Module, call: LayerCall, name: str) -> nn.Module:
    """Return the layer that changes nothing: an identity matrix, or a convolution with a Dirac kernel."""
    if call.axis is None:
        raise ModelError(f"cannot deepen after '{name}': it has no units")
    units, spatial = call.shape[call.axis], len(call.shape) - 2
    new: nn.Linear | nn.Conv1d | nn.Conv2d
    if call.axis == -1:
        new = nn.Linear(units, units)
        nn.init.eye_(new.weight)
    elif call.axis == -spatial - 1 and spatial in (1, 2):
        sizes = layer.kernel_size if isinstance(layer, _ConvNd) else (KERNEL,) * spatial
        kernel: Any = tuple(size if size % 2 else KERNEL for size in sizes)
        padding: Any = tuple(size // 2 for size in kernel)
        new = (nn.Conv1d if spatial == 1 else nn.Conv2d)(units, units, kernel, padding=padding)
        nn.init.dirac_(new.weight)
    else:
        raise ModelError(f"cannot deepen after '{name}': its units lie along axis {call.axis} of {call.shape}")
    assert new.bias is not None
    nn.init.zeros_(new.bias)
    return new


def _identity_norm(call: LayerCall, name: str) -> nn.Module:
    """Return the batch norm that, with its own statistics, changes nothing."""
    assert call.axis is not None
    if call.axis == -1 and len(call.shape) != 2:
        raise ModelError(
            f"cannot put a batch norm after '{name}': its units lie along the last of {len(call.shape)} axes"
        )
    kind = nn.BatchNorm2d if len(call.shape) == 4 else nn.BatchNorm1d
    norm = kind(call.shape[call.axis]).double()  # or 1 - ε would be rounded
    assert norm.running_var is not None
    norm.running_var.fill_(1 - norm.eps)
    return norm


def _following_activation(model: nn.Module, call: LayerCall) -> nn.Module | None:
    """Return a copy of the idempotent activation that alone follows a layer; None where there is none."""
    users = call.step.users
    if len(users) != 1 or call.count != 1:
        return None
    if users[0].kind == "layer":
        module = model.get_submodule(users[0].name)
        return _out_of_place(module) if isinstance(module, IDEMPOTENT) else None
    return _idempotent_operation(users[0])


def _idempotent_operation(step: Step) -> nn.Module | None:
    """Return the activation that an operation of forward is, where that is idempotent; None for any other."""
    if step.kind != "operation" or step.name not in ("relu", "hardtanh"):
        return None
    if step.name == "relu":
        return nn.ReLU()
    lowest, highest = float(step.settings["min_val"]), float(step.settings["max_val"])
    return nn.ReLU6() if (lowest, highest) == (0.0, 6.0) else nn.Hardtanh(lowest, highest)


def _out_of_place(activation: nn.Module) -> nn.Module:
    """Return a copy of an activation that leaves its input alone."""
    copy = deepcopy(activation)
    if hasattr(copy, "inplace"):
        vars(copy)["inplace"] = False
    return copy
