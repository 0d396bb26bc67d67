"""Runs plain trainings and evolutions, and keeps a record of each in a file, so that none is run twice."""

import json
import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from torch import nn

from topiarist.data import Data, Part, Source
from topiarist.errors import TopiaristError, TopiaristWarning
from topiarist.files import cannot_write, write_atomically
from topiarist.measurement import measure
from topiarist.methods import shape
from topiarist.models import mlp
from topiarist.models.evaluation import count_parameters
from topiarist.parallel import open_pool
from topiarist.randomness import generator
from topiarist.recipes.findings import file_stem
from topiarist.recipes.surgeon import TOPOLOGIES, Run
from topiarist.study.declaration import canonical
from topiarist.study.samples import fingerprint
from topiarist.training import train

PARTS_OF_A_RUN = 1000  # in which progress is counted
Record = dict[str, Any]
OnRun = Callable[[int, int], None]
OnShare = Callable[[float], None]


@dataclass(frozen=True)
class Task:
    """A run, and the file with which it goes on after an interruption."""

    run: Run
    checkpoint: Path | None


@dataclass
class Samples:
    """Raw samples by the name of their set; the parts that were made last are kept, and stay in their process."""

    sources: Mapping[str, Source]
    on_share: OnShare | None = None
    _made: dict[tuple[str, int, int | None], Data] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"sources": self.sources, "on_share": None, "_made": {}}

    def of(self, run: Run) -> Data:
        """Give the parts that a run trains on and is judged by."""
        key = run.data, run.split_seed, run.samples
        if key not in self._made:
            self._made.clear()
            source = self.sources[run.data]
            self._made[key] = Data.from_source(source, seed=run.split_seed, samples=run.samples)
        return self._made[key]


@dataclass(frozen=True)
class Ran:
    """The records of the runs that ended well, and of the others the reason why they did not."""

    records: tuple[Record, ...]
    failures: Mapping[Run, str]


def run_all(
    runs: Sequence[Run],
    samples: Samples,
    folder: Path,
    *,
    workers: int,
    cluster: str | None = None,
    on_run: OnRun | None = None,
) -> Ran:
    """Run what has no record yet; one that failed has none, and is tried again by the same call.

    Workers on this machine write checkpoints, with which interrupted runs go on.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    files = files_of(runs, samples.sources, folder)
    left = [run for run in runs if not files[run].exists()]
    tell = on_run or (lambda done, total: None)
    done, failures = len(runs) - len(left), {}

    def tell_share(share: float) -> None:
        tell(round(PARTS_OF_A_RUN * (done + min(share, 1.0))), PARTS_OF_A_RUN * len(runs))

    if left:
        tell_share(0.0)
        tasks = [Task(run, files[run].with_suffix(".checkpoint") if cluster is None else None) for run in left]
        here = replace(samples, on_share=tell_share)
        with open_pool(here, workers=min(workers, len(left)), cluster=cluster) as pool:
            for finished in pool.run(run_task, tasks):
                run = left[finished.number]
                if finished.reason is None:
                    write_atomically(files[run], canonical(finished.value).encode())
                else:
                    failures[run] = finished.reason
                done += 1
                tell_share(0.0)
    return Ran(tuple(read_record(files[run]) for run in runs if run not in failures), failures)


def files_of(runs: Sequence[Run], sources: Mapping[str, Source], folder: Path) -> dict[Run, Path]:
    """Give the file of each run, whose name follows from all that the result depends on."""
    prints = {name: fingerprint({name: source}) for name, source in sources.items()}
    return {
        run: folder
        / f"{file_stem(' '.join(map(str, run.keys.values())))}-{run.fingerprint(prints[run.data])[:12]}.json"
        for run in runs
    }


def read_record(path: Path) -> Record:
    """Read the record of a run."""
    try:
        found: Record = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise TopiaristError(f"the record {path} cannot be read ({error}): remove it to run it again") from error
    return found


def run_task(task: Task, samples: Samples) -> Record:
    """Train and judge one network; one that was interrupted has no known time."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # the page says it
        data = samples.of(task.run)
        interrupted = task.checkpoint is not None and task.checkpoint.exists()
        work = train_plainly if task.run.kind == "baseline" else train_by_surgeon
        found = work(task, data, samples.on_share or (lambda share: None))
    sizes = {f"{name}_samples": len(getattr(data, name)) for name in ("train", "validation", "test")}
    seconds = None if interrupted else found["seconds"]
    return {**task.run.keys, **found, "seconds": seconds, "epochs": task.run.method.course.epochs, **sizes}


def network_of(run: Run, data: Data) -> nn.Module:
    """Build the network that a run begins with."""
    sizes = [math.prod(data.input_shape), *TOPOLOGIES[run.topology], len(data.classes)]
    return mlp(sizes, generator=generator(run.seed, "initial weights"))


def train_plainly(task: Task, data: Data, on_share: OnShare) -> Record:
    """Train a network as it is; the validation part is looked at only at the end, as it costs time."""
    run, model = task.run, network_of(task.run, data)
    config, held = run.method.course, data.validation
    assert isinstance(held, Part)
    unwatched = replace(data, validation=Part(held.x[:0], held.y[:0]))
    before, clock = count_parameters(model), time.perf_counter()
    train(
        model,
        unwatched,
        config,
        checkpoint=task.checkpoint,
        on_epoch=lambda number, _: on_share(number / max(config.epochs, 1)),
    )
    seconds = time.perf_counter() - clock
    chosen_by = measure(model, data, part="validation", latency=False).accuracy
    return record_of(measure(model, data, latency=False).to_json(), chosen_by, before, seconds)


def train_by_surgeon(task: Task, data: Data, on_share: OnShare) -> Record:
    """Train a network, and change its topology on the way."""
    run, model = task.run, network_of(task.run, data)
    clock = time.perf_counter()
    outcome = shape(
        model,
        data,
        run.method,
        seed=run.seed,
        latency=False,
        checkpoint=task.checkpoint,
        on_progress=on_share,
    )
    seconds = time.perf_counter() - clock
    found = record_of(outcome.after.to_json(), outcome.score[1], outcome.before.parameters, seconds)
    return {**found, "lineage": outcome.lineage, "reasons": outcome.reasons}


def record_of(measured: Mapping[str, Any], chosen_by: float, before: int, seconds: float) -> Record:
    """Give what a network is worth: on the test part, and on the part that the Surgeon chooses by."""
    return {
        "test_accuracy": measured["accuracy"],
        "test_log_loss": measured["log_loss"],
        "validation_accuracy": chosen_by,
        "parameters_before": before,
        "parameters": measured["parameters"],
        "seconds": seconds,
    }
