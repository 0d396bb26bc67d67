"""How a layer's tensors are cut, copied and drawn anew along the axes where it meets units."""

import math

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd

from topiarist.errors import ModelError

ROW_TENSORS = ("weight", "bias", "running_mean", "running_var")


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


def device_of(module: nn.Module) -> torch.device:
    """Return the device of a layer's own tensors."""
    tensors = (*module.parameters(recurse=False), *module.buffers(recurse=False))
    return tensors[0].device if tensors else torch.device("cpu")


def row_tensors(module: nn.Module) -> dict[str, Tensor]:
    """Return the tensors that have one row per unit that a layer writes or passes on, apart from any graph."""
    tensors = {name: getattr(module, name, None) for name in ROW_TENSORS}
    return {name: tensor.detach() for name, tensor in tensors.items() if isinstance(tensor, Tensor)}


def gather_rows(module: nn.Module, take: Tensor) -> None:
    """Keep, copy and order the units that a layer writes or passes on; its settings say how many there are."""
    for name, tensor in row_tensors(module).items():
        put(module, name, tensor.index_select(0, take))
    count = len(take)
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


def draw_rows(module: nn.Module, rows: Tensor, generator: torch.Generator) -> None:
    """Draw units anew (He et al., 2015): random incoming weights, no bias; a norm that changes nothing."""
    for name, tensor in row_tensors(module).items():
        changed = tensor.clone()
        if name == "weight" and tensor.ndim > 1:
            spread = math.sqrt(2 / tensor[0].numel())
            drawn = torch.randn((len(rows), *tensor.shape[1:]), generator=generator, dtype=torch.float64) * spread
            changed[rows] = drawn.to(changed)
        elif not isinstance(module, nn.PReLU):
            changed[rows] = 0.0 if name in ("bias", "running_mean") else 1.0
        put(module, name, changed)


def forget_rows(module: nn.Module, rows: Tensor) -> None:
    """Mark units as having no values yet."""
    for name, tensor in row_tensors(module).items():
        put(module, name, tensor.index_fill(0, rows, math.nan))


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
