"""Distinctiveness: what is planted is found, angles hold by explicit least squares, counts are exact."""

from typing import Any

import numpy
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.methods import networks as planted
from tests.methods.tasks import (
    answers,
    cut,
    data_for,
    drawn,
    perceptron,
    same_state,
    state_of,
    unlabelled_request,
    widths_of,
)
from topiarist.errors import ModelError, SettingsError
from topiarist.methods import Distinctiveness, FineTuning, Proposal, resize
from topiarist.surgery import MergeUnits, RemoveUnits
from topiarist.tracing import anatomy

Floats = NDArray[numpy.float64]


def gone_units(model: nn.Module, x: Tensor, proposal: Proposal) -> dict[str, set[int]]:
    """The units that edits remove, with the numbers that they had at first."""
    sizes = {name: space.size for name, space in anatomy(model, x[:2]).free.items()}
    left = {name: list(range(size)) for name, size in sizes.items()}
    for edit in proposal.edits:
        assert isinstance(edit, (MergeUnits, RemoveUnits))
        merged = {edit.space: [merge.unit for merge in edit.merges]} if isinstance(edit, MergeUnits) else edit.units
        for name, units in merged.items():
            left[name] = [unit for place, unit in enumerate(left[name]) if place not in units]
    return {name: set(range(size)) - set(left[name]) for name, size in sizes.items()}


def check_kept(model: nn.Module, x: Tensor, tolerance: float, expected: dict[str, set[int]]) -> None:
    """What is planted is found, nothing else, and the network computes what it did, on other samples too."""
    request, others = unlabelled_request(model, x), drawn(*x.shape, seed=5, dtype=x.dtype)
    proposal = Distinctiveness().propose(request)
    assert gone_units(model, x, proposal) == expected
    small = cut(request, proposal.edits)
    before, after = answers(model, others), answers(small, others)
    assert float((before - after).abs().max()) < tolerance * max(float(before.abs().max()), 1.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("activation", planted.ACTIVATIONS)
def test_planted_units_of_two_hidden_layers_are_found(activation: str, dtype: torch.dtype) -> None:
    model, x = planted.perceptron(activation)
    model.to(dtype)
    expected = {"0": planted.ALL, "2": planted.ALL}
    check_kept(model, x.to(dtype), 1e-6 if dtype == torch.float32 else 1e-9, expected)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("activation", planted.ACTIVATIONS)
@pytest.mark.parametrize("padding", [0, 1])
def test_planted_channels_are_found(activation: str, dtype: torch.dtype, padding: int) -> None:
    """A constant, and a complement of a sigmoid, can only go where no zeros are padded."""
    model, x = planted.convolutions(activation, padding)
    model.to(dtype)
    expected = {"0": planted.BEFORE_ZEROS[activation] if padding else planted.ALL, "2": planted.ALL}
    check_kept(model, x.to(dtype), 1e-6 if dtype == torch.float32 else 1e-9, expected)


@pytest.mark.slow
def test_copies_in_a_residual_stream_are_found() -> None:
    model, x = planted.residual()
    found = gone_units(model, x, Distinctiveness().propose(unlabelled_request(model, x)))
    check_kept(model, x, 1e-9, {name: {4} for name in found})


def test_a_shifted_copy_of_a_rectified_unit_is_found() -> None:
    model: Any = perceptron(5, 8, 3, activation="relu", double=True)
    with torch.no_grad():
        model.hidden0.bias[0] = 20.0
        model.hidden0.weight[7], model.hidden0.bias[7] = 0.5 * model.hidden0.weight[0], 14.0  # neither is ever zero
    check_kept(model, drawn(200, 5, dtype=torch.float64), 1e-9, {"hidden0": {7}})


def test_a_network_without_such_units_stays_as_it_is() -> None:
    model = perceptron(5, 8, 6, 3)
    assert Distinctiveness().propose(unlabelled_request(model, drawn(100, 5))).edits == ()


def test_a_constant_that_is_the_first_unit_is_found() -> None:
    model: Any = perceptron(5, 8, 3, double=True)
    with torch.no_grad():
        model.hidden0.weight[0] = 0.0
    check_kept(model, drawn(100, 5, dtype=torch.float64), 1e-9, {"hidden0": {0}})


@pytest.mark.parametrize("settings", [{}, {"angle_degrees": 15.0}])
def test_a_constant_beside_units_that_vary_little_is_found(settings: dict[str, Any]) -> None:
    model: Any = perceptron(5, 12, 3, activation="sigmoid", double=True)
    with torch.no_grad():
        model.hidden0.weight.mul_(0.01)
        model.hidden0.weight[2:] = 0.0
    x = drawn(200, 5, dtype=torch.float64)
    gone = gone_units(model, x, Distinctiveness(**settings).propose(unlabelled_request(model, x)))
    assert set(range(2, 12)) <= gone["hidden0"]


def hidden_of(model: Any, x: Tensor) -> dict[str, Floats]:
    """The activations (n_samples · n_positions, n_units) that readers see, about their means."""
    first = model[:2](x)
    second = model[2:4](first)
    flat = {name: h.movedim(1, -1).flatten(0, -2).detach().numpy() for name, h in (("0", first), ("2", second))}
    return {name: h - h.mean(axis=0) for name, h in flat.items()}


def degrees(h: Floats, kept: list[int], unit: int) -> float:
    weights = numpy.linalg.lstsq(h[:, kept], h[:, unit], rcond=None)[0]
    sine = float(numpy.linalg.norm(h[:, unit] - h[:, kept] @ weights) / numpy.linalg.norm(h[:, unit]))
    return float(numpy.degrees(numpy.arcsin(min(sine, 1.0))))


@pytest.mark.parametrize("angle", [5.0, 20.0, 40.0, 70.0])
@pytest.mark.parametrize("kind", ["perceptron", "convolutions"])
def test_units_that_go_lie_within_the_angle_of_the_span_of_those_kept(kind: str, angle: float) -> None:
    model, x = planted.perceptron("tanh") if kind == "perceptron" else planted.convolutions("tanh", 0)
    gone = gone_units(model, x, Distinctiveness(angle_degrees=angle).propose(unlabelled_request(model, x)))
    for name, h in hidden_of(model, x).items() if kind == "perceptron" else [("0", hidden_of(model, x)["0"])]:
        kept = [unit for unit in range(8) if unit not in gone[name]]
        varying = [unit for unit in gone[name] if numpy.ptp(h[:, unit]) > 1e-9]
        assert kept and all(degrees(h, kept, unit) <= angle + 1e-6 for unit in varying)
        apart = [degrees(h, [other for other in kept if other != unit], unit) for unit in kept if len(kept) > 1]
        assert not apart or max(apart) > angle


@pytest.mark.slow
def test_a_wider_angle_leaves_no_more_units() -> None:
    model = perceptron(5, 16, 12, 3)
    request = unlabelled_request(model, drawn(100, 5))
    counts = [
        sum(widths_of(cut(request, Distinctiveness(angle_degrees=angle).propose(request).edits)).values())
        for angle in (0, 10, 20, 30, 45, 60, 90)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] == 31 and counts[-1] == 1 + 1 + 3


@pytest.mark.parametrize("fraction", [0.01, 0.25, 0.5, 0.7, 1.0])
def test_the_fraction_asked_stays(fraction: float) -> None:
    model = perceptron(5, 16, 9, 3)
    request = unlabelled_request(model, drawn(60, 5))
    small = cut(request, Distinctiveness(keep_fraction=fraction).propose(request).edits)
    for name, size in (("hidden0", 16), ("hidden1", 9)):
        width = widths_of(small)[name]
        assert width == 1 or abs(width - fraction * size) <= 0.5
        assert width >= 1


@pytest.mark.parametrize("settings", [{"keep_fraction": 0.3}, {"angle_degrees": 35.0}, {"angle_degrees": 90.0}])
def test_widths_are_multiples_or_full(settings: dict[str, Any]) -> None:
    model = perceptron(5, 16, 10, 3)
    request = unlabelled_request(model, drawn(60, 5))
    free, bound = (
        widths_of(cut(request, Distinctiveness(**settings, multiple_of=number).propose(request).edits))
        for number in (1, 4)
    )
    for name, size in (("hidden0", 16), ("hidden1", 10)):
        assert bound[name] == min(-(-free[name] // 4) * 4, size)


@pytest.mark.parametrize("settings", [{"keep_fraction": 0.3}, {"angle_degrees": 40.0}])
def test_only_spaces_that_are_named_are_cut(settings: dict[str, Any]) -> None:
    model, x = planted.perceptron("sigmoid")
    request = unlabelled_request(model, x)
    small = cut(request, Distinctiveness(**settings, spaces=("2",)).propose(request).edits)
    assert (widths_of(small)["0"], widths_of(small)["2"] < 8) == (8, True)


def test_a_space_that_is_not_there_is_refused() -> None:
    model = perceptron(5, 6, 3)
    with pytest.raises(ModelError, match="nothing"):
        Distinctiveness(spaces=("nothing",)).propose(unlabelled_request(model, drawn(20, 5)))


def test_rounds_end_at_the_widths_of_one_cut_and_train_between() -> None:
    model = perceptron(5, 20, 12, 3)
    data = data_for(model, 5)
    once = resize(model, data, Distinctiveness(keep_fraction=0.3), latency=False)
    method = Distinctiveness(keep_fraction=0.3, rounds=3)
    often = resize(model, data, method, retraining=FineTuning(epochs=2), latency=False)
    assert often.units == once.units
    assert [len(history) for history in often.histories] == [2, 2, 2]
    cuts = [edit for edit in often.plan if isinstance(edit, RemoveUnits)]
    removed = [{name: len(units) for name, units in edit.units.items()} for edit in cuts]
    assert len(removed) == 3 and all(min(step.values()) > 0 for step in removed)


def test_a_users_training_comes_after_each_round() -> None:
    model = perceptron(5, 20, 3)
    widths: list[int] = []
    method = Distinctiveness(keep_fraction=0.25, rounds=2)
    resize(
        model,
        data_for(model, 5),
        method,
        finetune=lambda network: widths.append(widths_of(network)["hidden0"]),
        latency=False,
    )
    assert widths == [10, 5]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"angle_degrees": 10, "keep_fraction": 0.5}, "both decide where to stop"),
        ({"pairs": "most similar first"}, "pairs: there is no such setting"),
        ({"published": True}, "published: there is no such setting"),
        ({"angle_degrees": 91}, "less than or equal to 90"),
        ({"angle_degrees": -1}, "greater than or equal to 0"),
        ({"keep_fraction": 0}, "greater than 0"),
        ({"keep_fraction": 1.1}, "less than or equal to 1"),
        ({"rounds": 0}, "greater than or equal to 1"),
        ({"angle": 3}, "no such setting"),
    ],
)
def test_settings_that_make_no_sense_are_one_line(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Distinctiveness(**settings)


@pytest.mark.parametrize(
    "method",
    [
        Distinctiveness(),
        Distinctiveness(angle_degrees=40),
        Distinctiveness(keep_fraction=0.4),
    ],
)
def test_proposing_and_cutting_leave_the_network_as_it_was(method: Distinctiveness) -> None:
    model, x = planted.perceptron("sigmoid")
    model.train()
    state, request = state_of(model), unlabelled_request(model, x)
    cut(request, method.propose(request).edits)
    assert same_state(model, state)
    assert all(module.training and not module._forward_hooks for module in model.modules())
