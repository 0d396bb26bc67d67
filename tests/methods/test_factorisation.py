"""Factorisation: ranks against numpy's singular values, budgets kept and used, and what cannot be refused."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn

from tests.methods.tasks import (
    CASES,
    answers,
    cut,
    data_for,
    drawn,
    network_for,
    perceptron,
    request_for,
    same_state,
    state_of,
)
from topiarist import load, save
from topiarist.data import Data, Part
from topiarist.errors import ModelError, SettingsError
from topiarist.measurement import Budget, BudgetError
from topiarist.measurement.cost import count_macs
from topiarist.methods import Factorisation, FineTuning, Request, resize
from topiarist.models.evaluation import count_parameters
from topiarist.surgery import FactoriseLayer, plan_of
from topiarist.surgery.choice.allotment import LimitError
from topiarist.surgery.choice.costs import Measure

ALL = list(CASES)
SOME = ["perceptron", "convolutions", "residual", "inception"]


def request_of(name: str, **others: Any) -> Request:
    model = network_for(name)
    return request_for(model, data_for(model, *CASES[name][1], counts=(4, 4, 4)), **others)


def ranks_of(request: Request, **settings: Any) -> dict[str, int]:
    edits = Factorisation(**settings).propose(request).edits
    assert all(isinstance(edit, FactoriseLayer) for edit in edits)
    return {edit.layer: edit.rank for edit in edits if isinstance(edit, FactoriseLayer)}


def matrices(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights of all layers that could become two."""
    return {
        name: module.weight.detach().flatten(1)
        for name, module in model.named_modules()
        if isinstance(module, (nn.Linear, nn.Conv1d, nn.Conv2d)) and getattr(module, "groups", 1) == 1
    }


def expected_rank(matrix: Tensor, keep: float) -> int | None:
    """Return the rank that keeps a share, None where it saves nothing."""
    squares = numpy.linalg.svd(matrix.numpy(), compute_uv=False) ** 2
    rank = next(rank for rank in range(1, len(squares) + 1) if squares[:rank].sum() >= keep * squares.sum() - 1e-12)
    return rank if rank * sum(matrix.shape) < matrix.numel() else None


@pytest.mark.slow
@pytest.mark.parametrize("keep", [0.3, 0.6, 0.85])
@pytest.mark.parametrize("name", ALL)
def test_ranks_keep_the_share_by_numpys_singular_values(name: str, keep: float) -> None:
    request = request_of(name)
    expected = {layer: expected_rank(matrix, keep) for layer, matrix in matrices(request.model).items()}
    assert ranks_of(request, keep=keep) == {layer: rank for layer, rank in expected.items() if rank is not None}


def test_unless_given_95_percent_stay() -> None:
    model = perceptron(30, 40, 30, 3)
    with torch.no_grad():
        model.hidden1.weight.mul_(0.02 ** torch.arange(40))  # type: ignore[union-attr, operator]
    request = request_for(model, data_for(model, 30, counts=(4, 4, 4)))
    assert ranks_of(request) == ranks_of(request, keep=0.95) != {}


@pytest.mark.parametrize("name", SOME)
def test_to_keep_all_changes_nothing(name: str) -> None:
    request = request_of(name)
    proposal = Factorisation(keep=1).propose(request)
    assert proposal.edits == () and "no layer becomes smaller" in proposal.reasons[0]


def test_what_has_no_part_in_a_layer_costs_nothing_to_leave_out() -> None:
    model = perceptron(9, 12, 8, 3, double=True)
    with torch.no_grad():
        weight = model.hidden1.weight  # type: ignore[union-attr]
        weight.copy_(weight[:, :2] @ weight[:2])  # type: ignore[operator, index]
    request = request_for(model, data_for(model, 9))
    thin = cut(request, Factorisation(keep=1 - 1e-12).propose(request).edits)
    assert plan_of(thin).edits == (FactoriseLayer(layer="hidden1", rank=2),)
    x = drawn(50, 9, dtype=torch.float64)
    torch.testing.assert_close(answers(thin, x), answers(model, x), rtol=0, atol=1e-10)


def size_of(request: Request, ranks: Mapping[str, int], measure_name: Measure) -> int:
    network = cut(request, tuple(FactoriseLayer(layer=layer, rank=rank) for layer, rank in ranks.items()))
    assert isinstance(request.job.sample, Tensor)
    return count_parameters(network) if measure_name == "parameters" else count_macs(network, request.job.sample)


def parameters_with(request: Request, ranks: Mapping[str, int]) -> int:
    """Count by the formula: r · (m + n) weights in the place of m · n."""
    shapes = {layer: matrix.shape for layer, matrix in matrices(request.model).items()}
    saved = [shapes[layer][0] * shapes[layer][1] - rank * sum(shapes[layer]) for layer, rank in ranks.items()]
    return count_parameters(request.model) - sum(saved)


@pytest.mark.parametrize("measure_name", ["parameters", "macs"])
@pytest.mark.parametrize(("name", "layer"), [("perceptron", "hidden1"), ("convolutions", "3"), ("residual", "second")])
def test_a_limit_is_used_up_to_the_last_rank(name: str, layer: str, measure_name: Measure) -> None:
    request = request_of(name)
    rows, columns = matrices(request.model)[layer].shape
    paying = [rank for rank in range(1, min(rows, columns) + 1) if rank * (rows + columns) < rows * columns]
    assert len(paying) > 2
    for rank in paying:
        limit = size_of(request, {layer: rank}, measure_name)
        for slack, expected in ((0, rank), (-1, rank - 1)):
            if expected:
                limited = replace(request, limits={measure_name: limit + slack})
                assert ranks_of(limited, layers=(layer,)) == {layer: expected}
    fitting = replace(request, limits={measure_name: size_of(request, {}, measure_name)})
    assert ranks_of(fitting, layers=(layer,)) == {}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 8])
def test_no_rank_is_passed_over_for_a_rounding_error(seed: int) -> None:
    model = perceptron(60, 50, 3, seed=seed)
    request = request_for(model, data_for(model, 60, counts=(4, 4, 4)))
    for rank in range(1, 27):
        limited = replace(request, limits={"parameters": parameters_with(request, {"hidden0": rank})})
        assert ranks_of(limited, layers=("hidden0",)) == {"hidden0": rank}


@pytest.mark.parametrize("name", ALL)
def test_limits_are_kept_with_the_highest_share_that_keeps_them(name: str) -> None:
    request = request_of(name)
    known = {keep: ranks_of(request, keep=float(keep)) for keep in numpy.linspace(1, 0.01, 60)}
    sizes = {keep: parameters_with(request, ranks) for keep, ranks in known.items()}
    for part in (0.0, 0.7):
        fewest, full = min(sizes.values()), size_of(request, {}, "parameters")
        limit, macs = round(fewest + part * (full - fewest)), size_of(request, {}, "macs")
        found = ranks_of(replace(request, limits={"parameters": limit, "macs": macs}))
        highest = max(keep for keep, size in sizes.items() if size <= limit)
        assert sizes[highest] <= size_of(request, found, "parameters") == parameters_with(request, found) <= limit
        half = (macs + size_of(request, known[min(known)], "macs")) // 2
        found = ranks_of(replace(request, limits={"parameters": full, "macs": half}))
        assert size_of(request, found, "macs") <= half


@pytest.mark.parametrize("measure_name", ["parameters", "macs"])
def test_a_limit_below_the_fewest_is_refused_with_the_fewest(measure_name: Measure) -> None:
    request = request_of("residual")
    fewest = size_of(request, ranks_of(request, keep=1e-9), measure_name)
    with pytest.raises(LimitError, match=f"{fewest:,} are the fewest") as refused:
        ranks_of(replace(request, limits={measure_name: fewest - 1}))
    assert (refused.value.measure, refused.value.fewest) == (measure_name, fewest)
    assert set(ranks_of(replace(request, limits={measure_name: fewest})).values()) == {1}


def test_only_the_layers_named_become_two() -> None:
    request = request_of("residual")
    whole = ranks_of(request, keep=0.6)
    assert ranks_of(request, keep=0.6, layers=("second", "head")) == {
        layer: rank for layer, rank in whole.items() if layer in ("second", "head")
    }


@pytest.mark.parametrize(
    ("name", "layer"),
    [("residual", "depthwise"), ("residual", "stem_norm"), ("residual", "absent"), ("gated", "scale")],
)
def test_a_layer_that_cannot_become_two_is_refused(name: str, layer: str) -> None:
    with pytest.raises(ModelError, match=f"'{layer}' is not a layer that could become two"):
        ranks_of(request_of(name), layers=(layer,))


def test_a_network_without_such_a_layer_is_refused() -> None:
    model = nn.Sequential(nn.BatchNorm1d(4), nn.ReLU()).eval()
    request = request_for(model, data_for(model, 4, counts=(4, 4, 4)))
    with pytest.raises(ModelError, match="no layer that could become two"):
        ranks_of(request)


@pytest.mark.parametrize("keep", [0, -0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(keep: float) -> None:
    with pytest.raises(SettingsError, match="keep"):
        Factorisation(keep=keep)


@pytest.fixture
def model() -> nn.Module:
    return perceptron(8, 30, 20, 3)


@pytest.fixture
def data(model: nn.Module) -> Data:
    return data_for(model, 8)


@pytest.mark.parametrize(
    "limits", [{"parameters": 500}, {"macs": 450}, {"file_kb": 3.5}, {"parameters": 600, "macs": 500}]
)
def test_resize_keeps_budgets_and_a_file_gives_the_network_back(
    model: nn.Module, data: Data, limits: dict[str, Any], tmp_path: Path
) -> None:
    state = state_of(model)
    outcome = resize(model, data, Factorisation(), budget=Budget(**limits), latency=False)
    after = outcome.after
    found = {"parameters": after.parameters, "macs": after.macs, "file_kb": after.file_kb}
    assert all(0.8 * limit < found[name] <= limit for name, limit in limits.items() if len(limits) == 1)
    assert all(found[name] <= limit for name, limit in limits.items()) and same_state(model, state)
    path = save(outcome.model, tmp_path / "thin.safetensors", data=data)
    assert path.stat().st_size == round(1024 * after.file_kb)
    loaded = load(path)
    assert same_state(loaded, state_of(outcome.model)) and plan_of(loaded) == outcome.plan
    assert isinstance(data.test, Part)
    assert torch.equal(answers(loaded, data.test.x), answers(outcome.model, data.test.x))


def test_an_allowed_loss_finds_a_smaller_network_and_fine_tuning_mends(model: nn.Module, data: Data) -> None:
    outcome = resize(model, data, Factorisation(), budget=Budget(max_drop=0.3), latency=False)
    assert outcome.after.parameters < outcome.before.parameters
    assert outcome.score[1] >= outcome.score[0] - 0.3
    mended = resize(model, data, Factorisation(keep=0.3), retraining=FineTuning(epochs=3), latency=False)
    plain = resize(model, data, Factorisation(keep=0.3), latency=False)
    assert mended.plan.edits == plain.plan.edits != () and len(mended.histories) == 1
    assert not same_state(mended.model, state_of(plain.model))


def test_a_share_and_a_budget_are_not_both_taken(model: nn.Module, data: Data) -> None:
    for keep in (0.5, 0.95):
        with pytest.raises(SettingsError, match="both decide where to stop"):
            resize(model, data, Factorisation(keep=keep), budget=Budget(parameters=500), latency=False)
    with pytest.raises(BudgetError, match="the nearest network has"):
        resize(model, data, Factorisation(), budget=Budget(parameters=30), latency=False)
