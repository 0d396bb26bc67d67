"""Steps of recurrent layers, which accelerators compute in one operation each, written out in those that have rules."""

import torch
from torch import Tensor


def lstm_cell(
    read: Tensor, carried: Tensor, cell: Tensor, bias: Tensor | None = None, carried_bias: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the next state and cell of an LSTM, and its gates; `read` and `carried` are (n_samples, 4 · n_units)."""
    gates = _with_bias(read, bias) + _with_bias(carried, carried_bias)
    enter, forget, new, leave = gates.chunk(4, 1)
    following = forget.sigmoid() * cell + enter.sigmoid() * new.tanh()
    return leave.sigmoid() * following.tanh(), following, gates


def gru_cell(
    read: Tensor, carried: Tensor, state: Tensor, bias: Tensor | None = None, carried_bias: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return the next state of a GRU, and its gates; `read` and `carried` are (n_samples, 3 · n_units)."""
    reset, keep, new = _with_bias(read, bias).chunk(3, 1)
    own_reset, own_keep, own_new = _with_bias(carried, carried_bias).chunk(3, 1)
    reset, keep = (reset + own_reset).sigmoid(), (keep + own_keep).sigmoid()
    new = (new + reset * own_new).tanh()
    return new + keep * (state - new), torch.cat([reset, keep, new], 1)


def _with_bias(gates: Tensor, bias: Tensor | None) -> Tensor:
    return gates if bias is None else gates + bias
