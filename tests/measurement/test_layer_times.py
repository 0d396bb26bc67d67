"""The table of layer times: steps, interpolation, and the file that keeps it. No test here looks at a clock."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from topiarist.measurement.tables.geometry import Geometry, axis_grid, geometry_of
from topiarist.measurement.tables.layer_times import LayerTimes
from topiarist.measurement.tables.machine import this_machine
from topiarist.measurement.tables.onnx_layers import OnnxLayers
from topiarist.measurement.tables.torch_layers import Point, TorchLayers, layer_call

CONVOLUTION = Geometry("convolution", (8, 8), (3, 3), (1, 1), (1, 1), (1, 1), (0, 0))
LINEAR = Geometry("linear", (1,))


class FakeTimer:
    """Times that follow a formula; it counts what it was asked."""

    def __init__(self, block: int = 1, odd: float = 1.0) -> None:
        self.block, self.odd, self.asked = block, odd, 0

    def seconds(self, points: Sequence[Point]) -> list[float]:
        self.asked += len(points)
        return [self.of(inputs, outputs) for _, inputs, outputs in points]

    def of(self, inputs: int, outputs: int) -> float:
        slow = self.odd if outputs % 4 else 1.0
        return (1e-6 + 1e-9 * inputs * (-(-outputs // self.block) * self.block)) * slow


def surface_of(timer: FakeTimer, inputs: int = 64, outputs: int = 128) -> object:
    return LayerTimes(timer).surface(CONVOLUTION, inputs, outputs, free=(True, True))


@given(inputs=st.integers(1, 64), outputs=st.integers(1, 128))
def test_a_plane_is_interpolated_exactly(inputs: int, outputs: int) -> None:
    timer = FakeTimer()
    found = LayerTimes(timer).surface(CONVOLUTION, 64, 128, free=(True, True)).at(inputs, outputs)
    assert float(found) == pytest.approx(timer.of(inputs, outputs))


@given(inputs=st.integers(1, 64), outputs=st.integers(16, 128))
def test_steps_of_sixteen_are_found(inputs: int, outputs: int) -> None:
    timer = FakeTimer(block=16)
    found = LayerTimes(timer).surface(CONVOLUTION, 64, 128, free=(True, True)).at(inputs, outputs)
    assert float(found) == pytest.approx(timer.of(inputs, outputs), rel=0.01)


def test_widths_without_a_fast_kernel_cost_more_than_the_next_multiple() -> None:
    timer = FakeTimer(block=16, odd=3.0)
    surface = LayerTimes(timer).surface(CONVOLUTION, 64, 128, free=(True, True))
    assert float(surface.at(64, 77)) == pytest.approx(timer.of(64, 77), rel=0.05)
    assert float(surface.at(64, 76)) == pytest.approx(timer.of(64, 76), rel=0.01)
    assert float(surface.at(64, 80)) < float(surface.at(64, 77))


@pytest.mark.parametrize("block", [1, 16])
def test_interpolation_is_monotone_where_the_data_are(block: int) -> None:
    surface = LayerTimes(FakeTimer(block=block)).surface(CONVOLUTION, 96, 100, free=(True, True))
    widths = numpy.arange(1, 97)
    assert (numpy.diff(surface.at(widths, 50)) >= -1e-15).all()
    assert (numpy.diff(surface.at(50, widths)) >= -1e-15).all()


def test_only_what_a_network_needs_is_measured() -> None:
    timer = FakeTimer()
    table = LayerTimes(timer)
    table.surface(LINEAR, 64, 10, free=(False, False))
    assert timer.asked == 1
    table.surface(LINEAR, 64, 10, free=(False, True))
    first = timer.asked
    assert first == len(axis_grid(10))
    table.surface(LINEAR, 64, 10, free=(False, True))
    assert timer.asked == first


def test_the_file_comes_back(tmp_path: Path) -> None:
    path, machine = tmp_path / "deep" / "times.json", this_machine("torch", 1)
    before = LayerTimes(FakeTimer(block=16), path, machine).surface(CONVOLUTION, 64, 64, free=(True, True))
    timer = FakeTimer()
    again = LayerTimes(timer, path, machine).surface(CONVOLUTION, 64, 64, free=(True, True))
    assert timer.asked == 0
    assert numpy.array_equal(before.times, again.times)
    assert numpy.array_equal(before.outputs.steps.ways, again.outputs.steps.ways)


@pytest.mark.parametrize("damage", ["cut", "text", "negative", "other machine", "other format", "widths"])
def test_a_damaged_file_is_measured_again(tmp_path: Path, damage: str) -> None:
    path, machine = tmp_path / "times.json", this_machine("torch", 1)
    LayerTimes(FakeTimer(), path, machine).surface(LINEAR, 8, 8, free=(True, True))
    content = json.loads(path.read_text())
    points = next(iter(content["seconds"].values()))
    if damage == "negative":
        points["8,8"] = -1.0
    elif damage == "widths":
        points["8"] = 1.0
    elif damage == "other machine":
        content["machine"]["processor"] = "abacus"
    elif damage == "other format":
        content["format"] = 99
    text = json.dumps(content)
    path.write_text({"cut": text[: len(text) // 2], "text": "no table"}.get(damage, text))
    timer = FakeTimer()
    table = LayerTimes(timer, path, machine)
    assert float(table.surface(LINEAR, 8, 8, free=(True, True)).at(8, 8)) == pytest.approx(timer.of(8, 8))
    assert timer.asked == len(axis_grid(8)) ** 2
    assert LayerTimes(FakeTimer(), path, machine).known  # and it is whole again


def test_two_that_write_keep_what_both_measured(tmp_path: Path) -> None:
    path, machine = tmp_path / "times.json", this_machine("torch", 1)
    one, other = (LayerTimes(FakeTimer(), path, machine) for _ in range(2))
    one.surface(LINEAR, 8, 8, free=(False, True))
    other.surface(CONVOLUTION, 8, 8, free=(False, True))
    assert set(LayerTimes(FakeTimer(), path, machine).known) == {LINEAR.key, CONVOLUTION.key}


def test_a_folder_that_cannot_be_written_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    table = LayerTimes(FakeTimer(), tmp_path / "file" / "times.json", this_machine("torch", 1))
    assert table.surface(LINEAR, 8, 8, free=(True, True)).times.shape == (5, 5)


LAYERS = {
    "linear": (nn.Linear(12, 6), (1, 12)),
    "rows": (nn.Linear(12, 6, bias=False), (1, 5, 12)),
    "1-d": (nn.Conv1d(12, 6, 3, padding=1), (1, 12, 9)),
    "strided": (nn.Conv2d(12, 6, 3, stride=2, padding="valid"), (1, 12, 9, 9)),
    "same": (nn.Conv2d(12, 6, 3, padding="same"), (1, 12, 9, 9)),
    "depthwise": (nn.Conv2d(12, 12, 3, groups=12), (1, 12, 9, 9)),
    "grouped": (nn.Conv2d(12, 6, 3, groups=2), (1, 12, 9, 9)),
    "transposed": (nn.ConvTranspose2d(12, 6, 3, stride=2, output_padding=1), (1, 12, 9, 9)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_what_is_timed_has_the_shapes_of_the_layer(name: str) -> None:
    module, shape = LAYERS[name]
    x = torch.zeros(shape)
    geometry = geometry_of(module, x)
    assert geometry is not None
    weight = module.weight
    inputs = shape[-1] if geometry.kind == "linear" else shape[1]
    outputs = 12 if name == "depthwise" else 6
    answer = layer_call(geometry, inputs, outputs)()
    assert isinstance(answer, torch.Tensor)
    assert answer.numel() == module(x).numel()
    assert weight.shape  # the module is left alone


@pytest.mark.parametrize("int8", [False, True])
def test_every_layer_runs_in_onnx_runtime(int8: bool) -> None:
    pytest.importorskip("onnxruntime")
    points: list[Point] = []
    for module, shape in LAYERS.values():
        geometry = geometry_of(module, torch.zeros(shape))
        assert geometry is not None
        points.append((geometry, 12, 12 if geometry.grouping == "per unit" else 6))
    assert all(seconds > 0 for seconds in OnnxLayers(1, int8=int8).seconds(points))


def test_torch_layers_are_timed() -> None:
    assert all(seconds > 0 for seconds in TorchLayers(1).seconds([(LINEAR, 4, 4), (CONVOLUTION, 4, 4)]))
