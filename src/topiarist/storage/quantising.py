"""Kernels with 16 or 8 bits per weight: whole or short numbers, and a scale for each output channel."""

import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.models.copying import copied
from topiarist.models.evaluation import kernels_of

CODES = {16: torch.float16, 8: torch.int8}
SCALE = torch.bfloat16  # with its 8 bits, 127 · scale is exact, and what was quantised once is quantised to the same
LARGEST = 127


def quantise(name: str, kernel: Tensor, bits: int) -> tuple[Tensor, Tensor] | None:
    """Return codes and the scales (n_channels,) with kernel ≈ code · scale; None where it is best left as it is.

    At 8 bits the scale is max|w| / 127 of the channel, at 16 bits the power of two that brings max|w| to 2¹⁴ or more:
    below that, float16 goes down to 2⁻³⁹ of it. A weight of less than half a step becomes zero, the nearest code.
    """
    wide = kernel.flatten(1).double()
    if not wide.isfinite().all():
        raise ModelError(f"'{name}' holds numbers that are not finite: only 32 bits keep them")
    if kernel.itemsize * 8 <= bits or not wide.any():
        return None
    largest = wide.abs().amax(1)
    steps = largest / LARGEST if bits == 8 else (largest > 0) * 2.0 ** (largest.frexp().exponent.double() - 15)
    smallest = torch.finfo(SCALE).tiny
    scales = torch.where(largest > 0, steps.clamp(min=smallest), 1).to(SCALE)
    ratios = wide / scales.double()[:, None]
    codes = (ratios.round().clamp(-LARGEST, LARGEST) if bits == 8 else ratios).to(CODES[bits])
    codes = codes.masked_fill(codes == 0, 0)  # and not the zero with a sign
    fits = steps.max() >= smallest and dequantise(codes, scales, kernel.dtype).isfinite().all()
    return (codes, scales) if fits else None


def dequantise(codes: Tensor, scales: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the kernel that codes (n_channels, n_weights) and scales stand for."""
    return (codes.double() * scales.double()[:, None]).to(dtype)


def rounded(model: nn.Module, bits: int) -> nn.Module:
    """Return a copy of a network with the weights that come back from a packed file of so many bits."""
    copy = copied(model)
    for name, kernel in kernels_of(copy).items():
        kernel.data = _rounded_kernel(name, kernel.detach(), bits)
    return copy


def is_rounded(model: nn.Module, bits: int) -> bool:
    """Return whether the very weights of a network come back from a packed file of so many bits."""
    found = ((name, kernel.detach()) for name, kernel in kernels_of(model).items())
    return bits == 32 or all(torch.equal(_rounded_kernel(name, kernel, bits), kernel) for name, kernel in found)


def _rounded_kernel(name: str, kernel: Tensor, bits: int) -> Tensor:
    found = quantise(name, kernel, bits) if bits < 32 else None
    return kernel if found is None else dequantise(*found, kernel.dtype).view(kernel.shape)
