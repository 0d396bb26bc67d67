"""A network as an ONNX file, run by onnxruntime and compared with torch."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.covering.outputs import one_line, relative_difference
from benchmarks.covering.records import Check
from benchmarks.zoo import Inputs, use
from topiarist.tracing.trace import tensors_in

CLOSE = 1e-3  # of the largest number: float32 in another order of operations, through up to a hundred layers


def compare_onnx(model: nn.Module, cut: nn.Module, inputs: Inputs) -> Check:
    """Export a cut network and compare; where that fails, the original shows whether the cut is the reason."""
    distance, reason = _distance(cut, inputs)
    if distance is not None and distance <= CLOSE:
        return Check(passed=True, note=f"{distance:.1e}")
    original, why = _distance(model, inputs)
    if original is None:
        return Check(note=f"the original cannot be exported: {why}")
    if original > CLOSE:
        return Check(note=f"the original's file differs by {original:.1e} itself")
    return Check(passed=False, note=reason if distance is None else f"differs by {distance:.1e}")


def _distance(model: nn.Module, inputs: Inputs) -> tuple[float | None, str]:
    """Return how far the exported network is from torch, or None and the reason why it cannot be exported."""
    try:
        with torch.no_grad():
            expected = tensors_in(use(model, inputs))
        return relative_difference(_run_exported(model, inputs), expected), ""
    except Exception as error:  # torch.onnx and onnxruntime have many classes of their own
        return None, one_line(_first_cause(error))


def _run_exported(model: nn.Module, inputs: Inputs) -> list[Tensor]:
    """Return what onnxruntime computes from the exported network."""
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}
    if isinstance(inputs, Tensor):
        args = (inputs,)
    elif isinstance(inputs, Mapping):
        kwargs = dict(inputs)
    else:
        args = tuple(inputs)
    program = torch.onnx.export(model, args, kwargs=kwargs, dynamo=True, verbose=False)
    if program is None:
        raise RuntimeError("torch.onnx.export returned nothing")
    return tensors_in(program(*args, **kwargs))


def _first_cause(error: BaseException) -> BaseException:
    """Return the error that a chain of errors began with."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error
