"""Networks that a study builds by code: slow ones, and ones that fail or die while they are trained."""

import os
import signal
import time
from pathlib import Path
from typing import Any

from torch import Tensor, nn

CODE = "tests.study.networks:network"
KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # on Windows, the latter ends a process at once


class CannotTravelError(Exception):
    """Is not what `pickle` makes of it."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(f"{first}, {second}")


class Perceptron(nn.Module):
    """One hidden layer that is no `nn.Sequential`, hence never stacked; in training it behaves as it is told."""

    def __init__(self, inputs: int, width: int, classes: int, *, kind: str, pause: float, log: str) -> None:
        super().__init__()
        self.hidden, self.head = nn.Linear(inputs, width), nn.Linear(width, classes)
        self.kind, self.pause, self.log, self.steps = kind, pause, log, 0

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.behave()
        logits: Tensor = self.head(self.hidden(x).relu())
        if self.training and self.steps >= 3 and self.kind in ("fails", "cannot travel"):
            logits.register_hook(self.fail)  # type: ignore[no-untyped-call]  # what `forward` raises is an error of ours, what comes later is not
        return logits

    def fail(self, _: Tensor) -> None:
        if self.kind == "fails":
            raise RuntimeError("gave\n   up")
        raise CannotTravelError("one", "two")

    def behave(self) -> None:
        self.steps += 1
        if self.log and self.steps == 1:
            write_down(Path(self.log), f"{self.hidden.out_features} {os.getpid()}")
        time.sleep(self.pause)
        if self.steps < 3:  # the first passes are those that see whether the network reads the data at all
            return
        if self.kind == "refuses to read":
            raise RuntimeError("gave up reading")
        if self.kind == "dies" or (self.kind == "dies once" and not Path(f"{self.log}.died").exists()):
            write_down(Path(f"{self.log}.died"), "now")
            os.kill(os.getpid(), KILL)


def network(
    *, input_shape: tuple[int, ...], classes: int, width: int = 4, kind: str = "fine", pause: float = 0.0, log: str = ""
) -> nn.Module:
    """Build a network; its initial weights come from torch's global generator."""
    if kind == "cannot be built":
        raise LookupError("cannot be built")
    return Perceptron(input_shape[0], width, classes, kind=kind, pause=pause, log=log)


def write_down(path: Path, line: str) -> None:
    """Add a line, whole also when the process is killed right afterwards."""
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(handle, f"{line}\n".encode())
    os.close(handle)


def by_code(**options: Any) -> dict[str, Any]:
    """Declare such a network."""
    return {"code": CODE, "options": options}
