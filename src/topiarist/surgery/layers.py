"""How a layer's tensors are cut, copied and drawn anew along the axes where it meets units."""

import math

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd

from topiarist.errors import ModelError

ROW_TENSORS = ("weight", "bias", "running_mean", "running_var")


def is_plain(module: nn.Module) -> bool:
    """Say whether a layer does what torch's own does, with weights of its own that are computed from nothing else."""
    own = next(kind for kind in type(module).__mro__ if kind.__module__.startswith("torch.nn.modules"))
    return type(module).forward is vars(own).get("forward") and module._parameters.get("weight") is not None


def put(module: nn.Module, name: str, values: Tensor) -> None:
    """Give a module a tensor in the place of one it has; a parameter stays one, frozen or not."""
    if name in module._buffers:
        module._buffers[name] = values
    else:
        old = module._parameters.get(name)
        like = module._parameters["weight"] if old is None else old
        trained = like is not None and like.requires_grad
        new = nn.Parameter(values.detach(), requires_grad=trained)
        vars(new).update(vars(old) if old is not None else {})  # marks such as `no_weight_decay`
        module._parameters[name] = new


def device_of(module: nn.Module) -> torch.device:
    """Give the device of a layer's own tensors."""
    tensors = (*module.parameters(recurse=False), *module.buffers(recurse=False))
    return tensors[0].device if tensors else torch.device("cpu")


def gather_rows(module: nn.Module, take: Tensor) -> None:
    """Keep, copy and order the units that a layer writes or passes on."""
    for name in ROW_TENSORS:
        tensor = getattr(module, name, None)
        if isinstance(tensor, Tensor):
            put(module, name, tensor.detach().index_select(0, take))
    resize_rows(module, len(take))


def resize_rows(module: nn.Module, count: int) -> None:
    """Let a layer's settings say how many units it writes or passes on."""
    match module:
        case nn.Linear():
            module.out_features = count
        case _ConvNd():
            rows, columns = module.out_channels // module.groups, module.in_channels // module.groups
            module.out_channels = count
            if module.groups > 1:
                module.groups = count // rows
                module.in_channels = module.groups * columns
        case _NormBase():
            module.num_features = count
        case nn.GroupNorm():
            module.num_groups = count * module.num_groups // module.num_channels
            module.num_channels = count
        case nn.PReLU():
            module.num_parameters = count


def gather_columns(module: nn.Module, take: Tensor) -> None:
    """Keep, copy and order the units that a layer reads."""
    put(module, "weight", weight_of(module).index_select(1, take))
    if isinstance(module, nn.Linear):
        module.in_features = len(take)
    elif isinstance(module, _ConvNd):
        module.in_channels = len(take)


def gather_parameter(module: nn.Module, name: str, dimension: int, take: Tensor) -> None:
    """Keep, copy and order units along one axis of a parameter that forward reads directly."""
    put(module, name, getattr(module, name).detach().index_select(dimension, take))


def draw_rows(module: nn.Module, rows: Tensor, generator: torch.Generator) -> None:
    """Draw units anew (He et al., 2015): random incoming weights, no bias; a norm that changes nothing."""
    values = {"bias": 0.0, "running_mean": 0.0, "running_var": 1.0}
    for name in ROW_TENSORS:
        tensor = getattr(module, name, None)
        if not isinstance(tensor, Tensor):
            continue
        changed = tensor.detach().clone()
        if name == "weight" and tensor.ndim > 1:
            spread = math.sqrt(2 / tensor[0].numel())
            drawn = torch.randn((len(rows), *tensor.shape[1:]), generator=generator, dtype=torch.float64) * spread
            changed[rows] = drawn.to(changed)
        elif not isinstance(module, nn.PReLU):
            changed[rows] = values.get(name, 1.0)
        put(module, name, changed)


def forget_rows(module: nn.Module, rows: Tensor) -> None:
    """Mark units as having no values yet."""
    for name in ROW_TENSORS:
        tensor = getattr(module, name, None)
        if isinstance(tensor, Tensor):
            put(module, name, tensor.detach().index_fill(0, rows, math.nan))


def weight_of(module: nn.Module) -> Tensor:
    """Give a layer's weights, apart from any graph."""
    weight = module.weight
    assert isinstance(weight, Tensor)
    return weight.detach()


def bias_of(module: nn.Module) -> Tensor | None:
    """Give a layer's bias, apart from any graph; None where it has none."""
    bias = module.bias
    return bias.detach() if isinstance(bias, Tensor) else None


def pads_with_zeros(module: nn.Module) -> bool:
    """Say whether a layer reads zeros beyond the border, where a constant input would not be one."""
    if not isinstance(module, _ConvNd) or module.padding_mode != "zeros":
        return False
    padded = module.padding != "valid" if isinstance(module.padding, str) else any(module.padding)
    return padded and (not isinstance(module.padding, str) or any(size > 1 for size in module.kernel_size))


def ensure_bias(module: nn.Module, value: float) -> None:
    """Give a layer that has no bias one of equal values."""
    if not isinstance(module, (nn.Linear, _ConvNd)):
        raise ModelError(f"a {type(module).__name__} cannot have a bias")
    if bias_of(module) is None:
        put(module, "bias", weight_of(module).new_full((len(weight_of(module)),), value))


def add_to_bias(module: nn.Module, values: Tensor) -> None:
    """Add a constant to what a layer gives; a layer without a bias gets one."""
    bias = bias_of(module)
    put(module, "bias", values if bias is None else bias + values)
