"""What removal loses: planted units that no one misses, and the loss after the cut as surgery makes it."""

import pytest
import torch
from torch import nn

from tests.surgery.labelled import labelled, loss_by_hand, loss_with
from tests.surgery.samples import made
from topiarist.errors import ModelError, SettingsError
from topiarist.models.evaluation import count_parameters
from topiarist.surgery import remove
from topiarist.surgery.advice.options import Removal, predicted_removals
from topiarist.surgery.advice.readings import read_spaces
from topiarist.surgery.advice.trials import LabelledSamples
from topiarist.surgery.choice.allotment import lost_shares
from topiarist.surgery.choice.evidence import same_readings
from topiarist.surgery.refit.moments import RIDGE
from topiarist.tracing import Anatomy, anatomy


def predicted(
    model: nn.Module, found: Anatomy, space: str, samples: LabelledSamples, *shares: float
) -> tuple[Removal, ...]:
    readings = read_spaces(model, found, [space], samples.batches(model))[space]
    return predicted_removals(model, found, space, readings, shares or (0.25, 0.5, 0.75))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "residual", "inception", "vgg"])
def test_each_share_is_cut_as_surgery_cuts_it(name: str) -> None:
    model, samples = labelled(name, 50)
    x = samples.calibration
    found = anatomy(model, x[:2])
    for space, units in found.free.items():
        for removal in predicted(model, found, space, samples):
            assert len(removal.units) == min(max(round(removal.share * units.size), 1), units.size - 1)
            cut = remove(model, x[:2], units={space: removal.units}, calibration=x, settling=0)
            after = loss_with(model, removal.edit, found, samples)
            assert after == pytest.approx(loss_by_hand(cut, samples), rel=1e-9)
            assert removal.parameters == count_parameters(cut)


@pytest.mark.parametrize("name", ["mlp", "residual", "cascade"])
def test_what_is_lost_is_what_the_allotment_of_widths_knows(name: str) -> None:
    model, samples = labelled(name)
    found = anatomy(model, samples.calibration[:2])
    oracle = lost_shares(model, found, samples.batches(model))
    for space, units in found.free.items():
        removals = predicted(model, found, space, samples)
        readers = len(list(same_readings(found, units.readers, units.readers)))  # a mean over them, there a sum
        assert [removal.lost for removal in removals] == pytest.approx(
            [oracle[space][units.size - len(removal.units)] / readers for removal in removals]
        )
        assert 0 <= removals[0].lost < removals[1].lost < removals[2].lost < 1


def test_dead_and_equal_units_are_not_missed() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 3)), 100, 5)
    with torch.no_grad():
        model[0].weight[6], model[0].bias[6] = model[0].weight[2], model[0].bias[2]
        model[0].weight[4] = 0
    samples = LabelledSamples(x, torch.arange(100) % 3)
    found = anatomy(model, x[:2])
    planted, more = predicted(model, found, "0", samples, 0.25, 0.5)
    assert planted.units in ((2, 4), (4, 6))
    assert planted.lost < RIDGE < 0.01 < more.lost
    before = loss_by_hand(model, samples)
    little, much = (abs(loss_with(model, one.edit, found, samples) - before) for one in (planted, more))
    assert little < RIDGE < 0.001 < much


def test_a_layer_that_is_all_dead_loses_nothing() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)), 100, 5)
    with torch.no_grad():
        model[0].bias -= 100
    samples = LabelledSamples(x, torch.arange(100) % 3)
    found = anatomy(model, x[:2])
    for removal in predicted(model, found, "0", samples):
        assert removal.lost == 0.0
        after = loss_with(model, removal.edit, found, samples)
        assert after == pytest.approx(loss_by_hand(model, samples), rel=1e-12)


@pytest.mark.parametrize(("size", "counts"), [(1, []), (2, [1, 1, 1]), (3, [1, 2, 2]), (10, [2, 5, 8])])
def test_at_least_one_unit_goes_and_one_stays(size: int, counts: list[int]) -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(5, size), nn.Tanh(), nn.Linear(size, 3)), 40, 5)
    removals = predicted(model, anatomy(model, x[:2]), "0", LabelledSamples(x, torch.arange(40) % 3))
    assert [len(removal.units) for removal in removals] == counts


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, float("nan")])
def test_a_share_that_is_none_is_refused(share: float) -> None:
    model, samples = labelled("mlp")
    with pytest.raises(SettingsError, match="shares of units"):
        predicted(model, anatomy(model, samples.calibration[:2]), "hidden0", samples, share)


def test_a_space_that_is_fixed_is_refused() -> None:
    model, samples = labelled("mlp")
    with pytest.raises(ModelError, match="fixed"):
        predicted(model, anatomy(model, samples.calibration[:2]), "output", samples)
