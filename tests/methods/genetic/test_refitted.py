"""Evaluation after a refit of the last layer: as right as the network that is cut and refitted by least squares."""

import numpy
import pytest
import torch
from torch import Tensor, nn

from tests.methods.tasks import answers, data_for, percentage, perceptron, request_for
from topiarist.data import Part
from topiarist.errors import ModelError
from topiarist.methods.genetic import refitted
from topiarist.methods.genetic.readout import Bits, Floats
from topiarist.methods.genetic.search import SearchProblem, evaluator_for, problem_for
from topiarist.randomness import array_generator
from topiarist.surgery import remove

UNITS = 9


def problem(seed: int, *, bias: bool = True) -> SearchProblem:
    model = perceptron(5, UNITS, 4, seed=seed, double=True)
    if not bias:
        nn.init.zeros_(model.output.bias)  # type: ignore[arg-type, union-attr]  # of a Sequential
    data = data_for(model, 5, counts=(120, 80, 2), wrong=0.1, seed=seed)
    return problem_for(request_for(model, data), None, judged_on="held-out")


def masks_of(seed: int, count: int = 20) -> Bits:
    random = array_generator(seed, "masks")
    bits: Bits = random.random((count, UNITS)) < 0.6
    bits[:, seed % UNITS] = True
    bits[0] = True
    return bits


def judged(found: SearchProblem, masks: Bits) -> Floats:
    return evaluator_for([found], refitted=True).accuracy(numpy.zeros(len(masks), dtype=numpy.intp), masks)


def explicit(found: SearchProblem, mask: Bits) -> float:
    """Fit the last layer, with a constant, to what the whole network answers, and count."""

    def read(x: Tensor) -> Tensor:
        hidden = found.model[:-1](x)[:, torch.from_numpy(mask)].detach()  # type: ignore[index]
        return torch.cat([hidden, torch.ones(len(x), 1, dtype=x.dtype)], dim=1)

    whole = answers(found.model, found.training.x)
    weights = torch.linalg.lstsq(read(found.training.x), whole).solution
    right = (read(found.judged.x) @ weights).argmax(dim=1) == found.judged.y
    return 100 * float(right.double().mean())


def near(found: list[float], expected: list[float], samples: int) -> bool:
    """A ridge in place of plain least squares may turn an answer that is nearly a tie, and no more."""
    return max(abs(one - other) for one, other in zip(found, expected, strict=True)) <= 1.01 * 100 / samples


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bias", [False, True])
def test_a_mask_is_as_right_as_explicit_least_squares(seed: int, bias: bool) -> None:
    found, masks = problem(seed, bias=bias), masks_of(seed)
    assert near(judged(found, masks).tolist(), [explicit(found, mask) for mask in masks], len(found.judged))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bias", [False, True])
def test_a_mask_is_as_right_as_the_network_cut_and_refitted(seed: int, bias: bool) -> None:
    found, masks = problem(seed, bias=bias), masks_of(seed)
    expected = []
    for mask in masks:
        units = {"hidden0": numpy.flatnonzero(~mask).tolist()}
        small = remove(found.model, found.training.x[:2], units=units, calibration=found.training.x, settling=0)
        assert isinstance(found.judged, Part)
        expected.append(percentage(small, found.judged))
    assert near(judged(found, masks).tolist(), expected, len(found.judged))


def test_with_all_units_it_is_the_network_itself() -> None:
    found = problem(1)
    assert judged(found, numpy.ones((1, UNITS), dtype=bool))[0] == pytest.approx(percentage(found.model, found.judged))


def test_several_networks_and_little_memory_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    problems = [problem(seed, bias=False) for seed in range(2)]
    numbers, masks = numpy.repeat([0, 1], 10), masks_of(3)
    together = evaluator_for(problems, refitted=True).accuracy(numbers, masks)
    monkeypatch.setattr(refitted, "MOST_VALUES", 1)
    for number in range(2):
        rows = numbers == number
        assert judged(problems[number], masks[rows]).tolist() == pytest.approx(together[rows].tolist())


def test_two_layers_of_units_cannot_be_refitted() -> None:
    model = perceptron(5, 6, 5, 3)
    found = problem_for(request_for(model, data_for(model, 5)), None, judged_on="held-out")
    with pytest.raises(ModelError, match="one space, which the last layer reads"):
        evaluator_for([found], refitted=True)
