"""Outputs of any form as lists of tensors, compared; and errors in one line."""

import sys
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.zoo import Inputs, use
from topiarist.tracing.trace import wanted_outputs

LONGEST_REASON = 220  # characters: a line of the table that can still be read


@torch.no_grad()
def answers_of(model: nn.Module, inputs: Inputs) -> list[Tensor]:
    """Return the tensors that a network is run for: of the hub's models with scores, the scores alone."""
    return wanted_outputs(use(model, inputs))


def shapes_of(tensors: list[Tensor]) -> list[tuple[int, ...]]:
    """Return the shapes of tensors."""
    return [tuple(tensor.shape) for tensor in tensors]


def relative_difference(found: list[Tensor], expected: list[Tensor]) -> float:
    """Return the largest difference, each relative to the largest number of its expected tensor; infinite if unlike."""
    if shapes_of(found) != shapes_of(expected):
        return float("inf")
    largest = 0.0
    for one, other in zip(found, expected, strict=True):
        if not one.numel():
            continue
        one, other = one.double(), other.double()
        if not torch.equal(one.isnan(), other.isnan()):
            return float("inf")
        apart = torch.where(one == other, 0.0, (one - other).abs()).nan_to_num(nan=0.0, posinf=float("inf"))
        scale = other[other.isfinite()].abs().max().clamp(min=1e-12) if bool(other.isfinite().any()) else 1.0
        largest = max(largest, float((apart / scale).max()))
    return largest


def count_parameters(model: nn.Module) -> int:
    """Return how many numbers the parameters of a network hold; shared ones count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def one_line(error: BaseException) -> str:
    """Return an error as one short line, without the folders of this machine."""
    kind, text = type(error).__name__, " ".join(str(error).split())
    for folder in sorted({str(Path.cwd()), *sys.path, sys.prefix}, key=len, reverse=True):
        text = text.replace(f"{folder}/", "") if len(folder) > 1 else text
    line = f"{kind}: {text}" if text else kind
    return line if len(line) <= LONGEST_REASON else f"{line[: LONGEST_REASON - 1]}…"
