"""A rightsizing that ended at any moment resumes, repeats no finished stage, and ends with the same bits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.rightsizing.tasks import blobs, same_weights, shrunk, small_network, weights_of, without_times
from topiarist.data import Data
from topiarist.errors import SettingsError, TopiaristError
from topiarist.models import card_of, vgg
from topiarist.rightsizing import Rightsizing, stages
from topiarist.rightsizing.making import Made
from topiarist.rightsizing.stages import Stages, working_in
from topiarist.training import TrainConfig, train
from topiarist.training.resumable import read_resumable, write_resumable

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_plan")]
SETTINGS: dict[str, Any] = {
    "methods": ("distinctiveness", "factorisation", "magnitude", "surgeon"),
    "max_drop": 0.9,
    "seed": 3,
}


class StoppedError(Exception):
    """The work ended, for the test."""


def stopping_after(patch: pytest.MonkeyPatch, count: int) -> list[str]:
    """Let the work end after so many more stages; return their names."""
    kept: list[str] = []
    write = Stages.keep

    def keep(self: Stages, name: str, made: Made) -> Made:
        if len(kept) == count:
            raise StoppedError
        kept.append(name)
        return write(self, name, made)

    patch.setattr(Stages, "keep", keep)
    return kept


def same(one: Rightsizing, other: Rightsizing) -> bool:
    """Return whether records, but for times, and all networks with their cards are the same."""
    if without_times(one.record.to_json()) != without_times(other.record.to_json()):
        return False
    pairs = [(model, other.networks[name]) for name, model in one.networks.items()]
    return all(same_weights(weights_of(a), weights_of(b)) and card_of(a) == card_of(b) for a, b in pairs)


def pictures(samples: int = 60) -> Data:
    from tests.rightsizing.test_descent import pictures as made

    return made(samples)


CASES: dict[str, tuple[Any, Any]] = {
    "a table": (lambda: blobs(120), None),
    "a stack": (lambda: blobs(test_fraction=0), small_network),
    "one by one": (lambda: pictures(90), lambda: vgg(1, 1, 0, 0, input_shape=(1, 12, 12), classes=3)),
}


@pytest.mark.parametrize("case", CASES)
def test_whatever_stage_it_ends_after_the_bits_are_the_same(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, model = CASES[case]
    settings = SETTINGS if case != "one by one" else {**SETTINGS, "methods": ("distinctiveness",)}
    whole = shrunk(make(), model, **settings)
    done: list[str] = []
    while True:
        with monkeypatch.context() as patch:
            kept = stopping_after(patch, 1 + len(done) // 4)
            try:
                found = shrunk(make(), model, work_folder=tmp_path / "work", **settings)
            except StoppedError:
                assert kept
                done += kept
                continue
        break
    done += kept
    assert len(done) == len(set(done)) >= 5  # no stage was done twice
    assert same(whole, found)
    again = shrunk(make(), model, work_folder=tmp_path / "work", **settings)
    assert again.record == found.record  # times included: they are measured once


def test_what_was_before_the_sizes_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "work"
    with monkeypatch.context() as patch, pytest.raises(StoppedError):
        before = stopping_after(patch, 6)
        shrunk(blobs(120), None, work_folder=place)
    assert before[:5] == ["baselines", "teacher-0", "teacher-1", "teacher-2", "references-0-1-2"]

    def made_again(*arguments: object) -> None:
        raise AssertionError("made again")

    kept = stopping_after(monkeypatch, 100)
    found = shrunk(blobs(120), None, work_folder=place)
    assert not {*before} & {*kept} and kept[-3:-1] == ["linear-0-1-2", "relearned-teacher-0"]
    assert kept[-1] == "relearned-" + "-".join(
        str(place) for place in range(sum(each.relearned for each in found.record.networks))
    )
    monkeypatch.setattr("topiarist.rightsizing.teaching.fit_teacher", made_again)
    monkeypatch.setattr("topiarist.rightsizing.work.reference_records", made_again)
    (place / "record.json").unlink()  # it ended while the networks were measured
    again = shrunk(blobs(120), None, work_folder=place)
    assert again.record.references == found.record.references and same(again, found)


def test_a_trained_network_of_a_users_class_resumes_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Own(nn.Sequential):
        pass

    network = Own(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 3))
    train(network, blobs(apart=6.0), TrainConfig(epochs=5, learning_rate=0.01))
    settings = {**SETTINGS, "methods": ("distinctiveness", "factorisation")}
    whole = shrunk(blobs(apart=6.0), network, **settings)
    with monkeypatch.context() as patch, pytest.raises(StoppedError):
        stopping_after(patch, 3)
        shrunk(blobs(apart=6.0), network, work_folder=tmp_path / "work", **settings)
    assert same(whole, shrunk(blobs(apart=6.0), network, work_folder=tmp_path / "work", **settings))


def test_the_work_of_another_command_is_not_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "work"
    with monkeypatch.context() as patch, pytest.raises(StoppedError):
        stopping_after(patch, 1)
        shrunk(blobs(60), work_folder=place)
    said = "holds the unfinished work of another rightsizing"
    for data, settings, changed in (
        (blobs(66), {}, "data"),
        (blobs(60), {"seed": 1}, "settings"),
        (blobs(60), {"max_drop": 0.5}, "settings"),
        (blobs(60), {"model": lambda: small_network(1)}, "network"),
    ):
        with pytest.raises(SettingsError, match=rf"{said} \(other {changed}\): remove it to start over, or choose"):
            shrunk(data, work_folder=place, **settings)
    monkeypatch.setattr("topiarist.rightsizing.asking.version", str)
    with pytest.raises(SettingsError, match=r"\(other versions\)"):
        shrunk(blobs(60), work_folder=place)


def test_one_process_at_a_time_works_in_a_folder(tmp_path: Path) -> None:
    said = "is being done by another process: wait for it, or stop it first"
    with working_in(tmp_path / "work"), pytest.raises(TopiaristError, match=said):
        shrunk(blobs(60), work_folder=tmp_path / "work")


FORGERIES: dict[str, Callable[[dict[str, Any], dict[str, Any]], object]] = {
    "a weight of another shape": lambda header, tensors: tensors.update(
        {next(name for name in tensors if "/weights/" in name): torch.zeros(1)}
    ),
    "a network that is lost": lambda header, tensors: header["places"].pop(max(header["places"], key=int)),
    "a training of which nothing is known": lambda header, tensors: header["networks"][0].update(histories=[]),
}


@pytest.mark.parametrize("forgery", [None, *FORGERIES])
def test_a_damaged_stage_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forgery: str | None
) -> None:
    place = tmp_path / "work"
    with monkeypatch.context() as patch, pytest.raises(StoppedError):
        stopping_after(patch, 1)
        shrunk(blobs(60), work_folder=place)
    (file,) = place.glob(f"*{stages.SUFFIX}")
    if forgery is None:
        file.write_bytes(file.read_bytes()[:100])
    else:
        found = read_resumable(file, stages.KEY)
        assert found is not None
        FORGERIES[forgery](*found)
        write_resumable(file, stages.KEY, *found)
    with pytest.raises(TopiaristError, match=r"cannot read .*baselines\.safetensors: .*; remove .* to start over"):
        shrunk(blobs(60), work_folder=place)
