"""An operation of the user's own, taught to tracing, can be cut through; without a rule it fixes what it touches."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.tracing.cutting import check_network
from topiarist.errors import ModelError
from topiarist.tracing import Operation, anatomy, register
from topiarist.tracing.operation import RULES


@torch.library.custom_op("topiarist_tests::twist", mutates_args=())
def twist(x: Tensor) -> Tensor:
    """Reverse the last axis."""
    return x.flip(-1)


class Twisted(nn.Module):
    """Two layers with an operation between them that torch does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.last = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.last(twist(torch.relu(self.first(x))))
        return given


def follow_twist(operation: Operation) -> None:
    """Let the units be reversed as well."""
    axes = list(operation.axes(operation.inputs[0]))
    last = axes[-1]
    axes[-1] = None if last is None else last[::-1]
    operation.give(axes)


@pytest.fixture
def taught() -> Iterator[None]:
    register("topiarist_tests::twist", follow_twist)
    yield
    del RULES["topiarist_tests::twist"]


EXAMPLE = torch.randn(3, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_without_a_rule_its_units_are_fixed_and_it_is_named() -> None:
    found = anatomy(Twisted(), EXAMPLE)
    reason = found["first"].reason or ""
    assert reason.startswith("'topiarist_tests::twist' is not understood (topiarist_tests::twist in the network's")
    assert found.opaque == ("'topiarist_tests::twist' (1 times)",)


@pytest.mark.usefixtures("taught")
def test_with_a_rule_half_of_its_units_can_go(tmp_path: Path) -> None:
    found = check_network(Twisted, EXAMPLE, tmp_path)
    assert {name: space.size for name, space in found.free.items()} == {"first": 6}
    assert found["first"].consumers[0].positions.reshape(-1).tolist() == [5, 4, 3, 2, 1, 0]
    assert found.opaque == ()


def test_a_wrong_rule_is_caught_by_the_proof(tmp_path: Path) -> None:
    def pass_on(operation: Operation) -> None:
        operation.give(list(operation.axes(operation.inputs[0])))

    register("topiarist_tests::twist", pass_on)
    try:
        with pytest.raises(ModelError, match=r"^without units of 'first', the network's own code computes something"):
            check_network(Twisted, EXAMPLE, tmp_path)
    finally:
        del RULES["topiarist_tests::twist"]
