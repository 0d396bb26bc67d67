"""The training loop: early stopping, divergence, resuming, datasets, one seed one result."""

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset, TensorDataset

from topiarist.data import Data, Part
from topiarist.errors import DataError, ModelError, SettingsError
from topiarist.models import card_of, mlp
from topiarist.tasks import Classification
from topiarist.training import History, TrainConfig, train, train_many
from topiarist.training.inference import part_logits
from topiarist.training.loop import OnEpoch
from topiarist.training.metrics import accuracy, log_loss


class Convolutional(nn.Module):
    """A user's own network, with noise of its own."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.default_generator.manual_seed(5)
            self.convolution = nn.Conv1d(1, 4, 3)
            self.norm = nn.BatchNorm1d(4)
            self.head = nn.Linear(16, 3)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.norm(self.convolution(x[:, None])).relu()
        logits: Tensor = self.head(self.dropout(hidden.flatten(1)))
        return logits


def weights(model: nn.Module) -> list[Tensor]:
    return [value.clone() for value in model.state_dict().values()]


def same(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


def fresh(kind: str) -> nn.Module:
    return mlp([6, 12, 3], dropout=0.2) if kind == "ours" else Convolutional()


@pytest.mark.parametrize("kind", ["ours", "users"])
def test_the_same_seed_gives_the_same_bits_and_another_does_not(task: Data, kind: str) -> None:
    results = []
    for seed in (0, 0, 1):
        model = fresh(kind)
        state = torch.get_rng_state()
        train(model, task, TrainConfig(epochs=3, seed=seed))
        assert torch.equal(torch.get_rng_state(), state)
        assert not any(module.training for module in model.modules())
        results.append(weights(model))
    assert same(results[0], results[1]) and not same(results[0], results[2])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ours", "users"])
def test_it_learns(task: Data, kind: str) -> None:
    model = fresh(kind)
    history = train(model, task, TrainConfig(epochs=60, learning_rate=0.01))
    assert history.epochs[-1].train_loss < history.epochs[0].train_loss / 2
    assert accuracy(*part_logits(model, task.test)) > 0.8


def test_early_stopping_restores_the_best_weights(task: Data) -> None:
    model = mlp([6, 30, 3])
    history = train(model, task, TrainConfig(epochs=300, learning_rate=0.02, early_stopping=4))
    losses = [epoch.validation_loss for epoch in history.epochs]
    best = min(loss for loss in losses if loss is not None)
    assert losses.index(best) + 1 == history.kept_epoch == len(history) - 4
    assert "no improvement in 4 epochs" in history.stopped
    assert log_loss(*part_logits(model, task.validation)) == pytest.approx(best)


@pytest.mark.parametrize("kind", ["ours", "users"])
def test_a_score_of_the_users_own_is_watched(task: Data, kind: str) -> None:
    seen: list[float] = []

    def score(model: nn.Module) -> float:
        seen.append(-abs(len(seen) - 2.0))  # best at the third epoch
        assert isinstance(model(torch.zeros(1, 6)), Tensor)
        return seen[-1]

    history = train(fresh(kind), task, TrainConfig(epochs=50, early_stopping=3), score=score)
    assert history.kept_epoch == 3 and len(history) == 6
    assert [epoch.monitored for epoch in history.epochs] == seen


@pytest.mark.parametrize("kind", ["ours", "users"])
def test_divergence_stops_and_keeps_the_last_good_weights(task: Data, kind: str) -> None:
    model = fresh(kind)
    before = weights(model)
    with pytest.warns(UserWarning, match="in epoch 1: the weights of epoch 0 are kept"):
        history = train(model, task, TrainConfig(epochs=9, optimizer="sgd", learning_rate=1e30))
    assert history.diverged_epoch == 1 and len(history) == 0
    assert same(weights(model), before)


def test_divergence_later_keeps_the_weights_of_the_epoch_before(task: Data) -> None:
    calm = TrainConfig(epochs=2)
    reference, model = mlp([6, 8, 3]), mlp([6, 8, 3])
    train(reference, task, calm)

    def spoil(number: int, _: object) -> None:
        if number == 2:
            broken[0] = True

    broken = [False]
    handle = model.register_forward_hook(lambda module, inputs, output: output * float("nan") if broken[0] else None)
    with pytest.warns(UserWarning, match="in epoch 3"):
        history = train(model, task, TrainConfig(epochs=5), on_epoch=spoil)
    handle.remove()
    assert history.diverged_epoch == 3 and history.kept_epoch == 2
    torch.testing.assert_close(weights(model), weights(reference))


class Stopped(Exception):  # noqa: N818  # what a user's Ctrl-C is, not an error
    pass


def stop_at(epoch: int) -> OnEpoch:
    def stop(number: int, _: object) -> None:
        if number == epoch:
            raise Stopped

    return stop


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ours", "users"])
@pytest.mark.parametrize("settings", [{"early_stopping": 3}, {"schedule": "cosine"}, {"optimizer": "rmsprop"}])
@pytest.mark.parametrize("stop_after", [1, 7])
def test_an_interrupted_training_ends_with_the_same_weights(
    task: Data, tmp_path: Path, kind: str, settings: dict[str, object], stop_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topiarist.training.checkpoint.Checkpoint.due", True)
    config = TrainConfig.model_validate({"epochs": 15, "learning_rate": 0.02, **settings})
    whole = fresh(kind)
    expected = train(whole, task, config)

    path = tmp_path / "run.checkpoint"
    with pytest.raises(Stopped):
        train(fresh(kind), task, config, checkpoint=path, on_epoch=stop_at(stop_after + 1))
    assert path.exists()
    resumed = fresh(kind)
    epochs: list[int] = []
    history = train(resumed, task, config, checkpoint=path, on_epoch=lambda number, _: epochs.append(number))
    assert history == expected
    assert epochs == list(range(stop_after + 1, len(expected) + 1))
    assert same(weights(resumed), weights(whole))
    assert not path.exists()


@pytest.mark.slow
def test_an_interrupted_stack_ends_with_the_same_weights(
    task: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topiarist.training.checkpoint.Checkpoint.due", True)
    config = TrainConfig(epochs=40, learning_rate=0.03, early_stopping=2)
    configs = [config.model_copy(update={"seed": number}) for number in range(4)]
    folds = task.folds(4, validation_fraction=0.2)
    whole = [mlp([6, 10, 3], batch_norm=True) for _ in range(4)]
    expected = train_many(whole, folds, configs)
    lengths = sorted(len(history) for history in expected)
    assert lengths[0] < lengths[-1]

    path = tmp_path / "stack.checkpoint"
    with pytest.raises(Stopped):
        train_many(
            [mlp([6, 10, 3], batch_norm=True) for _ in range(4)],
            folds,
            configs,
            checkpoint=path,
            on_epoch=stop_at(lengths[0] + 1),
        )
    resumed = [mlp([6, 10, 3], batch_norm=True) for _ in range(4)]
    assert train_many(resumed, folds, configs, checkpoint=path) == expected
    assert all(same(weights(one), weights(other)) for one, other in zip(resumed, whole, strict=True))


def test_a_checkpoint_of_another_training_is_not_taken_up(
    task: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.checkpoint"
    path.write_bytes(b"")
    with pytest.raises(ModelError, match=r"cannot read .*run\.checkpoint: .*; remove .* to start over"):
        train(mlp([6, 3]), task, TrainConfig(epochs=2), checkpoint=path)
    path.unlink()
    monkeypatch.setattr("topiarist.training.checkpoint.Checkpoint.due", True)
    with pytest.raises(Stopped):
        train(mlp([6, 3]), task, TrainConfig(epochs=4), checkpoint=path, on_epoch=stop_at(3))
    other, reference = mlp([6, 3]), mlp([6, 3])
    train(other, task, TrainConfig(epochs=4, seed=9), checkpoint=path)
    train(reference, task, TrainConfig(epochs=4, seed=9))
    assert same(weights(other), weights(reference))


def test_a_checkpoint_of_other_initial_weights_is_not_taken_up(
    task: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topiarist.training.checkpoint.Checkpoint.due", True)
    path, config = tmp_path / "run.checkpoint", TrainConfig(epochs=4)
    with pytest.raises(Stopped):
        train(mlp([6, 3]), task, config, checkpoint=path, on_epoch=stop_at(3))
    other, reference = (mlp([6, 3], generator=torch.Generator().manual_seed(8)) for _ in range(2))
    train(other, task, config, checkpoint=path)
    train(reference, task, config)
    assert same(weights(other), weights(reference))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ours", "users"])
def test_the_same_call_goes_on_in_the_same_process_too(
    task: Data, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topiarist.training.checkpoint.Checkpoint.due", True)
    path, config = tmp_path / "run.checkpoint", TrainConfig(epochs=6)
    models, reference = [fresh(kind), fresh(kind)], [fresh(kind), fresh(kind)]
    seen: list[int] = []

    def stop_late(number: int, _: object) -> None:
        seen.append(number)
        if len(seen) == (3 if kind == "ours" else 9):
            raise Stopped

    with pytest.raises(Stopped):
        train_many(models, task, config, checkpoint=path, on_epoch=stop_late)
    assert all(same(weights(model), weights(fresh(kind))) for model in models)
    seen.clear()
    train_many(models, task, config, checkpoint=path, on_epoch=lambda number, _: seen.append(number))
    assert seen == [3, 4, 5, 6]
    train_many(reference, task, config)
    assert all(same(weights(one), weights(other)) for one, other in zip(models, reference, strict=True))
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_needs_a_folder(task: Data, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no folder"):
        train(mlp([6, 3]), task, checkpoint=tmp_path / "none" / "run.checkpoint")


@pytest.mark.parametrize("kind", ["ours", "users"])
def test_on_epoch_sees_the_weights_of_the_epoch(task: Data, kind: str) -> None:
    model, seen = fresh(kind), []
    train(model, task, TrainConfig(epochs=3), on_epoch=lambda *_: seen.append(weights(model)))
    assert not same(seen[0], seen[1]) and same(seen[2], weights(model))


@pytest.mark.parametrize("kind", ["ours", "users"])
def test_a_score_sees_the_network_as_at_test_time_and_changes_nothing(task: Data, kind: str) -> None:
    def score(model: nn.Module) -> float:
        torch.rand(7)
        return float(model(torch.ones(4, 6)).std())

    models = [fresh(kind), fresh(kind), fresh(kind)]
    histories = [train(model, task, TrainConfig(epochs=3), score=score) for model in models[:2]]
    train(models[2], task, TrainConfig(epochs=3))
    assert histories[0] == histories[1]
    assert same(weights(models[0]), weights(models[2]))


class Embedding(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.head(self.table(x).mean(dim=1))
        return logits


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8])
def test_whole_numbers_stay_so_and_pixels_become_real(dtype: torch.dtype) -> None:
    x, y = torch.randint(5, (40, 3), generator=torch.Generator().manual_seed(0)).to(dtype), torch.arange(40) % 2
    part, dataset = Part(x, y), TensorDataset(x, y)
    kept = Data(name="", task=Classification(("a", "b")), input_shape=(3,), train=part, validation=part, test=part)
    read = Data.from_datasets(train=dataset, validation=dataset, test=dataset, classes=("a", "b"))
    model: nn.Module = Embedding() if dtype == torch.int64 else nn.Sequential(nn.Linear(3, 2))
    for data in (kept, read):
        assert len(train(model, data, TrainConfig(epochs=2))) == 2


@pytest.mark.parametrize(
    ("y", "said"),
    [(torch.arange(40), "from 0 to 1"), (torch.zeros(40), "int64"), (torch.zeros(40, 1, dtype=torch.int64), "shape")],
)
def test_labels_are_class_numbers(y: Tensor, said: str) -> None:
    x = torch.zeros(40, 3)
    part, dataset = Part(x, y), TensorDataset(x, y)
    kept = Data(name="", task=Classification(("a", "b")), input_shape=(3,), train=part, validation=part, test=part)
    read = Data.from_datasets(train=dataset, validation=dataset, test=dataset, classes=("a", "b"))
    for data in (kept, read):
        with pytest.raises(DataError, match=said):
            train(mlp([3, 2]), data, TrainConfig(epochs=1))


class Remembering(nn.Module):
    """Has state that is no tensor, and keeps a tensor from its first pass."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(6, 3)
        self.kept: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        if self.kept is None:
            self.kept = torch.ones_like(x[:1])
        logits: Tensor = self.layer(x * self.kept)
        return logits

    def get_extra_state(self) -> dict[str, int]:
        return {"version": 3}

    def set_extra_state(self, state: dict[str, int]) -> None:
        assert state["version"] == 3


def test_a_network_with_a_memory_of_its_own(task: Data) -> None:
    assert len(train(Remembering(), task, TrainConfig(epochs=3, early_stopping=2))) == 3


def test_what_is_frozen_or_kept_in_eval_stays_so(task: Data) -> None:
    model = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4, affine=False), nn.Linear(4, 3))
    model[0].requires_grad_(False)
    model[1].eval()
    before = weights(model)
    train(model, task, TrainConfig(epochs=2))
    assert same(weights(model)[:4], before[:4]) and not same(weights(model)[5:], before[5:])


def test_the_last_gradients_are_gone(task: Data) -> None:
    model = fresh("users")
    train(model, task, TrainConfig(epochs=1))
    assert all(parameter.grad is None for parameter in model.parameters())


def streamed(task: Data) -> Data:
    def dataset(part: object) -> Dataset[tuple[Tensor, ...]]:
        assert isinstance(part, Part)
        return TensorDataset(part.x, part.y)

    return Data.from_datasets(
        train=dataset(task.train), validation=dataset(task.validation), test=dataset(task.test), classes=task.classes
    )


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"class_weights": "balanced", "early_stopping": 5}])
def test_datasets_are_read_batch_by_batch(task: Data, settings: dict[str, object]) -> None:
    data = streamed(task)
    assert data.input_shape == (6,)
    models = [fresh("users"), fresh("users")]
    config = TrainConfig.model_validate({"epochs": 12, "learning_rate": 0.01, **settings})
    histories = [train(model, data, config) for model in models]
    assert histories[0] == histories[1] and same(weights(models[0]), weights(models[1]))
    assert accuracy(*part_logits(models[0], data.test)) > 0.7


@pytest.mark.parametrize("stacked", [True, False])
def test_no_epochs_leave_the_network_as_it_was(task: Data, stacked: bool) -> None:
    model = mlp([6, 4, 3])
    before = weights(model)
    history = train_many([model], task, TrainConfig(epochs=0), stacked=stacked)[0]
    assert len(history) == 0 and history.kept_epoch == 0
    assert same(weights(model), before)


def test_balanced_weights_help_the_rare_class() -> None:
    random = torch.Generator().manual_seed(0)
    x = torch.cat([torch.randn(300, 2, generator=random), torch.randn(20, 2, generator=random) + 1.0])
    data = Data.from_arrays(x.numpy(), [0] * 300 + [1] * 20, scaling="zscore")
    recall = []
    for wanted in (None, "balanced"):
        model = mlp([2, 8, 2])
        train(model, data, TrainConfig.model_validate({"epochs": 40, "class_weights": wanted}))
        logits, y = part_logits(model, data.train)
        recall.append((logits.argmax(dim=1)[y == 1] == 1).double().mean().item())
    assert recall[1] > recall[0] + 0.2


def test_the_card_says_what_the_network_is_for(task: Data) -> None:
    model = mlp([6, 3])
    train(model, task, TrainConfig(epochs=1))
    card = card_of(copy.deepcopy(model))
    assert (card.classes, card.input_shape) == (task.classes, (6,))
    assert card.preprocessing == task.preprocessing and card.rule == task.rule is not None


def test_history_survives_json(task: Data) -> None:
    history = train(mlp([6, 3]), task, TrainConfig(epochs=2, early_stopping=1))
    assert History.from_json(history.to_json()) == history


def made_in_inference_mode() -> nn.Module:
    with torch.inference_mode():
        return nn.Linear(6, 3)


@pytest.mark.parametrize(
    ("model", "settings", "error", "said"),
    [
        (mlp([6, 4]), {}, ModelError, "must return 3 logits"),
        (mlp([5, 3]), {}, ModelError, r"cannot read samples of shape \(6,\)"),
        (mlp([6, 3]), {"class_weights": (1.0, 2.0)}, SettingsError, "2 class weights for 3 classes"),
        (mlp([6, 4, 3], batch_norm=True), {"batch_size": 1}, SettingsError, "batch norm"),
        (mlp([6, 3]), {"device": "nonsense"}, SettingsError, "nonsense"),
        (mlp([6, 3]), {"device": "meta"}, SettingsError, "meta"),
        (mlp([6, 3]).requires_grad_(False), {}, SettingsError, "nothing to train"),
        (nn.Sequential(nn.LazyLinear(3)), {}, ModelError, "has no values yet"),
        (made_in_inference_mode(), {}, ModelError, "inference mode"),
        (nn.Sequential(nn.Flatten(3), nn.Linear(6, 3)), {}, ModelError, "cannot read samples"),
    ],
)
def test_what_cannot_be_trained_is_one_line(
    task: Data, model: nn.Module, settings: dict[str, object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said) as caught:
        train(model, task, TrainConfig.model_validate(settings))
    assert "\n" not in str(caught.value)


def test_early_stopping_needs_something_to_watch() -> None:
    data = Data.from_arrays(
        [[0.0], [1.0], [0.1], [0.9]], [0, 1, 0, 1], validation_fraction=0.0, test_fraction=0.0, scaling="zscore"
    )
    with pytest.raises(SettingsError, match="early stopping needs a validation part"):
        train(mlp([1, 2]), data, TrainConfig(early_stopping=1))
    with pytest.raises(SettingsError, match="performance scheduling needs a validation part"):
        train(mlp([1, 2]), data, TrainConfig.model_validate({"schedule": "performance"}))
    assert train(mlp([1, 2]), data, TrainConfig(early_stopping=2), score=lambda _: 1.0).kept_epoch == 1


def test_nothing_to_train_on(task: Data) -> None:
    empty = Part(torch.empty(0, 6), torch.empty(0, dtype=torch.int64))
    data = Data(
        name="empty", task=Classification(("a", "b")), input_shape=(6,), train=empty, validation=empty, test=empty
    )
    with pytest.raises(DataError, match="no training samples"):
        train(mlp([6, 2]), data)
    with pytest.raises(SettingsError, match="one data set and one configuration"):
        train_many([mlp([6, 3])], [task, task], TrainConfig())


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"epochs": -1},
        {"batch_size": 0},
        {"learning_rate": 0},
        {"learning_rate": float("nan")},
        {"optimizer": "lion"},
        {"momentum": 0.9},
        {"nesterov": True, "optimizer": "sgd"},
        {"clip_norm": 0},
        {"seed": -1},
        {"class_weights": (0.0, 0.0)},
        {"class_weights": (1.0, -1.0)},
        {"epoch": 3},
    ],
)
def test_a_configuration_is_checked_where_it_is_made(settings: dict[str, object]) -> None:
    with pytest.raises(SettingsError) as caught:
        TrainConfig(**settings)
    assert "\n" not in str(caught.value) and "TrainConfig" in str(caught.value)
