"""The runs behind a proof: a network with random weights computes a batch or two, whole, cut, or without units.

The weights are random and in float64, so that little hides: in a fresh network, attention is nearly even, and a wrong
size goes unseen. Code that asks for float32 on the way gets float64 too, where it takes that: else rounding would hide
small mistakes. The batch has a size that divides no number that code computes with. Where code computes with sizes, or
has them written down, a second batch of another size must agree too.
"""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map

from topiarist.errors import ModelError, first_line
from topiarist.models.buffers import keeping_buffers
from topiarist.models.evaluation import evaluating, numbers_of
from topiarist.randomness import generator, isolated
from topiarist.tracing import Anatomy, ExampleInput
from topiarist.tracing.integers import Literal, expressions_within
from topiarist.tracing.operation import line_of_error
from topiarist.tracing.random_weights import randomised, resized
from topiarist.tracing.recurrences import Recurrences
from topiarist.tracing.reference import Measuring, Reference, Steady
from topiarist.tracing.running import arguments, call, plain_kernels, sharing_copy
from topiarist.tracing.trace import wanted_outputs

BATCHES = (2, 3, 5, 7, 11, 13, 17, 19, 23)


@dataclass(frozen=True)
class ProofBatch:
    """A batch, and what the whole network computes for it without the units."""

    inputs: ExampleInput
    expected: list[Tensor]
    wide: bool = False  # float64 also where code asks for less


def references(
    model: nn.Module, example_input: ExampleInput, anatomy: Anatomy, gone: Any
) -> tuple[nn.Module, list[ProofBatch]]:
    """Return the network with random weights, in float64 where its code allows that, and what it computes."""
    types: tuple[torch.dtype | None, ...] = (torch.float64, torch.float64, torch.float32, None)  # None: each of its own
    for trial, dtype in enumerate(types):
        whole = randomised(model, dtype)
        try:
            return whole, _computed(whole, example_input, anatomy, gone, wide=trial == 0)
        except Exception as error:  # whatever code says to float64 that asks for another type
            reason = first_line(error)
    raise ModelError(
        f"nothing can be proven: with random weights, the network does not run ({reason}); see proof=False"
    )


def _computed(
    whole: nn.Module, example_input: ExampleInput, anatomy: Anatomy, gone: Any, *, wide: bool
) -> list[ProofBatch]:
    """Return what a network computes for a batch or two, or for the example where it takes no others."""
    batches: list[ProofBatch] = []
    silenced: dict[str, Tensor] = {}
    tried = proof_inputs(whole, example_input, anatomy)
    with suppress(Exception):  # whatever a network says to a batch of another size
        _measure_norms(whole, tried[0], wide=wide)
    for inputs in tried:
        try:
            expected = outputs_without(sharing_copy(whole), inputs, anatomy, gone, silenced, wide=wide)
            batches.append(ProofBatch(inputs, expected, wide))
        except Exception:  # whatever a network says to a batch of another size
            if callable(example_input) and not isinstance(example_input, Tensor):
                raise
    if batches:
        return batches
    expected = outputs_without(sharing_copy(whole), example_input, anatomy, gone, wide=wide)
    return [ProofBatch(example_input, expected, wide)]


def _measure_norms(whole: nn.Module, inputs: ExampleInput, *, wide: bool) -> None:
    """Set the means and variances of batch norms to those of what they read: every layer is felt in the outputs."""
    if not any(name.endswith("running_var") for name, _ in whole.named_buffers()):
        return
    other = sharing_copy(whole)  # forward may keep what it computes from weights, such as biases of attention
    steps = (
        evaluating(other),
        isolated(0, numbers_of(other).device),
        plain_kernels(other),
        default_numbers(numbers_of(other).dtype),
    )
    with ExitStack() as stack:
        for step in (*steps, Measuring(wide=wide), Recurrences()):
            stack.enter_context(step)
        call(other, inputs)
    measured = dict(other.named_buffers())
    for name, buffer in whole.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            buffer.copy_(measured[name])


def proof_inputs(model: nn.Module, example_input: ExampleInput, anatomy: Anatomy) -> list[ExampleInput]:
    """Return the example in batches of one size or two that divide no number which code computes with."""
    if callable(example_input) and not isinstance(example_input, Tensor):
        return [example_input]
    numbers = _numbers_used(anatomy)
    sizes = [size for size in BATCHES if not any(number % size == 0 for number in numbers)] or [5, 7]
    args, kwargs = arguments(model, example_input)
    random = generator(0, "proof's input")
    made: list[ExampleInput] = []
    for size in sizes[: 2 if anatomy.trace is None or anatomy.trace.constraints else 1]:
        batch = tree_map(lambda value, size=size: resized(value, anatomy.samples, size, random), (args, kwargs))
        made.append(partial(_call_with, *batch))
    return made


def _numbers_used(anatomy: Anatomy) -> set[int]:
    """Return the numbers that code gives torch's functions, or computes such numbers from."""
    if anatomy.trace is None or anatomy.solver is None:
        return set()
    parts = [part for each in anatomy.trace.constraints for part in expressions_within(each.expression)]
    written = {int(abs(part.number)) for part in parts if isinstance(part, Literal)}
    return {number for number in (*written, *anatomy.solver.old.values()) if number > 1}


def _call_with(args: Any, kwargs: Any, network: nn.Module) -> Any:
    return network(*_cloned(args), **_cloned(kwargs))


def _cloned(value: Any) -> Any:
    return tree_map(lambda each: each.clone() if isinstance(each, Tensor) else each, value)


def outputs_without(
    model: nn.Module,
    inputs: ExampleInput,
    anatomy: Anatomy | None,
    gone: Any,
    silenced: dict[str, Tensor] | None = None,
    *,
    wide: bool = False,
) -> list[Tensor]:
    """Run a network, as if units were gone where an anatomy says which, and return its outputs."""
    with (
        evaluating(model),
        isolated(0, numbers_of(model).device),
        plain_kernels(model),
        default_numbers(numbers_of(model).dtype),
    ):
        if anatomy is None or anatomy.trace is None:
            with Steady(wide=wide), Recurrences():
                return wanted_outputs(call(model, inputs))
        tracer = anatomy.trace.tracer
        reference = Reference(model, tracer.labels.copy(), tracer.leaves, gone, silenced=silenced, wide=wide)
        try:
            with reference, Recurrences(reference):
                return wanted_outputs(call(model, inputs))
        finally:
            reference.restore_values()


def outputs_of_cut(cut: nn.Module, batch: ProofBatch, units: Iterable[str]) -> list[Tensor]:
    """Run a cut network; where its own code fails, say so in one line."""
    try:
        with keeping_buffers(cut):  # which forward may write into
            given = outputs_without(cut, batch.inputs, None, numpy.zeros(0, bool), wide=batch.wide)
            return [tensor.clone() for tensor in given]
    except Exception as error:  # whatever a user's forward raises
        named = ", ".join(f"'{name}'" for name in units)
        reason = first_line(error)
        raise ModelError(
            f"without units of {named}, the network's own code fails{line_of_error(error)}: {reason}"
        ) from error


@contextmanager
def default_numbers(dtype: torch.dtype) -> Iterator[None]:
    """Let tensors that forward makes itself have the type of the network's numbers."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
