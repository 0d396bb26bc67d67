"""Units of recurrent layers whose weights are all zero: they are zero at every step, and really go."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from topiarist import anatomy, surgery
from topiarist.randomness import isolated
from topiarist.surgery.choice.weights import unit_weights


class Recurrent(nn.Module):
    """A recurrent layer and one that reads its last step, as it is or squashed."""

    def __init__(self, kind: Any, *, squashed: bool = False, first: float | None = None, **settings: Any) -> None:
        super().__init__()
        self.squashed, self.first = squashed, first
        self.inner = kind(4, 12, batch_first=True, **settings)
        self.last = nn.Linear(24 if self.inner.bidirectional else 12, 2)

    def forward(self, x: Tensor) -> Any:
        count = self.inner.num_layers * (2 if self.inner.bidirectional else 1)
        state = None if self.first is None else x.new_ones(count, len(x), self.inner.hidden_size) * self.first
        h = self.inner(x, state)[0][:, -1]
        return self.last(h.sigmoid() if self.squashed else h)


def silenced(model: nn.Module, x: Tensor) -> nn.Module:
    """Let the first four units of every space have no weights."""
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for space in unit_weights(model, x).values():
            for place in space.silenced:
                parameters[place.parameter][place.rows[:4].flatten()] = 0
    return model


@pytest.mark.slow
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("settings", [{}, {"num_layers": 2}, {"bidirectional": True}, {"squashed": True}])
def test_units_without_weights_go(kind: Any, settings: Any) -> None:
    x = torch.randn(3, 5, 4, dtype=torch.float64)
    with isolated(1):
        model = silenced(Recurrent(kind, **settings).double().eval(), x)
    small: Any = surgery.compact(model, x)
    assert small.inner.hidden_size == 8
    longer = torch.randn(2, 9, 4, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(small(longer), model(longer))


def test_units_stay_where_a_bias_is_left() -> None:
    x = torch.randn(3, 5, 4)
    model: Any = silenced(Recurrent(nn.GRU), x)
    with torch.no_grad():
        model.inner.bias_hh_l0[24:28] = 0.5
    assert anatomy(surgery.compact(model, x), x)["inner"].size == 12


def test_units_stay_where_the_layer_is_given_a_first_state() -> None:
    x = torch.randn(3, 5, 4)
    model = silenced(Recurrent(nn.GRU, first=1.0), x)
    assert anatomy(surgery.compact(model, x), x)["inner"].size == 12
