"""Files that work is resumed from: what is damaged, by accident or with a digest made anew, is refused in one line."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.test_train import Stopped, stop_at
from topiarist import Data, TrainConfig
from topiarist.errors import ModelError
from topiarist.models import mlp
from topiarist.training import train
from topiarist.training.checkpoint import KEY
from topiarist.training.resumable import read_resumable, refusing_damage, write_resumable

HEADER, TENSORS = {"a": [1, None, 0.1]}, {"x": torch.tensor(1.5), "y": torch.arange(6.0).reshape(2, 3)}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    write_resumable(tmp_path / "file", "key", HEADER, TENSORS)
    found = read_resumable(tmp_path / "file", "key")
    assert found is not None and found.header == HEADER
    assert all(torch.equal(found.tensors[name], value) for name, value in TENSORS.items())


def test_every_changed_byte_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_resumable(file, "key", HEADER, TENSORS)
    content = file.read_bytes()
    for place in range(len(content)):
        changed = bytearray(content)
        changed[place] ^= 1
        file.write_bytes(changed)
        try:
            with refusing_damage(file):
                found = read_resumable(file, "key")
        except ModelError as error:
            assert str(error).startswith(f"cannot read {file}: ") and str(error).endswith(" to start over")
        else:  # spaces that fill up the header say nothing
            assert found is not None and found.header == HEADER, place
            assert all(torch.equal(found.tensors[name], value) for name, value in TENSORS.items())


CHANGES: dict[str, Callable[[dict[str, Any], dict[str, torch.Tensor]], object]] = {
    "a run of another length": lambda header, tensors: header["runs"][0]["epochs"].pop(),
    "a count below 0": lambda header, tensors: header["runs"][0].update(reductions=-1),
    "another kind of value": lambda header, tensors: header["runs"][0].update(steps="x"),
    "no runs": lambda header, tensors: header.update(runs=[]),
    "an entry that is lost": lambda header, tensors: header.pop("epoch"),
    "a weight of another shape": lambda header, tensors: tensors.update({"weights/0/output.weight": torch.zeros(1, 1)}),
    "a memory of another type": lambda header, tensors: tensors.update(
        {name: value.to(torch.complex64) for name, value in tensors.items() if name.startswith("optimizer")}
    ),
    "steps below 0": lambda header, tensors: tensors.update(
        {name: -value for name, value in tensors.items() if name.rpartition("/")[2] in ("step", "steps")}
    ),
    "a memory that is lost": lambda header, tensors: tensors.pop(
        next(name for name in tensors if name.startswith("optimizer"))
    ),
}


@pytest.mark.parametrize("stacked", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_what_does_not_go_together_is_refused_whatever_its_digest(
    task: Data, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, stacked: bool
) -> None:
    monkeypatch.setattr("topiarist.training.checkpoint.Checkpoint.due", True)
    file, config = tmp_path / "run.checkpoint", TrainConfig(epochs=4)

    def make() -> torch.nn.Module:
        return mlp([6, 3]) if stacked else torch.nn.Sequential(mlp([6, 3]), torch.nn.Hardswish())

    first = make().state_dict()
    network, again = make(), make()
    network.load_state_dict(first)
    again.load_state_dict(first)
    with pytest.raises(Stopped):
        train(network, task, config, checkpoint=file, on_epoch=stop_at(3))
    found = read_resumable(file, KEY)
    assert found is not None
    CHANGES[change](*found)
    write_resumable(file, KEY, *found)
    with pytest.raises(
        ModelError, match=r"^cannot read .*run\.checkpoint: .*; remove .*run\.checkpoint to start over$"
    ):
        train(again, task, config, checkpoint=file)
