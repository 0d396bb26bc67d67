"""Masked evaluation of networks of any kind: as right as the network that is really cut."""

from typing import Any

import numpy
import pytest
import torch

from tests.methods.tasks import CASES, data_for, network_for, percentage, request_for, same_state, state_of
from topiarist.data import Part
from topiarist.methods.genetic import masked
from topiarist.methods.genetic.masked import MaskedForward
from topiarist.methods.genetic.readout import Bits
from topiarist.methods.genetic.search import SearchProblem, _masked, evaluator_for, problem_for
from topiarist.randomness import array_generator
from topiarist.surgery import remove


def problem(name: str, seed: int = 0, **others: Any) -> SearchProblem:
    model = network_for(name, seed)
    return problem_for(
        request_for(model, data_for(model, *CASES[name][1], counts=(20, 40, 2)), **others), None, judged_on="held-out"
    )


def masks_for(found: SearchProblem, count: int, seed: int = 0) -> Bits:
    """Masks that leave a unit in each space, one of them all."""
    random = array_generator(seed, "masks")
    bits: Bits = random.random((count, found.bits)) < random.random((count, 1))
    for _, part in found.by_space(bits):
        part[numpy.arange(count), random.integers(part.shape[1], size=count)] = True
    bits[0] = True
    return bits


def accuracy_when_cut(found: SearchProblem, mask: Bits) -> float:
    units = {name: numpy.flatnonzero(~bits).tolist() for name, bits in found.by_space(mask)}
    small = remove(found.model, found.judged.x[:2], units=units)
    assert isinstance(found.judged, Part)
    return percentage(small, found.judged)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_mask_is_as_right_as_the_network_that_is_cut(name: str) -> None:
    found = problem(name)
    masks = masks_for(found, 12)
    accuracies = evaluator_for([found], refitted=False).accuracy(numpy.zeros(12, dtype=numpy.intp), masks)
    expected = [accuracy_when_cut(found, mask) for mask in masks]
    assert accuracies.tolist() == pytest.approx(expected, abs=1e-9)
    assert len(set(expected)) > 2  # or it would say little


@pytest.mark.parametrize("seed", range(3))
def test_units_that_the_last_layer_reads_are_judged_alike_by_both_ways(seed: int) -> None:
    found = problem("perceptron", seed)
    only = problem_for(
        request_for(found.model, data_for(found.model, 5, counts=(20, 40, 2))), ("hidden1",), judged_on="held-out"
    )
    rows, masks = numpy.zeros(20, dtype=numpy.intp), masks_for(only, 20)
    quick = evaluator_for([only], refitted=False)
    assert not isinstance(quick, MaskedForward)
    slow = MaskedForward([_masked(only)])
    assert quick.accuracy(rows, masks).tolist() == pytest.approx(slow.accuracy(rows, masks).tolist())


def test_several_networks_are_judged_as_one_by_one() -> None:
    problems = [problem("residual", seed) for seed in range(3)]
    numbers = numpy.array([0, 0, 1, 2, 2, 2])
    masks = masks_for(problems[0], 6)
    together = evaluator_for(problems, refitted=False).accuracy(numbers, masks)
    alone = [
        evaluator_for([problems[number]], refitted=False).accuracy(numpy.zeros(1, dtype=numpy.intp), mask[None])[0]
        for number, mask in zip(numbers.tolist(), masks, strict=True)
    ]
    assert together.tolist() == alone


@pytest.mark.slow
def test_little_memory_makes_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    found = problem("inception")
    masks, rows = masks_for(found, 10), numpy.zeros(10, dtype=numpy.intp)
    whole = evaluator_for([found], refitted=False).accuracy(rows, masks)
    monkeypatch.setattr(masked, "MOST_VALUES", 1)
    assert evaluator_for([found], refitted=False).accuracy(rows, masks).tolist() == whole.tolist()


def test_the_network_is_left_as_it_was() -> None:
    found = problem("gated")
    found.model.train()
    state = state_of(found.model)
    evaluator_for([found], refitted=False).accuracy(numpy.zeros(4, dtype=numpy.intp), masks_for(found, 4))
    assert same_state(found.model, state)
    assert all(module.training and not module._forward_pre_hooks for module in found.model.modules())
    assert all(parameter.grad is None for parameter in found.model.parameters())
    assert torch.is_grad_enabled()
