"""What folding and factorising lose: against regressions, planted ranks, and networks that surgery made."""

from collections.abc import Callable

import numpy
import pytest
import torch
from sklearn.linear_model import LinearRegression
from torch import nn

from tests.surgery.labelled import labelled, loss_by_hand, loss_with
from tests.surgery.samples import made
from topiarist.models.evaluation import count_parameters
from topiarist.surgery import factorise, fold
from topiarist.surgery.advice.options import predicted_factorisings, predicted_folding
from topiarist.surgery.advice.spectra import weight_spectrum, weighted_layers
from topiarist.surgery.advice.trials import LabelledSamples
from topiarist.surgery.calibration import watch
from topiarist.surgery.depth.factorising import can_factorise
from topiarist.surgery.layers import weight_of
from topiarist.tracing import anatomy


def thirds(x: torch.Tensor) -> LabelledSamples:
    return LabelledSamples(x, torch.arange(len(x)) % 3)


def test_what_folding_loses_is_what_a_regression_leaves() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)), 200, 4)
    with torch.no_grad():
        model[0].weight *= 4
    folding = predicted_folding(model, anatomy(model, x[:2]), "0", thirds(x))
    assert folding is not None and folding.into == "2" and folding.increase is None
    given = model(x).detach().numpy()
    left = given - LinearRegression().fit(x.numpy(), given).predict(x.numpy())
    oracle = float(numpy.square(left).sum() / numpy.square(given - given.mean(0)).sum())
    assert oracle > 0.01
    assert folding.lost == pytest.approx(oracle, rel=1e-4)
    assert folding.parameters == 4 * 3 + 3


def test_without_an_activation_folding_loses_nothing() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 3)), 200, 4)
    samples = thirds(x)
    folding = predicted_folding(model, anatomy(model, x[:2]), "0", samples, before=loss_by_hand(model, samples))
    assert folding is not None and folding.increase is not None
    assert folding.lost < 1e-20 and abs(folding.increase) < 1e-10


FOLDED: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], str]] = {
    "linear": (lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)), (60, 4), "0"),
    "without biases": (
        lambda: nn.Sequential(nn.Linear(4, 6, bias=False), nn.ReLU(), nn.Linear(6, 3, bias=False)),
        *((60, 4), "0"),
    ),
    "convolutions": (
        lambda: nn.Sequential(
            *(nn.Conv2d(2, 5, 3, padding=1), nn.BatchNorm2d(5), nn.ReLU(), nn.Conv2d(5, 4, 1), nn.ReLU()),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)),
        ),
        *((30, 2, 6, 6), "0"),
    ),
}


@pytest.mark.parametrize("kind", FOLDED)
def test_a_measured_fold_is_the_one_that_surgery_makes(kind: str) -> None:
    make, shape, layer = FOLDED[kind]
    model, x = made(make, *shape)
    samples = thirds(x)
    before = loss_by_hand(model, samples)
    folding = predicted_folding(model, anatomy(model, x[:2]), layer, samples, before=before)
    folded = fold(model, x[:2], layer=layer, linearise=True, calibration=x, settling=0)
    assert folding is not None and folding.parameters == count_parameters(folded)
    assert folding.increase == pytest.approx(loss_by_hand(folded, samples) - before, rel=1e-6, abs=1e-12)
    ((_, whole),), ((_, now),) = (watch(network, folding.into, 1, (x,), {}) for network in (model, folded))
    spread = whole - whole.mean([axis for axis in range(whole.ndim) if axis != 1], keepdim=True)
    assert folding.lost == pytest.approx(float((now - whole).square().sum() / spread.square().sum()), rel=1e-6)
    assert folding.lost > 1e-3


def test_what_cannot_fold_has_no_damage() -> None:
    model, samples = labelled("residual")
    found = anatomy(model, samples.calibration[:2])
    assert predicted_folding(model, found, "second", samples) is None
    assert predicted_folding(model, found, "head", samples) is None


def test_a_planted_rank_is_found_and_loses_nothing() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 3)), 40, 10)
    with torch.no_grad():
        left, _, right = torch.linalg.svd(model[0].weight, full_matrices=False)
        model[0].weight[:] = (left[:, :3] * torch.tensor([3.0, 2.0, 1.0])) @ right[:3]
    options = predicted_factorisings(model, "0", weight_spectrum(model[0].weight))
    assert [(option.keep, option.edit.rank) for option in options] == [(0.99, 3), (0.95, 3), (0.9, 2)]
    assert [option.lost for option in options] == pytest.approx([0, 0, 1 / 14], abs=1e-12)
    samples, found = thirds(x), anatomy(model, x[:2])
    assert loss_with(model, options[0].edit, found, samples) == pytest.approx(loss_by_hand(model, samples), rel=1e-9)
    assert loss_with(model, options[2].edit, found, samples) != pytest.approx(loss_by_hand(model, samples), rel=1e-4)


@pytest.mark.parametrize("name", ["mlp", "vgg", "residual"])
def test_factorised_layers_are_those_that_surgery_makes(name: str) -> None:
    model, samples = labelled(name, 20)
    found = anatomy(model, samples.calibration[:2])
    possible = [layer for layer in weighted_layers(model, found) if can_factorise(model, layer)]
    assert len(possible) == len(weighted_layers(model, found)) - (name == "residual")  # its depthwise convolution
    for layer in possible:
        weight = weight_of(model.get_submodule(layer))
        for option in predicted_factorisings(model, layer, weight_spectrum(weight)):
            thin = factorise(model, layer=layer, rank=option.edit.rank)
            assert option.parameters == count_parameters(thin)
            after = loss_with(model, option.edit, found, samples)
            assert after == pytest.approx(loss_by_hand(thin, samples), rel=1e-9)
            narrow, wide = (weight_of(thin.get_submodule(f"{layer}.{part}")).flatten(1) for part in ("narrow", "wide"))
            error = (wide @ narrow - weight.flatten(1)).square().sum() / weight.square().sum()
            assert option.lost == pytest.approx(float(error), abs=1e-12)


def test_layers_with_two_names_groups_or_no_holder_cannot_factorise() -> None:
    twice = nn.Linear(3, 3)
    assert not can_factorise(nn.Sequential(twice, twice), "0")
    assert not can_factorise(nn.Sequential(nn.Conv2d(4, 4, 3, groups=2)), "0")
    assert not can_factorise(nn.Linear(3, 3), "")
    assert can_factorise(nn.Sequential(nn.Linear(3, 3)), "0")
