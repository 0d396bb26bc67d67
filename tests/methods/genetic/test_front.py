"""The front of accuracy against size: its points are what they say, and one of them is taken."""

from itertools import pairwise
from typing import Any

import numpy
import pytest
import torch

from tests.methods.tasks import (
    CASES,
    NOTHING,
    cut,
    data_for,
    held_out_of,
    network_for,
    percentage,
    perceptron,
    request_for,
    training_of,
    with_parts,
)
from topiarist.data import Part
from topiarist.errors import ModelError, SettingsError
from topiarist.evolution import knee
from topiarist.measurement import Budget
from topiarist.methods import FrontPoint, GeneticFront, Request, resize
from topiarist.models.evaluation import count_parameters
from topiarist.randomness import generator
from topiarist.surgery import RemoveUnits, remove
from topiarist.tracing import anatomy


def search(**settings: Any) -> GeneticFront:
    return GeneticFront(**{"population": 24, "generations": 10, **settings})


def request_of(name: str, **others: Any) -> Request:
    model = network_for(name)
    return request_for(model, data_for(model, *CASES[name][1], counts=(40, 40, 2)), **others)


def bits_by_space(request: Request, point: FrontPoint) -> dict[str, list[int]]:
    """The units that a point leaves out, by space, in the order of the anatomy."""
    spaces = anatomy(request.model, request.job.example_input).free
    ends = numpy.cumsum([space.size for space in spaces.values()])
    parts = numpy.split(point.bits, ends[:-1])
    return {name: numpy.flatnonzero(~bits).tolist() for name, bits in zip(spaces, parts, strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["perceptron", "residual", "inception"])
def test_points_are_sorted_and_none_is_beaten_by_another(name: str) -> None:
    points = search().front(request_of(name))
    assert len(points) > 1
    for before, after in pairwise(points):
        assert before.parameters < after.parameters and before.accuracy < after.accuracy


@pytest.mark.slow
@pytest.mark.parametrize("name", ["perceptron", "residual", "inception"])
def test_points_have_that_accuracy_and_those_parameters_when_cut(name: str) -> None:
    request = request_of(name)
    for point in search().front(request):
        removed = bits_by_space(request, point)
        small = remove(request.model, request.job.example_input, units=removed)
        assert count_parameters(small) == point.parameters
        assert percentage(small, held_out_of(request)) == pytest.approx(point.accuracy)
        spaces = anatomy(request.model, request.job.example_input).free
        assert point.units == {name: spaces[name].size - len(units) for name, units in removed.items()}


def test_a_seed_decides_the_front() -> None:
    first, again, other = (
        [
            (point.accuracy, point.parameters, point.bits.tolist())
            for point in search().front(request_of("perceptron", seed=seed))
        ]
        for seed in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.parametrize("limit", [40, 60, 80])
def test_the_most_accurate_within_the_limits_is_taken(limit: int) -> None:
    request = request_of("perceptron", limits={"parameters": limit})
    method = search()
    best = max(
        (point for point in method.front(request) if point.parameters <= limit), key=lambda point: point.accuracy
    )
    (edit,) = method.propose(request).edits
    assert isinstance(edit, RemoveUnits)
    assert {name: list(units) for name, units in edit.units.items()} == {
        name: units for name, units in bits_by_space(request, best).items() if units
    }


def test_without_limits_the_knee_is_taken() -> None:
    request, method = request_of("perceptron"), search()
    points = method.front(request)
    chosen = points[knee([(-point.accuracy, point.parameters) for point in points])]
    assert count_parameters(cut(request, method.propose(request).edits)) == chosen.parameters
    assert points[0].parameters <= chosen.parameters <= points[-1].parameters


def test_limits_below_the_front_are_an_error_that_names_the_smallest() -> None:
    with pytest.raises(ModelError, match=r"\d+ are the fewest found"):
        search().propose(request_of("perceptron", limits={"parameters": 3}))


def test_a_budget_is_kept() -> None:
    model = perceptron(5, 10, 8, 3)
    outcome = resize(model, data_for(model, 5), search(), budget=Budget(parameters=70), latency=False)
    assert outcome.after.parameters <= 70


def test_samples_that_are_not_asked_for_do_not_matter() -> None:
    request = request_of("perceptron")
    known = training_of(request)
    mixed = torch.randint(3, known.y.shape, generator=generator(9, "labels"))
    others = with_parts(request, train=Part(known.x, mixed))
    assert search().propose(others).edits == search().propose(request).edits
    training = search(judged_on="training").front(request)
    assert [point.accuracy for point in training] == [
        point.accuracy for point in search(judged_on="training").front(with_parts(request, validation=NOTHING))
    ]


def test_accuracy_after_a_refit_needs_units_that_the_last_layer_reads() -> None:
    with pytest.raises(ModelError, match="the last layer reads"):
        search(refitted=True).front(request_of("perceptron"))
    assert search(refitted=True, spaces=("hidden1",)).front(request_of("perceptron"))


@pytest.mark.parametrize("settings", [{"population": 1}, {"generations": 0}, {"patience": 0}, {"penalty": 1}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        GeneticFront(**settings)
