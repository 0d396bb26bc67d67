"""What is said about a network that is smaller and not faster, before it is made."""

from typing import Any

import pytest
from torch import nn

from tests.methods.tasks import data_for, perceptron
from topiarist.errors import SettingsError
from topiarist.measurement import Budget
from topiarist.methods import Distinctiveness, Factorisation, resize

SAID = "smaller but not faster: a network of these widths takes 0.2 ms per sample, this one 0.2 ms (torch, 1 thread)"


def resized(monkeypatch: pytest.MonkeyPatch, small_ms: float, *, latency: bool = True) -> tuple[str, ...]:
    model = perceptron(8, 30, 20, 3)
    monkeypatch.setattr("topiarist.methods.speed.time_together", lambda calls, **_: [0.2, small_ms])
    budget = Budget(parameters=300)
    return resize(model, data_for(model, 8), Distinctiveness(), budget=budget, latency=latency).reasons


def test_one_line_says_that_it_is_not_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resized(monkeypatch, 0.2)[1:] == (SAID,)


def test_nothing_is_said_of_a_faster_one_or_where_no_one_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(resized(monkeypatch, 0.1)) == 1
    assert len(resized(monkeypatch, 0.2, latency=False)) == 1


def test_other_edits_are_made_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    model = perceptron(8, 30, 20, 3)
    monkeypatch.setattr("topiarist.methods.speed.time_together", lambda calls, **_: [0.2, 0.2])
    outcome = resize(model, data_for(model, 8), Factorisation(), budget=Budget(parameters=800))
    assert not any("faster" in reason for reason in outcome.reasons)


@pytest.mark.parametrize("given", [{"runtime": "onnx"}, {"threads": 2}, {"runtime": "onnx-int8", "parameters": 100}])
def test_a_runtime_without_a_latency_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="runtime and threads are those of a latency: give latency_ms"):
        Budget(**given)


def test_an_unknown_runtime_is_refused() -> None:
    with pytest.raises(SettingsError, match="runtime must be 'torch', 'onnx' or 'onnx-int8'"):
        Budget(latency_ms=1.0, runtime="tpu")


@pytest.mark.slow
@pytest.mark.parametrize("runtime", ["onnx", "onnx-int8"])
def test_a_latency_in_onnx_runtime_is_measured_there(
    runtime: Any,
) -> None:
    """A budget that any network keeps, so that no figure of a clock decides."""
    pytest.importorskip("onnxruntime")
    model: nn.Module = perceptron(8, 30, 20, 3)
    data = data_for(model, 8)
    whole = resize(model, data, Distinctiveness(), budget=Budget(latency_ms=1e6, runtime=runtime))
    assert whole.after.runtime == runtime
    assert whole.after.parameters == whole.before.parameters
