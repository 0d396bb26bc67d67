"""Refits of layers whose rows are units of another space, or that no calibration sample comes to."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from topiarist import Budget, resize, surgery
from topiarist.randomness import isolated

TOKENS, WIDTH = 6, 10


class AcrossTokens(nn.Module):
    """Layers across tokens, to which each channel is a row: an MLP-Mixer's, with convolutions, with own parameters."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.embed, self.head = nn.Linear(4, WIDTH), nn.Linear(WIDTH, 3)
        self.first: nn.Module = nn.Conv1d(TOKENS, 16, 1) if kind == "convolution" else nn.Linear(TOKENS, 16)
        self.second: nn.Module = nn.Conv1d(16, TOKENS, 1) if kind == "convolution" else nn.Linear(16, TOKENS)
        if kind == "parameters":
            self.first, self.second = nn.Identity(), nn.Identity()
            self.rise, self.fall = nn.Parameter(torch.randn(16, TOKENS)), nn.Parameter(torch.randn(TOKENS, 16))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.embed(x))
        if self.kind == "convolution":
            mixed = self.second(torch.relu(self.first(x)))
        elif self.kind == "parameters":
            mixed = functional.linear(functional.linear(x.mT, self.rise).relu(), self.fall).mT
        elif self.kind == "rows":  # samples and channels along one axis
            mixed = self.second(torch.relu(self.first(x.mT.reshape(-1, TOKENS)))).view(len(x), -1, TOKENS).mT
        else:
            mixed = self.second(torch.relu(self.first(x.mT))).mT
        answer: Tensor = self.head((x + mixed).mean(1))
        return answer


@pytest.mark.parametrize("kind", ["linear", "rows", "convolution", "parameters"])
def test_rows_that_are_gone_are_passed_over(kind: str) -> None:
    with isolated(0):
        model, x = AcrossTokens(kind).eval(), torch.randn(128, TOKENS, 4)
    hidden = "rise" if kind == "parameters" else "first"
    dead, double = [1, 2, 7], [8, 11]
    with torch.no_grad():  # three channels are not missed, and two units across tokens are copies of others
        for tensor in (*model.embed.parameters(), model.head.weight.T):
            tensor[dead] = 0
        for tensor in (model.rise,) if kind == "parameters" else model.first.parameters():
            tensor[double] = tensor[[0, 5]]
    units = {"embed": dead, hidden: double}
    small = surgery.remove(model, x[:4], units=units, calibration=x, settling=0)
    unfitted = surgery.remove(model, x[:4], units=units)
    whole = model(x)
    assert (unfitted(x) - whole).abs().max() > 0.01
    if kind != "parameters":  # which keep the weights that are left
        torch.testing.assert_close(small(x), whole, rtol=0.01, atol=0.002)
    assert small.state_dict()["head.weight"].shape == (3, WIDTH - 3)
    assert (
        resize(model, calibration=x, budget=Budget(parameters=150), settling=0, latency=False).after.parameters <= 150
    )


class Routed(nn.Module):
    """Samples go to one of two experts by the sign of a number."""

    def __init__(self, *, asks: bool) -> None:
        super().__init__()
        self.asks, self.inner, self.head = asks, nn.Linear(4, 6), nn.Linear(6, 2)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(6, 9), nn.BatchNorm1d(9), nn.ReLU(), nn.Linear(9, 6)) for _ in range(2)
        )

    def forward(self, x: Tensor) -> Tensor:
        inner = self.inner(x)
        given = torch.zeros_like(inner)
        for number, expert in enumerate(self.experts):
            (rows,) = torch.where((x[:, 0] > 0) == bool(number))
            if len(rows) or not self.asks:
                given = given.index_add(0, rows, expert(inner[rows]))
        answer: Tensor = self.head(given.relu())
        return answer


@pytest.mark.parametrize("asks", [False, True], ids=["reads no rows", "does not run"])
def test_an_expert_that_no_sample_comes_to_keeps_the_weights_that_are_left(asks: bool) -> None:
    with isolated(0):
        model, x = Routed(asks=asks).eval(), torch.randn(64, 4)
    unseen = torch.cat([-x[:, :1].abs(), x[:, 1:]], dim=1)
    small = surgery.remove(model, x, units={"experts.0.0": [0, 1], "experts.1.0": [3]}, calibration=unseen, settling=0)
    kept, whole = small.state_dict(), model.state_dict()
    assert torch.equal(kept["experts.1.3.weight"], whole["experts.1.3.weight"][:, [0, 1, 2, *range(4, 9)]])
    assert not torch.equal(kept["experts.0.3.weight"], whole["experts.0.3.weight"][:, 2:])
    limits = Budget(parameters=120)
    outcome = resize(model, calibration=unseen, example_input=x, budget=limits, settling=0, latency=False)
    assert outcome.after.parameters <= 120
    assert all(bool(tensor.isfinite().all()) for tensor in outcome.model.state_dict().values())
