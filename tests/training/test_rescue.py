"""Networks that learned nothing or whose units died are noticed, trained again, and never end worse."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from topiarist import Data, TrainConfig, load_data, models, train
from topiarist.data import Part
from topiarist.models.copying import copied
from topiarist.training.centring import centring_for, layers_reading
from topiarist.training.inference import part_logits
from topiarist.training.metrics import better_than_chance, depends_on_targets
from topiarist.training.rescue import health_of, train_with_rescue, validation_loss, with_fresh_units

DATA = load_data("digits", samples=600)


def far_from_centred(shift: float = 20.0) -> Data:
    """Return digits that lie far from 0, as pixels of bytes do: the first steps kill ReLU units."""

    def moved(part: object) -> Part:
        assert isinstance(part, Part)
        return Part(part.x + shift, part.y)

    return replace(DATA, train=moved(DATA.train), validation=moved(DATA.validation), test=moved(DATA.test))


def train_part(data: Data) -> Part:
    assert isinstance(data.train, Part)
    return data.train


def dead_network() -> nn.Module:
    model = models.mlp([64, 16, 10])
    with torch.no_grad():
        model.get_submodule("hidden0").bias.fill_(-1000.0)  # type: ignore[operator]
    return model


def test_a_healthy_training_is_left_alone() -> None:
    model = models.mlp([64, 16, 10])
    (history,), notes = train_with_rescue([model], [DATA], [TrainConfig(epochs=10, learning_rate=0.01)])
    assert notes == () and len(history) == 10
    assert health_of(model, DATA.train).healthy


def test_a_dead_network_is_found_and_said() -> None:
    health = health_of(dead_network(), DATA.train)
    assert not health.learned and health.mostly_dead and not health.healthy
    assert str(health) == ("does not tell the classes of its training samples apart and has 16 dead of 16 hidden units")


@pytest.mark.slow
def test_a_dead_network_is_brought_back_by_fresh_units() -> None:
    model = dead_network()
    _, (note,) = train_with_rescue([model], [DATA], [TrainConfig(epochs=10, learning_rate=0.03)])
    assert note.endswith("it was trained again with fresh units at a tenth of the rate")
    assert health_of(model, DATA.train).healthy


@pytest.mark.parametrize("seed", [0, 1])
def test_inputs_far_from_centred_are_centred_and_the_network_reads_them_as_they_are(seed: int) -> None:
    data = far_from_centred()
    model = models.mlp([64, 10, 10], generator=torch.Generator().manual_seed(seed))
    config = TrainConfig(epochs=8, learning_rate=0.05, seed=seed)
    _, (note,) = train_with_rescue([model], [data], [config])
    assert "it was trained again on centred inputs" in note
    assert better_than_chance(*part_logits(model, data.test))


def test_what_cannot_be_helped_is_said_and_kept() -> None:
    labels = torch.randint(10, (len(train_part(DATA)),), generator=torch.Generator().manual_seed(0))
    data = replace(DATA, train=Part(torch.zeros_like(train_part(DATA).x), labels))
    model = models.mlp([64, 4, 10])
    _, (note,) = train_with_rescue([model], [data], [TrainConfig(epochs=6)])
    assert "does not tell the classes of its training samples apart" in note
    assert not health_of(model, data.train).learned


def test_a_training_of_few_steps_is_left_alone() -> None:
    model = dead_network()
    (history,), notes = train_with_rescue([model], [DATA], [TrainConfig(epochs=2)])
    assert notes == () and len(history) == 2


def test_no_rescue_ends_worse_than_the_first_training() -> None:
    data, config = far_from_centred(), TrainConfig(epochs=6, learning_rate=0.05)
    first = models.mlp([64, 10, 10])
    again = copied(first)
    train_with_rescue([again], [data], [config])
    train(first, data, config)
    assert validation_loss(again, data) <= validation_loss(first, data)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_rescue() -> None:
    data, config = far_from_centred(), TrainConfig(epochs=6, learning_rate=0.05)
    one, other = models.mlp([64, 10, 10]), models.mlp([64, 10, 10])
    assert train_with_rescue([one], [data], [config])[1] == train_with_rescue([other], [data], [config])[1]
    assert all(torch.equal(value, other.state_dict()[name]) for name, value in one.state_dict().items())


def test_centring_folds_exactly_into_a_linear_layer() -> None:
    data = far_from_centred()
    model = models.mlp([64, 10, 10])
    centring = centring_for(model, data.train)
    assert centring is not None and list(centring.layers) == ["hidden0"]
    assert centring.folds_exactly(model, train_part(data).x[:8])
    centred = train_part(centring.of(data)).x
    assert float(centred.mean().abs()) < 0.1 and float(centred.std()) < 2


def test_centred_inputs_and_convolutions_are_not_centred_again() -> None:
    assert centring_for(models.mlp([64, 10, 10]), Part(torch.randn(1000, 64), torch.zeros(1000).long())) is None
    images = Part(torch.rand(32, 1, 8, 8) + 5, torch.zeros(32).long())
    network = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 10))
    assert centring_for(network, images) is None
    assert layers_reading(network, images.x[:2]) == []


def test_fresh_units_take_the_place_of_dead_ones_alone() -> None:
    model = models.mlp([64, 8, 10])
    with torch.no_grad():
        model.get_submodule("hidden0").bias[:3] = -1000.0  # type: ignore[operator]
    health = health_of(model, DATA.train)
    assert health.dead == {"hidden0": (0, 1, 2)}
    state = with_fresh_units(model, health, DATA.train, seed=0)
    assert state is not None and {name: value.shape for name, value in state.items()} == {
        name: value.shape for name, value in model.state_dict().items()
    }
    torch.testing.assert_close(state["hidden0.weight"][:5], model.state_dict()["hidden0.weight"][3:])
    assert (state["output.weight"][:, 5:] == 0).all()


def test_chance_is_the_most_frequent_class() -> None:
    labels = torch.tensor([0] * 90 + [1] * 10)
    always = torch.tensor([[1.0, 0.0]]).expand(100, 2)
    assert not better_than_chance(always, labels)
    assert better_than_chance(nn.functional.one_hot(labels, 2).float(), labels, significance=0.01)
    even = torch.arange(200) % 2
    assert not better_than_chance(torch.randn(200, 2, generator=torch.Generator().manual_seed(0)), even)


class Fixed(nn.Module):
    """Answers a class that is written in the sample."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.one_hot(x[:, 0].long(), 2).float()


def answering(answers: list[int], labels: list[int]) -> bool:
    return depends_on_targets(
        Fixed(), Part(torch.tensor(answers).float()[:, None], torch.tensor(labels)), significance=0.01
    )


def test_who_finds_a_rare_class_tells_apart_and_who_says_the_same_does_not() -> None:
    labels = [0] * 90 + [1] * 10
    assert not answering([0] * 100, labels)
    assert answering([0] * 70 + [1] * 20 + [1] * 10, labels)  # 80 % right, below the 90 % of the frequent class
    assert not answering([0, 1] * 50, labels)
