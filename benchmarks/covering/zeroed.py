"""Whether a cut of torch-pruning's is the original without the weights that are gone: they are set to zero there.

All weights are random numbers of float64, so that each that stayed is found again by its value. Norms over units see
how many there are; they are switched off in both networks, in favour of torch-pruning.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

from benchmarks.covering.outputs import answers_of, one_line, relative_difference
from benchmarks.covering.records import Check
from benchmarks.zoo import Inputs

SAME = 1e-9  # of the largest number, in float64
Cut = Callable[[nn.Module, Inputs], nn.Module]


def compare_with_zeroed(model: nn.Module, inputs: Inputs, cut: Cut) -> Check:
    """Cut a copy with random weights, and compare it with the original in which the same weights are zero."""
    try:
        with _norms_off():
            whole, doubled = _random_double(model), _doubled(inputs)
            smaller = cut(deepcopy(whole), doubled)
            _clear_what_is_gone(whole, smaller)
            distance = relative_difference(answers_of(smaller, doubled), answers_of(whole, doubled))
    except Exception as error:  # a finding, whatever it is
        return Check(note=one_line(error))
    return Check(passed=distance <= SAME, note=f"differs from the original without these weights by {distance:.1e}")


@torch.no_grad()
def _random_double(model: nn.Module) -> nn.Module:
    copy, source = deepcopy(model).double(), torch.Generator().manual_seed(7)
    for parameter in copy.parameters():
        drawn = torch.randn(parameter.shape, generator=source, dtype=parameter.dtype)
        if parameter.dim() > 1:
            parameter.copy_(drawn * (parameter.numel() / len(parameter)) ** -0.5)
        else:
            parameter.add_(drawn * 1e-3)  # scales stay near one, and no two are equal
    return copy


@torch.no_grad()
def _clear_what_is_gone(whole: nn.Module, smaller: nn.Module) -> None:
    left = dict(smaller.named_parameters())
    for name, parameter in whole.named_parameters():
        stayed = torch.isin(parameter, left[name])
        if int(stayed.sum()) != left[name].numel():
            raise ValueError(f"the weights of '{name}' cannot be told apart")
        parameter.mul_(stayed)


def _doubled(inputs: Any) -> Any:
    if isinstance(inputs, Tensor):
        return inputs.double() if inputs.is_floating_point() else inputs
    if isinstance(inputs, tuple):
        return tuple(map(_doubled, inputs))
    return {name: _doubled(value) for name, value in inputs.items()}


@contextmanager
def _norms_off() -> Iterator[None]:
    with (
        patch("torch.nn.functional.layer_norm", _scale_last),
        patch("torch.nn.functional.group_norm", _scale_channels),
        torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
    ):
        fast = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)


def _scale_last(x: Tensor, _: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 0) -> Tensor:
    scaled = x if weight is None else x * weight
    return scaled if bias is None else scaled + bias


def _scale_channels(
    x: Tensor, groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 0
) -> Tensor:
    def along(given: Tensor | None) -> Tensor | None:
        return None if given is None else given.view(1, -1, *[1] * (x.dim() - 2))

    return _scale_last(x, groups, along(weight), along(bias))
