import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest
import torch

from topiarist.storage.onnx_export import Session

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

Run = Callable[..., tuple[int, str, str]]


def as_json(ran: tuple[int, str, str]) -> dict[str, Any]:
    code, out, err = ran
    assert (code, err, out.count("\n")) == (0, "", 1)
    result = json.loads(out)
    assert isinstance(result, dict)
    return result


@pytest.mark.slow
def test_both_files_of_digits_one_in_8_bits(
    command: Run, digits_model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("--onnx", tmp_path / "m.onnx", "--int8", "--torch", tmp_path / "m.pt2")
    result = as_json(command("export", digits_model, "digits", *words, "--json"))
    assert capfd.readouterr() == ("", "")  # nor does any of the tools write past Python
    measured = as_json(command("measure", digits_model, "digits", "--json"))
    assert {path.name for path in tmp_path.iterdir()} == {"m.onnx", "m.pt2"}
    for export in (result["onnx"], result["torch"]):
        assert (export["accuracy_in_torch"], export["samples"]) == (measured["accuracy"], measured["samples"])
        assert (export["input"]["kind"], export["compared_on"]) == ("raw", "test part")
    assert (result["torch"]["bits"], result["torch"]["agreement"]) == (32, 1.0)
    assert result["onnx"]["bits"] == 8 and result["onnx"]["agreement"] > 0.95
    assert result["onnx"]["file_kb"] == (tmp_path / "m.onnx").stat().st_size / 1024
    assert min(result["latency_ms"], result["onnx"]["latency_ms"]) > 0


@pytest.mark.slow
def test_people_read_that_the_samples_are_random(command: Run, digits_model: Path, tmp_path: Path) -> None:
    code, out, err = command("export", digits_model, "--torch", tmp_path / "m.pt2")
    assert (code, err) == (0, "")
    assert "100 samples: random numbers" in out and "the same class for 100.00%" in out
    assert "raw samples, each 64 of float32" in out


@pytest.mark.slow
def test_text_is_read_as_it_is(command: Run, flowers: Path, flowers_model: Path, tmp_path: Path) -> None:
    """The cells of a table go in as they are, and what the file says is enough to name the class."""
    words = (flowers, "--target", "kind", "--onnx", tmp_path / "m.onnx")
    assert command("export", flowers_model, *words)[0] == 0
    session, raw = Session(tmp_path / "m.onnx"), pandas.read_csv(flowers)
    notes = session.session.get_modelmeta().custom_metadata_map
    reads, classes = {each["name"]: each["reads"] for each in json.loads(notes["inputs"])}, json.loads(notes["classes"])
    assert notes["input"] == "cells" and reads["colour"] == "text" and "code" not in notes
    cells = {
        name: (raw[name].fillna("").astype(object) if kind == "text" else raw[name].astype(numpy.float32)).to_numpy()
        for name, kind in reads.items()
    }
    _, probabilities = session({name: values[:, None] for name, values in cells.items()})
    predicted = as_json(command("predict", flowers_model, flowers, "--target", "kind", "--json"))
    assert [classes[place] for place in probabilities.argmax(axis=1)] == predicted["predictions"]
    numpy.testing.assert_allclose(probabilities.max(axis=1), predicted["columns"]["probability"], atol=1e-5)


@pytest.mark.slow
def test_a_network_of_ones_own(
    command: Run, digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = "from topiarist.models import mlp\ndef build():\n    return mlp([64, 16, 10], dropout=0.2)\n"
    (tmp_path / "my_network_for_export.py").write_text(code)
    words = ("--into", "my_network_for_export:build", "--torch", "m.pt2", "--json")
    as_json(command("export", digits_model, *words))
    assert torch.export.load("m.pt2").module()(torch.zeros(3, 64))[1].shape == (3, 10)


def test_help_has_an_example(command: Run) -> None:
    code, out, _ = command("export", "--help")
    assert code == 0 and "Example: topiarist export digits.safetensors digits" in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("{m}", "name a file to write: --onnx FILE.onnx, --torch FILE.pt2, or both"),
        ("{m} --onnx {o}/m.bin", "--onnx must end in .onnx; found"),
        ("{m} --torch {o}/m.onnx", "--torch must end in .pt2; found"),
        ("{m} --onnx {o}/absent/m.onnx", "m.onnx: there is no folder"),
        ("{m} --onnx {o}/m.onnx --int8", "--int8 needs DATA"),
        ("{m} digits --torch {o}/m.pt2 --int8", "--int8 belongs to the ONNX file"),
        ("{o}/absent.safetensors --onnx {o}/m.onnx", "there is no such file"),
        ("{m} wine --onnx {o}/m.onnx", "not among the classes"),
    ],
)
def test_wrong_input_is_one_line(command: Run, digits_model: Path, tmp_path: Path, words: str, said: str) -> None:
    code, out, err = command("export", *words.format(m=digits_model, o=tmp_path).split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("topiarist: ") and said in err
    assert not list(tmp_path.iterdir())


def test_a_missing_extra_is_one_line(
    command: Run, digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    code, out, err = command("export", digits_model, "--onnx", tmp_path / "m.onnx")
    said = "topiarist: ONNX export needs the extra 'onnx': pip install \"topiarist[onnx]\"\n"
    assert (code, out, err) == (2, "", said)
