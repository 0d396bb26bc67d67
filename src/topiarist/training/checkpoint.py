"""A training that was interrupted resumes from its last checkpoint, and ends with the same weights.

A checkpoint is one safetensors file: the members' weights, their best weights so far, what the optimizer remembers,
and in the header the runs. Random draws follow from the seed and the epoch's number, so no generator is stored.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from topiarist.data import Data, LazySamples, Part
from topiarist.errors import ModelError
from topiarist.files import JsonObject
from topiarist.models.evaluation import under
from topiarist.training.config import TrainConfig
from topiarist.training.engines.steps import State, flattened
from topiarist.training.resumable import FINGERPRINT, read_resumable, refusing_damage, write_resumable

KEY = "training"
LAYOUT = (
    2  # of what a stack's optimizer remembers; 1 had kernels laid out otherwise: a file of it is of another training
)


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A training between two epochs: states by member, the optimizer's, and the runs as JSON."""

    epoch: int
    weights: list[State]
    best: dict[int, State]
    optimizer: State
    runs: list[JsonObject]


class Checkpoint:
    """A file of snapshots, written at most every few seconds.

    `fingerprint` names the training; a file of another training is not read.
    """

    def __init__(self, path: Path, *, fingerprint: str, every_seconds: float = 5.0) -> None:
        if not path.parent.is_dir():
            raise ModelError(f"cannot write the checkpoint {path}: there is no folder {path.parent}")
        self.path, self.fingerprint, self.every_seconds = path, fingerprint, every_seconds
        self.written = time.monotonic()

    @property
    def due(self) -> bool:
        """Whether it is time to write again."""
        return time.monotonic() - self.written >= self.every_seconds

    def write(self, snapshot: Snapshot) -> None:
        """Replace the file by this snapshot."""
        groups = {f"weights/{i}": state for i, state in enumerate(snapshot.weights)}
        groups |= {f"best/{i}": state for i, state in snapshot.best.items()} | {"optimizer/0": snapshot.optimizer}
        tensors = flattened(groups)
        strange = next((name for name, value in tensors.items() if not isinstance(value, Tensor)), None)
        if strange is not None:
            raise ModelError(f"a checkpoint holds tensors only; {strange} is something else")
        header = {"epoch": snapshot.epoch, "runs": snapshot.runs, FINGERPRINT: self.fingerprint}
        write_resumable(self.path, KEY, header, tensors)
        self.written = time.monotonic()

    def read(self) -> Snapshot | None:
        """Return the last snapshot of this very training; None where there is none."""
        if not self.path.exists():
            return None
        with self.resuming():
            found = read_resumable(self.path, KEY, self.fingerprint)
            if found is None:
                return None
            header, tensors = found
            return Snapshot(
                epoch=header["epoch"],
                weights=[under(f"weights/{i}/", tensors) for i in range(len(header["runs"]))],
                best={i: under(f"best/{i}/", tensors) for i in range(len(header["runs"]))},
                optimizer=under("optimizer/0/", tensors),
                runs=header["runs"],
            )

    def resuming(self) -> AbstractContextManager[None]:
        """Refuse the file in one line where what it says cannot be taken up."""
        return refusing_damage(self.path)

    def remove(self) -> None:
        """Remove the file, when the training is done."""
        self.path.unlink(missing_ok=True)


def fingerprint(
    models: Sequence[nn.Module],
    datas: Sequence[Data],
    configs: Sequence[TrainConfig],
    teachers: Sequence[nn.Module | Tensor] = (),
    *,
    stacked: bool,
) -> str:
    """Return a name of a training: of its settings, its networks with their initial weights, its teachers and data."""
    described = hashlib.sha256(f"stack {LAYOUT}".encode() if stacked else b"single")

    def add(tensor: object) -> None:
        if isinstance(tensor, Tensor):
            described.update(f"{tensor.dtype}{tuple(tensor.shape)}".encode())
            described.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        elif isinstance(tensor, LazySamples):
            for content in tensor.contents():
                described.update(content)

    for teacher in teachers:
        for value in (teacher,) if isinstance(teacher, Tensor) else teacher.state_dict().values():
            add(value)
    for model, data, config in zip(models, datas, configs, strict=True):
        trained = [parameter.requires_grad for parameter in model.parameters()]
        described.update(json.dumps([config.model_dump(mode="json"), str(model), trained]).encode())
        parts = (data.train, data.validation)
        described.update("".join(str(len(part)) for part in parts).encode())
        samples = [
            tensor for part in parts if isinstance(part, Part) for tensor in (part.samples, part.y, part.weights)
        ]
        if data.task.kind != "classes" or data.task.own_loss is not None:  # of classifiers, the settings say it all
            own = getattr(data.task.own_loss, "__qualname__", None)
            described.update(json.dumps([data.task.to_record(), own]).encode())
        for value in (*model.state_dict().values(), *samples):
            add(value)
    return described.hexdigest()
