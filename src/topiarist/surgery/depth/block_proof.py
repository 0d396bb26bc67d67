"""The proof behind the removal of blocks: without them, the network computes what it does with their inputs passed on.

The reference runs the whole network, with random weights in float64, and puts the input of each block, behind the norms
that stay, in the place of its result.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy
import torch
from torch import Tensor, nn

from topiarist.errors import ModelError, first_line
from topiarist.surgery.calibration import first_of
from topiarist.surgery.depth.passing_over import pass_over
from topiarist.surgery.edits.kinds import Passage, RemoveBlock
from topiarist.surgery.proof_runs import outputs_without, proof_inputs
from topiarist.surgery.proving import COARSE, TOLERANCE, is_double, largest_difference
from topiarist.tracing import Anatomy, ExampleInput
from topiarist.tracing.operation import line_of_error
from topiarist.tracing.random_weights import randomised
from topiarist.tracing.running import sharing_copy

NOTHING = numpy.zeros(0, bool)
Answers = list[tuple[ExampleInput, list[Tensor]]]


def prove_blocks(model: nn.Module, example_input: ExampleInput, anatomy: Anatomy, edit: RemoveBlock) -> float:
    """Return by how much, at most, a network without blocks differs from the whole one that passes their inputs on.

    Raises
    ------
    ModelError
        They differ by more than rounding does, or the network does not run without the blocks.
    """
    named = ", ".join(f"'{name}'" for name in edit.blocks)
    whole, expected = _references(model, example_input, anatomy, edit)
    cut = sharing_copy(whole)
    pass_over(cut, edit)
    worst = 0.0
    for inputs, wanted in expected:
        try:
            found = outputs_without(cut, inputs, None, NOTHING)
        except Exception as error:  # whatever a user's forward raises
            reason = f"fails{line_of_error(error)}: {first_line(error)}"
            raise ModelError(f"without {named}, the network's own code {reason}") from error
        worst = max(worst, largest_difference(wanted, found, named))
    if not worst <= (TOLERANCE if is_double(whole) else COARSE):
        raise ModelError(
            f"without {named}, the network's own code computes something else (by {worst:.1g}): it uses more of them"
            " than their results"
        )
    return worst


def _references(
    model: nn.Module, example_input: ExampleInput, anatomy: Anatomy, edit: RemoveBlock
) -> tuple[nn.Module, Answers]:
    """Return the network with random weights, in float64 where its code allows that, and what it computes."""
    reason = ""
    for dtype in (torch.float64, torch.float32, None):
        whole = randomised(model, dtype)
        try:
            return whole, list(_computed(whole, example_input, anatomy, edit))
        except Exception as error:  # whatever code says to float64 that asks for another type
            reason = first_line(error)
    raise ModelError(
        f"nothing can be proven: with random weights, the network does not run ({reason}); see proof=False"
    )


def _computed(
    whole: nn.Module, example_input: ExampleInput, anatomy: Anatomy, edit: RemoveBlock
) -> Iterator[tuple[ExampleInput, list[Tensor]]]:
    """Yield batches of other sizes, or the example where the network takes no others, and the outputs."""
    failed = 0
    tried = proof_inputs(whole, example_input, anatomy)
    for inputs in tried:
        with _passing(sharing_copy(whole), edit) as network:
            try:
                yield inputs, outputs_without(network, inputs, None, NOTHING)
            except Exception:  # whatever a network says to a batch of another size
                failed += 1
    if failed == len(tried):
        with _passing(sharing_copy(whole), edit) as network:
            yield example_input, outputs_without(network, example_input, None, NOTHING)


@contextmanager
def _passing(network: nn.Module, edit: RemoveBlock) -> Iterator[nn.Module]:
    """Let blocks of a network return their inputs, behind the norms that stay, in the place of their first tensors."""
    handles = []
    for name, passage in edit.blocks.items():
        block = network.get_submodule(name)
        before, after = _hooks(block, passage)
        handles.append(block.register_forward_pre_hook(before, with_kwargs=True))
        handles.append(block.register_forward_hook(after, with_kwargs=True))
    try:
        yield network
    finally:
        for handle in handles:
            handle.remove()


def _hooks(block: nn.Module, passage: Passage) -> tuple[Any, Any]:
    taken: list[Tensor] = []

    def before(_: nn.Module, args: Any, kwargs: Any) -> None:
        taken[:] = [_first_tensor(first_of(args, _as_input(kwargs, passage))).clone()]

    def after(_: nn.Module, args: Any, kwargs: Any, given: Any) -> Any:
        passed = taken[0]
        for name in passage.kept:
            passed = block.get_submodule(name)(passed)
        return _with_first(given, passed)

    return before, after


def _as_input(kwargs: dict[str, Any], passage: Passage) -> dict[str, Any]:
    return {"input": kwargs[passage.takes[0]]} if passage.takes[0] in kwargs else kwargs


def _first_tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    return _first_tensor(next(iter(value.values() if isinstance(value, dict) else value)))


def _with_first(value: Any, tensor: Tensor) -> Any:
    """Return a container with another tensor in the place of its first."""
    if isinstance(value, Tensor):
        return tensor
    if isinstance(value, dict):
        key = next(iter(value))
        return {**value, key: _with_first(value[key], tensor)}
    return type(value)([_with_first(value[0], tensor), *value[1:]])
