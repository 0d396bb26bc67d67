"""What the time of a layer depends on besides its two widths."""

import math
from dataclasses import asdict, dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.files import canonical_json

Kind = Literal["linear", "convolution"]
Grouping = Literal["fixed", "per unit"]


@dataclass(frozen=True)
class Geometry:
    """A linear layer, or a convolution of any dimension, for one sample; its input and output widths are left open.

    `size` is the number of rows that a linear layer reads, or the positions along each axis that a convolution does.
    With a `grouping` "per unit", as that of a depthwise convolution, there is one group for every `per_group` outputs,
    and the input width follows from the output width; `groups` is then the number of inputs of a group.
    """

    kind: Kind
    size: tuple[int, ...]
    kernel: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    padding: tuple[int, ...] = ()
    dilation: tuple[int, ...] = ()
    output_padding: tuple[int, ...] = ()
    transposed: bool = False
    grouping: Grouping = "fixed"
    groups: int = 1
    per_group: int = 1
    bias: bool = True
    channels_last: bool = False
    dtype: str = "float32"
    device: str = "cpu"

    @property
    def key(self) -> str:
        """The text that stands for it in a file."""
        return canonical_json(asdict(self))

    def groups_at(self, outputs: int) -> int:
        """Return the number of groups with so many outputs."""
        return self.groups if self.grouping == "fixed" else max(1, outputs // self.per_group)

    def inputs_at(self, inputs: int, outputs: int) -> int:
        """Return the number of inputs that a layer can have nearest to a given one."""
        if self.grouping == "per unit":
            return self.groups * self.groups_at(outputs)
        return max(self.groups, inputs // self.groups * self.groups)

    def outputs_at(self, outputs: int) -> int:
        """Return the number of outputs that a layer can have nearest to a given one."""
        each = self.per_group if self.grouping == "per unit" else self.groups
        return max(each, outputs // each * each)


def geometry_of(module: nn.Module, x: Tensor) -> Geometry | None:
    """Return the geometry of a layer that reads x, one sample; None where it has none."""
    dtype, device = str(x.dtype).removeprefix("torch."), x.device.type
    if isinstance(module, nn.Linear):
        rows = x.numel() // module.in_features
        return Geometry("linear", (rows,), bias=module.bias is not None, dtype=dtype, device=device)
    if not isinstance(module, _ConvNd) or module.padding_mode != "zeros" or x.ndim != len(module.kernel_size) + 2:
        return None
    outputs, inputs = module.out_channels, module.in_channels
    groups, within = module.groups, inputs // module.groups
    per_unit = groups > 1 and within < groups  # as a depthwise convolution has it: groups go, not what is in them
    return Geometry(
        "convolution",
        tuple(x.shape[2:]),
        tuple(module.kernel_size),
        tuple(module.stride),
        padding_of(module),
        tuple(module.dilation),
        tuple(module.output_padding),
        module.transposed,
        "per unit" if per_unit else "fixed",
        within if per_unit else groups,
        outputs // groups if per_unit else 1,
        module.bias is not None,
        x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous(),
        dtype,
        device,
    )


def padding_of(module: _ConvNd) -> tuple[int, ...]:
    """Return the padding on either side along each axis; what "same" adds on one side only is left out."""
    if module.padding == "same":
        return tuple(d * (k - 1) // 2 for d, k in zip(module.dilation, module.kernel_size, strict=True))
    if module.padding == "valid":
        return (0,) * len(module.kernel_size)
    return tuple(int(each) for each in module.padding)


def axis_grid(width: int, *, coarse: bool = False) -> list[int]:
    """Return the widths up to a full one at which layers are timed: where processors have their steps.

    Example: 64 is timed at 1, 4, 8, 16, 32, 48 and 64; coarsely, where one call takes long, at 1, 16, 32 and 64.
    """
    if coarse:
        usual = [1, *(16 * math.ceil(width / each / 16) for each in (4, 2))]
    elif width <= 16:
        usual = [1, 2, 4, 6, 8, 12]
    elif width <= 128:
        usual = [1, 4, 8, 16, 32, 48, 64, 96]
    else:
        usual = [1, *(2**power for power in range(3, width.bit_length()))]
    return sorted({each for each in usual if each < width} | {width})
