"""A process per network and tool, with a limit of processor time: no crash and no endless loop of one reaches another.

It is processor time that is limited, so that what a tool reaches does not depend on how busy the machine is.
"""

import math
import multiprocessing
import os
import resource
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import torch

from benchmarks.covering.ours import measure_ours
from benchmarks.covering.records import Attempt, OurAttempt, RivalAttempt, Row
from benchmarks.covering.rival import measure_rival
from benchmarks.zoo import NETWORKS, Entry

Kind = TypeVar("Kind", bound=Attempt)
Measure = Callable[[Entry, Path], None]
WAITED = 20  # times the limit by the clock, for what does not compute at all
_PROCESSES = multiprocessing.get_context("forkserver")
# The server imports what many processes need, once; it passes over what is not installed.
_PROCESSES.set_forkserver_preload(
    ["benchmarks.covering.isolation", "torch.onnx", "onnxruntime", "transformers.modeling_utils"]
)


def measure_row(name: str, limit_seconds: float) -> Row:
    """Return what both tools make of a network."""
    ours = _isolated(measure_ours, OurAttempt, name, limit_seconds)
    rival = _isolated(measure_rival, RivalAttempt, name, limit_seconds)
    return Row(name=name, group=NETWORKS[name].group, ours=ours, torch_pruning=rival)


def _isolated(measure: Measure, kind: type[Kind], name: str, limit_seconds: float) -> Kind:
    """Measure in a process of its own; what was found until it ended counts."""
    with TemporaryDirectory() as folder:
        place = Path(folder) / "attempt.json"
        process = _PROCESSES.Process(target=_work, args=(measure, name, str(place), limit_seconds))
        process.start()
        process.join(WAITED * limit_seconds)
        late = process.is_alive() or process.exitcode == -signal.SIGXCPU
        process.kill()
        process.join()
        found = kind.model_validate_json(place.read_text()) if place.exists() else kind()
    if late:
        return found.model_copy(update={"reason": f"took longer than {limit_seconds:.0f} s of processor time"})
    if process.exitcode:
        return found.model_copy(update={"reason": f"the process ended: {_ending(process.exitcode)}"})
    return found


def _work(measure: Measure, name: str, place: str, limit_seconds: float) -> None:
    """Measure in silence, on one thread, for so many seconds of processor time at most."""
    limit = math.ceil(time.process_time() + limit_seconds)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    measure(NETWORKS[name], Path(place))


def _ending(code: int) -> str:
    """Return the signal or the number that a process ended with."""
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
