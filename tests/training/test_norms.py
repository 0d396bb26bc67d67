"""Batch norm after training: statistics of the whole training part, and nothing else changed."""

import torch
from torch import nn

from tests.methods.tasks import data_of, drawn, same_state, state_of
from topiarist.data import Data, Part
from topiarist.models import mlp
from topiarist.training import TrainConfig, train, train_many
from topiarist.training.inference import NORM_BATCH_SIZE as BATCH_SIZE
from topiarist.training.inference import settle_norms


def task(count: int = 90) -> Data:
    part = Part(drawn(count, 6), torch.arange(count) % 3)
    return data_of(part, part, part, 3)


def network() -> nn.Sequential:
    return mlp([6, 8, 5, 3], batch_norm=True, dropout=0.4)


def test_they_are_the_mean_and_the_variance_over_the_training_part() -> None:
    model, data = network(), task()
    train(model, data, TrainConfig(epochs=3, precise_norms=True))
    assert isinstance(data.train, Part)
    seen = model.get_submodule("hidden0")(data.train.x)  # what the first norm reads
    norm = model.get_submodule("norm0")
    torch.testing.assert_close(norm.get_buffer("running_mean"), seen.mean(dim=0).detach())
    torch.testing.assert_close(norm.get_buffer("running_var"), seen.var(dim=0).detach())


def test_only_the_statistics_change_and_the_weights_are_those_of_the_usual_training() -> None:
    usual, precise = network(), network()
    train(usual, task(), TrainConfig(epochs=3))
    train(precise, task(), TrainConfig(epochs=3, precise_norms=True))
    for name, value in usual.state_dict().items():
        assert torch.equal(value, precise.state_dict()[name]) == ("running" not in name and "batches" not in name), name
    assert not any(module.training for module in precise.modules())
    assert [norm.momentum for norm in precise if isinstance(norm, nn.BatchNorm1d)] == [0.1, 0.1]


def test_batches_count_by_their_samples() -> None:
    model, part = network().eval(), Part(drawn(BATCH_SIZE + 44, 6), torch.zeros(BATCH_SIZE + 44, dtype=torch.int64))
    settle_norms(model, part)
    norm = model.get_submodule("norm0")
    torch.testing.assert_close(
        norm.get_buffer("running_mean"), model.get_submodule("hidden0")(part.x).mean(dim=0).detach()
    )


def test_a_last_batch_of_one_sample_is_left_out() -> None:
    model, part = network().eval(), Part(drawn(BATCH_SIZE + 1, 6), torch.zeros(BATCH_SIZE + 1, dtype=torch.int64))
    settle_norms(model, part)
    seen = model.get_submodule("hidden0")(part.x[:BATCH_SIZE])
    torch.testing.assert_close(model.get_submodule("norm0").get_buffer("running_mean"), seen.mean(dim=0).detach())


def test_frozen_norms_and_networks_without_any_are_left_alone() -> None:
    frozen = network().eval()
    for norm in frozen:
        if isinstance(norm, nn.BatchNorm1d):
            norm.requires_grad_(requires_grad=False)
    for model in (frozen, mlp([6, 4, 3]).eval()):
        before = state_of(model)
        part = task().train
        settle_norms(model, part)
        assert same_state(model, before)


def test_in_a_stack_as_alone() -> None:
    config = TrainConfig(epochs=2, precise_norms=True)
    alone, stacked = [network().double() for _ in range(2)], [network().double() for _ in range(2)]
    train_many(alone, task(), [config, config.model_copy(update={"seed": 1})], stacked=False)
    train_many(stacked, task(), [config, config.model_copy(update={"seed": 1})])
    for one, other in zip(alone, stacked, strict=True):
        for name, value in one.state_dict().items():
            torch.testing.assert_close(other.state_dict()[name], value, rtol=0, atol=1e-6)
