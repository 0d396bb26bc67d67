"""What is written is what was found: files, answers, sizes, and a page whose every number is in the record."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy
import pytest
import torch
from torch import nn

from tests.networks import ResidualNetwork
from tests.report.rightsizing_reader import look_up, read_page
from tests.rightsizing.tasks import blobs, shrunk
from topiarist import load
from topiarist.data import Data, Part
from topiarist.models import card_of, mlp
from topiarist.models.evaluation import count_parameters
from topiarist.randomness import array_generator
from topiarist.report.rightsizing.quotes import FORMS
from topiarist.report.writing import write_report
from topiarist.rightsizing import EFFORTS, Rightsizing, RightsizingRecord
from topiarist.rightsizing.delivery import deliver
from topiarist.storage.onnx_export import Session

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_plan")]


@pytest.fixture(scope="module")
def found(small_plan: None) -> Rightsizing:
    return shrunk(blobs(), max_drop=0.2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("delivery") / "new" / "folder"


@pytest.fixture(scope="module")
def record(found: Rightsizing, folder: Path) -> RightsizingRecord:
    return deliver(found, folder)


def answers_of(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        answers: torch.Tensor = model.eval()(x)
    return answers


def test_the_files_are_there_and_nothing_else(record: RightsizingRecord, folder: Path) -> None:
    exports = record.exports
    assert {path.name for path in folder.iterdir()} == {exports.model, exports.baseline, exports.linear, exports.onnx}


def test_the_networks_answer_as_those_that_were_found(
    record: RightsizingRecord, found: Rightsizing, folder: Path
) -> None:
    assert isinstance(found.data.test, Part)
    for name, network in ((record.exports.model, found.model), (record.exports.baseline, found.baseline)):
        again = load(folder / str(name))
        assert torch.equal(answers_of(again, found.data.test.x), answers_of(network, found.data.test.x))


def test_the_sizes_are_those_of_the_files(record: RightsizingRecord, folder: Path) -> None:
    before, after = record.network("baseline"), record.chosen
    assert after.file_kb == (folder / "model.safetensors").stat().st_size / 1024
    assert before.file_kb == (folder / "baseline.safetensors").stat().st_size / 1024
    assert after.onnx_kb == (folder / "model.onnx").stat().st_size / 1024
    assert record.gains.size == before.file_kb / after.file_kb


def test_onnx_answers_alike_from_raw_samples(record: RightsizingRecord, found: Rightsizing, folder: Path) -> None:
    data = found.data
    assert data.source is not None and data.split is not None and isinstance(data.test, Part)
    raw = numpy.asarray(data.source.features)[data.split.test].astype(numpy.float32)
    _, probabilities = Session(folder / "model.onnx")(raw)
    task = card_of(found.model).task
    assert task is not None and record.calibration is not None
    assert task.to_record().get("temperature", 1.0) == record.calibration.temperature
    numpy.testing.assert_allclose(probabilities, task.answers(answers_of(found.model, data.test.x)), atol=1e-5)
    assert record.exports.onnx_samples == len(data.test)
    assert record.exports.onnx_difference is not None and record.exports.onnx_difference < 1e-4
    timed = {network.id for network in record.networks if network.onnx_latency_ms}
    assert timed == {"baseline", record.verdict.chosen}
    assert record.gains.onnx_latency is not None and record.gains.onnx_latency > 0
    assert record.gains.onnx_size is not None and record.gains.onnx_size > 1
    assert "ONNX Runtime" in record.verdict.sentence


def test_a_linear_network_that_will_do_is_a_file_and_is_offered_on_the_page(
    record: RightsizingRecord, found: Rightsizing, folder: Path, tmp_path: Path
) -> None:
    assert found.linear_will_do and found.record.plan.notes[-1].startswith("a linear model is as good")
    again = load(folder / "linear.safetensors")
    assert count_parameters(again) == 4 * 3 + 3 < count_parameters(found.model)
    assert isinstance(found.data.test, Part)
    assert torch.equal(answers_of(again, found.data.test.x), answers_of(found.networks["linear"], found.data.test.x))
    page = read_page(write_report(record, tmp_path).read_text())
    assert {quoted.text for quoted in page.quoted if quoted.path == "exports.linear"} == {"linear.safetensors"}


def test_the_result_keeps_its_own_record(record: RightsizingRecord, found: Rightsizing) -> None:
    assert found.record.exports.model is None and found.record.gains.onnx_latency is None


def test_every_number_on_the_page_is_in_the_record(record: RightsizingRecord, tmp_path: Path) -> None:
    page = read_page(write_report(record, tmp_path).read_text())
    written = json.loads((tmp_path / "result.json").read_text())
    assert written == record.to_json()
    assert len(page.quoted) > 100
    for quoted in page.quoted:
        value = look_up(written, quoted.path)
        if quoted.tag == "data":
            assert json.loads(quoted.attributes["value"]) == value
            assert quoted.text == FORMS[quoted.attributes["data-form"]](value).replace("-", "−")
        else:
            assert quoted.text == (value if quoted.tag == "bdi" else "–")
    assert [text for text in page.loose if re.search(r"\d", text)] == []


def test_a_network_of_ones_own_is_loaded_into_its_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], seeds=1, ratios=(4,)))
    labels = numpy.arange(60) % 3
    x = array_generator(0, "x").normal(size=(60, 3, 6, 6)) + 2 * numpy.eye(3)[labels][:, :, None, None]
    data = Data.from_arrays(x, labels, scaling="zscore")
    found = shrunk(data, lambda: ResidualNetwork(8, 8, 6), max_drop=0.9)
    assert type(found.model) is ResidualNetwork and found.status == "proven"
    record = deliver(found, tmp_path, onnx=False)
    again = load(tmp_path / "model.safetensors", into=ResidualNetwork(8, 8, 6))
    assert count_parameters(again) == count_parameters(found.model) < count_parameters(found.baseline)
    assert isinstance(found.data.test, Part)
    assert torch.equal(answers_of(again, found.data.test.x), answers_of(found.model, found.data.test.x))
    assert record.exports.onnx is None and not (tmp_path / "model.onnx").exists()


def test_without_the_extra_for_onnx_the_rest_is_written(
    found: Rightsizing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    record = deliver(found, tmp_path)
    assert "no ONNX file: ONNX export needs the extra 'onnx'" in record.plan.notes[-1]
    assert {path.name for path in tmp_path.iterdir()} == {
        *("model.safetensors", "baseline.safetensors", "linear.safetensors"),
    }


def test_an_unchanged_network_without_a_test_part_has_its_files_and_its_page(tmp_path: Path) -> None:
    found = shrunk(blobs(test_fraction=0), lambda: mlp([4, 2, 3]))
    assert found.status == "unchanged" and found.model is found.baseline
    assert found.sentence.endswith("no smaller network could be made.")
    assert found.record.plan.notes[0].startswith("distinctiveness, 4 × smaller: ")
    record = deliver(found, tmp_path)
    assert record.gains.size == record.gains.onnx_size == 1 and record.test is None
    assert (tmp_path / "model.safetensors").read_bytes() == (tmp_path / "baseline.safetensors").read_bytes()
    assert read_page(write_report(record, tmp_path).read_text()).quoted
