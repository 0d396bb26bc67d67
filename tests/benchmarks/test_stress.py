"""The short form of `make stress`: a training that is killed, or doubled, or whose clock is set back, ends the same."""

from pathlib import Path

import pytest

from benchmarks.stress import COMMANDS, Stress, clock, go_round, kill, prepare, results, second
from topiarist.randomness import array_generator

TRAIN = "train iris --hidden 16 --epochs 150 --out out/m.safetensors"


@pytest.fixture
def stress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stress:
    monkeypatch.setitem(COMMANDS, "train", TRAIN)
    found = Stress(tmp_path.resolve(), array_generator(0, "stress"))
    prepare(found, ["train"])
    return found


@pytest.mark.slow
def test_a_training_survives(stress: Stress) -> None:
    assert list(stress.expected["train"]) == ["m.safetensors"]
    kill(stress, "train", kills=3)
    second(stress, "train")
    clock(stress, "train")
    assert not stress.report.wrong
    assert stress.counts["kills"] and stress.counts["second drivers"] == stress.counts["clocks set back"] == 1


@pytest.mark.slow
def test_a_difference_is_seen(stress: Stress) -> None:
    stress.expected["train"] = {"m.safetensors": b"other bits"}
    stress.completed("train", "a training")
    assert stress.report.wrong == ["a training: the same bits, but for ['m.safetensors']"]
    assert list(results(stress.out)) == ["m.safetensors"]


def test_no_time_means_no_round(tmp_path: Path) -> None:
    stress = Stress(tmp_path, array_generator(0, "stress"))
    go_round(stress, ["train"], ["kill"], seconds=0)
    assert not stress.counts
