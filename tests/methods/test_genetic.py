"""Genetic search: the fitness of the paper, limits, seeds, and which samples decide."""

from dataclasses import replace
from typing import Any, Literal

import numpy
import pytest
import torch
from torch import nn

from tests.methods.tasks import (
    cut,
    data_for,
    data_of,
    labelled,
    percentage,
    perceptron,
    same_state,
    state_of,
    task_of,
    widths_of,
)
from topiarist.data import Data, Part
from topiarist.errors import DataError, ModelError, SettingsError
from topiarist.methods import Genetic, Proposal, Task, shape
from topiarist.methods.genetic import Search
from topiarist.methods.judging import evaluator_for, subject_of
from topiarist.models.evaluation import count_parameters
from topiarist.randomness import array_generator, generator
from topiarist.surgery import RemoveUnits, remove
from topiarist.tracing import anatomy


def search(**settings: Any) -> Genetic:
    return Genetic(**{"population": 24, "generations": 12, **settings})


def two_layers(network: int = 0, first: int = 8, second: int = 6, **others: Any) -> Task:
    model = perceptron(5, first, second, 3, seed=network)
    return task_of(model, data_for(model, 5, seed=network, wrong=0.3), **others)


def one_layer(network: int = 0, units: int = 12, **others: Any) -> Task:
    model = perceptron(5, units, 3, seed=network)
    return task_of(model, data_for(model, 5, seed=network, wrong=0.3), **others)


def left(task: Task, proposal: Proposal) -> dict[str, int]:
    sizes = {name: space.size for name, space in anatomy(task.model, task.example_input).free.items()}
    for edit in proposal.edits:
        assert isinstance(edit, RemoveUnits)
        sizes = {name: size - len(edit.units.get(name, ())) for name, size in sizes.items()}
    return sizes


@pytest.mark.parametrize("fitness", ["relative", "absolute"])
@pytest.mark.parametrize("penalty", [0.0, 50.0])
def test_fitness_is_accuracy_minus_the_penalty_for_size(
    fitness: Literal["relative", "absolute"], penalty: float
) -> None:
    """Equations 5 and 6 of the paper, with the accuracy of networks that are really cut."""
    task = two_layers()
    subject = subject_of(task, None, training=False)
    random = array_generator(0, "masks")
    masks = random.random((20, 14)) < 0.6
    masks[0], masks[1, :8], masks[2, 8:] = True, False, False
    found = Search([subject], evaluator_for([subject], refitted=False), fitness, penalty)(
        numpy.zeros(20, dtype=numpy.intp), masks
    )
    assert task.held_out is not None
    for mask, value in zip(masks, found.tolist(), strict=True):
        if not mask[:8].any() or not mask[8:].any():
            assert value == -numpy.inf
            continue
        units = {"hidden0": numpy.flatnonzero(~mask[:8]).tolist(), "hidden1": numpy.flatnonzero(~mask[8:]).tolist()}
        accuracy = percentage(remove(task.model, task.example_input, units=units), task.held_out)
        size = float(mask.sum())
        assert value == pytest.approx(accuracy - penalty * (size / 14 if fitness == "relative" else size))


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_no_space_is_ever_emptied(seed: int, published: bool) -> None:
    task = two_layers(seed, 3, 2, seed=seed)
    proposal = search(penalty=500, published=published).propose(task)
    assert min(left(task, proposal).values()) >= 1
    cut(task, proposal.edits)


@pytest.mark.parametrize("make", [one_layer, two_layers])
def test_networks_searched_together_find_what_each_finds_alone(make: Any) -> None:
    tasks = [make(seed, seed=seed) for seed in range(3)]
    method = search(penalty=20)
    assert method.propose_many(tasks) == [method.propose(task) for task in tasks]


def test_networks_with_as_many_units_in_other_layers_find_what_each_finds_alone() -> None:
    tasks = [two_layers(0, 12, 2), two_layers(1, 2, 12)]
    method = search(penalty=500)
    assert method.propose_many(tasks) == [method.propose(task) for task in tasks]


def test_networks_with_other_numbers_of_units_cannot_be_searched_together() -> None:
    with pytest.raises(ModelError, match=r"as many units each; found \[10, 12\]"):
        search().propose_many([one_layer(), one_layer(units=10)])


@pytest.mark.parametrize("settings", [{"penalty": 60}, {"penalty": 20, "published": True}, {"fitness": "refitted"}])
def test_a_seed_decides_the_result(settings: dict[str, Any]) -> None:
    method = search(**settings)
    first, second = (method.propose(one_layer(seed=3)) for _ in range(2))
    assert first == second
    found = {str(method.propose(one_layer(seed=seed)).edits) for seed in range(4)}
    assert len(found) > 1 or settings.get("fitness") == "refitted"


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("limits", [{"parameters": 60}, {"macs": 40}, {"parameters": 70, "macs": 45}])
def test_limits_are_kept(limits: dict[str, int], published: bool) -> None:
    task = two_layers(limits=limits)
    small = cut(task, search(published=published).propose(task).edits)
    widths = widths_of(small)
    macs = 5 * widths["hidden0"] + widths["hidden0"] * widths["hidden1"] + 3 * widths["hidden1"]
    assert count_parameters(small) <= limits.get("parameters", 10**9)
    assert macs <= limits.get("macs", 10**9)


@pytest.mark.parametrize("fitness", ["relative", "absolute"])
def test_a_higher_penalty_leaves_fewer_units(fitness: str) -> None:
    task, factor = one_layer(), 1 if fitness == "relative" else 1 / 12
    sizes = [
        left(task, search(penalty=penalty * factor, fitness=fitness).propose(task))["hidden0"]
        for penalty in (0, 20, 60, 500)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1 < sizes[0]


def other_labels(part: Part | None) -> Part:
    assert part is not None
    return Part(part.x, torch.randint(3, part.y.shape, generator=generator(9, "labels")))


def test_the_published_method_keeps_to_the_training_samples() -> None:
    task, method = two_layers(), search(published=True, penalty=10)
    proposal = method.propose(task)
    assert method.propose(replace(task, held_out=other_labels(task.held_out))) == proposal
    assert method.propose(replace(task, held_out=None)) == proposal
    assert method.propose(replace(task, training=other_labels(task.training))) != proposal


@pytest.mark.parametrize("fitness", ["relative", "refitted"])
def test_ours_keeps_to_the_held_out_samples(fitness: str) -> None:
    task, method = one_layer(), search(penalty=1, fitness=fitness)
    proposal = method.propose(task)
    assert method.propose(replace(task, training=other_labels(task.training))) == proposal
    assert method.propose(replace(task, held_out=other_labels(task.held_out))) != proposal


def test_ours_can_be_judged_on_training_samples_and_is_where_nothing_is_held_out() -> None:
    task = one_layer()
    proposal = search(penalty=10, judged_on="training").propose(task)
    empty = Part(torch.zeros(0, 5), torch.zeros(0, dtype=torch.int64))
    for nothing in (None, empty):
        assert search(penalty=10).propose(replace(task, held_out=nothing)) == proposal


def test_all_units_stay_where_no_subset_is_fitter() -> None:
    model = perceptron(5, 12, 3)
    task = task_of(model, data_for(model, 5, wrong=0.0))
    proposal = search().propose(task)
    assert proposal.edits == () and "all units stay" in proposal.reasons[0]


def score_after(seed: int, *sizes: int) -> tuple[float, float]:
    model = perceptron(*sizes, seed=seed)
    data = data_for(model, sizes[0], wrong=0.5, seed=seed)
    return shape(model, data, Genetic(population=40, generations=20), latency=False).score


def test_without_a_penalty_a_network_never_answers_worse_on_the_samples_that_decide() -> None:
    scores = [score_after(seed, 6, 12, 3) for seed in range(10)]
    assert all(after >= before for before, after in scores)
    assert any(after > before for before, after in scores)


def test_with_several_layers_too_a_network_never_answers_worse() -> None:
    scores = [score_after(seed, 6, 10, 8, 3) for seed in (1, 6, 8, 11)]
    assert all(after >= before for before, after in scores)


def test_published_winners_are_not_refitted() -> None:
    task = one_layer()
    (edit,) = search(published=True, penalty=50).propose(task).edits
    assert isinstance(edit, RemoveUnits) and not edit.refit


@pytest.mark.parametrize("settings", [{"penalty": 50_000}, {"penalty": 2_000, "fitness": "absolute"}])
def test_a_very_high_penalty_leaves_one_unit(settings: dict[str, Any]) -> None:
    task = one_layer()
    assert left(task, search(**settings).propose(task))["hidden0"] == 1


def test_limits_that_no_network_keeps_are_an_error() -> None:
    with pytest.raises(ModelError, match="are the fewest found"):
        search().propose(two_layers(limits={"parameters": 3}))


def test_samples_in_memory_are_needed() -> None:
    with pytest.raises(DataError, match="labelled samples in memory"):
        search().propose(replace(one_layer(), training=None))


def test_streams_are_refused() -> None:
    model = perceptron(5, 6, 3)
    part = labelled(model, torch.zeros(10, 5))
    pairs: Any = list(zip(part.x, part.y, strict=True))
    data = Data.from_datasets(train=pairs, validation=pairs, test=pairs, classes=("a", "b", "c"))
    with pytest.raises(DataError, match="labelled samples in memory"):
        shape(model, data, search(), latency=False)


def test_only_the_last_layer_can_be_refitted() -> None:
    with pytest.raises(ModelError, match="one space, which the last layer reads"):
        search(fitness="refitted").propose(two_layers())
    task = two_layers()
    assert left(task, search(fitness="refitted", penalty=5, spaces=("hidden1",)).propose(task))["hidden0"] == 8


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"penalty": -1}, "penalty must be greater than or equal to 0"),
        ({"published": True, "fitness": "refitted"}, "not the paper's"),
        ({"published": True, "judged_on": "held-out"}, "judged on the training samples"),
        ({"population": 1}, "greater than or equal to 2"),
        ({"generations": 0}, "greater than or equal to 1"),
        ({"fitness": "best"}, "fitness"),
    ],
)
def test_settings_that_make_no_sense_are_one_line(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Genetic(**settings)


def test_a_network_without_units_that_could_go_is_refused() -> None:
    model = nn.Sequential(nn.Linear(5, 3))
    part = labelled(model, torch.zeros(10, 5))
    with pytest.raises(ModelError, match="no units that could go"):
        search().propose(task_of(model, data_of(part, part, part, 3)))


def test_the_network_is_left_as_it_was() -> None:
    task = two_layers()
    task.model.train()
    state = state_of(task.model)
    search(penalty=10).propose(task)
    assert same_state(task.model, state)
    assert all(module.training and not module._forward_pre_hooks for module in task.model.modules())


def test_readings_of_the_published_search_belong_to_it() -> None:
    for reading in ({"elite": "beside"}, {"start": 0.9}):
        with pytest.raises(SettingsError, match="readings of the published method"):
            Genetic(**reading)
    full = Genetic(published=True, start=0.9, generations=1, penalty=0)
    half = Genetic(published=True, generations=1, penalty=0)
    assert full._settings().density == 0.9 and half._settings().density == 0.5
    assert Genetic(published=True, elite="beside")._settings().elite == "beside"
