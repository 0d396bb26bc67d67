"""How a layer's tensors are cut, copied and drawn anew along the axes where it meets units."""

import math
from collections.abc import Container, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from topiarist.errors import ModelError
from topiarist.tracing import Anatomy
from topiarist.tracing.attributes import follows_parameters, write_integer
from topiarist.tracing.integers import Attribute

# Settings that torch's own layers say and never compute with
_ONLY_SAID = frozenset(
    {
        *("in_features", "out_features", "in_channels", "out_channels", "num_features", "num_channels"),
        *("num_embeddings", "embedding_dim", "num_parameters"),
    }
)


def is_plain(module: nn.Module) -> bool:
    """Return whether a layer computes what torch's own does, with a weight that is computed from nothing else."""
    own = next(kind for kind in type(module).__mro__ if kind.__module__.startswith("torch.nn.modules"))
    return type(module).forward is vars(own).get("forward") and module._parameters.get("weight") is not None


def put(module: nn.Module, name: str, values: Tensor) -> None:
    """Put a tensor in the place of one that a module has; a parameter stays one, frozen or not.

    The old tensor is never written into: networks that share it with this one keep it.
    """
    if values.is_contiguous():  # an axis of size 1 may have any stride, and torch rounds a convolution by it
        values = values.reshape(-1).view(values.shape)
    if name in module._buffers:
        module._buffers[name] = values
    else:
        old = module._parameters.get(name)
        like = module._parameters["weight"] if old is None else old
        new = nn.Parameter(values.detach(), requires_grad=like is not None and like.requires_grad)
        vars(new).update(vars(old) if old is not None else {})  # marks such as `no_weight_decay`
        module._parameters[name] = new
    if isinstance(module, nn.RNNBase):
        module._flat_weights = [getattr(module, each, None) for each in module._flat_weights_names]


def device_of(module: nn.Module) -> torch.device:
    """Return the device of a layer's own tensors."""
    tensors = (*module.parameters(recurse=False), *module.buffers(recurse=False))
    return tensors[0].device if tensors else torch.device("cpu")


class Holders:
    """Who holds each tensor of a network: one that several modules share is replaced in all of them."""

    def __init__(self, model: nn.Module) -> None:
        self._held: dict[int, list[tuple[nn.Module, str]]] = {}
        self.changed: set[nn.Module] = set()
        for module in model.modules():
            for name, tensor in (*module._parameters.items(), *module._buffers.items()):
                if tensor is not None:
                    self._held.setdefault(id(tensor), []).append((module, name))

    def put(self, module: nn.Module, name: str, values: Tensor) -> None:
        """Put a tensor in the place of one that a module has, and everywhere else where that is held."""
        old = module._buffers[name] if name in module._buffers else module._parameters[name]
        first, *others = self._held.get(id(old), [(module, name)])
        put(*first, values)
        new = first[0]._buffers.get(first[1]) if first[1] in first[0]._buffers else first[0]._parameters[first[1]]
        for holder, own in others:
            held: dict[str, Any] = holder._buffers if own in holder._buffers else holder._parameters
            held[own] = new
        self._held[id(new)] = self._held.pop(id(old), [(module, name)])
        self.changed |= {holder for holder, _ in self._held[id(new)]}


def set_integers(model: nn.Module, integers: Mapping[Attribute, int]) -> None:
    """Set integers that the network's modules hold, and that its forward reads."""
    for attribute, number in integers.items():
        write_integer(model, attribute, number)


def follow_parameters(model: nn.Module, changed: Container[nn.Module]) -> None:
    """Let the settings of layers say what the shapes of their parameters are."""
    for module in model.modules():
        if not any(each in changed for each in module.modules()):
            continue
        weight = getattr(module, "weight", None)
        match module:
            case nn.RNNBase():
                module._flat_weights = [getattr(module, name, None) for name in module._flat_weights_names]
                module.input_size = module.get_parameter("weight_ih_l0").shape[1]
            case nn.InstanceNorm1d() | nn.InstanceNorm2d() | nn.InstanceNorm3d() if not isinstance(weight, Tensor):
                pass
            case _NormBase():
                tensor = weight if isinstance(weight, Tensor) else module.running_mean
                module.num_features = module.num_features if tensor is None else len(tensor)
            case _ if not isinstance(weight, Tensor):
                pass
            case nn.Linear():
                module.out_features, module.in_features = weight.shape
            case _ConvTransposeNd():
                module.in_channels, module.out_channels = len(weight), weight.shape[1] * module.groups
            case _ConvNd():
                module.out_channels, module.in_channels = len(weight), weight.shape[1] * module.groups
            case nn.GroupNorm():
                module.num_channels = len(weight)
            case nn.LayerNorm() | nn.RMSNorm():
                module.normalized_shape = tuple(weight.shape)
            case nn.Embedding():
                module.num_embeddings, module.embedding_dim = weight.shape
            case nn.PReLU():
                module.num_parameters = len(weight)


def keep_read_settings(model: nn.Module, anatomy: Anatomy, integers: Mapping[Attribute, int]) -> None:
    """Set what a layer says of its size to what a network's code needs there, where that computes with it.

    In `x * self.words.embedding_dim ** 0.5`, fewer units must not change the factor: the number stays as it was.
    """
    if anatomy.solver is None:
        return
    read = (each for each in anatomy.solver.old if each.way[0] in _ONLY_SAID and anatomy.solver.computes_with(each))
    needed = {attribute: integers.get(attribute, anatomy.solver.old[attribute]) for attribute in read}
    set_integers(model, {each: value for each, value in needed.items() if _says_its_size(model, each)})


def _says_its_size(model: nn.Module, attribute: Attribute) -> bool:
    return len(attribute.way) == 1 and follows_parameters(model.get_submodule(attribute.module))


def drawn(tensor: Tensor, name: str, axis: int, module: nn.Module, fresh: Tensor, generator: torch.Generator) -> Tensor:
    """Return a tensor whose fresh units are drawn anew (He et al., 2015): random incoming weights, no bias.

    A norm changes nothing; slopes and what else a network has for each unit are copied from another unit.
    """
    changed = tensor.clone()
    writes = isinstance(module, (nn.Linear, _ConvNd, nn.Embedding)) or name.startswith(("weight_", "in_proj"))
    if tensor.ndim > 1 and writes:
        others = tensor.numel() // tensor.shape[axis]
        shape = [len(fresh), *(size for place, size in enumerate(tensor.shape) if place != axis)]
        values = torch.randn(shape, generator=generator, dtype=torch.float64) * math.sqrt(2 / others)
        changed.index_copy_(axis, fresh, values.movedim(0, axis).to(changed))
    elif name in ("bias", "running_mean") or name.startswith(("bias_", "in_proj_bias")):
        changed.index_fill_(axis, fresh, 0.0)
    elif isinstance(module, (_NormBase, nn.GroupNorm, nn.LayerNorm, nn.RMSNorm)):
        changed.index_fill_(axis, fresh, 1.0)
    return changed


def forget(module: nn.Module) -> None:
    """Mark the tensors of a new layer as having no values yet, in place."""
    with torch.no_grad():
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.is_floating_point():
                tensor.fill_(torch.nan)


def weight_of(module: nn.Module) -> Tensor:
    """Return a layer's weights, apart from any graph."""
    weight = module.weight
    assert isinstance(weight, Tensor)
    return weight.detach()


def bias_of(module: nn.Module) -> Tensor | None:
    """Return a layer's bias, apart from any graph; None where it has none."""
    bias = module.bias
    return bias.detach() if isinstance(bias, Tensor) else None


def pads_with_zeros(module: nn.Module) -> bool:
    """Return whether a layer reads zeros beyond the border, where a constant input would not be one."""
    if not isinstance(module, _ConvNd) or module.padding_mode != "zeros":
        return False
    if isinstance(module.padding, str):
        return module.padding != "valid" and any(size > 1 for size in module.kernel_size)
    return any(module.padding)


def ensure_bias(module: nn.Module, value: float) -> None:
    """Add a bias of equal values to a layer that has none."""
    if not isinstance(module, (nn.Linear, _ConvNd)):
        raise ModelError(f"a {type(module).__name__} cannot have a bias")
    if bias_of(module) is None:
        put(module, "bias", weight_of(module).new_full((len(weight_of(module)),), value))


def add_to_bias(module: nn.Module, values: Tensor) -> None:
    """Add a constant to what a layer returns; a layer without a bias gets one."""
    bias = bias_of(module)
    put(module, "bias", values if bias is None else bias + values)
