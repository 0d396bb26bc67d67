"""Genetic search: the fitness of the paper, limits, seeds, and which samples decide."""

from typing import Any, Literal

import numpy
import pytest
import torch
from torch import nn

from tests.methods.tasks import (
    NOTHING,
    cut,
    data_for,
    data_of,
    held_out_of,
    labelled,
    percentage,
    perceptron,
    request_for,
    same_state,
    state_of,
    training_of,
    widths_of,
    with_parts,
)
from topiarist.data import Data, Part, Stream
from topiarist.errors import DataError, ModelError, SettingsError
from topiarist.evolution import GeneticSettings
from topiarist.methods import Genetic, Proposal, Request, published, resize
from topiarist.methods.genetic.genetic import FitnessFunction, Fittest, search_fittest
from topiarist.methods.genetic.search import evaluator_for, problem_for
from topiarist.models.evaluation import count_parameters
from topiarist.randomness import array_generator, generator
from topiarist.surgery import RemoveUnits, remove
from topiarist.surgery.choice.costs import Measure
from topiarist.tracing import anatomy

SEARCHES: dict[str, type[Genetic | published.Genetic]] = {"ours": Genetic, "published": published.Genetic}
both = pytest.mark.parametrize("kind", SEARCHES)


def search(kind: str = "ours", **settings: Any) -> Genetic | published.Genetic:
    return SEARCHES[kind](**{"population": 24, "generations": 12, **settings})


def two_layers(network: int = 0, first: int = 8, second: int = 6, **others: Any) -> Request:
    model = perceptron(5, first, second, 3, seed=network)
    return request_for(model, data_for(model, 5, seed=network, wrong=0.3), **others)


def one_layer(network: int = 0, units: int = 12, **others: Any) -> Request:
    model = perceptron(5, units, 3, seed=network)
    return request_for(model, data_for(model, 5, seed=network, wrong=0.3), **others)


def left(request: Request, proposal: Proposal) -> dict[str, int]:
    sizes = {name: space.size for name, space in anatomy(request.model, request.job.example_input).free.items()}
    for edit in proposal.edits:
        assert isinstance(edit, RemoveUnits)
        sizes = {name: size - len(edit.units.get(name, ())) for name, size in sizes.items()}
    return sizes


@pytest.mark.slow
@pytest.mark.parametrize("fitness", ["relative", "absolute"])
@pytest.mark.parametrize("penalty", [0.0, 50.0])
def test_fitness_is_accuracy_minus_the_penalty_for_size(
    fitness: Literal["relative", "absolute"], penalty: float
) -> None:
    """Equations 5 and 6 of the paper, with the accuracy of networks that are really cut."""
    request = two_layers()
    problem = problem_for(request, None, judged_on="held-out")
    random = array_generator(0, "masks")
    masks = random.random((20, 14)) < 0.6
    masks[0], masks[1, :8], masks[2, 8:] = True, False, False
    found = FitnessFunction([problem], evaluator_for([problem], refitted=False), fitness, penalty)(
        numpy.zeros(20, dtype=numpy.intp), masks
    )
    for mask, value in zip(masks, found.tolist(), strict=True):
        if not mask[:8].any() or not mask[8:].any():
            assert value == -numpy.inf
            continue
        units = {"hidden0": numpy.flatnonzero(~mask[:8]).tolist(), "hidden1": numpy.flatnonzero(~mask[8:]).tolist()}
        accuracy = percentage(remove(request.model, request.job.example_input, units=units), held_out_of(request))
        size = float(mask.sum())
        assert value == pytest.approx(accuracy - penalty * (size / 14 if fitness == "relative" else size))


@both
@pytest.mark.parametrize("seed", range(4))
def test_no_space_is_ever_emptied(seed: int, kind: str) -> None:
    request = two_layers(seed, 3, 2, seed=seed)
    proposal = search(kind, penalty=500).propose(request)
    assert min(left(request, proposal).values()) >= 1
    cut(request, proposal.edits)


@pytest.mark.parametrize("make", [one_layer, two_layers])
def test_networks_searched_together_find_what_each_finds_alone(make: Any) -> None:
    requests = [make(seed, seed=seed) for seed in range(3)]
    method = search(penalty=20)
    assert method.propose_many(requests) == [method.propose(request) for request in requests]


def test_networks_with_as_many_units_in_other_layers_find_what_each_finds_alone() -> None:
    requests = [two_layers(0, 12, 2), two_layers(1, 2, 12)]
    method = search(penalty=500)
    assert method.propose_many(requests) == [method.propose(request) for request in requests]


def test_networks_with_other_numbers_of_units_cannot_be_searched_together() -> None:
    with pytest.raises(ModelError, match=r"as many units each; found \[10, 12\]"):
        search().propose_many([one_layer(), one_layer(units=10)])


@pytest.mark.parametrize(
    ("kind", "settings"),
    [("ours", {"penalty": 60}), ("published", {"penalty": 20}), ("ours", {"fitness": "refitted"})],
)
def test_a_seed_decides_the_result(kind: str, settings: dict[str, Any]) -> None:
    method = search(kind, **settings)
    first, second = (method.propose(one_layer(seed=3)) for _ in range(2))
    assert first == second
    found = {str(method.propose(one_layer(seed=seed)).edits) for seed in range(4)}
    assert len(found) > 1 or settings.get("fitness") == "refitted"


@both
@pytest.mark.parametrize("limits", [{"parameters": 60}, {"macs": 40}, {"parameters": 70, "macs": 45}])
def test_limits_are_kept(limits: dict[Measure, int], kind: str) -> None:
    request = two_layers(limits=limits)
    small = cut(request, search(kind).propose(request).edits)
    widths = widths_of(small)
    macs = 5 * widths["hidden0"] + widths["hidden0"] * widths["hidden1"] + 3 * widths["hidden1"]
    assert count_parameters(small) <= limits.get("parameters", 10**9)
    assert macs <= limits.get("macs", 10**9)


@pytest.mark.parametrize("fitness", ["relative", "absolute"])
def test_a_higher_penalty_leaves_fewer_units(fitness: str) -> None:
    request, factor = one_layer(), 1 if fitness == "relative" else 1 / 12
    sizes = [
        left(request, search(penalty=penalty * factor, fitness=fitness).propose(request))["hidden0"]
        for penalty in (0, 20, 60, 500)
    ]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] == 1 < sizes[0]


def other_labels(part: Part) -> Part:
    return Part(part.x, torch.randint(3, part.y.shape, generator=generator(9, "labels")))


def test_the_published_method_keeps_to_the_training_samples() -> None:
    request, method = two_layers(), search("published", penalty=10)
    proposal = method.propose(request)
    assert method.propose(with_parts(request, validation=other_labels(held_out_of(request)))) == proposal
    assert method.propose(with_parts(request, validation=NOTHING)) == proposal
    assert method.propose(with_parts(request, train=other_labels(training_of(request)))) != proposal


@pytest.mark.parametrize("fitness", ["relative", "refitted"])
def test_ours_keeps_to_the_held_out_samples(fitness: str) -> None:
    request, method = one_layer(), search(penalty=1, fitness=fitness)
    proposal = method.propose(request)
    assert method.propose(with_parts(request, train=other_labels(training_of(request)))) == proposal
    assert method.propose(with_parts(request, validation=other_labels(held_out_of(request)))) != proposal


def test_ours_can_be_judged_on_training_samples_and_is_where_nothing_is_held_out() -> None:
    request = one_layer()
    proposal = search(penalty=10, judged_on="training").propose(request)
    assert search(penalty=10).propose(with_parts(request, validation=NOTHING)) == proposal


def test_all_units_stay_where_no_subset_is_fitter() -> None:
    model = perceptron(5, 12, 3)
    request = request_for(model, data_for(model, 5, wrong=0.0))
    proposal = search().propose(request)
    assert proposal.edits == () and "all units stay" in proposal.reasons[0]


def score_after(seed: int, *sizes: int) -> tuple[float, float]:
    model = perceptron(*sizes, seed=seed)
    data = data_for(model, sizes[0], wrong=0.5, seed=seed)
    return resize(model, data, Genetic(population=40, generations=20), latency=False).score


@pytest.mark.slow
def test_without_a_penalty_a_network_never_answers_worse_on_the_samples_that_decide() -> None:
    scores = [score_after(seed, 6, 12, 3) for seed in range(10)]
    assert all(after >= before for before, after in scores)
    assert any(after > before for before, after in scores)


@pytest.mark.slow
def test_with_several_layers_too_a_network_never_answers_worse() -> None:
    scores = [score_after(seed, 6, 10, 8, 3) for seed in (1, 6, 8, 11)]
    assert all(after >= before for before, after in scores)


def test_published_winners_are_not_refitted() -> None:
    request = one_layer()
    (edit,) = search("published", penalty=50).propose(request).edits
    assert isinstance(edit, RemoveUnits) and not edit.refit


@pytest.mark.parametrize("settings", [{"penalty": 50_000}, {"penalty": 2_000, "fitness": "absolute"}])
def test_a_very_high_penalty_leaves_one_unit(settings: dict[str, Any]) -> None:
    request = one_layer()
    assert left(request, search(**settings).propose(request))["hidden0"] == 1


def test_limits_that_no_network_keeps_are_an_error() -> None:
    with pytest.raises(ModelError, match="are the fewest found"):
        search().propose(two_layers(limits={"parameters": 3}))


def streamed(inputs: int) -> Stream:
    """Return samples that are read batch by batch."""
    dataset: Any = [(torch.zeros(inputs), 0)] * 10
    return Stream(dataset)


def test_samples_in_memory_are_needed() -> None:
    with pytest.raises(DataError, match="labelled samples in memory"):
        search().propose(with_parts(one_layer(), train=streamed(5)))


def test_streams_are_refused() -> None:
    model = perceptron(5, 6, 3)
    part = labelled(model, torch.zeros(10, 5))
    pairs: Any = list(zip(part.x, part.y, strict=True))
    data = Data.from_datasets(train=pairs, validation=pairs, test=pairs, classes=("a", "b", "c"))
    with pytest.raises(DataError, match="labelled samples in memory"):
        resize(model, data, search(), latency=False)


def test_only_the_last_layer_can_be_refitted() -> None:
    with pytest.raises(ModelError, match="one space, which the last layer reads"):
        search(fitness="refitted").propose(two_layers())
    request = two_layers()
    assert left(request, search(fitness="refitted", penalty=5, spaces=("hidden1",)).propose(request))["hidden0"] == 8


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"penalty": -1}, "penalty must be greater than or equal to 0"),
        ({"elite": "beside"}, "elite: there is no such setting"),
        ({"start": 0.9}, "start: there is no such setting"),
        ({"published": True}, "published: there is no such setting"),
        ({"population": 1}, "greater than or equal to 2"),
        ({"generations": 0}, "greater than or equal to 1"),
        ({"fitness": "best"}, "fitness"),
    ],
)
def test_settings_that_make_no_sense_are_one_line(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Genetic(**settings)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"fitness": "refitted"}, "fitness must be 'relative' or 'absolute'"),
        ({"judged_on": "held-out"}, "judged_on: there is no such setting"),
        ({"patience": 3}, "patience: there is no such setting"),
        ({"start": 0}, "start must be greater than 0"),
        ({"population": 1}, "greater than or equal to 2"),
    ],
)
def test_settings_that_are_not_the_papers_are_one_line(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        published.Genetic(**settings)


def test_a_network_without_units_that_could_be_removed_is_refused() -> None:
    model = nn.Sequential(nn.Linear(5, 3))
    part = labelled(model, torch.zeros(10, 5))
    with pytest.raises(ModelError, match="no units that could be removed"):
        search().propose(request_for(model, data_of(part, part, part, 3)))


def test_the_network_is_left_as_it_was() -> None:
    request = two_layers()
    request.model.train()
    state = state_of(request.model)
    search(penalty=10).propose(request)
    assert same_state(request.model, state)
    assert all(module.training and not module._forward_pre_hooks for module in request.model.modules())


def settings_used(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> GeneticSettings:
    """Return what the published search asks of the genetic algorithm."""
    used: list[GeneticSettings] = []

    def search_once(problems: Any, fitness: Any, penalty: float, given: GeneticSettings) -> list[Fittest]:
        used.append(given)
        return search_fittest(problems, fitness, penalty, given)

    monkeypatch.setattr("topiarist.methods.published.genetic.search_fittest", search_once)
    published.Genetic(**settings).propose(one_layer())
    return used[0]


def test_the_published_search_is_that_of_the_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    used = settings_used(monkeypatch)
    assert (used.population, used.generations, used.hall_of_fame, used.tournament) == (100, 50, 5, 3)
    assert (used.elite, used.density, used.patience) == ("inside", 0.5, None)


def test_readings_of_the_published_search_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    used = settings_used(monkeypatch, start=0.9, elite="beside", population=4, generations=2)
    assert (used.density, used.elite, used.population, used.generations) == (0.9, "beside", 4, 2)
    assert used.hall_of_fame == 3
