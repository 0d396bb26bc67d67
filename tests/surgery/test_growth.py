"""What growth promises: the gradient that autograd finds in the network that was really grown."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from tests.surgery.labelled import labelled, loss_by_hand
from tests.surgery.samples import made
from topiarist.errors import ModelError
from topiarist.models.evaluation import count_parameters
from topiarist.surgery import GrowSpace, Plan, apply
from topiarist.surgery.advice.options import expected_growth
from topiarist.surgery.advice.trials import LabelledSamples
from topiarist.surgery.choice.evidence import blind_spot
from topiarist.tracing import anatomy

NAMES = ("mlp", "vgg", "inception family", "residual", "inception", "cascade", "gated", "grouped", "normed")


def grown_gains(model: nn.Module, samples: LabelledSamples, edit: GrowSpace) -> tuple[Tensor, nn.Module]:
    """Grow for real, follow the new network again, and give ‖gradient‖² for each unit, all samples at once."""
    x = samples.calibration
    grown = apply(Plan((edit,)), model, x[:2]).eval()
    parameters = dict(grown.named_parameters())
    found = torch.autograd.grad(functional.cross_entropy(grown(x), samples.labels), list(parameters.values()))
    gradients = dict(zip(parameters, found, strict=True))
    space = anatomy(grown, x[:2]).spaces[edit.space]
    gains = torch.zeros(space.size, dtype=torch.float64)
    for place in space.consumers:
        gradient = gradients[f"{place.module}.weight"]
        for unit in range(space.size):
            gains[unit] += gradient[:, place.positions[unit].reshape(-1).tolist()].square().sum()
    return gains, grown


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_gain_is_what_autograd_finds_in_the_grown_network(name: str) -> None:
    model, samples = labelled(name, 300 if name == "mlp" else 20)
    found = anatomy(model, samples.calibration[:2])
    judged = {name: space for name, space in found.free.items() if blind_spot(space) is None}
    assert judged
    for space, units in judged.items():
        growth = expected_growth(model, found, space, samples, seed=3)
        assert growth.edit == GrowSpace(space=space, by=max(2, units.size // 2), seed=3)
        oracle, grown = grown_gains(model, samples, growth.edit)
        assert growth.existing == pytest.approx(oracle[: units.size].tolist(), rel=1e-6, abs=1e-15)
        assert growth.fresh == pytest.approx(oracle[units.size :].tolist(), rel=1e-6, abs=1e-15)
        assert len(growth.fresh) == growth.edit.by
        assert growth.parameters == count_parameters(grown)


def test_all_columns_that_read_a_unit_count_where_its_tensor_is_joined_with_itself() -> None:
    class Joined(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Conv2d(1, 3, 2), nn.Linear(24, 3)

        def forward(self, x: Tensor) -> Tensor:
            hidden = torch.relu(self.first(x))
            given: Tensor = self.last(torch.cat([hidden, hidden.square()], dim=1).flatten(1))
            return given

    model, x = made(Joined, 30, 1, 3, 3)
    samples = LabelledSamples(x, torch.arange(30) % 3)
    growth = expected_growth(model, anatomy(model, x[:2]), "first", samples)
    oracle, _ = grown_gains(model, samples, growth.edit)
    assert [*growth.existing, *growth.fresh] == pytest.approx(oracle.tolist(), rel=1e-9)


def test_a_step_along_the_gradient_lowers_the_loss_as_promised() -> None:
    model, samples = labelled("mlp", 200)
    x = samples.calibration
    growth = expected_growth(model, anatomy(model, x[:2]), "hidden1", samples)
    grown = apply(Plan((growth.edit,)), model, x[:2])
    weight = grown.get_parameter("output.weight")
    before = functional.cross_entropy(grown(x), samples.labels)
    (gradient,) = torch.autograd.grad(before, [weight])
    step = 1e-5
    with torch.no_grad():
        weight[:, 7:] -= step * gradient[:, 7:]
    assert (before.item() - loss_by_hand(grown, samples)) / step == pytest.approx(sum(growth.fresh), rel=1e-3)


def test_the_means_and_their_ratio() -> None:
    model, samples = labelled("mlp")
    growth = expected_growth(model, anatomy(model, samples.calibration[:2]), "hidden0", samples, by=5)
    assert len(growth.fresh) == 5 and growth.gain == pytest.approx(sum(growth.fresh) / 5)
    assert growth.existing_gain == pytest.approx(sum(growth.existing) / 8)
    assert growth.relative_gain == pytest.approx(growth.gain / growth.existing_gain)


def test_other_seeds_draw_other_units() -> None:
    model, samples = labelled("mlp")
    found = anatomy(model, samples.calibration[:2])
    first, again, other = (expected_growth(model, found, "hidden0", samples, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first.fresh != other.fresh and first.existing == pytest.approx(other.existing)


def test_with_one_class_nothing_is_gained() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1)), 20, 3)
    growth = expected_growth(model, anatomy(model, x[:2]), "0", LabelledSamples(x, torch.zeros(20, dtype=torch.int64)))
    assert (growth.gain, growth.existing_gain, growth.relative_gain) == (0.0, 0.0, 0.0)


def test_beside_units_that_are_all_dead_there_is_no_ratio() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3)), 20, 3)
    with torch.no_grad():
        model[0].bias -= 100
    labels = torch.arange(20) % 3
    growth = expected_growth(model, anatomy(model, x[:2]), "0", LabelledSamples(x, labels))
    assert growth.gain > 0 and growth.existing_gain == 0.0 and growth.relative_gain is None


def test_a_space_that_is_fixed_cannot_grow() -> None:
    model, samples = labelled("mlp")
    with pytest.raises(ModelError, match="fixed"):
        expected_growth(model, anatomy(model, samples.calibration[:2]), "output", samples)


def test_frozen_layers_have_gains_too() -> None:
    model, samples = labelled("mlp")
    found = anatomy(model, samples.calibration[:2])
    trained = expected_growth(model, found, "hidden0", samples)
    model.requires_grad_(False)
    with torch.inference_mode():
        assert expected_growth(model, found, "hidden0", samples) == trained
    assert not any(parameter.requires_grad for parameter in model.parameters())
