import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from topiarist import load, load_data, measure

Run = Callable[..., tuple[int, str, str]]


def as_json(ran: tuple[int, str, str]) -> dict[str, Any]:
    code, out, err = ran
    assert (code, err, out.count("\n")) == (0, "", 1)
    result = json.loads(out)
    assert isinstance(result, dict)
    return result


def test_training_and_measuring_agree(command: Run, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    words = ("--hidden", 16, "--epochs", 3, "--seed", 5, "--out", out)
    trained = as_json(command("train", "digits", *words, "--json"))
    measured = as_json(command("measure", out, "digits", "--json"))
    exact = {"accuracy", "macro_accuracy", "log_loss", "parameters", "nonzero", "memory_kb", "file_kb", "macs"}
    assert {*exact, "latency_ms"} <= set(measured)
    for name in exact:
        assert measured[name] == trained[name], name
    assert measured["latency_ms"] > 0
    assert (measured["model"], measured["data"], measured["part"]) == (str(out), "digits", "test")


@pytest.mark.slow
def test_each_part_is_that_of_training(command: Run, digits_model: Path) -> None:
    data, network = load_data("digits"), load(digits_model)
    for part in ("train", "validation", "test"):
        found = as_json(command("measure", digits_model, "digits", "--part", part, "--json"))
        expected = measure(network, data, part=part, latency=False)
        assert (found["samples"], found["accuracy"]) == (expected.samples, expected.accuracy)
    assert as_json(command("measure", digits_model, "digits", "--part", "all", "--json"))["samples"] == 1797


@pytest.mark.slow
def test_another_seed_is_another_split(command: Run, digits_model: Path) -> None:
    losses = [
        as_json(command("measure", digits_model, "digits", *words, "--json"))["log_loss"]
        for words in ((), ("--seed", 0), ("--seed", 1))
    ]
    assert losses[0] == losses[1] != losses[2]


def test_people_get_a_table(command: Run, digits_model: Path) -> None:
    code, out, err = command("measure", digits_model, "digits", "--threads", 1)
    assert (code, err) == (0, "")
    first_words = [line.split()[0] for line in out.splitlines() if line.strip()]
    assert first_words == ["model", "data", "accuracy", "macro", "log", "parameters", "size", "MACs", "latency"]


@pytest.mark.slow
def test_a_table_with_text_and_gaps(command: Run, flowers: Path, flowers_model: Path) -> None:
    measured = as_json(command("measure", flowers_model, flowers, "--target", "kind", "--json"))
    assert measured["samples"] == 30 and measured["accuracy"] >= 0.9


@pytest.mark.parametrize("rows", [slice(1, None, 3), slice(3, 4)])
def test_a_file_that_could_not_be_trained_on_can_be_measured(
    command: Run, flowers: Path, flowers_model: Path, tmp_path: Path, rows: slice
) -> None:
    """One class only, a colour that never changes: of no use for training, but enough to see how many are right."""
    header, *lines = flowers.read_text().splitlines()
    (tmp_path / "some.csv").write_text("\n".join([header, *lines[rows]]))
    words = ("--target", "kind", "--part", "all")
    measured = as_json(command("measure", flowers_model, tmp_path / "some.csv", *words, "--json"))
    assert measured["samples"] == len(lines[rows]) and measured["accuracy"] >= 0.9


def test_a_network_of_ones_own(
    command: Run, digits_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code = "from topiarist.models import mlp\ndef build():\n    return mlp([64, 16, 10], dropout=0.2)\n"
    (tmp_path / "my_network_for_measure.py").write_text(code)
    words = ("--into", "my_network_for_measure:build", "--json")
    own = as_json(command("measure", digits_model, "digits", *words))
    assert own["accuracy"] == as_json(command("measure", digits_model, "digits", "--json"))["accuracy"]
