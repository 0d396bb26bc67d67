"""Networks that torch quantised, or prepared for it, are refused with what to do in one line."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from topiarist import Budget, anatomy, resize, save
from topiarist.errors import ModelError

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


quantization: Any = torch.ao.quantization  # torch leaves it untyped


def layers() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def resized(model: nn.Module) -> None:
    resize(model, None, "distinctiveness", calibration=[torch.zeros(16, 4)], budget=Budget(parameters=30))


def test_a_quantised_network_is_to_be_cut_first() -> None:
    model = nn.Sequential(nn.Linear(4, 4), quantization.quantize_dynamic(layers(), {nn.Linear}))
    said = (
        r"^a quantised network cannot be cut: '1\.0' \(Linear\) has packed .*; cut the network first, and quantise it"
    )
    with pytest.raises(ModelError, match=said):
        anatomy(model, torch.zeros(2, 4))
    with pytest.raises(ModelError, match=said):
        resized(model)
    with pytest.raises(ModelError, match=r"no quantised network, such as '1\.0' is: save it before it is quantised"):
        save(model, "unused.safetensors")


def test_a_network_prepared_for_quantisation_is_to_be_cut_before() -> None:
    model = layers().train()
    model.qconfig = quantization.get_default_qat_qconfig("x86")
    with pytest.raises(
        ModelError, match="every space is fixed; '0' prepares it for quantisation: cut the network first"
    ):
        resized(quantization.prepare_qat(model))


def test_where_no_unit_can_go_the_error_says_why() -> None:
    class Sorting(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            found: Tensor = self[2](self[0](x).sort(1).values)
            return found

    said = "every space is fixed, such as '0' of 8 units: 'sort' runs over them"
    with pytest.raises(ModelError, match=said):
        resized(Sorting(*layers()))
