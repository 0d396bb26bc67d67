"""Tasks for a pool: they write down what they do, and fail in every way there is."""

import os
import time
from pathlib import Path
from typing import Any

import torch

from tests.study.networks import KILL, CannotTravelError, write_down
from topiarist.errors import ModelError


class Luggage:
    """What all tasks read; writes down where it is unpacked."""

    def __init__(self, folder: Path, size: int = 0) -> None:
        self.folder, self.content = folder, bytes(size)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        write_down(self.folder / "unpacked", str(os.getpid()))


def act(task: tuple[str, int], luggage: Luggage) -> dict[str, int]:
    """Do what the task says."""
    kind, number = task
    write_down(luggage.folder / "begun", f"{number}")
    match kind:
        case "slow":
            time.sleep(0.2)
        case "raises":
            raise ValueError(f"said\n  {number}")
        case "raises once" if count(luggage.folder / "begun", number) == 1:
            raise OSError("not yet")
        case "refuses":
            raise ModelError("not like this")
        case "cannot travel":
            raise CannotTravelError("one", "two")
        case "dies":
            os.kill(os.getpid(), KILL)
        case "dies once" if count(luggage.folder / "begun", number) == 1:
            os.kill(os.getpid(), KILL)
    return {
        "number": number,
        "process": os.getpid(),
        "threads": torch.get_num_threads(),
        "size": len(luggage.content),
    }


def count(path: Path, number: int) -> int:
    """Return how often a task was begun."""
    return lines(path).count(str(number))


def lines(path: Path) -> list[str]:
    """Return what was written down."""
    return path.read_text().splitlines() if path.exists() else []
