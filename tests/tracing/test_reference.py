"""The reference of a proof: the network's own weights stay as they are, and units that are gone are zero."""

from collections.abc import Callable

import numpy
import pytest
import torch
from torch import Tensor, nn

from tests.tracing.cutting import assert_same, computed, without
from topiarist import anatomy
from topiarist.models.copying import copied
from topiarist.randomness import isolated
from topiarist.tracing.random_weights import randomised
from topiarist.tracing.reference import Reference

CONVOLUTIONS: dict[str, Callable[[], nn.Module]] = {
    "plain": lambda: nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 4, 1), nn.Conv2d(4, 2, 1, bias=False)),
    "transposed": lambda: nn.Sequential(nn.ConvTranspose2d(3, 6, 2), nn.ReLU(), nn.ConvTranspose2d(6, 2, 2, stride=2)),
    "in groups": lambda: nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Conv2d(6, 6, 1, groups=6), nn.Conv2d(6, 2, 1)),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_a_convolution_without_channels_is_one_with_zeros_in_their_place(name: str) -> None:
    with isolated(4):
        model = CONVOLUTIONS[name]().double().eval()
        x = torch.randn(2, 3, 6, 6, dtype=torch.float64)
    found = anatomy(model, x)
    space, units = found.free["0"], [0, 3]
    masked = copied(model)
    with torch.no_grad():
        for place in space.places:
            layer = masked.get_submodule(place.module)
            for own, axis in place.tensors:
                positions = torch.from_numpy(place.positions[units].reshape(-1))
                getattr(layer, own).index_fill_(axis, positions, 0)
    assert_same(without(model, x, found, {"0": units}), computed(masked, x))


def test_what_one_run_has_silenced_serves_the_next() -> None:
    model = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 2)).double().eval()
    x = torch.randn(2, 3, dtype=torch.float64)
    found = anatomy(model, x)
    assert found.trace is not None
    tracer, silenced = found.trace.tracer, dict[str, Tensor]()
    gone = numpy.zeros(len(tracer.labels), bool)
    gone[found.free["0"].units[[1, 2]]] = True
    outputs, held = [], []
    for _ in range(2):
        with torch.no_grad(), Reference(model, tracer.labels.copy(), tracer.leaves, gone, silenced=silenced):
            outputs.append(model(x))
        held.append({name: id(tensor) for name, tensor in silenced.items()})
    assert held[0] == held[1]
    assert held[0].keys() == {"0.weight", "0.bias", "2.weight"}
    assert torch.equal(outputs[0], outputs[1])
    assert not silenced["0.weight"][[1, 2]].any() and model.get_parameter("0.weight")[[1, 2]].all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, None])
@pytest.mark.parametrize("own", [torch.float64, torch.float32])
def test_random_weights_leave_the_network_as_it_is(dtype: torch.dtype | None, own: torch.dtype) -> None:
    model = nn.Sequential(nn.Conv1d(3, 8, 3), nn.BatchNorm1d(8), nn.Linear(32, 600), nn.LSTM(600, 5)).to(own)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    drawn = randomised(model, dtype)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    for name, parameter in drawn.named_parameters():
        assert parameter.dtype == (dtype or own)
        assert parameter.data_ptr() != model.get_parameter(name).data_ptr()
        assert not (parameter == before[name]).any()
        rows = parameter.detach().flatten(1) if parameter.ndim > 1 else parameter.detach()
        assert len(torch.unique(rows, dim=0)) == len(rows)
