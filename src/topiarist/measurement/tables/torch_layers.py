"""One layer in torch, to be timed: what `nn.Linear` and the convolutions call, on random numbers."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from topiarist.measurement.tables.geometry import Geometry
from topiarist.measurement.tables.timing import Call, clock_for, in_bursts
from topiarist.threads import torch_threads

Point = tuple[Geometry, int, int]
PLAIN = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
TRANSPOSED = {1: functional.conv_transpose1d, 2: functional.conv_transpose2d, 3: functional.conv_transpose3d}


class TorchLayers:
    """Times layers in torch on some threads."""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def seconds(self, points: Sequence[Point]) -> list[float]:
        """Return how long layers with so many inputs and outputs take."""
        with torch_threads(self.threads), torch.no_grad():
            device = points[0][0].device if points else "cpu"
            return in_bursts([layer_call(*point) for point in points], clock_for(self.threads, device))


def layer_call(geometry: Geometry, inputs: int, outputs: int) -> Call:
    """Return a function that runs one layer once."""
    x, weight, bias = tensors_for(geometry, inputs, outputs)
    groups = geometry.groups_at(outputs)
    run = _linear(x, weight, bias) if geometry.kind == "linear" else _convolution(geometry, groups, x, weight, bias)
    if geometry.device == "cpu":
        return run

    def run_and_wait() -> None:
        run()
        torch.accelerator.synchronize(geometry.device)

    return run_and_wait


def shapes_for(geometry: Geometry, inputs: int, outputs: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shapes of what a layer reads, and of its weight as torch has it."""
    if geometry.kind == "linear":
        return (*geometry.size, inputs), (outputs, inputs)
    groups = geometry.groups_at(outputs)
    weight = (inputs, outputs // groups) if geometry.transposed else (outputs, inputs // groups)
    return (1, inputs, *geometry.size), (*weight, *geometry.kernel)


def tensors_for(geometry: Geometry, inputs: int, outputs: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return what a layer reads, its weight and its bias."""
    random = torch.Generator().manual_seed(0)
    taken, kernel = shapes_for(geometry, inputs, outputs)

    def made(shape: Sequence[int]) -> Tensor:
        return torch.randn(shape, generator=random).to(geometry.device, getattr(torch, geometry.dtype))

    x, weight = made(taken), made(kernel)
    if geometry.channels_last:
        x = x.contiguous(memory_format=torch.channels_last)
    return x, weight, made((outputs,)) if geometry.bias else None


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> Call:
    return lambda: functional.linear(x, weight, bias)


def _convolution(geometry: Geometry, groups: int, x: Tensor, weight: Tensor, bias: Tensor | None) -> Call:
    dimensions = len(geometry.kernel)
    if geometry.transposed:
        settings = (geometry.stride, geometry.padding, geometry.output_padding, groups, geometry.dilation)
        return lambda: TRANSPOSED[dimensions](x, weight, bias, *settings)
    plain = (geometry.stride, geometry.padding, geometry.dilation, groups)
    return lambda: PLAIN[dimensions](x, weight, bias, *plain)
