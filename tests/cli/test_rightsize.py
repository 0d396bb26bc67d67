"""`topiarist rightsize`: what it prints and writes, what it cannot reach, and what it refuses in one line."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy
import pytest

from tests.rightsizing.tasks import use_small_plan
from topiarist import RightSizedClassifier, load
from topiarist.cli.rightsize import rightsize_command
from topiarist.methods import registered
from topiarist.models import card_of
from topiarist.models.evaluation import count_parameters
from topiarist.rightsizing import DEFAULT_EFFORT, EFFORTS, rightsize

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")

Run = Callable[..., tuple[int, str, str]]
QUICK = ("--effort", "quick", "--methods", "distinctiveness")
FILES = {"report.html", "result.json", "model.safetensors", "baseline.safetensors", "model.onnx"}


@pytest.fixture(scope="module", autouse=True)
def small_plan() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        use_small_plan(patch)
        patch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], seeds=1))
        yield


@pytest.fixture
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw nothing, where the page is not what is looked at."""
    monkeypatch.setattr("topiarist.report.writing.rightsizing_page", lambda record: "")


LINEAR = "topiarist: note: a linear model is as good: "  # which is so where much may be lost


def as_json(ran: tuple[int, str, str]) -> dict[str, Any]:
    code, out, err = ran
    assert code == 0 and all(line.startswith(LINEAR) for line in err.splitlines())
    result = json.loads(out.splitlines()[-1])
    assert isinstance(result, dict)
    return result


@pytest.mark.slow
def test_people_get_a_sentence_a_table_and_the_files(command: Run, tmp_path: Path) -> None:
    place = tmp_path / "new" / "iris"
    code, out, err = command("rightsize", "iris", *QUICK, "--max-drop", 0.3, "--out", place)
    first, *notes = err.splitlines()
    assert code == 0 and first == "quick: at most 1 × 10^12 multiply-accumulates of work on iris; see --effort"
    assert all(note.startswith(LINEAR) for note in notes)
    record = json.loads((place / "result.json").read_text())
    assert out.startswith(record["verdict"]["sentence"] + "\n")
    lines = out.splitlines()
    (head,) = [line for line in lines if "accuracy" in line and "MACs" in line]
    assert head.split() == ["network", "made", "by", "accuracy", "parameters", "KB", "MACs", "ms", "p"]
    for network in record["networks"]:
        if network["id"] == "baseline" or network["winner"]:
            (line,) = [line for line in lines if line.startswith(network["id"])]
            assert f"{network['parameters']:,}" in line and f"{network['file_kb']:.1f}" in line
    assert any(line.startswith(record["verdict"]["chosen"]) and line.rstrip().endswith("chosen") for line in lines)
    assert {path.name for path in place.iterdir()} - {"linear.safetensors"} == FILES
    assert (place / "linear.safetensors").exists() == ("linear.safetensors" in out) == any(notes)
    assert all(str(place / name) in out for name in ("report.html", "model.safetensors", "model.onnx"))
    assert record["settings"]["command"].startswith("topiarist rightsize iris --effort quick --methods distinctiveness")


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_a_program_gets_one_object_and_a_table_needs_only_its_target(
    command: Run, flowers: Path, tmp_path: Path
) -> None:
    words = ("--target", "kind", *QUICK, "--max-drop", 0.3, "--no-onnx", "--out", tmp_path, "--json")
    code, out, err = command("rightsize", flowers, *words)
    result = as_json((code, out, err))
    assert out.count("\n") == 1 and result["out"] == str(tmp_path)
    written = json.loads((tmp_path / "result.json").read_text())
    assert {name: result[name] for name in written} == written
    assert {path.name for path in tmp_path.iterdir()} - {"linear.safetensors"} == FILES - {"model.onnx"}
    assert result["task"]["names"] == ["lily", "rose", "tulip"]
    assert [result["data"][part] for part in ("training", "validation", "test")] == [120, 15, 15]
    model = load(tmp_path / "model.safetensors")
    assert "colour" in str(card_of(model).preprocessing)
    measured = as_json(command("measure", tmp_path / "model.safetensors", flowers, "--target", "kind", "--json"))
    assert measured["accuracy"] == result["test"]["after"]["accuracy"]


@pytest.mark.slow
def test_names_in_a_table_are_escaped_on_the_page(command: Run, tmp_path: Path) -> None:
    random = numpy.random.default_rng(0)
    kinds = ["<b>x</b>", "&<script>alert(1)</script>"]
    rows = [f"{random.normal(4 * (number % 2)):.2f},{number % 5},{kinds[number % 2]}" for number in range(80)]
    table = tmp_path / "<i>names.csv"
    table.write_text("\n".join(["length,other,kind", *rows]) + "\n")
    words = ("--target", "kind", *QUICK, "--max-drop", 0.3, "--no-onnx", "--out", tmp_path / "out", "--json")
    result = as_json(command("rightsize", table, *words))
    assert set(result["task"]["names"]) == set(kinds)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "&lt;b&gt;x&lt;/b&gt;" in page and "<b>" not in page and "<i>" not in page
    assert page.count("<script>") == 1 and "&lt;script&gt;alert(1)" in page


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_a_network_of_ones_own_and_samples(command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "from topiarist.models import mlp\ndef make():\n    return mlp([4, 16, 8, 3])\n"
    (tmp_path / "networks_to_rightsize.py").write_text(code)
    words = ("--model", "networks_to_rightsize:make", "--samples", 60, "--max-parameters", 60, "--max-drop", 0.9)
    result = as_json(command("rightsize", "iris", *QUICK, *words, "--no-onnx", "--json"))
    assert result["data"]["training"] == 60 and result["settings"]["model"] == "mlp 4-16-8-3"
    assert count_parameters(load(tmp_path / "rightsized" / "model.safetensors")) <= 60


@pytest.mark.slow
@pytest.mark.usefixtures("no_page")
def test_a_network_from_a_file_is_the_baseline(
    command: Run, flowers: Path, flowers_model: Path, tmp_path: Path
) -> None:
    words = ("--target", "kind", "--model", flowers_model, *QUICK, "--max-drop", 0.9, "--no-onnx", "--out", tmp_path)
    result = as_json(command("rightsize", flowers, *words, "--trained", "--json"))
    assert result["plan"]["design"] == "held out" and result["settings"]["trained_before"]
    before = as_json(command("measure", flowers_model, flowers, "--target", "kind", "--json"))
    assert result["test"]["before"]["accuracy"] == before["accuracy"]


@pytest.mark.slow
def test_a_budget_that_cannot_be_met_lists_the_nearest_and_writes_nothing(command: Run, tmp_path: Path) -> None:
    place = tmp_path / "out"
    code, out, err = command("rightsize", "iris", *QUICK, "--budget", "1kB", "--out", place, "--json")
    first, *lines = err.splitlines()
    assert code == 3 and not place.exists()
    assert first.startswith("topiarist: No network was found that fits the budget")
    assert 1 <= len(lines) <= 3 and all("KB on disk, the budget is 1; it loses " in line for line in lines)
    record = json.loads(out.splitlines()[-1])
    assert record["verdict"]["status"] == "unreachable"
    assert [f"  {near['id']}: {near['text']}" for near in record["nearest"]] == lines


def test_the_effort_is_that_of_the_library() -> None:
    defaults = {
        function: signature(function).parameters["effort"].default
        for function in (rightsize_command, rightsize, RightSizedClassifier)
    }
    assert set(defaults.values()) == {DEFAULT_EFFORT}


def test_a_time_is_read_in_its_unit() -> None:
    from topiarist.measurement.budget import parse_ms

    assert [parse_ms(text) for text in ("2ms", "500us", "500 µs", "0.01 s", "3", ".5ms")] == [2, 0.5, 0.5, 10, 3, 0.5]


BAD_INPUT = [
    ("iris --methods luck", f"--methods must be one of {', '.join(registered())}; found 'luck'"),
    ("iris --methods distinctiveness,", f"--methods must be one of {', '.join(registered())}; found ''"),
    ("iris --budget much", "a size is written like 500kB or 1.5MB; found 'much'"),
    ("iris --budget 0kB", "--budget must be greater than 0; found 0.0"),
    ("iris --max-latency soon", "a time is written like 2ms or 500us; found 'soon'"),
    ("iris --max-latency 0ms", "--max-latency must be greater than 0; found 0.0"),
    ("iris --max-drop 0", "--max-drop must be above 0: no number of samples can prove that nothing at all is lost"),
    ("iris --max-drop 1", "--max-drop must be less than 1; found 1.0"),
    ("iris --max-drop nan", "--max-drop must be a finite number; found nan"),
    ("iris --effort endless", "'endless' is not one of 'quick', 'normal', 'thorough'"),
    ("iris --model no_such_module:make", "cannot build a network with 'no_such_module:make': ModuleNotFoundError"),
    ("iris --model network.pt", "--model names a .safetensors file or module:function; found 'network.pt'"),
    ("iris --model {o}/absent.safetensors", "there is no such file"),
    ("iris --into module:make", "--into is what a model file is loaded into: name the file with --model"),
    ("iris --out {o}/file", "a folder is needed; "),
    ("iris --out {o}/file/below", "a folder is needed; "),
    ("{f}", "--target"),
    ("{f} --target nothing", "nothing"),
    ("no_such_data", "no_such_data"),
]


@pytest.mark.parametrize(("words", "said"), BAD_INPUT)
def test_wrong_input_is_one_line(command: Run, flowers: Path, tmp_path: Path, words: str, said: str) -> None:
    (tmp_path / "file").write_text("")
    asked = words.format(o=tmp_path, f=flowers).split()
    place = () if "--out" in asked else ("--out", tmp_path / "out")
    code, out, err = command("rightsize", *asked, *place)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("topiarist: ") and said in err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
