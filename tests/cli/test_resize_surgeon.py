"""`topiarist resize surgeon`: what it prints and writes, how it resumes, and what it refuses in one line."""

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from tests.cli.conftest import invoke, invoke_installed
from tests.cli.test_resize import as_json
from tests.cli.test_train import interrupted
from topiarist import Budget, load, load_data, measure
from topiarist.cli.resize import MethodCommand
from topiarist.evolution.lineage import Lineage
from topiarist.methods import Method, Surgeon, published, resize
from topiarist.methods.surgeon.checkpoint import SurgeonCheckpoint
from topiarist.methods.surgeon.proposals import KINDS
from topiarist.report.writing import write_lineage
from topiarist.storage import serialise

pytestmark = pytest.mark.slow

Run = Callable[..., tuple[int, str, str]]
FILES = ("curves.svg", "lineage.json", "safetensors", "topology.svg", "tree.svg")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def surgeon(**changes: Any) -> Surgeon:
    plain = Surgeon()
    return Surgeon(training=plain.usual_training.model_copy(update=changes))


def test_the_network_and_its_record_are_written(command: Run, digits_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "grown.safetensors"
    words = ("--epochs", 4, "--seed", 3, "--out", out, "--json")
    result = as_json(command("resize", "surgeon", digits_model, "digits", *words))
    assert names(tmp_path) == [f"grown.{ending}" for ending in FILES]
    assert result["lineage_files"] == {
        "lineage": str(tmp_path / "grown.lineage.json"),
        "tree": str(tmp_path / "grown.tree.svg"),
        "topology": str(tmp_path / "grown.topology.svg"),
        "curves": str(tmp_path / "grown.curves.svg"),
    }
    assert (result["out"], result["method"], result["seed"]) == (str(out), "surgeon", 3)
    record = json.loads((tmp_path / "grown.lineage.json").read_text())
    assert record == result["lineage"] and record["epochs"] == 4
    for name in ("tree", "topology", "curves"):
        assert Path(result["lineage_files"][name]).read_text().lstrip().startswith("<svg")
    data = load_data("digits")
    by_hand = resize(load(digits_model), data, surgeon(epochs=4), seed=3, latency=False)
    assert out.read_bytes() == serialise(by_hand.model, data=data)
    assert by_hand.lineage is not None and record == json.loads(json.dumps(by_hand.lineage.to_record()))
    found = measure(load(out), data, latency=False, path=out).to_json()
    same = ("accuracy", "log_loss", "parameters", "macs", "file_kb")
    assert {name: result["after"][name] for name in same} == {name: found[name] for name in same}


def made_by(method: type[Method], **given: Any) -> Method:
    return MethodCommand(method).make_method(given)


@pytest.mark.parametrize("method", [Surgeon, published.Surgeon])
def test_a_training_option_changes_that_setting_alone(method: type[Surgeon]) -> None:
    plain = method()
    assert made_by(method) == plain
    for name, value in (("epochs", 5), ("batch_size", 8), ("learning_rate", 0.01)):
        made = made_by(method, **{name: value})
        assert isinstance(made, method)
        assert made.usual_training == plain.usual_training.model_copy(update={name: value}) != plain.usual_training
    made = made_by(method, schedule_name="constant", schedule_warmup=3)
    assert isinstance(made, method)
    assert (made.usual_training.schedule.name, made.usual_training.schedule.warmup) == ("constant", 3)


def test_options_are_those_of_the_settings() -> None:
    made = made_by(Surgeon, aim="0.01", kinds=["grow", "fold,grow"], interval=2, workers=3)
    assert made == Surgeon(aim=0.01, kinds=("grow", "fold"), interval=2, workers=3)
    assert made_by(Surgeon, aim="smaller") == Surgeon(aim="smaller")
    assert made_by(published.Surgeon, top=3, absolute_floor=0.1) == published.Surgeon(top=3, absolute_floor=0.1)


@pytest.mark.parametrize("method", [Surgeon, published.Surgeon])
def test_every_setting_has_its_option(method: type[Surgeon]) -> None:
    command = MethodCommand(method)
    assert {each.path[0] for each in command.options.options} == set(method.model_fields) - {"training"}


CALLS: dict[str, str] = {
    "growth": "--epochs 5 --kind grow --kind deepen --aim better --interval 1",
    "reduction": "--epochs 10 --kind remove --kind fold --aim smaller",
    "a price, and other steps": "--epochs 2 --aim 0.01 --batch-size 64 --lr 0.01",
    "published": "--epochs 2 --interval 1",
    "published, other settings": "--epochs 2 --interval 1 --top 1 --branches 1",
    "a budget": "--epochs 2 --max-parameters 700",
}


@pytest.mark.parametrize("call", CALLS)
def test_options_have_their_effect(command: Run, digits_model: Path, call: str) -> None:
    words = shlex.split(CALLS[call])
    method = "published-surgeon" if call.startswith("published") else "surgeon"
    result = as_json(command("resize", method, digits_model, "digits", *words, "--json"))
    lineage = result["lineage"]
    assert lineage["epochs"] == int(words[1]) and result["out"] is None and "lineage_files" not in result
    tried = {node["kind"] for node in lineage["nodes"]} - {"start", "identity"}
    assert tried <= {"growth": {"grow", "deepen"}, "reduction": {"remove", "fold"}}.get(call, tried)
    assert tried or call in ("a price, and other steps", "a budget")
    if call.startswith("published"):
        assert tried <= {"widen", "deepen", "project", "fold", "factorise"}
    if call == "published, other settings":
        assert all(len(decision["kept"]) == 1 for decision in lineage["decisions"])
        assert all(len(decision["candidates"]) <= 3 for decision in lineage["decisions"])
    if call == "a budget":
        assert result["after"]["parameters"] <= 700 < result["before"]["parameters"]


def test_people_get_a_table_and_nothing_is_written_unasked(
    command: Run, digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("resize", "surgeon", digits_model, "digits", "--epochs", 1)
    code, out, err = command(*words)
    assert (code, err) == (0, "") and "accuracy" in out
    assert "saved" not in out and "lineage" not in out and not names(tmp_path)
    code, out, err = command(*words, "--out", "grown.safetensors")
    assert (code, err) == (0, "")
    assert all(f"grown.{ending}" in out for ending in FILES)


def test_a_lineage_without_accuracies_has_no_curves(command: Run, digits_model: Path, tmp_path: Path) -> None:
    result = as_json(command("resize", "surgeon", digits_model, "digits", "--epochs", 1, "--json"))
    for node in result["lineage"]["nodes"]:
        node |= {"accuracy": None, "points": []}
    written = write_lineage(Lineage.from_record(result["lineage"]), tmp_path / "grown.safetensors")
    assert list(written) == ["lineage", "tree", "topology"]
    assert names(tmp_path) == ["grown.lineage.json", "grown.topology.svg", "grown.tree.svg"]


@pytest.mark.parametrize("method", [Surgeon, published.Surgeon])
def test_help_is_true(method: type[Surgeon], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    said, usual = invoke_installed("resize", method.name, "--help")[1], method().usual_training
    assert f"default: {usual.epochs}" in line_of(said, "--epochs")
    assert f"default: {usual.learning_rate}" in line_of(said, "--lr")
    assert f"default: {usual.batch_size}" in line_of(said, "--batch,--batch-size")
    assert f"default: {usual.schedule.name}" in line_of(said, "--schedule")
    assert f"default: {method().workers}" in line_of(said, "--workers")
    if method is Surgeon:
        assert f"default: {Surgeon().aim}" in line_of(said, "--aim")
        assert ", ".join(KINDS) in line_of(said, "--kind")
        assert set(KINDS) - set(Surgeon().kinds) == {"widen", "deepen"}


def line_of(said: str, option: str) -> str:
    return next(line for line in said.splitlines() if option in line.split("  ")[0] or f" {option}" in line[:30])


LONG = ("--epochs", "16", "--seed", "1")


@pytest.fixture(scope="module")
def undisturbed(digits_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that nobody disturbs."""
    folder = tmp_path_factory.mktemp("undisturbed")
    code, _, err = invoke("resize", "surgeon", digits_model, "digits", *LONG, "--out", folder / "grown.safetensors")
    assert (code, err) == (0, "")
    return folder


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_run_resumes_to_the_same_bytes(
    command: Run, digits_model: Path, undisturbed: Path, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "grown.safetensors"
    words = ["resize", "surgeon", str(digits_model), "digits", *LONG, "--out", str(out)]
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"  # tests may run in the background
        "from topiarist.cli import main; main()"
    )
    with subprocess.Popen([sys.executable, "-c", code, *words], stderr=subprocess.PIPE, text=True) as running:
        checkpoint = tmp_path / "grown.safetensors.checkpoint"
        while not checkpoint.exists() and running.poll() is None:
            time.sleep(0.01)
        if number == signal.SIGKILL:
            running.kill()
        said = interrupted(running)[1] if number == signal.SIGINT else running.communicate()[1]
    if number == signal.SIGINT:
        assert (running.returncode, said) == (130, "topiarist: interrupted: run the same command again to resume\n")
        assert names(tmp_path) == ["grown.safetensors.checkpoint"]
    assert running.returncode != 0 and checkpoint.exists() and not out.exists()

    taken_up = []

    def read(checkpoint_file: SurgeonCheckpoint, whole: Any) -> Any:
        taken_up.append(found := read_checkpoint(checkpoint_file, whole))
        return found

    read_checkpoint = SurgeonCheckpoint.read
    with mock.patch.object(SurgeonCheckpoint, "read", read):
        assert command(*words)[0] == 0
    assert len(taken_up) == 1 and taken_up[0] is not None
    kept = {path.name: path.read_bytes() for path in undisturbed.iterdir()}
    assert {name: (tmp_path / name).read_bytes() for name in kept} == kept and not checkpoint.exists()


def test_a_ctrl_c_before_the_first_decision_leaves_nothing(command: Run, digits_model: Path, tmp_path: Path) -> None:
    words = ("resize", "surgeon", digits_model, "digits", *LONG, "--out", tmp_path / "grown.safetensors")
    with mock.patch("topiarist.methods.surgeon.evolution.Evolution.begin", side_effect=KeyboardInterrupt):
        code, out, err = command(*words)
    assert (code, out, err) == (130, "", "topiarist: interrupted: nothing was written\n")
    assert not names(tmp_path)


AT_LEAST_1 = "must be greater than or equal to 1; found 0"
REFUSED: list[tuple[str, str]] = [
    ("surgeon --aim x", "--aim: must be better, balanced, smaller or a number from 0 on; found 'x'"),
    ("surgeon --aim nan", "--aim: must be"),
    ("surgeon --aim=-1", "--aim: must be"),
    ("surgeon --aim inf", "--aim: must be"),
    ("surgeon --aim ''", "--aim: must be"),
    ("surgeon --kind grow --kind shrink", "--kind must be 'renew', 'grow', 'widen'"),
    ("surgeon --epochs 0", f"--epochs {AT_LEAST_1}"),
    ("surgeon --epochs many", "'--epochs'"),
    ("surgeon --batch-size 0", f"--batch-size {AT_LEAST_1}"),
    ("surgeon --interval 0", f"--interval {AT_LEAST_1}"),
    ("surgeon --workers 0", f"--workers {AT_LEAST_1}"),
    ("surgeon --patience 0", f"--patience {AT_LEAST_1}"),
    ("surgeon --stop-at 2", "--stop-at must be less than or equal to 1; found 2.0"),
    ("surgeon --max-growth 0", f"--max-growth {AT_LEAST_1}"),
    ("surgeon --lr 0", "--lr must be greater than 0; found 0.0"),
    ("surgeon --learning-rate 0", "--learning-rate must be greater than 0; found 0.0"),
    ("surgeon --lr nan", "--lr must be"),
    ("surgeon --schedule performance", "performance scheduling cannot be combined with the surgeon"),
    ("surgeon --schedule-warmup=-1", "--schedule-warmup must be greater than or equal to 0; found -1"),
    ("published-surgeon --aim better", "No such option: --aim"),
    ("published-surgeon --kind grow", "No such option: --kind"),
    ("surgeon --branches 3", "No such option: --branches"),
    ("published-surgeon --branches 0", f"--branches {AT_LEAST_1}"),
    ("published-surgeon --branches many", "'--branches': it must be a valid integer"),
    ("published-surgeon --memory long", "'long' is not one of 'none', 'cycle', 'lineage'"),
    ("published-surgeon --memory none --redraws 1", "--redraws has no effect with memory 'none'"),
    ("published-surgeon --width 3", "No such option: --width"),
    ("published-surgeon --budget 5kB", "No such option: --budget"),
    ("surgeon --finetune 3", "No such option: --finetune"),
    ("surgeon --rewind 1", "No such option: --rewind"),
    ("surgeon --space hidden0", "No such option: --space"),
    ("surgeon --ignore hidden0", "No such option: --ignore"),
    ("surgeon --angle 20", "No such option: --angle"),
    ("surgeon --sparsity 0.5", "No such option: --sparsity"),
    ("surgeon --max-parameters 3 --epochs 1", "the budget is 3"),
    ("surgeon --out {t}/taken.safetensors", "taken.tree.svg: it is a folder"),
    ("distinctiveness --aim better", "No such option: --aim"),
    ("genetic --kind grow", "No such option: --kind"),
    ("magnitude --epochs 3", "No such option: --epochs"),
    ("magnitude --batch-size 3", "No such option: --batch-size"),
    ("magnitude --lr 0.1", "No such option: --lr"),
    ("genetic-front --interval 3", "No such option: --interval"),
    ("distinctiveness --workers 2", "No such option: --workers"),
    ("surgeon --recommend-only", "No such option: --recommend-only"),
]


@pytest.mark.parametrize(("call", "said"), REFUSED)
def test_wrong_input_is_one_line_and_nothing_is_written(
    command: Run, digits_model: Path, tmp_path: Path, call: str, said: str
) -> None:
    (tmp_path / "taken.tree.svg").mkdir()
    method, *words = shlex.split(call.format(t=tmp_path))
    words += [] if "--out" in words else ["--out", str(tmp_path / "small.safetensors")]
    code, out, err = command("resize", method, digits_model, "digits", *words)
    assert (code, out) == (2, ""), err
    assert err.startswith("topiarist: ") and err.endswith("\n") and err.count("\n") == 1, err
    assert said in err and "Traceback" not in err
    assert names(tmp_path) == ["taken.tree.svg"]


def test_a_checkpoint_that_cannot_be_read_is_one_line(command: Run, digits_model: Path, tmp_path: Path) -> None:
    (tmp_path / "grown.safetensors.checkpoint").write_bytes(b"nonsense")
    words = ("--epochs", 1, "--out", tmp_path / "grown.safetensors")
    code, out, err = command("resize", "surgeon", digits_model, "digits", *words)
    assert (code, out, err.count("\n")) == (2, "", 1) and "grown.safetensors.checkpoint to start over" in err


def test_a_budget_is_that_of_the_library(command: Run, digits_model: Path) -> None:
    words = ("--epochs", 2, "--budget", "5kB", "--json")
    result = as_json(command("resize", "surgeon", digits_model, "digits", *words))
    budget = Budget(file_kb=5)
    by_hand = resize(load(digits_model), load_data("digits"), surgeon(epochs=2), budget=budget, latency=False)
    assert result["after"]["accuracy"] == by_hand.after.accuracy and result["after"]["file_kb"] <= 5
