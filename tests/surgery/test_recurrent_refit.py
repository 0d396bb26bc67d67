"""Recurrent layers after a cut: exact where what went can be expressed by what stays, and nearer in all other cases."""

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from topiarist import surgery
from topiarist.randomness import isolated
from topiarist.surgery.edits.plan import plan_of

remove = partial(surgery.remove, settling=0)  # refits alone
COPIES = range(6, 9)  # of the first three of nine units
SETTINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "without biases": {"bias": False},
    "two layers": {"num_layers": 2},
    "both directions": {"num_layers": 2, "bidirectional": True},
}


class Recurrent(nn.Module):
    """A layer, a recurrent one and one that reads all steps; sequences may be packed, or begin with a state."""

    def __init__(self, kind: Any, *, packed: bool = False, given: bool = False, **settings: Any) -> None:
        super().__init__()
        self.packed = packed
        self.before = nn.Linear(4, 9)
        self.inner = kind(9, 9, batch_first=True, **settings)
        ways = 2 if self.inner.bidirectional else 1
        self.state = nn.Linear(4, 9) if given else None
        self.last = nn.Linear((settings.get("proj_size") or 9) * ways, 3)

    def forward(self, x: Tensor) -> Tensor:
        state = None if self.state is None else torch.tanh(self.state(x[:, 0])).unsqueeze(0)
        h: Any = torch.relu(self.before(x))
        if self.packed:
            lengths = torch.arange(len(x)) % (x.shape[1] - 1) + 2
            h = pack_padded_sequence(h, lengths.clamp_max(x.shape[1]), batch_first=True, enforce_sorted=False)
        h = self.inner(h, state)[0]
        read: Tensor = self.last(pad_packed_sequence(h, batch_first=True)[0] if self.packed else h)
        return read


def redundant(kind: Any, space: str, **settings: Any) -> Recurrent:
    """Return a network in which units of a space are copies of others."""
    with isolated(3):
        model = Recurrent(kind, **settings).double().eval()
    gates = {nn.LSTM: 4, nn.GRU: 3}.get(kind, 1)
    with torch.no_grad():
        if space == "before":
            for tensor in model.before.parameters():
                tensor[6:] = tensor[:3]
            return model
        if model.state is not None:
            for tensor in model.state.parameters():
                tensor[6:] = tensor[:3]
        for name, tensor in model.inner.named_parameters():
            if "_hr" not in name:
                rows = tensor.view(gates, 9, *tensor.shape[1:])
                rows[:, 6:] = rows[:, :3]
    return model


def answers(model: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(x)
    return found


def check_exact(model: nn.Module, space: str, tolerance: float = 0.01) -> nn.Module:
    """Check that copies can go; the refit's ridge leaves a small part of what was lost."""
    with isolated(4):
        x, new = torch.randn(256, 6, 4, dtype=torch.float64), torch.randn(16, 6, 4, dtype=torch.float64)
    as_cut = remove(model, x[:2], units={space: COPIES})
    cut = remove(model, x[:2], units={space: COPIES}, calibration=x)
    lost = float((answers(as_cut, new) - answers(model, new)).square().mean())
    left = float((answers(cut, new) - answers(model, new)).square().mean())
    assert left < tolerance**2 * lost
    return cut


@pytest.mark.slow
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("space", ["before", "inner"])
def test_units_that_others_express_go_without_a_loss(kind: Any, settings: dict[str, Any], space: str) -> None:
    check_exact(redundant(kind, space, **settings), space)


def test_copies_in_an_lstm_go_without_a_loss_and_the_plan_knows_the_numbers() -> None:
    model = redundant(nn.LSTM, "inner")
    cut = check_exact(model, "inner")
    again = surgery.apply(plan_of(cut), model, torch.zeros(2, 6, 4, dtype=torch.float64))
    x = torch.randn(3, 6, 4, dtype=torch.float64)
    torch.testing.assert_close(answers(again, x), answers(cut, x))


@pytest.mark.slow
def test_what_cells_return_is_projected_as_before() -> None:
    check_exact(redundant(nn.LSTM, "inner", proj_size=5), "inner")


@pytest.mark.slow
def test_sequences_of_several_lengths_are_fitted_on_the_steps_that_they_have() -> None:
    check_exact(redundant(nn.GRU, "inner", packed=True, bidirectional=True), "inner")


def test_a_state_that_is_given_counts_as_a_step_before() -> None:
    check_exact(redundant(nn.GRU, "inner", given=True), "state")


@pytest.mark.slow
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_refit_brings_states_nearer_to_what_they_were(kind: Any) -> None:
    with isolated(5):
        model = Recurrent(kind, num_layers=2).eval()
        x, new = torch.randn(256, 8, 4), torch.randn(64, 8, 4)
    units = {"inner": [0, 4, 7], "before": [2, 3]}
    cut, as_cut = remove(model, x[:2], units=units, calibration=x), remove(model, x[:2], units=units)
    wanted = answers(model, new)
    assert (answers(cut, new) - wanted).square().mean() < 0.25 * (answers(as_cut, new) - wanted).square().mean()


def test_units_that_matter_to_the_next_step_alone_are_chosen_too() -> None:
    """Nobody but the layer itself reads the first six units; without them it would not know what it has seen."""
    model = redundant(nn.RNN, "inner")
    with torch.no_grad():
        model.last.weight[:, :6] = 0.0
        model.inner.weight_hh_l0[:, 6:] = 0.0
    with isolated(6):
        x = torch.randn(64, 6, 4, dtype=torch.float64)
    units = surgery.choose_units(model, x[:2], keep={"inner": 6}, calibration=x)
    cut = remove(model, x[:2], units=units, calibration=x)
    error = (answers(cut, x) - answers(model, x)).square().mean()
    assert error < 1e-4 * answers(model, x).var()
