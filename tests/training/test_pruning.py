"""Pruning while training: the paper's schedule and counts, masks that hold whatever happens, and which weights go."""

from collections.abc import Mapping
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from tests.methods.tasks import data_of, drawn, same_state, state_of
from topiarist import models
from topiarist.data import Data, Part
from topiarist.errors import SettingsError
from topiarist.models import card_of, mlp
from topiarist.models.memory_format import channels_last
from topiarist.randomness import generator
from topiarist.storage import serialise
from topiarist.training import History, Phase, Pruning, TrainConfig, train, train_phases
from topiarist.training.engines.pruner import Pruner, prunable

PAPER = Pruning(initial_sparsity=0.1)
SCORES = ("magnitude", "taylor", "movement")
Zeros = dict[str, Tensor]


def in_force(pruning: Pruning, epochs: int, done: int) -> float:
    """Return the sparsity after so many epochs, by the prunings that were made."""
    return max((item for item in pruning.prunings(epochs).items() if item[0] <= done), default=(0, 0.0))[1]


def images(count: int, *shape: int, classes: int = 3) -> Data:
    part = Part(drawn(count, *shape), torch.arange(count) % classes)
    return data_of(part, part, part, classes)


def small_vgg() -> nn.Module:
    return models.vgg(1, 0, 1, 1, input_shape=(1, 8, 8), dropout=0.2, generator=generator(0, "weights"))


def zeros(model: nn.Module) -> Zeros:
    return {name: kernel.detach() == 0 for name, kernel in model.named_parameters() if kernel.ndim > 1}


def count(found: Zeros) -> int:
    return sum(int(mask.sum()) for mask in found.values())


def size(found: Zeros) -> int:
    return sum(mask.numel() for mask in found.values())


def watched(model: nn.Module, data: Data, config: TrainConfig, **others: Any) -> tuple[History, list[Zeros]]:
    """Train, and give what was zero whenever the network was read in training: after each step, and at the end."""
    seen: list[Zeros] = []
    hook = model.register_forward_pre_hook(lambda module, _: seen.append(zeros(module)) if module.training else None)
    history = train(model, data, config, **others)
    hook.remove()
    return history, [*seen, zeros(model)]


def stays(seen: list[Zeros]) -> bool:
    """Return whether what is zero once is zero ever after."""
    return all(bool(after[name][mask].all()) for before, after in pairwise(seen) for name, mask in before.items())


def test_the_papers_schedule_is_the_default_for_400_epochs() -> None:
    settled = Pruning(sparsity=0.8, initial_sparsity=0.1, schedule="polynomial", begin=100, every=10, times=20)
    assert PAPER.prunings(400) == settled.prunings(400)
    assert list(PAPER.prunings(400)) == list(range(100, 301, 10))
    for done in range(400):
        number = min(20, (done - 100) // 10)
        expected = 0.8 + (0.1 - 0.8) * (1 - 10 * number / (20 * 10)) ** 3 if done >= 100 else 0.0
        assert in_force(PAPER, 400, done) == pytest.approx(expected, abs=1e-12), done


def test_the_other_schedules_at_every_epoch() -> None:
    given = {"sparsity": 0.8, "initial_sparsity": 0.1, "begin": 100, "every": 10, "times": 20}
    linear = Pruning.model_validate({**given, "schedule": "linear"})
    constant, once = Pruning(sparsity=0.6, schedule="constant"), Pruning(sparsity=0.6, schedule="one-shot")
    for done in range(400):
        number = min(20, (done - 100) // 10)
        straight = 0.1 + 0.7 * number / 20 if done >= 100 else 0.0
        assert in_force(linear, 400, done) == pytest.approx(straight, abs=1e-12), done
        assert in_force(constant, 400, done) == 0.6
        assert in_force(once, 400, done) == (0.6 if done >= 200 else 0.0), done
    assert Pruning(schedule="linear", initial_sparsity=0.1).prunings(400) == linear.prunings(400)
    for schedule in ("constant", "one-shot"):
        assert Pruning.model_validate({"schedule": schedule, "begin": 7}).prunings(400) == {7: 0.8}


@pytest.mark.parametrize("schedule", ["polynomial", "linear", "constant", "one-shot"])
@pytest.mark.parametrize("epochs", [1, 2, 3, 4, 5, 10, 60])
def test_defaults_end_at_the_asked_sparsity_inside_the_training(epochs: int, schedule: str) -> None:
    config = TrainConfig.model_validate({"epochs": epochs, "pruning": {"schedule": schedule, "sparsity": 0.7}})
    assert config.pruning is not None
    prunings = config.pruning.prunings(epochs)
    assert 0 <= min(prunings) <= max(prunings) < epochs
    assert in_force(config.pruning, epochs, epochs - 1) == 0.7


@pytest.mark.parametrize("schedule", ["polynomial", "linear", "constant", "one-shot"])
def test_of_a_training_that_begins_later_the_default_is_a_share_of_the_rest(schedule: Any) -> None:
    pruning = Pruning(schedule=schedule, sparsity=0.7)
    assert pruning.prunings(40, after=20) == {20 + done: value for done, value in pruning.prunings(20).items()}
    for after in range(20):
        found = TrainConfig(epochs=20, after_epoch=after, pruning=pruning).prunings
        assert after <= min(found) <= max(found) < 20 and found[max(found)] == 0.7


@given(
    st.integers(1, 500),
    st.sampled_from(["polynomial", "linear"]),
    *[st.floats(0, 0.99)] * 2,
    st.none() | st.integers(0, 500),
    st.none() | st.integers(1, 100),
    st.none() | st.integers(0, 40),
)
def test_it_rises_from_the_initial_sparsity_to_the_asked_one(
    epochs: int, schedule: str, one: float, other: float, begin: int | None, every: int | None, times: int | None
) -> None:
    low, high = sorted((one, other))
    steps = {"begin": begin, "every": every, "times": times}
    pruning = Pruning.model_validate({"schedule": schedule, "initial_sparsity": low, "sparsity": high, **steps})
    found = pruning.prunings(epochs)
    values = list(found.values())
    assert list(found) == sorted(found) and values == sorted(values)
    assert values[-1] == high and all(low - 1e-12 <= value <= high for value in values)
    assert begin is None or next(iter(found)) == begin
    assert times is None or len(found) == times + 1
    assert len(values) == 1 or values[0] == pytest.approx(low, abs=1e-12)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"sparsity": 0.5, "initial_sparsity": 0.6}, "initial_sparsity must be at most sparsity, 0.5"),
        ({"schedule": "constant", "every": 2}, "every has no effect on the constant schedule"),
        ({"schedule": "one-shot", "times": 2}, "times has no effect on the one-shot schedule"),
        ({"schedule": "constant", "initial_sparsity": 0.1}, "initial_sparsity has no effect"),
        ({"pattern": (4, 2)}, "found"),
        ({"pattern": (0, 4)}, "makes 2 of 4 weights zero"),
        ({"pattern": (4, 4)}, "makes 2 of 4 weights zero"),
        ({"pattern": (2, 4), "sparsity": 0.5}, "leave out sparsity"),
        ({"pattern": (2, 4), "units": True}, "leave out sparsity"),
        ({"pattern": (2, 4), "scope": "global"}, "leave out sparsity"),
        ({"sparsity": 1.0}, "less than 1"),
        ({"sparsity": -0.1}, "greater than or equal to 0"),
        ({"sparsity": float("nan")}, "finite"),
        ({"begin": -1}, "begin"),
        ({"every": 0}, "every"),
        ({"times": -1}, "times"),
        ({"schedule": "cubic"}, "schedule"),
        ({"score": "size"}, "score"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(settings: Mapping[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said) as caught:
        Pruning(**settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epochs": 10, "pruning": {"begin": 10}}, "after epoch 10, and the training has 10 epochs"),
        ({"epochs": 10, "pruning": {"times": 20}}, "after epoch 22, and the training has 10 epochs"),
        ({"epochs": 10, "pruning": {"schedule": "one-shot", "begin": 12}}, "after epoch 12"),
        ({"epochs": 10, "after_epoch": 5, "pruning": {"begin": 4}}, "pruning begins before the first epoch"),
        ({"epochs": 10, "pruning": {"sparsity": 2}}, "sparsity"),
    ],
)
def test_what_does_not_go_with_the_training_is_refused(settings: Mapping[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        TrainConfig(**settings)


def test_a_network_without_kernels_to_train_is_refused(task: Data) -> None:
    model = mlp([6, 4, 3])
    for kernel in prunable(model).values():
        kernel.requires_grad_(False)
    with pytest.raises(SettingsError, match="there is nothing to prune"):
        train(model, task, TrainConfig(epochs=4, pruning=Pruning()))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"schedule": "constant"},
        pytest.param(
            {"pattern": (2, 4)},
        ),
    ],
)
def test_a_configuration_can_be_written_with_all_its_defaults_and_read(settings: dict[str, Any]) -> None:
    config = TrainConfig(epochs=8, pruning=Pruning(**settings))
    assert TrainConfig(**config.model_dump()) == config
    assert TrainConfig(**config.model_dump(mode="json", exclude_defaults=True)) == config


@pytest.mark.parametrize(
    ("model", "left"),
    [(lambda: models.vgg(2, 2, 3, 3), 17_114), (lambda: models.inception(2, 1, 2), 34_185)],
    ids=["vgg", "inception"],
)
def test_the_papers_networks_keep_the_papers_numbers(model: Any, left: int) -> None:
    """Counted with biases, batch norm and moving averages, as the paper does."""
    network = model()
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.01)  # the biases of units that are dead in so short a training would stay zero
    once = Pruning(schedule="one-shot", begin=0)
    train(network, images(4, 1, 48, 467), TrainConfig(epochs=1, batch_size=2, pruning=once))
    values = [value for value in network.state_dict().values() if value.is_floating_point()]
    assert sum(int((value != 0).sum()) for value in values) == left
    for name, mask in zeros(network).items():
        assert abs(int(mask.sum()) - 0.8 * mask.numel()) < 1, name


def test_the_history_has_the_sparsity_of_each_epoch(task: Data) -> None:
    model, pruning = mlp([6, 12, 3]), Pruning(sparsity=0.75, initial_sparsity=0.1, begin=1, every=2, times=3)
    history, seen = watched(model, task, TrainConfig(epochs=10, batch_size=250, pruning=pruning))
    total = size(seen[-1])
    expected = [round(in_force(pruning, 10, done) * total) for done in range(10)]
    assert [epoch.sparsity for epoch in history.epochs] == [number / total for number in expected]
    assert [count(found) for found in seen] == [*expected, expected[-1]]  # one step an epoch; pruned before it
    assert len(set(expected)) == 5
    plain = train(mlp([6, 12, 3]), task, TrainConfig(epochs=2))
    assert [epoch.sparsity for epoch in plain.epochs] == [None, None]


HARD: dict[str, dict[str, Any]] = {
    "adam": {},
    "adamw": {"optimizer": "adamw", "weight_decay": 0.1},
    "momentum": {"optimizer": "sgd", "momentum": 0.9, "learning_rate": 0.05},
    "nesterov": {"optimizer": "sgd", "momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    "rmsprop": {"optimizer": "rmsprop", "momentum": 0.5, "weight_decay": 0.01, "weight_decay_on": "all"},
    "clipped": {"clip_norm": 0.1, "clip_value": 0.01, "schedule": "one-cycle"},
    "global": {"pruning": {"sparsity": 0.75, "scope": "global"}},
    "taylor": {"pruning": {"sparsity": 0.75, "score": "taylor"}},
    "movement": {"pruning": {"sparsity": 0.75, "score": "movement"}},
    "movement, global": {"pruning": {"sparsity": 0.75, "score": "movement", "scope": "global"}},
    "linear": {"pruning": {"sparsity": 0.75, "schedule": "linear", "score": "taylor"}},
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", HARD)
@pytest.mark.parametrize("network", ["perceptron", "vgg"])
def test_masks_hold_at_every_step_and_nothing_comes_back(task: Data, kind: str, network: str) -> None:
    model, data = (mlp([6, 12, 3]), task) if network == "perceptron" else (small_vgg(), images(12, 1, 8, 8))
    config = TrainConfig(**{"epochs": 8, "batch_size": 6, "pruning": {"sparsity": 0.75}, **HARD[kind]})
    history, seen = watched(model, data, config)
    assert config.pruning is not None
    total, last = size(seen[-1]), max(config.pruning.prunings(8))
    assert stays(seen) and count(seen[-1]) == round(0.75 * total)
    assert [epoch.sparsity for epoch in history.epochs[last:]] == [round(0.75 * total) / total] * (8 - last)
    assert all(not mask.all() for mask in seen[-1].values())


@pytest.mark.parametrize("score", SCORES)
def test_no_weight_comes_back_however_the_counts_are_rounded(score: Any) -> None:
    """At 89.6 % the layers of 64, 128 and 24 weights lose 57, 115 and 22 of them; at 90 %, 58, 115 and 21."""
    model = mlp([4, 16, 8, 3], generator=generator(0, "weights"))
    config = TrainConfig(epochs=10, batch_size=6, pruning=Pruning(sparsity=0.9, score=score))
    _, seen = watched(model, images(6, 4), config)
    assert count(seen[-1]) == round(0.9 * 216)
    assert stays(seen)


def test_a_pattern_is_reached_step_by_step() -> None:
    model = small_vgg()
    history, seen = watched(model, images(6, 1, 8, 8), TrainConfig(epochs=8, pruning=Pruning(pattern=(2, 4))))
    assert stays(seen)
    for mask in seen[-1].values():
        rows = mask.flatten(1)
        whole = rows.shape[1] // 4 * 4
        assert bool((rows[:, :whole].reshape(-1, 4).sum(dim=1) == 2).all()) and not rows[:, whole:].any()
    assert history.epochs[-1].sparsity == count(seen[-1]) / size(seen[-1])


@pytest.mark.parametrize("best", ["first", "last"])
def test_early_stopping_never_restores_an_epoch_before_the_last_pruning(task: Data, best: str) -> None:
    calls: list[int] = []

    def score(_: nn.Module) -> float:
        calls.append(len(calls))
        return float(-calls[-1] if best == "first" else calls[-1])

    model, pruning = mlp([6, 12, 3]), Pruning(sparsity=0.5)
    last = max(pruning.prunings(10))
    config = TrainConfig(epochs=10, early_stopping=1, pruning=pruning)
    history, seen = watched(model, task, config, score=score)
    assert last == 8 and history.kept_epoch == (9 if best == "first" else 10) and len(history) == 10
    assert stays(seen) and count(seen[-1]) == size(seen[-1]) // 2


def test_a_rate_that_diverges_leaves_the_masks_as_they_are(task: Data) -> None:
    model, before = mlp([6, 12, 3]), mlp([6, 12, 3])
    config = TrainConfig(epochs=4, optimizer="sgd", learning_rate=1e30, pruning=Pruning(schedule="constant"))
    with pytest.warns(UserWarning, match="in epoch 1: the weights of epoch 0 are kept"):
        train(model, task, config)
    found = zeros(model)
    assert count(found) == round(0.8 * size(found))
    for name, parameter in before.named_parameters():
        kept = ~found[name] if name in found else torch.ones_like(parameter, dtype=torch.bool)
        assert torch.equal(model.get_parameter(name)[kept], parameter[kept])


def test_divergence_in_the_epoch_of_a_pruning_leaves_the_masks_as_they_are(task: Data) -> None:
    model, broken = mlp([6, 12, 3]), [False]
    kept: list[nn.Module] = []

    def spoil(number: int, _: object) -> None:
        broken[0] = number == 3
        kept.append(deepcopy(model))

    handle = model.register_forward_hook(lambda module, inputs, output: output * float("nan") if broken[0] else None)
    pruning = Pruning(sparsity=0.5, schedule="linear", begin=1, every=1, times=3)
    with pytest.warns(UserWarning, match="in epoch 4"):
        history = train(model, task, TrainConfig(epochs=6, pruning=pruning), on_epoch=spoil)
    handle.remove()
    assert (history.diverged_epoch, history.kept_epoch) == (4, 3)
    now, third = zeros(model), zeros(kept[2])
    assert stays([third, now]) and count(now) >= count(third) > 0
    for name, mask in now.items():
        assert torch.equal(model.get_parameter(name)[~mask], kept[2].get_parameter(name)[~mask])


def test_frozen_layers_biases_and_norms_are_left_alone(task: Data) -> None:
    model = mlp([6, 12, 8, 3], batch_norm=True)
    model.get_submodule("hidden0").requires_grad_(False)
    frozen, before = state_of(model.get_submodule("hidden0")), state_of(model)
    pruner = Pruner(model, Pruning(), {0: 0.8}, example_input=torch.zeros(2, 6))
    pruner.before_epoch(0)
    pruned = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert pruned == {"hidden1.weight", "output.weight"}
    train(model, task, TrainConfig(epochs=4, pruning=Pruning(schedule="constant")))
    assert same_state(model.get_submodule("hidden0"), frozen)
    assert count(zeros(model)) == round(0.8 * (12 * 8 + 8 * 3))


def test_norms_of_several_dimensions_are_left_alone() -> None:
    assert list(prunable(nn.Sequential(nn.LayerNorm([4, 5]), nn.Flatten(), nn.Linear(20, 2)))) == ["2.weight"]


PHASES = [Phase(epochs=4, train_top=1), Phase(epochs=4)]


def test_a_training_in_phases_does_not_prune(task: Data) -> None:
    with pytest.raises(SettingsError, match="a training in phases does not prune"):
        train_phases(mlp([6, 12, 3]), task, PHASES, TrainConfig(pruning=Pruning()))


class Stopped(Exception):  # noqa: N818  # what a user's Ctrl-C is, not an error
    pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "stop_after"),
    [
        *[({}, stop_after) for stop_after in (1, 4, 7)],
        *[({"score": score}, 4) for score in ("taylor", "movement")],
        ({"units": True, "score": "taylor"}, 5),
        ({"pattern": (2, 4), "score": "movement"}, 5),
    ],
    ids=str,
)
def test_an_interrupted_training_ends_with_the_same_bits(
    tmp_path: Path, settings: dict[str, Any], stop_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topiarist.training.checkpoint.Checkpoint.due", True)
    data, path = images(9, 1, 8, 8), tmp_path / "run.checkpoint"
    config = TrainConfig(epochs=8, batch_size=5, learning_rate=0.01, early_stopping=8, pruning=Pruning(**settings))
    whole = small_vgg()
    expected = train(whole, data, config)

    def stop(number: int, _: object) -> None:
        if number == stop_after + 1:
            raise Stopped

    with pytest.raises(Stopped):
        train(small_vgg(), data, config, checkpoint=path, on_epoch=stop)
    resumed, epochs = small_vgg(), list[int]()
    assert train(resumed, data, config, checkpoint=path, on_epoch=lambda at, _: epochs.append(at)) == expected
    assert epochs == list(range(stop_after + 1, 9))
    assert same_state(resumed, state_of(whole)) and count(zeros(whole)) > 0


def test_a_pruned_network_is_saved_packed_and_remembers_its_training(task: Data) -> None:
    model = mlp([6, 12, 3])
    train(model, task, TrainConfig(epochs=4))
    assert card_of(model).bits is None
    train(model, task, TrainConfig(epochs=4, pruning=Pruning(sparsity=0.5)))
    assert card_of(model).bits == 32
    assert TrainConfig(**(card_of(model).training or {})) == TrainConfig(epochs=4, pruning=Pruning(sparsity=0.5))


def linear_pruner(score: Any, sparsity: float, weight: list[float]) -> tuple[Pruner, Tensor]:
    layer = nn.Linear(len(weight), 1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([weight]))
    prunings = {1: sparsity / 2, 2: sparsity}
    return Pruner(layer, Pruning(score=score), prunings, example_input=torch.zeros(1, len(weight))), layer.weight


@pytest.mark.parametrize(
    ("score", "first", "second"),
    [
        ("magnitude", {0}, {0, 1}),  # |w|
        ("taylor", {3}, {3, 2}),  # Σ|w·g| is 2, 4, 3, 0; then, of the step since, 1, 4, 0
        ("movement", {2}, {2, 1}),  # −Σw·g is 2, 0, −3, 0; then 3, −4, and 20
    ],
)
def test_scores_by_hand(score: str, first: set[int], second: set[int]) -> None:
    pruner, weight = linear_pruner(score, 0.5, [1.0, -2.0, 3.0, 4.0])

    def step(*gradient: float) -> None:
        weight.grad = torch.tensor([gradient])
        pruner.after_backward()

    step(-1.0, 1.0, 0.5, 0.0)  # w·g: −1, −2, 1.5, 0
    step(-1.0, -1.0, 0.5, 0.0)  # w·g: −1, 2, 1.5, 0
    pruner.before_epoch(1)
    assert set(weight[0].detach().eq(0).nonzero().flatten().tolist()) == first
    step(-1.0, -2.0, 0.0, -5.0)  # w·g: −1, 4, 0, −20 of those that are left
    pruner.before_epoch(2)
    assert set(weight[0].detach().eq(0).nonzero().flatten().tolist()) == second


@pytest.mark.parametrize("score", SCORES)
def test_scores_in_training_are_those_of_a_plain_loop(task: Data, score: Any) -> None:
    assert isinstance(task.train, Part)
    x, y = task.train.x.double(), task.train.y
    model, plain = mlp([6, 3]).double(), mlp([6, 3]).double()
    kernel = plain.get_parameter("output.weight")
    optimizer, total = torch.optim.SGD(plain.parameters(), lr=0.1), torch.zeros(3, 6, dtype=torch.float64)
    for _ in range(3):
        optimizer.zero_grad()
        functional.cross_entropy(plain(x), y).backward()  # type: ignore[no-untyped-call]
        assert kernel.grad is not None
        change = (kernel * kernel.grad).detach()
        total += change.abs() if score == "taylor" else -change
        optimizer.step()
    ranks = kernel.detach().abs() if score == "magnitude" else total
    expected = ranks <= ranks.flatten().sort().values[8]
    pruning = Pruning(sparsity=0.5, schedule="one-shot", begin=3, score=score)
    settings = {"optimizer": "sgd", "learning_rate": 0.1, "batch_size": len(x)}
    train(model, task, TrainConfig(epochs=4, pruning=pruning, **settings))
    assert torch.equal(zeros(model)["output.weight"], expected)


def test_before_the_first_step_every_score_goes_by_magnitude() -> None:
    for score in SCORES:
        pruner, weight = linear_pruner(score, 0.5, [1.0, -0.5, 3.0, 4.0])
        pruner.before_epoch(1)
        assert weight[0].detach().eq(0).tolist() == [False, True, False, False]


def test_where_the_channels_lie_in_memory_changes_no_bit() -> None:
    data, config = images(9, 1, 8, 8), TrainConfig(epochs=3, batch_size=5, early_stopping=2)
    usual, other = small_vgg(), small_vgg()
    for module in other.modules():
        if isinstance(module, nn.Conv2d):
            module.weight.data = module.weight.data.contiguous(memory_format=torch.channels_last)
    inside: list[bool] = []
    kernel = usual.get_parameter("convolution2_0.weight")
    train(usual, data, config, on_epoch=lambda *_: inside.append(kernel.is_contiguous()))
    train(other, data, config)
    assert inside == [False] * 3
    assert same_state(usual, state_of(other))
    assert all(value.is_contiguous() for value in usual.state_dict().values())
    assert not other.get_parameter("convolution2_0.weight").is_contiguous()  # as the user had it


def test_nothing_but_the_place_in_memory_is_changed_for_a_training() -> None:
    model, before = small_vgg(), state_of(small_vgg())
    with channels_last([model], torch.zeros(2, 1, 8, 8)):
        assert same_state(model, before)
        assert not model.get_parameter("convolution2_0.weight").is_contiguous()
    assert same_state(model, before) and serialise(model) == serialise(small_vgg())


class Viewing(nn.Module):
    """Flattens by `view`, as many a network does."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)
        self.head = nn.Linear(4 * 6 * 6, 3)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.convolution(x).view(len(x), -1))
        return logits


def test_a_network_that_flattens_by_view_can_be_trained() -> None:
    assert len(train(Viewing(), images(6, 3, 8, 8), TrainConfig(epochs=2))) == 2


def test_kernels_lie_as_they_did_also_after_a_training_that_failed() -> None:
    model = small_vgg()
    parameters = list(model.parameters())

    def stop(*_: object) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        train(model, images(9, 1, 8, 8), TrainConfig(epochs=3, pruning=Pruning(schedule="constant")), on_epoch=stop)
    assert all(value.is_contiguous() for value in model.state_dict().values())
    assert all(one is other for one, other in zip(model.parameters(), parameters, strict=True))


def test_a_training_without_epochs_cannot_prune() -> None:
    with pytest.raises(SettingsError, match="the last pruning is after epoch 0, and the training has 0 epochs"):
        TrainConfig(epochs=0, pruning=Pruning())
