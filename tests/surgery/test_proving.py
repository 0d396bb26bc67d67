"""The proof can refuse: a network that uses the number of its units unseen is never cut, whatever it returns."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from topiarist import surgery
from topiarist.errors import ModelError
from topiarist.randomness import isolated

ENDS: dict[str, Callable[[Tensor], Tensor]] = {
    "numbers": lambda scores: scores,
    "complex numbers": lambda scores: torch.complex(scores, scores),
    "whole numbers": lambda scores: (1000 * scores).long(),
    "some that are not finite": lambda scores: torch.where(scores > scores.mean(), torch.inf, scores),
}


class Counting(nn.Module):
    """A network that may add the number of its units, by a way that no trace sees."""

    def __init__(self, end: str, *, counts: bool) -> None:
        super().__init__()
        self.hidden, self.last = nn.Linear(5, 12), nn.Linear(12, 3)
        self.end, self.counts = end, counts

    def forward(self, x: Tensor) -> Tensor:
        h = self.hidden(x)
        scores: Tensor = self.last(h)
        return ENDS[self.end](scores * h.stride(0) if self.counts else scores)


@pytest.mark.parametrize("end", ENDS)
def test_what_the_number_of_units_changes_is_refused(end: str) -> None:
    x = torch.randn(3, 5)
    smaller = surgery.remove(Counting(end, counts=False), x, units={"hidden": range(6)})
    assert smaller.get_parameter("hidden.weight").shape == (6, 5)
    with pytest.raises(ModelError, match="computes something else"):
        surgery.remove(Counting(end, counts=True), x, units={"hidden": range(6)})


def test_outputs_that_say_nothing_prove_nothing() -> None:
    class Lost(Counting):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x) * torch.nan

    lost, x, units = Lost("numbers", counts=False), torch.randn(3, 5), {"hidden": range(6)}
    with pytest.raises(ModelError, match=r"nothing can be proven: with random weights, .* no finite number"):
        surgery.remove(lost, x, units=units)
    assert surgery.remove(lost, x, units=units, proof=False).get_parameter("hidden.weight").shape == (6, 5)


def test_a_mistake_in_the_first_of_many_layers_is_felt_at_the_end() -> None:
    class Deep(Counting):
        def __init__(self) -> None:
            super().__init__("numbers", counts=True)
            block = (nn.Sigmoid(), nn.Linear(3, 3), nn.BatchNorm1d(3))
            self.rest = nn.Sequential(*(copy.deepcopy(layer) for _ in range(30) for layer in block))

        def forward(self, x: Tensor) -> Tensor:
            scores: Tensor = self.rest(super().forward(x))
            return scores

    with isolated(0):  # of one in a hundred such networks, three units wide, nothing reaches the end
        deep, x = Deep(), torch.randn(3, 5)
    with pytest.raises(ModelError, match="computes something else"):
        surgery.remove(deep, x, units={"hidden": range(6)})
