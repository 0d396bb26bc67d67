"""Networks whose code hides what it does from a copy of them, or from a run on one example."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from topiarist import anatomy, surgery
from topiarist.errors import ModelError


class Layers(nn.Module):
    """Two layers with eight units between them, and what else a test puts there."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Any:
        return self.last(self.first(x).relu())


class HeldByLambda(Layers):
    def __init__(self) -> None:
        super().__init__()
        self.run = lambda x: self.last(self.first(x).relu())

    def forward(self, x: Tensor) -> Any:
        return self.run(x)


class HeldByHook(Layers):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(8))
        self.first.register_forward_hook(lambda module, given, output: output * self.scale)


class HeldByMethod(Layers):
    def __init__(self) -> None:
        super().__init__()
        self.stages = [self.first.forward, self.read]

    def read(self, h: Tensor) -> Tensor:
        return self.last(h.relu())

    def forward(self, x: Tensor) -> Any:
        for stage in self.stages:
            x = stage(x)
        return x


def test_a_lambda_that_runs_the_whole_network_is_refused() -> None:
    with pytest.raises(ModelError, match=r"holds on to 'first\.weight' of the network"):
        anatomy(HeldByLambda(), torch.zeros(1, 4))


def test_a_hook_that_holds_on_to_a_parameter_fixes_the_units_along_it() -> None:
    space = anatomy(HeldByHook(), torch.zeros(1, 4))["first"]
    assert space.reason is not None and "holds on to 'scale'" in space.reason


def test_methods_belong_to_the_copy() -> None:
    model, x = HeldByMethod(), torch.randn(3, 4)
    (name,) = anatomy(model, x).free
    cut = surgery.remove(model, x, units={name: [0, 2, 5]})
    with torch.no_grad():
        model.last.weight[:, [0, 2, 5]] = 0
    torch.testing.assert_close(cut(x), model(x))
