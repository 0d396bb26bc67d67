"""One pass over the samples sees what passes for each space alone see."""

import numpy
import pytest
import torch
from torch import nn

from tests.networks import NETWORKS
from tests.surgery.samples import made, more
from topiarist.errors import ModelError
from topiarist.surgery.advice.readings import activity_read, evidence_read, read_spaces
from topiarist.surgery.calibration import CalibrationBatches
from topiarist.surgery.choice.activity import activity_of
from topiarist.surgery.choice.evidence import blind_spot, evidence_of_whole
from topiarist.tracing import anatomy

NAMES = ("residual", "inception", "cascade", "gated", "grouped", "grouped sequence", "shared layer", "normed")


@pytest.mark.parametrize("network", NAMES)
def test_one_pass_gives_the_activity_and_the_evidence_of_each_space(network: str) -> None:
    model, example = NETWORKS[network](0)
    found = anatomy(model, example)
    batches = CalibrationBatches(more(example, 40), model, 1)
    judged = [name for name, space in found.free.items() if blind_spot(space) is None]
    assert judged
    assert all(activity_of(model, found, name, batches) is None for name in found.free if name not in judged)
    read = read_spaces(model, found, judged, batches)
    assert list(read) == judged
    for name, readings in read.items():
        activity, alone = activity_read(model, found, readings), activity_of(model, found, name, batches)
        assert activity is not None and alone is not None
        assert numpy.allclose(activity.products, alone.products) and numpy.allclose(activity.means, alone.means)
        assert (activity.shiftable, activity.sigmoid) == (alone.shiftable, alone.sigmoid)
        evidence = evidence_read(model, found, readings)
        oracle = evidence_of_whole(model, found, [name], batches, joint=False)[name]
        assert evidence is not None and oracle is not None
        torch.testing.assert_close(evidence.spread, oracle.spread)
        torch.testing.assert_close(evidence.needs, oracle.needs)
        assert evidence.total == pytest.approx(oracle.total)


def test_batches_are_run_once_for_all_spaces_and_no_further_than_needed() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 2)), 30, 3)
    found = anatomy(model, x[:2])
    ran: list[nn.Module] = []
    for layer in model:
        layer.register_forward_hook(lambda layer, *_: ran.append(layer))
    read_spaces(model, found, found.free, CalibrationBatches(list(torch.split(x, 10)), model, 1))
    assert ran == 3 * [*model[:3]]


def test_what_a_network_draws_at_random_is_not_missed_elsewhere() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)), 5, 3)
    found = anatomy(model, x)
    model[0].register_forward_hook(lambda _, __, given: given + torch.rand(1))
    state = torch.get_rng_state()
    read_spaces(model, found, found.free, CalibrationBatches(x, model, 1))
    assert torch.equal(torch.get_rng_state(), state)


def test_extremes_are_of_all_positions() -> None:
    model, x = made(lambda: nn.Sequential(nn.Conv2d(1, 2, 1), nn.Flatten(), nn.Linear(800, 2)), 3, 1, 20, 20)
    found = anatomy(model, x[:2])
    hidden = model[0](x).detach()
    (reading,) = read_spaces(model, found, ["0"], CalibrationBatches(x, model, 1))["0"].values()
    torch.testing.assert_close(reading.lowest, hidden.amin((0, 2, 3)))
    torch.testing.assert_close(reading.highest, hidden.amax((0, 2, 3)))
    assert reading.count == 3 * 400


def test_no_hooks_and_no_modes_are_left_behind() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(3, 4), nn.Dropout(), nn.Linear(4, 2)), 5, 3)
    model.train()
    found = anatomy(model, x)
    read_spaces(model, found, found.free, CalibrationBatches(x, model, 1))
    with pytest.raises(ModelError, match="cannot read the calibration data"):
        read_spaces(model, found, found.free, CalibrationBatches(x[:, :2], model, 1))
    assert all(module.training and not module._forward_pre_hooks for module in model.modules())
