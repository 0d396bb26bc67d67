"""mixup and masks: the formula, the widths, the frequencies, and that a training follows from its seed."""

from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given, strategies
from torch import Tensor, nn
from torch.nn import functional

from topiarist.data import Data
from topiarist.errors import SettingsError
from topiarist.models import mlp
from topiarist.randomness import child_seed, generator, isolated
from topiarist.tasks import Classification
from topiarist.training import Augmentation, Distillation, Pruning, TrainConfig, train, train_many
from topiarist.training.engines.autograd import AutogradEngine
from topiarist.training.engines.batching import Batch
from topiarist.training.engines.steps import augmented, hidden_steps
from topiarist.training.preparation import stack_key

ALL = Augmentation(mixup=0.4, time_masks=2, time_width=0.3, band_masks=1, band_width=0.4)


CLASSES = Classification(("a", "b", "c"))


@pytest.fixture(scope="module")
def spectrograms() -> Data:
    random = numpy.random.default_rng(0)
    y = numpy.arange(90) % 3
    x = random.normal(size=(90, 1, 6, 12))
    x[numpy.arange(90), 0, 2 * y] += 1.5
    return Data.from_arrays(x, y, scaling="zscore")


def make_network(data: Data, seed: int = 0) -> nn.Module:
    sizes = [int(numpy.prod(data.input_shape)), 8, len(data.classes)]
    return nn.Sequential(nn.Flatten(), mlp(sizes, dropout=0.2, generator=generator(seed, "network")))


def weights(model: nn.Module) -> list[Tensor]:
    return [value.clone() for value in model.state_dict().values()]


def same(one: nn.Module, other: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights(one), weights(other), strict=True))


@pytest.mark.parametrize("class_weights", [None, (1.0, 0.2, 3.0)])
@pytest.mark.parametrize("taught", [False, True])
def test_the_loss_and_the_step_of_mixup_are_those_of_the_formula(
    class_weights: tuple[float, ...] | None, taught: bool
) -> None:
    teacher = mlp([4, 5, 3], generator=generator(1, "teacher")).double() if taught else None
    random = generator(3, "samples")
    x, y = torch.randn(7, 4, generator=random, dtype=torch.float64), torch.randint(3, (7,), generator=random)
    network = mlp([4, 3], generator=generator(0, "network")).double()
    settings, distillation = Augmentation(mixup=0.7), None if teacher is None else Distillation()
    config = TrainConfig(optimizer="sgd", augmentation=settings, distillation=distillation, seed=5)
    given_weights = None if class_weights is None else torch.tensor(class_weights, dtype=torch.float64)
    engine = AutogradEngine(network, config, CLASSES, class_weights=given_weights, teacher=teacher)

    with isolated(child_seed(5, "noise", 4)):
        mixed, partners, share = augmented(x, settings)
    assert partners is not None and sorted(partners.tolist()) == list(range(7)) and 0 < share < 1
    assert torch.allclose(mixed, share * x + (1 - share) * x[partners])
    weight = torch.ones(3, dtype=torch.float64) if given_weights is None else given_weights
    total = torch.zeros((), dtype=torch.float64)
    logits = network(mixed)
    for part, labels in ((share, y), (1 - share, y[partners])):
        if distillation is None or teacher is None:
            losses = functional.cross_entropy(logits, labels, reduction="none")
        else:
            losses = CLASSES.distilled(logits.T, teacher(mixed).T, labels[None], **distillation.model_dump())[0]
        total = total + part * (weight[labels] * losses).sum()
    expected = total / weight[y].sum()
    slopes = torch.autograd.grad(expected, list(network.parameters()))
    stepped = [value - 0.5 * slope for value, slope in zip(network.parameters(), slopes, strict=True)]

    with engine.epoch(4):
        found, batch_weight = engine.step(Batch(x[None], y[None], (7,)), [0.5])
    assert torch.allclose(found / batch_weight, expected) and torch.allclose(batch_weight, weight[y].sum())
    assert all(torch.allclose(a, b) for a, b in zip(network.parameters(), stepped, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.2, 1.0, 4.0])
def test_shares_are_spread_as_by_the_beta_distribution(alpha: float) -> None:
    with isolated(1):
        shares = torch.tensor([augmented(torch.zeros(2, 1), Augmentation(mixup=alpha))[2] for _ in range(4000)])
    assert abs(shares.mean() - 0.5) < 0.03
    assert shares.var() == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.06)


@pytest.mark.slow
@given(
    seed=strategies.integers(0, 10**6),
    shape=strategies.sampled_from([(5, 20), (1, 5, 20), (2, 3, 5, 20)]),
    times=strategies.integers(0, 3),
    bands=strategies.integers(0, 3),
)
def test_masks_hide_whole_stretches_of_bounded_width_behind_the_mean(
    seed: int, shape: tuple[int, ...], times: int, bands: int
) -> None:
    settings = Augmentation(time_masks=times, time_width=0.25, band_masks=bands, band_width=0.4)
    x = torch.randn(16, *shape, generator=generator(seed, "samples"), dtype=torch.float64)
    before = x.clone()
    with isolated(seed):
        varied, partners, share = augmented(x, settings)
    assert torch.equal(x, before) and varied.shape == x.shape and partners is None and share == 1.0
    for sample, original in zip(varied, x, strict=True):
        changed = sample != original
        assert torch.allclose(sample[changed], original.mean())
        flat = changed.reshape(-1, *shape[-2:])
        assert (flat == flat[0]).all(), "all channels alike"
        columns, rows = flat[0].all(dim=0), flat[0].all(dim=1)
        assert torch.equal(flat[0], columns[None] | rows[:, None]), "whole times and whole bands"
        if not rows.all() and not columns.all():
            assert columns.sum() <= 5 * times and rows.sum() <= 2 * bands
            assert stretches(columns) <= times and stretches(rows) <= bands


def stretches(hidden_steps: Tensor) -> int:
    padded = functional.pad(hidden_steps.int(), (1, 0))
    return int((padded.diff() == 1).sum())


def test_widths_and_places_of_masks_are_drawn_evenly() -> None:
    with isolated(0):
        found = hidden_steps(40_000, 50, 1, 0.1)
    counts = torch.bincount(found.sum(dim=1))
    assert len(counts) == 6, "0 to a tenth of 50"
    assert (abs(counts / 40_000 - 1 / 6) < 0.01).all()
    wide = found[found.sum(dim=1) == 5]
    starts = torch.bincount(wide.int().argmax(dim=1), minlength=46)
    assert len(starts) == 46, "the last place is the last where it fits"
    expected = len(wide) / 46
    assert (abs(starts - expected) < 5 * expected**0.5).all()
    assert hidden_steps(3, 50, 0, 0.1).shape == (3, 50) and not hidden_steps(3, 50, 0, 0.1).any()


def test_every_sample_has_masks_of_its_own() -> None:
    with isolated(0):
        assert len({tuple(row.tolist()) for row in hidden_steps(50, 100, 2, 0.3)}) > 45


def test_training_follows_from_the_seed_and_differs_from_plain_training(spectrograms: Data) -> None:
    networks = []
    for seed, settings in ((0, ALL), (0, ALL), (1, ALL), (0, None), (0, Augmentation())):
        networks.append(make_network(spectrograms))
        state = torch.get_rng_state()
        config = TrainConfig(epochs=2, seed=seed, augmentation=settings)
        train_many([networks[-1]], spectrograms, [config], stacked=False)
        assert torch.equal(torch.get_rng_state(), state)
    assert same(networks[0], networks[1])
    assert not same(networks[0], networks[2]) and not same(networks[0], networks[3])
    assert same(networks[3], networks[4]), "nothing set is nothing done"


def test_each_practice_changes_the_training(spectrograms: Data) -> None:
    networks = []
    for settings in ({}, {"mixup": 0.3}, {"time_masks": 1}, {"band_masks": 1, "band_width": 0.2}):
        networks.append(make_network(spectrograms))
        train(networks[-1], spectrograms, TrainConfig(epochs=1, augmentation=Augmentation(**settings)))
    assert len({weights(network)[0].numpy().tobytes() for network in networks}) == 4


class Stopped(Exception):  # noqa: N818  # what a user's Ctrl-C is, not an error
    pass


def stop_at_4(number: int, _: Any) -> None:
    if number == 4:
        raise Stopped


def test_an_interrupted_training_ends_with_the_same_weights(
    spectrograms: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topiarist.training.checkpoint.Checkpoint.due", True)
    config = TrainConfig(epochs=7, augmentation=ALL, class_weights="balanced")
    whole, resumed = make_network(spectrograms), make_network(spectrograms)
    expected = train(whole, spectrograms, config)
    path = tmp_path / "run.checkpoint"
    with pytest.raises(Stopped):
        train(make_network(spectrograms), spectrograms, config, checkpoint=path, on_epoch=stop_at_4)
    epochs: list[int] = []
    history = train(resumed, spectrograms, config, checkpoint=path, on_epoch=lambda number, _: epochs.append(number))
    assert epochs == [4, 5, 6, 7]
    assert history == expected and same(resumed, whole)


def test_a_checkpoint_of_another_augmentation_is_not_taken_up(
    spectrograms: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topiarist.training.checkpoint.Checkpoint.due", True)
    path, epochs = tmp_path / "run.checkpoint", []
    first = TrainConfig(epochs=5, augmentation=ALL)
    with pytest.raises(Stopped):
        train(make_network(spectrograms), spectrograms, first, checkpoint=path, on_epoch=stop_at_4)
    other = TrainConfig(epochs=5, augmentation=Augmentation(mixup=0.4))
    network = make_network(spectrograms)
    train(network, spectrograms, other, checkpoint=path, on_epoch=lambda number, _: epochs.append(number))
    assert epochs == [1, 2, 3, 4, 5]


def test_a_network_is_trained_alone_and_with_every_other_practice(task: Data) -> None:
    config = TrainConfig(
        epochs=4,
        augmentation=Augmentation(mixup=0.2),
        distillation=Distillation(),
        pruning=Pruning(sparsity=0.5, begin=1),
        class_weights="balanced",
    )
    assert stack_key(mlp([6, 8, 3]), task, TrainConfig(augmentation=Augmentation(mixup=0.2))) is None
    assert stack_key(mlp([6, 8, 3]), task, TrainConfig()) is not None
    models, teachers = [mlp([6, 8, 3]) for _ in range(2)], [mlp([6, 9, 3]) for _ in range(2)]
    histories = train_many(models, task, [config, config], teachers=teachers)
    assert [len(history) for history in histories] == [4, 4]
    assert same(models[0], models[1])


@pytest.mark.parametrize("kind", ["time", "band"])
def test_masks_that_samples_have_no_axes_for_are_refused(task: Data, spectrograms: Data, kind: str) -> None:
    config = TrainConfig(epochs=1, augmentation=Augmentation.model_validate({f"{kind}_masks": 1}))
    with pytest.raises(SettingsError, match=rf"{kind} masks need samples with axes .* found samples \(6,\)"):
        train(mlp([6, 3]), task, config)
    narrow = Augmentation.model_validate({f"{kind}_masks": 1, f"{kind}_width": 0.05})
    with pytest.raises(SettingsError, match=f"{kind} masks of up to 0.05 of .* steps hide nothing"):
        train(make_network(spectrograms), spectrograms, TrainConfig(epochs=1, augmentation=narrow))
    train(mlp([6, 3]), task, TrainConfig(epochs=1, augmentation=Augmentation(mixup=1.0)))
    for wrong in ({"mixup": -1}, {"time_masks": -1}, {"time_width": 0}, {"band_width": 1.5}):
        with pytest.raises(SettingsError):
            Augmentation(**wrong)
