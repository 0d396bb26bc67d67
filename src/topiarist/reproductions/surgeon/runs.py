"""Runs plain trainings and evolutions, and keeps a record of each in a file, so that none is run twice."""

import json
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from topiarist.data import Data, Source
from topiarist.errors import TopiaristError, TopiaristWarning
from topiarist.files import cannot_write, write_atomically
from topiarist.parallel import open_pool
from topiarist.reproductions.findings import file_stem
from topiarist.reproductions.surgeon.study import Run
from topiarist.reproductions.surgeon.training import (
    OnShare,
    Record,
    Task,
    sizes_of_parts,
    train_by_surgeon,
    train_plainly,
)
from topiarist.study.declaration import canonical
from topiarist.study.samples import fingerprint

PARTS_OF_A_RUN = 1000  # in which progress is counted
OnRun = Callable[[int, int], None]


@dataclass
class Samples:
    """Raw samples by the name of their set; the parts that were made last are kept, and stay in their process."""

    sources: Mapping[str, Source]
    on_share: OnShare | None = None
    _made: dict[tuple[str, str, int, int | None], Data] = field(default_factory=dict, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"sources": self.sources, "on_share": None, "_made": {}}

    def of(self, run: Run) -> Data:
        """Give the parts that a run trains on and is judged by."""
        key = run.data, run.scaling, run.split_seed, run.samples
        if key not in self._made:
            self._made.clear()
            source = self.sources[run.data]
            self._made[key] = Data.from_source(source, seed=run.split_seed, samples=run.samples, scaling=run.scaling)
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

    The topology that a Surgeon ended with is trained after it, and left out where the Surgeon failed. Workers on this
    machine write checkpoints, with which interrupted runs resume.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    files = files_of(runs, samples.sources, folder)
    done = Progress(len(runs), on_run or (lambda done, total: None), sum(file.exists() for file in files.values()))
    failures: dict[Run, str] = {}
    for last in (False, True):
        wanted = [run for run in runs if (run.kind == "final") == last and not files[run].exists()]
        plans = plans_of(wanted, files) if last else dict.fromkeys(wanted)
        tasks = [
            Task(run, files[run].with_suffix(".checkpoint") if cluster is None else None, plan)
            for run, plan in plans.items()
        ]
        if tasks:
            done.tell(0.0)
            here = replace(samples, on_share=done.tell)
            with open_pool(here, workers=min(workers, len(tasks)), cluster=cluster) as pool:
                for finished in pool.run(run_task, tasks):
                    run = tasks[finished.number].run
                    if finished.reason is None:
                        write_atomically(files[run], canonical(finished.value).encode())
                    else:
                        failures[run] = finished.reason
                    done.count += 1
                    done.tell(0.0)
    return Ran(tuple(read_record(files[run]) for run in runs if files[run].exists()), failures)


@dataclass
class Progress:
    """How many of all runs are done, and who hears of it."""

    total: int
    on_run: OnRun
    count: int

    def tell(self, share: float) -> None:
        """Tell how much is done, with a share of the run that is under way."""
        self.on_run(round(PARTS_OF_A_RUN * (self.count + min(share, 1.0))), PARTS_OF_A_RUN * self.total)


def plans_of(finals: Sequence[Run], files: Mapping[Run, Path]) -> dict[Run, Mapping[str, Any]]:
    """Return the edits that the Surgeon of the same seed made, where it ended well."""
    found = {}
    for run in finals:
        surgeon = files[replace(run, kind="surgeon")]
        if surgeon.exists():
            found[run] = read_record(surgeon)["plan"]
    return found


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
        work = train_by_surgeon if task.run.kind == "surgeon" else train_plainly
        found = work(task, data, samples.on_share or (lambda share: None))
    seconds = None if interrupted else found["seconds"]
    return {**task.run.keys, **found, "seconds": seconds, "epochs": task.run.course.epochs, **sizes_of_parts(data)}
