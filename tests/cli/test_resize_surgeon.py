"""`topiarist shape --method surgeon`: what it prints and writes, how it goes on, and what it refuses in one line."""

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
from topiarist.cli.shape_surgeon import PAPER, make_surgeon
from topiarist.methods.surgeon.journal import Journal
from topiarist.methods.surgeon.paper_settings import PaperSettings

from tests.cli.conftest import invoke, invoke_installed
from tests.cli.test_bad_input import OPTIONS
from tests.cli.test_shape import as_json, contents
from tests.cli.test_train import interrupted
from topiarist import Budget, load, load_data, measure
from topiarist.data import Part
from topiarist.methods import Surgeon
from topiarist.methods.resize import resize as shape
from topiarist.methods.surgeon.proposals import KINDS
from topiarist.report.writing import write_lineage
from topiarist.storage import serialise
from topiarist.surgery import recommend

Run = Callable[..., tuple[int, str, str]]
FILES = ("curves.svg", "lineage.json", "safetensors", "topology.svg", "tree.svg")


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def surgeon(**changes: Any) -> Surgeon:
    plain = Surgeon()
    return Surgeon(training=plain.course.model_copy(update=changes))


def test_the_network_and_its_record_are_written(command: Run, digits_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "grown.safetensors"
    words = ("--method", "surgeon", "--epochs", 4, "--seed", 3, "--out", out, "--json")
    result = as_json(command("shape", digits_model, "digits", *words))
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
    by_hand = shape(load(digits_model), data, surgeon(epochs=4), seed=3, latency=False)
    assert out.read_bytes() == serialise(by_hand.model, data=data)
    assert record == json.loads(json.dumps(by_hand.lineage))
    found = measure(load(out), data, latency=False, path=out).to_json()
    same = ("accuracy", "log_loss", "parameters", "macs", "file_kb")
    assert {name: result["after"][name] for name in same} == {name: found[name] for name in same}


def test_a_training_option_changes_that_setting_alone() -> None:
    given: dict[str, Any] = dict.fromkeys(OPTIONS)
    assert make_surgeon(given, []) == Surgeon()
    for published in (False, True):
        plain = Surgeon(published=published)
        for name, value in (("epochs", 5), ("batch_size", 8), ("learning_rate", 0.01)):
            made = make_surgeon({**given, "published": published, name: value}, ["published", name])
            assert made.course == plain.course.model_copy(update={name: value}) != plain.course
    chosen = {"aim": "0.01", "kind": ["grow", "fold", "grow"], "interval": 2, "workers": 3}
    made = make_surgeon({**given, **chosen}, list(chosen))
    assert made == Surgeon(aim=0.01, kinds=("grow", "fold"), interval=2, workers=3)
    assert make_surgeon({**given, "aim": "smaller"}, ["aim"]) == Surgeon(aim="smaller")


def test_every_setting_of_the_paper_has_its_name_in_the_help(command: Run) -> None:
    assert tuple(PaperSettings.model_fields) == PAPER
    code, out, _ = command("shape", "--help")
    assert code == 0 and all(name in "".join(out.split()) for name in PAPER)
    made = make_surgeon({"published": True, "paper": ["top=3", "absolute_floor=0.1"]}, ["published", "paper"])
    assert made == Surgeon(published=True, top=3, absolute_floor=0.1)


WAYS: dict[str, str] = {
    "growth": "--epochs 5 --kind grow --kind deepen --aim better --interval 1",
    "reduction": "--epochs 10 --kind remove --kind fold --aim smaller",
    "a price, and other steps": "--epochs 2 --aim 0.01 --batch-size 64 --lr 0.01",
    "published": "--epochs 2 --interval 1 --published",
    "published, other settings": "--epochs 2 --published --interval 1 --paper top=1 --paper branches=1",
    "a budget": "--epochs 2 --max-parameters 700",
}


@pytest.mark.parametrize("way", WAYS)
def test_options_have_their_effect(command: Run, digits_model: Path, way: str) -> None:
    words = shlex.split(WAYS[way])
    result = as_json(command("shape", digits_model, "digits", "--method", "surgeon", *words, "--json"))
    lineage = result["lineage"]
    assert lineage["epochs"] == int(words[1]) and result["out"] is None and "lineage_files" not in result
    tried = {node["kind"] for node in lineage["nodes"]} - {"start", "identity"}
    assert tried <= {"growth": {"grow", "deepen"}, "reduction": {"remove", "fold"}}.get(way, tried)
    assert tried or way in ("a price, and other steps", "a budget")
    if way.startswith("published"):
        assert tried <= {"widen", "deepen", "project", "fold", "factorise"}
    if way == "published, other settings":
        assert all(len(decision["kept"]) == 1 for decision in lineage["decisions"])
        assert all(len(decision["candidates"]) <= 3 for decision in lineage["decisions"])
    if way == "a budget":
        assert result["after"]["parameters"] <= 700 < result["before"]["parameters"]


def test_people_get_a_table_and_nothing_is_written_unasked(
    command: Run, digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ("shape", digits_model, "digits", "--method", "surgeon", "--epochs", 1)
    code, out, err = command(*words)
    assert (code, err) == (0, "") and "accuracy" in out
    assert "saved" not in out and "lineage" not in out and not names(tmp_path)
    code, out, err = command(*words, "--out", "grown.safetensors")
    assert (code, err) == (0, "")
    assert all(f"grown.{ending}" in out for ending in FILES)


def test_a_lineage_without_accuracies_has_no_curves(command: Run, digits_model: Path, tmp_path: Path) -> None:
    result = as_json(command("shape", digits_model, "digits", "--method", "surgeon", "--epochs", 1, "--json"))
    for node in result["lineage"]["nodes"]:
        node |= {"accuracy": None, "points": []}
    written = write_lineage(result["lineage"], tmp_path / "grown.safetensors")
    assert list(written) == ["lineage", "tree", "topology"]
    assert names(tmp_path) == ["grown.lineage.json", "grown.topology.svg", "grown.tree.svg"]


def test_help_is_true(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    said = invoke_installed("shape", "--help")[1]
    for plain in (Surgeon(), Surgeon(published=True)):
        assert str(plain.course.epochs) in line_of(said, "--epochs")
        assert str(plain.course.learning_rate) in line_of(said, "--lr")
        assert f"default: {plain.course.batch_size}" in line_of(said, "--batch")
    assert Surgeon().course.schedule.name == "cosine" and Surgeon(published=True).course.schedule.name == "constant"
    assert f"default: {Surgeon().aim}" in line_of(said, "--aim")
    assert ", ".join(KINDS) in line_of(said, "--kind")
    assert set(KINDS) - set(Surgeon().kinds) == {"widen", "deepen"}
    assert f"default: {Surgeon().workers}" in line_of(said, "--workers")


def line_of(said: str, option: str) -> str:
    return next(line for line in said.splitlines() if option in line.split("  ")[0] or f" {option}" in line[:30])


LONG = ("--method", "surgeon", "--epochs", "16", "--seed", "1")


@pytest.fixture(scope="module")
def undisturbed(digits_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the folder of what a run comes to that nobody disturbs."""
    folder = tmp_path_factory.mktemp("undisturbed")
    code, _, err = invoke("shape", digits_model, "digits", *LONG, "--out", folder / "grown.safetensors")
    assert (code, err) == (0, "")
    return folder


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_run_goes_on_to_the_same_bytes(
    command: Run, digits_model: Path, undisturbed: Path, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "grown.safetensors"
    words = ["shape", str(digits_model), "digits", *LONG, "--out", str(out)]
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
        assert (running.returncode, said) == (130, "topiarist: interrupted: run the same command again to go on\n")
        assert names(tmp_path) == ["grown.safetensors.checkpoint"]
    assert running.returncode != 0 and checkpoint.exists() and not out.exists()

    taken_up = []

    def read(journal: Journal, whole: Any) -> Any:
        taken_up.append(found := read_journal(journal, whole))
        return found

    read_journal = Journal.read
    with mock.patch.object(Journal, "read", read):
        assert command(*words)[0] == 0
    assert len(taken_up) == 1 and taken_up[0] is not None
    kept = {path.name: path.read_bytes() for path in undisturbed.iterdir()}
    assert {name: (tmp_path / name).read_bytes() for name in kept} == kept and not checkpoint.exists()


def test_a_ctrl_c_before_the_first_decision_leaves_nothing(command: Run, digits_model: Path, tmp_path: Path) -> None:
    words = ("shape", digits_model, "digits", *LONG, "--out", tmp_path / "grown.safetensors")
    with mock.patch("topiarist.methods.surgeon.theatre.Theatre.begin", side_effect=KeyboardInterrupt):
        code, out, err = command(*words)
    assert (code, out, err) == (130, "", "topiarist: interrupted: nothing was written\n")
    assert not names(tmp_path)


def test_a_recommendation_changes_and_writes_nothing(
    command: Run, digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = contents(digits_model.parent)
    words = ("shape", digits_model, "digits", "--method", "surgeon", "--recommend-only")
    code, out, err = command(*words)
    assert (code, err) == (0, "")
    for said in ("space", "effective rank", "gain of growth", "hidden0", "layer", "lost if folded", "output"):
        assert said in out
    result = as_json(command(*words, "--json"))
    assert (result["model"], result["data"], result["samples"]) == (str(digits_model), "digits", 1168)
    assert set(result["spaces"]) == {"hidden0"} and set(result["layers"]) == {"hidden0", "output"}
    assert result == as_json(command(*words, "--json")) and not names(tmp_path)
    assert contents(digits_model.parent) == before


def test_a_recommendation_of_few_samples_is_by_all_of_them(command: Run, flowers: Path, flowers_model: Path) -> None:
    words = ("--target", "kind", "--method", "surgeon", "--recommend-only", "--seed", 2, "--json")
    result = as_json(command("shape", flowers_model, flowers, *words))
    network, part = load(flowers_model), load_data(flowers, target="kind").train
    assert isinstance(part, Part) and result["samples"] == len(part)
    by_hand = recommend(network, part.x[:2], calibration=part.x, labels=part.y, seed=2).to_record()
    for name, layer in by_hand["layers"].items():
        assert result["layers"][name]["singular_values"] == layer["singular_values"]
    for name, space in by_hand["spaces"].items():
        assert result["spaces"][name]["effective_rank"] == pytest.approx(space["effective_rank"], rel=1e-4)
    assert result["parameters"] == by_hand["parameters"]


REFUSED: list[tuple[str, str]] = [
    ("--method surgeon --aim x", "--aim: must be better, balanced, smaller or a number from 0 on; found 'x'"),
    ("--method surgeon --aim nan", "--aim: must be"),
    ("--method surgeon --aim=-1", "--aim: must be"),
    ("--method surgeon --aim inf", "--aim: must be"),
    ("--method surgeon --aim ''", "--aim: must be"),
    ("--method surgeon --kind grow --kind shrink", "--kind must be one of renew, grow, widen"),
    ("--method surgeon --epochs 0", "greater than or equal to 1; found '0'"),
    ("--method surgeon --epochs many", "'--epochs'"),
    ("--method surgeon --batch-size 0", "greater than or equal to 1; found '0'"),
    ("--method surgeon --interval 0", "greater than or equal to 1; found '0'"),
    ("--method surgeon --workers 0", "greater than or equal to 1; found '0'"),
    ("--method surgeon --lr 0", "--lr must be greater than 0; found 0.0"),
    ("--method surgeon --lr nan", "--lr must be"),
    ("--method surgeon --published --aim better", "--aim has no effect with --published"),
    ("--method surgeon --published --kind grow", "--kind has no effect with --published"),
    ("--method surgeon --paper branches=3", "--paper branches belongs to the paper's algorithm"),
    ("--method surgeon --published --paper branches=0", "--paper branches must be greater than or equal to 1"),
    ("--method surgeon --published --paper branches", "--paper takes NAME=VALUE with one of initial, branches"),
    ("--method surgeon --published --paper width=3", "--paper takes NAME=VALUE with one of initial, branches"),
    ("--method surgeon --published --budget 5kB", "both say where to stop"),
    ("--method surgeon --finetune 3", "--finetune has no effect on the surgeon, which trains the network itself"),
    ("--method surgeon --rewind 1", "--rewind has no effect on the surgeon"),
    ("--method surgeon --space hidden0", "--space belongs to the methods that cut units"),
    ("--method surgeon --angle 20", "--angle belongs to --method distinctiveness, not to surgeon"),
    ("--method surgeon --sparsity 0.5", "--sparsity belongs to --method magnitude, not to surgeon"),
    ("--method surgeon --max-parameters 3 --epochs 1", "the budget is 3"),
    ("--method surgeon --recommend-only --epochs 3", "--epochs has no effect with --recommend-only"),
    ("--method surgeon --recommend-only --budget 5kB", "--budget has no effect with --recommend-only"),
    ("--method surgeon --recommend-only --out {t}/small.safetensors", "--out has no effect with --recommend-only"),
    ("--method surgeon --out {t}/taken.safetensors", "taken.tree.svg: it is a folder"),
    ("--aim better", "--aim belongs to --method surgeon, not to distinctiveness"),
    ("--method genetic --kind grow", "--kind belongs to --method surgeon, not to genetic"),
    ("--method magnitude --epochs 3", "--epochs belongs to --method surgeon, not to magnitude"),
    ("--method magnitude --batch-size 3", "--batch-size belongs to --method surgeon"),
    ("--method magnitude --lr 0.1", "--learning-rate belongs to --method surgeon"),
    ("--method genetic-front --interval 3", "--interval belongs to --method surgeon"),
    ("--workers 2", "--workers belongs to --method surgeon, not to distinctiveness"),
    ("--recommend-only", "--recommend-only belongs to --method surgeon, not to distinctiveness"),
    ("--method genetic-front --published", "--published belongs to --method distinctiveness and genetic and magnitude"),
]


@pytest.mark.parametrize(("call", "said"), REFUSED)
def test_wrong_input_is_one_line_and_nothing_is_written(
    command: Run, digits_model: Path, tmp_path: Path, call: str, said: str
) -> None:
    (tmp_path / "taken.tree.svg").mkdir()
    words = shlex.split(call.format(t=tmp_path))
    words += [] if "--out" in words or "--recommend-only" in words else ["--out", str(tmp_path / "small.safetensors")]
    code, out, err = command("shape", digits_model, "digits", *words)
    assert (code, out) == (2, ""), err
    assert err.startswith("topiarist: ") and err.endswith("\n") and err.count("\n") == 1, err
    assert said in err and "Traceback" not in err
    assert names(tmp_path) == ["taken.tree.svg"]


def test_a_checkpoint_that_cannot_be_read_is_one_line(command: Run, digits_model: Path, tmp_path: Path) -> None:
    (tmp_path / "grown.safetensors.checkpoint").write_bytes(b"nonsense")
    words = ("--method", "surgeon", "--epochs", 1, "--out", tmp_path / "grown.safetensors")
    code, out, err = command("shape", digits_model, "digits", *words)
    assert (code, out, err.count("\n")) == (2, "", 1) and "remove it to start over" in err


def test_a_budget_is_that_of_the_library(command: Run, digits_model: Path) -> None:
    words = ("--method", "surgeon", "--epochs", 2, "--budget", "5kB", "--json")
    result = as_json(command("shape", digits_model, "digits", *words))
    budget = Budget(file_kb=5)
    by_hand = shape(load(digits_model), load_data("digits"), surgeon(epochs=2), budget=budget, latency=False)
    assert result["after"]["accuracy"] == by_hand.after.accuracy and result["after"]["file_kb"] <= 5
