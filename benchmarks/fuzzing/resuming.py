"""Trainings, an evolution and a rightsizing that ended early: what they leave behind, and the same calls once more."""

import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import PropertyMock, patch

import pytest

from benchmarks.fuzzing.folders import packed_folder, unpacked
from tests.rightsizing.tasks import blobs, shrunk, small_network, use_small_plan
from topiarist.methods import resize
from topiarist.methods.surgeon import Surgeon
from topiarist.training import TrainConfig, train_many
from topiarist.training.checkpoint import Checkpoint

EPOCHS, STOPPED_AFTER = 4, 2
Stop = Callable[..., None]


class EndedError(Exception):
    """The work ended before it was done."""


def stack(checkpoint: Path, stop: Stop | None) -> None:
    """Train two networks as one stack."""
    _train(checkpoint, stop, stacked=True)


def single(checkpoint: Path, stop: Stop | None) -> None:
    """Train two a network of any kind."""
    _train(checkpoint, stop, stacked=False)


def surgeon(checkpoint: Path, stop: Stop | None) -> None:
    """Let the Surgeon train a network and change it."""
    method = Surgeon(training=TrainConfig(epochs=EPOCHS, batch_size=32), search=1.0)
    how: dict[str, Any] = {"seed": 0, "latency": False, "checkpoint": checkpoint, "on_progress": stop}
    resize(small_network(), blobs(90), method, **how)


def rightsizing(work: Path) -> None:
    """Make a network smaller, with each finished stage kept in a folder."""
    with pytest.MonkeyPatch.context() as patched:
        use_small_plan(patched)
        shrunk(blobs(90, test_fraction=0), small_network, seed=0, max_drop=0.9, work_folder=work)


RESUMED: dict[str, Callable[[Path, Stop | None], None]] = {".stack": stack, ".single": single, ".surgeon": surgeon}


def checkpoint_of(ending: str) -> bytes:
    """Return the checkpoint of a training that ended early."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"run{ending}"
        told: list[object] = []

        def stop(*said: object) -> None:
            told.append(said)
            if len(told) > STOPPED_AFTER and file.exists():
                raise EndedError

        try:
            with patch.object(Checkpoint, "due", PropertyMock(return_value=True)):
                RESUMED[ending](file, stop)
        except EndedError:
            return file.read_bytes()
    raise AssertionError(f"the training of {ending} was done before it was to end")


def work_folder() -> bytes:
    """Return the work folder of a rightsizing, all stages finished, as a file."""
    with TemporaryDirectory() as folder:
        rightsizing(Path(folder) / "work")
        return packed_folder(Path(folder) / "work")


def resume(file: Path) -> None:
    """Resume from a copy of a checkpoint, which goes when the training is done."""
    with TemporaryDirectory() as folder:
        RESUMED[file.suffix](Path(shutil.copy(file, folder)), None)


def resume_rightsizing(file: Path) -> None:
    """Resume from a work folder."""
    with unpacked(file) as work:
        rightsizing(work)


def _train(checkpoint: Path, stop: Stop | None, *, stacked: bool) -> None:
    networks = [small_network(seed) for seed in range(2 if stacked else 1)]
    config = TrainConfig(epochs=EPOCHS, batch_size=32, optimizer="adam", early_stopping=3)
    train_many(networks, blobs(90), config, checkpoint=checkpoint, stacked=stacked, on_epoch=stop)
