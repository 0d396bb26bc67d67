"""Which cells are taken together: by the declaration and the data alone."""

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.study.networks import by_code
from topiarist.errors import TopiaristError
from topiarist.study import stacks as stacks_module
from topiarist.study.declaration import Cell, Declaration
from topiarist.study.job import CellStack
from topiarist.study.samples import StudySamples, read_sources
from topiarist.study.stacks import pieces, stacks_of


def made(**declared: Any) -> tuple[Declaration, list[CellStack]]:
    study = Declaration(**{"data": "iris", "training": {"epochs": 2}, **declared})
    return study, stacks_of(study, samples_of(study))


def samples_of(study: Declaration) -> StudySamples:
    return StudySamples(read_sources(study.cells, Path()))


def trainings(stack: CellStack) -> int:
    return len({cell.training_key for cell in stack.cells})


def check_partition(study: Declaration, stacks: list[CellStack]) -> None:
    hashes = [cell.hash for stack in stacks for cell in stack.cells]
    assert sorted(hashes) == sorted(cell.hash for cell in study.cells)
    home = {cell.training_key: stack.number for stack in stacks for cell in stack.cells}
    assert all(home[cell.training_key] == stack.number for stack in stacks for cell in stack.cells)
    assert [stack.number for stack in stacks] == list(range(len(stacks)))
    assert [stack.cost for stack in stacks] == sorted((stack.cost for stack in stacks), reverse=True)
    assert all(stack.cost > 0 for stack in stacks)


@pytest.mark.parametrize("stack", [1, 2, 3, 5, 7, 32])
def test_every_cell_is_in_one_stack_and_a_training_is_never_torn(stack: int) -> None:
    study, stacks = made(
        grid={
            "model.hidden": [[8], [4, 2]],
            "training.learning_rate": [0.1, 0.01],
            "prediction.monte_carlo": [None, 2],
        },
        model={"dropout": 0.1},
        methods=[{}, {"name": "distinctiveness", "keep_fraction": 0.5}],
        folds=3,
        seeds=2,
        stack=stack,
    )
    check_partition(study, stacks)
    assert max(trainings(found) for found in stacks) <= stack
    assert len(stacks) == 2 * -(-12 // stack), "as few as can be, of each of the two networks"
    for found in stacks:
        assert len({cell.settings.model.hidden for cell in found.cells}) == 1
        assert len(found.cells) == 4 * trainings(found), "methods and predictions come along"


def test_what_can_be_trained_as_one_is_together_and_nothing_else() -> None:
    together = {"training.learning_rate": [0.1, 0.01]}
    study, stacks = made(grid=together, folds=3, seeds=2)
    assert len(stacks) == 1 and len(stacks[0].cells) == len(study.cells) == 12
    for path, values in {
        "model.hidden": [[3], [4]],
        "model.activation": ["relu", "selu"],
        "training.epochs": [1, 2],
        "training.batch_size": [8, 16],
        "training.optimizer": ["sgd", "adam"],
        "training.schedule": ["constant", "cosine"],
        "data.location": ["iris", "wine"],
        "data.seed": [0, 1],
        "data.samples": [20, 30],
    }.items():
        assert len(made(grid={path: values}, seeds=2)[1]) == 2, path


def test_stacks_are_the_same_each_time_and_depend_on_nothing_but_the_declaration() -> None:
    declared: dict[str, Any] = {"grid": {"model.hidden": [[8], [4]]}, "folds": 3, "seeds": 3, "stack": 4}
    first, second = made(**declared)[1], made(**declared)[1]
    assert [[cell.hash for cell in stack.cells] for stack in first] == [
        [cell.hash for cell in stack.cells] for stack in second
    ]
    with torch.random.fork_rng():
        torch.default_generator.seed()
        third = made(**declared, name="another")[1]
    assert [[cell.hash for cell in stack.cells] for stack in first] == [
        [cell.hash for cell in stack.cells] for stack in third
    ]


def test_the_order_of_cells_in_a_stack_is_the_order_declared() -> None:
    study, stacks = made(
        grid={"training.learning_rate": [0.1, 0.01]},
        methods=[{}, {"name": "distinctiveness", "keep_fraction": 0.5}],
        seeds=3,
    )
    assert [cell.hash for cell in stacks[0].cells] == [cell.hash for cell in study.cells]


@pytest.mark.parametrize(
    "declared",
    [
        {"model": by_code()},
        {"training": {"phases": [{"epochs": 1, "train_top": 1}, {"epochs": 1}]}},
    ],
)
def test_what_cannot_be_stacked_comes_alone(declared: dict[str, Any]) -> None:
    study, stacks = made(**declared, folds=2, seeds=2, methods=[{}, {"name": "distinctiveness", "keep_fraction": 0.5}])
    check_partition(study, stacks)
    assert [trainings(stack) for stack in stacks] == [1] * 4 and [len(stack.cells) for stack in stacks] == [2] * 4


def test_a_stack_of_large_networks_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = 4 * 10 + 10 + 10 * 3 + 3
    monkeypatch.setattr(stacks_module, "STACKED_NUMBERS", 6 * parameters)
    assert [trainings(stack) for stack in made(model={"hidden": [10]}, seeds=12)[1]] == [6, 6]
    monkeypatch.setattr(stacks_module, "STACKED_NUMBERS", 7 * parameters - 1)
    assert [trainings(stack) for stack in made(model={"hidden": [10]}, seeds=12)[1]] == [6, 6]
    monkeypatch.setattr(stacks_module, "STACKED_NUMBERS", 1)
    assert [trainings(stack) for stack in made(model={"hidden": [10]}, seeds=12)[1]] == [4, 4, 4]
    assert [trainings(stack) for stack in made(model={"hidden": [10]}, seeds=4, stack=3)[1]] == [2, 2]


def test_a_stack_holds_no_more_samples_than_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks_module, "HELD_NUMBERS", 4 * 100 * 3)  # iris: 4 numbers each, 100 of 150 train in 3 folds
    assert [trainings(stack) for stack in made(folds=3, seeds=2)[1]] == [3, 3]
    monkeypatch.setattr(stacks_module, "HELD_NUMBERS", 1)
    assert [trainings(stack) for stack in made(folds=3, seeds=1)[1]] == [1, 1, 1]


def test_what_takes_longest_comes_first() -> None:
    _, stacks = made(grid={"model.hidden": [[2], [900]], "training.epochs": [3, 30, 300]}, seeds=2)
    order = [(cell.settings.model.hidden[0], cell.settings.training.epochs) for cell in (s.cells[0] for s in stacks)]
    assert sorted(order, key=lambda found: (-found[1], -found[0])) == order
    assert stacks[0].cost == pytest.approx(10 * stacks[2].cost)
    _, phased = made(grid={"training.phases": [[{"epochs": 1}], [{"epochs": 4}, {"epochs": 4}]]})
    assert phased[0].cost == pytest.approx(8 * phased[1].cost)


@given(st.integers(1, 200), st.integers(1, 40))
def test_pieces_are_few_and_nearly_equal(count: int, most: int) -> None:
    cells: list[Cell] = list(range(count))  # type: ignore[arg-type]  # only cut, never looked at
    found = pieces(cells, most)
    lengths = [len(piece) for piece in found]
    assert [cell for piece in found for cell in piece] == cells
    assert max(lengths) <= most and max(lengths) - min(lengths) <= 1 and len(found) == -(-count // most)


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"grid": {"model.activation": ["relu", "rely"]}}, "model.activation: must be 'selu', .*; found 'rely'"),
        ({"grid": {"model.hidden": [[3], [3, 0]]}}, "model.hidden.1: must be greater than 0; found 0"),
        ({"grid": {"data.test_fraction": [0.2, 0.0]}}, "configuration 'test_fraction 0': there is no test part"),
        ({"grid": {"data.samples": [20, 2]}}, "configuration 'samples 2': 2 training samples cannot show 3 classes"),
        ({"folds": 100}, "configuration 'as declared': cannot make 100 stratified folds"),
        ({"data": {"location": "iris", "classes": ["setosa", "rose"]}}, "rose"),
        ({"data": {"location": "iris", "classes": ["setosa"]}}, "at least 2 classes"),
        ({"prediction": {"monte_carlo": 3}}, "configuration 'as declared': Monte-Carlo dropout needs"),
        ({"training": {"class_weights": [1, 2]}}, "2 class weights for 3 classes"),
        ({"training": {"device": "abacus"}}, "the device 'abacus' cannot be used"),
        (
            {"data": {"location": "iris", "validation_fraction": 0}, "training": {"early_stopping": 2}},
            "validation part",
        ),
        (
            {"model": by_code(), "grid": {"model.options.kind": ["fine", "cannot be built"]}},
            "configuration 'kind cannot be built': cannot",
        ),
        ({"model": {"code": "tests.study.networks"}}, "module:function"),
        ({"base": {"classes": ["setosa", "virginica"], "epochs": 1, "drop": 4}}, "cannot drop 4 of 1 hidden layers"),
        ({"base": {"classes": ["setosa", "rose"], "epochs": 1}}, "rose"),
    ],
)
def test_every_configuration_is_tried_before_the_first_training(declared: dict[str, Any], said: str) -> None:
    with pytest.raises(TopiaristError, match=said) as caught:
        made(**declared)
    assert "\n" not in str(caught.value)


def test_every_prediction_is_tried_before_the_first_training() -> None:
    with pytest.raises(TopiaristError, match="configuration 'monte_carlo 3': Monte-Carlo dropout needs"):
        made(grid={"prediction.monte_carlo": [None, 3]})


@pytest.mark.parametrize("width", [10**12, 10**30])
def test_a_network_that_is_too_large_is_one_line(width: int) -> None:
    with pytest.raises(TopiaristError, match="configuration"):
        made(model={"hidden": [width]})


@pytest.mark.parametrize("option", ["classes", "input_shape", "reference"])
def test_options_that_the_study_itself_gives_are_refused_in_one_line(option: str) -> None:
    with pytest.raises(TopiaristError, match=option):
        made(model={"code": "tests.study.networks:network", "options": {option: 3}})
