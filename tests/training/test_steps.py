"""A training of an exact number of optimizer steps: in both engines, with schedules, checkpoints and stretches."""

import copy
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from topiarist.data import Data, Part
from topiarist.errors import SettingsError
from topiarist.methods import Distinctiveness, Rewinding
from topiarist.methods.resize import resize as shape
from topiarist.models import card_of, mlp
from topiarist.training import Phase, Pruning, TrainConfig, train, train_many, train_phases
from topiarist.training.checkpoint import Checkpoint
from topiarist.training.inference import part_logits
from topiarist.training.metrics import accuracy
from topiarist.training.stretches import steps_per_epoch, train_stretch


def network(seed: int = 0) -> nn.Module:
    return mlp([6, 12, 3], dropout=0.2, generator=torch.Generator().manual_seed(seed))


def weights(model: nn.Module) -> list[Tensor]:
    return [value.clone() for value in model.state_dict().values()]


def close(one: nn.Module, other: nn.Module, tolerance: float = 1e-5) -> bool:
    return all(torch.allclose(a, b, atol=tolerance) for a, b in zip(weights(one), weights(other), strict=True))


@pytest.mark.parametrize("stacked", [True, False])
@pytest.mark.parametrize("steps", [1, 7, 10, 11, 23])
def test_so_many_steps_are_made_and_no_more(task: Data, stacked: bool, steps: int) -> None:
    config = TrainConfig(steps=steps, batch_size=32, learning_rate=0.01)
    per_epoch = steps_per_epoch(network(), task, config)
    assert per_epoch == 5  # 147 samples: the cases above end within, at and after the end of an epoch
    whole, parts = network(), network()
    history = train_many([whole], [task], config, stacked=stacked)[0]
    done, memory = 0, None
    while done < steps:  # the oracle: epochs of stretches, which count steps one by one
        count = min(per_epoch - done % per_epoch, steps - done)
        memory = train_stretch(parts, task, config, done=done, steps=count, memory=memory).memory
        done += count
    assert close(whole, parts)
    assert history.stopped == f"all {steps} steps done"
    assert len(history) == history.kept_epoch == -(-steps // per_epoch)


def test_whole_epochs_in_steps_are_those_epochs(task: Data) -> None:
    one, other = network(), network()
    train(one, task, TrainConfig(steps=15, schedule="cosine"))
    train(other, task, TrainConfig(epochs=3, schedule="cosine"))
    assert all(torch.equal(a, b) for a, b in zip(weights(one), weights(other), strict=True))


def test_schedules_end_with_the_last_step(task: Data) -> None:
    history = train(network(), task, TrainConfig(steps=12, schedule="exponential", learning_rate=0.1))
    assert history.epochs[-1].learning_rate == pytest.approx(0.1 * 0.1 ** (11 / 12))


def test_members_with_epochs_of_their_own_length_make_as_many_steps_each(task: Data) -> None:
    assert isinstance(task.train, Part)
    parts = [Part(task.train.x[:count], task.train.y[:count]) for count in (147, 60, 100)]
    datas = [Data(**{**vars(task), "train": part}) for part in parts]
    config = TrainConfig(steps=13, batch_size=32, learning_rate=0.01)
    together, alone = [network(seed) for seed in range(3)], [network(seed) for seed in range(3)]
    histories = train_many(together, datas, config)
    for model, data in zip(alone, datas, strict=True):
        train_many([model], [data], config, stacked=False)
    assert [len(history) for history in histories] == [3, 7, 4]
    assert all(close(one, other) for one, other in zip(together, alone, strict=True))


@pytest.mark.parametrize("stacked", [True, False])
def test_an_interrupted_training_in_steps_ends_with_the_same_weights(
    task: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stacked: bool
) -> None:
    monkeypatch.setattr(Checkpoint, "due", True)
    config = TrainConfig(steps=13, schedule="cosine", learning_rate=0.01)
    whole, broken = [network(0), network(1)], [network(0), network(1)]
    histories = train_many(whole, task, config, stacked=stacked)

    def interrupt(number: int, _: object) -> None:
        if number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_many(broken, task, config, checkpoint=tmp_path / "c", on_epoch=interrupt, stacked=stacked)
    again = train_many(broken, task, config, checkpoint=tmp_path / "c", stacked=stacked)
    assert all(
        torch.equal(a, b)
        for one, other in zip(whole, broken, strict=True)
        for a, b in zip(weights(one), weights(other), strict=True)
    )
    assert again == histories


def test_a_stretch_of_it_goes_on_as_the_whole(task: Data) -> None:
    config = TrainConfig(steps=13, optimizer="sgd", schedule="cosine", learning_rate=0.1)
    whole, parts = network(), network()
    train(whole, task, config)
    assert len(train(parts, task, config.model_copy(update={"until_epoch": 2}))) == 2
    assert len(train(parts, task, config.model_copy(update={"after_epoch": 2}))) == 1
    assert close(whole, parts, 1e-7)
    for stretch in ({"after_epoch": 3}, {"until_epoch": 4}):
        with pytest.raises(SettingsError, match=r"beyond the end of the training: 13 steps are 2\.6 epochs"):
            train(network(), task, TrainConfig(steps=13, **stretch))


@pytest.mark.slow
def test_it_is_rewound_by_epochs(task: Data) -> None:
    model, early = network(), network()
    config = TrainConfig(steps=13)
    train(model, task, config)
    train(early, task, config.model_copy(update={"until_epoch": 1}))
    method = Distinctiveness(keep_fraction=0.5)
    outcome = shape(model, task, method, retraining=Rewinding(epoch=1, weights=True), early=early)
    assert [len(history) for history in outcome.histories] == [2]
    with pytest.raises(SettingsError, match="the early network is that of step 13; epoch 1 is asked for"):
        shape(model, task, method, retraining=Rewinding(epoch=1, weights=True), early=copy.deepcopy(model))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"epochs": 100, "steps": 10}, "epochs and steps both say how long to train: give one"),
        ({"steps": 0}, "steps"),
        ({"steps": 10, "pruning": Pruning(sparsity=0.5)}, "pruning is scheduled in epochs"),
        ({"steps": 10, "after_epoch": 2, "until_epoch": 1}, "until_epoch must be at least after_epoch, 2; found 1"),
    ],
)
def test_what_does_not_go_together_is_one_line(settings: dict[str, object], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        TrainConfig(**settings)


def test_phases_have_epochs_of_their_own(task: Data) -> None:
    with pytest.raises(SettingsError, match="leave steps out"):
        train_phases(network(), task, [Phase(epochs=1)], TrainConfig(steps=3))


def test_a_record_names_the_length_that_counts_and_can_be_read_again(task: Data) -> None:
    config = TrainConfig(steps=3)
    assert "epochs" not in config.model_dump() and TrainConfig(**config.model_dump()) == config
    assert TrainConfig(epochs=3).model_dump()["epochs"] == 3
    model = network()
    train(model, task, config)
    assert card_of(model).training == {"steps": 3}


@pytest.mark.parametrize("stacked", [True, False])
def test_the_accuracy_on_the_training_part_is_watched_where_asked(task: Data, stacked: bool) -> None:
    model = network()
    history = train_many([model], [task], TrainConfig(epochs=3, watch_training=True), stacked=stacked)[0]
    assert history.epochs[-1].train_accuracy == pytest.approx(accuracy(*part_logits(model, task.train)))
    assert train(network(), task, TrainConfig(epochs=1)).epochs[0].train_accuracy is None
