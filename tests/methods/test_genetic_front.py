"""The front of accuracy against size: its points are what they say, and one of them is taken."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy
import pytest
import torch

from tests.methods.tasks import CASES, cut, data_for, network_for, percentage, perceptron, task_of
from topiarist.data import Part
from topiarist.errors import ModelError, SettingsError
from topiarist.evolution import knee
from topiarist.measurement import Budget
from topiarist.methods import FrontPoint, GeneticFront, Task, shape
from topiarist.models.evaluation import count_parameters
from topiarist.randomness import generator
from topiarist.surgery import RemoveUnits, remove
from topiarist.tracing import anatomy


def search(**settings: Any) -> GeneticFront:
    return GeneticFront(**{"population": 24, "generations": 10, **settings})


def task_for(name: str, **others: Any) -> Task:
    model = network_for(name)
    return task_of(model, data_for(model, *CASES[name][1], counts=(40, 40, 2)), **others)


def bits_by_space(task: Task, point: FrontPoint) -> dict[str, list[int]]:
    """The units that a point leaves out, by space, in the order of the anatomy."""
    spaces = anatomy(task.model, task.example_input).free
    ends = numpy.cumsum([space.size for space in spaces.values()])
    parts = numpy.split(point.bits, ends[:-1])
    return {name: numpy.flatnonzero(~bits).tolist() for name, bits in zip(spaces, parts, strict=True)}


@pytest.mark.parametrize("name", ["perceptron", "residual", "inception"])
def test_points_are_sorted_and_none_is_beaten_by_another(name: str) -> None:
    points = search().front(task_for(name))
    assert len(points) > 1
    for before, after in pairwise(points):
        assert before.parameters < after.parameters and before.accuracy < after.accuracy


@pytest.mark.parametrize("name", ["perceptron", "residual", "inception"])
def test_points_have_that_accuracy_and_those_parameters_when_cut(name: str) -> None:
    task = task_for(name)
    assert task.held_out is not None
    for point in search().front(task):
        removed = bits_by_space(task, point)
        small = remove(task.model, task.example_input, units=removed)
        assert count_parameters(small) == point.parameters
        assert percentage(small, task.held_out) == pytest.approx(point.accuracy)
        spaces = anatomy(task.model, task.example_input).free
        assert point.units == {name: spaces[name].size - len(units) for name, units in removed.items()}


def test_a_seed_decides_the_front() -> None:
    first, again, other = (
        [
            (point.accuracy, point.parameters, point.bits.tolist())
            for point in search().front(task_for("perceptron", seed=seed))
        ]
        for seed in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.parametrize("limit", [40, 60, 80])
def test_the_most_accurate_within_the_limits_is_taken(limit: int) -> None:
    task = task_for("perceptron", limits={"parameters": limit})
    method = search()
    best = max((point for point in method.front(task) if point.parameters <= limit), key=lambda point: point.accuracy)
    (edit,) = method.propose(task).edits
    assert isinstance(edit, RemoveUnits)
    assert {name: list(units) for name, units in edit.units.items()} == {
        name: units for name, units in bits_by_space(task, best).items() if units
    }


def test_without_limits_the_knee_is_taken() -> None:
    task, method = task_for("perceptron"), search()
    points = method.front(task)
    chosen = points[knee([(-point.accuracy, point.parameters) for point in points])]
    assert count_parameters(cut(task, method.propose(task).edits)) == chosen.parameters
    assert points[0].parameters <= chosen.parameters <= points[-1].parameters


def test_limits_below_the_front_are_an_error_that_names_the_smallest() -> None:
    with pytest.raises(ModelError, match=r"\d+ are the fewest found"):
        search().propose(task_for("perceptron", limits={"parameters": 3}))


def test_a_budget_is_kept() -> None:
    model = perceptron(5, 10, 8, 3)
    outcome = shape(model, data_for(model, 5), search(), budget=Budget(parameters=70), latency=False)
    assert outcome.after.parameters <= 70


def test_samples_that_are_not_asked_for_do_not_matter() -> None:
    task = task_for("perceptron")
    assert task.training is not None and task.held_out is not None
    mixed = torch.randint(3, task.training.y.shape, generator=generator(9, "labels"))
    others = replace(task, training=Part(task.training.x, mixed))
    assert search().propose(others).edits == search().propose(task).edits
    training = search(judged_on="training").front(task)
    assert [point.accuracy for point in training] == [
        point.accuracy for point in search(judged_on="training").front(replace(task, held_out=None))
    ]


def test_accuracy_after_a_refit_needs_units_that_the_last_layer_reads() -> None:
    with pytest.raises(ModelError, match="the last layer reads"):
        search(refitted=True).front(task_for("perceptron"))
    assert search(refitted=True, spaces=("hidden1",)).front(task_for("perceptron"))


@pytest.mark.parametrize("settings", [{"population": 1}, {"generations": 0}, {"patience": 0}, {"penalty": 1}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        GeneticFront(**settings)
