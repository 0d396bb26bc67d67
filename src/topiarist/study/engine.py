"""Runs what is left of a study, and records each result as it comes."""

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from topiarist.data import Data, Source
from topiarist.devices import find_device
from topiarist.errors import DataError, SettingsError, TopiaristError, TopiaristWarning
from topiarist.files import JsonObject, cannot_write, check_folder
from topiarist.parallel import check_workers, open_pool
from topiarist.study.declaration import Declaration
from topiarist.study.job import PACKAGES, CellStack, run_stack
from topiarist.study.ledger import FILE as LEDGER_FILE
from topiarist.study.ledger import NEEDED, SIDE_FILES, Ledger, StudyProgress
from topiarist.study.lock import FILE as LOCK_FILE
from topiarist.study.lock import only_driver, this_driver
from topiarist.study.own_code import codes_of, origin_of
from topiarist.study.results import Results
from topiarist.study.samples import StudySamples, fingerprint, read_sources, source_key
from topiarist.study.stacks import stacks_of
from topiarist.threads import usable_cores

WORTH_A_CLUSTER_SECONDS = 10


OnProgress = Callable[[StudyProgress], None]


def run_study(
    declared: Declaration,
    out: Path,
    *,
    data: Data | Mapping[str, Data | Source] | None = None,
    folder: Path | None = None,
    workers: int | None = 1,
    cluster: str | None = None,
    device: str | None = None,
    retry_failed: bool = False,
    on_progress: OnProgress | None = None,
) -> None:
    """Run the cells that have no result yet; results are in the ledger of the folder `out`.

    `data`, samples in memory, take the place of what the study names; where it names several locations, they are given
    by location. Relative paths of data start from `folder`.
    Without a number of workers there are as many as pay. What declares no device of its own is trained on `device`.
    """
    if workers is not None:
        check_workers(workers)
    if device is not None and cluster is None:
        find_device(device)
    check_folder(out, (LEDGER_FILE, *SIDE_FILES, LOCK_FILE))
    for name in ("histories", "models"):
        check_folder(out / name)
    base = Path.cwd() if folder is None else folder
    samples = StudySamples(read_sources(declared.cells, base) if data is None else given_sources(declared, data))
    stacks = stacks_of(declared, samples)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(out, error) from error
    with only_driver(out), Ledger.to_write(out) as ledger:
        take_up(ledger, declared, stacks, fingerprint(samples.sources), base)
        states = ledger.states()
        if set(states) != {cell.hash for cell in declared.cells}:
            raise TopiaristError(f"the ledger in {out} is damaged: its cells are not those that the study declares")
        settled = ("done",) if retry_failed else ("done", "failed")
        left = [stack for stack in stacks if any(states[cell.hash] not in settled for cell in stack.cells)]
        left = [replace(stack, device=device) for stack in left]
        count = suited_workers(left) if workers is None else workers
        drive(ledger, left, samples, workers=count, cluster=cluster, on_progress=on_progress)


def suited_workers(left: Sequence[CellStack]) -> int:
    """Return one worker for a study of a few seconds, where a cluster does not pay, and otherwise one per core."""
    return 1 if sum(stack.cost for stack in left) < WORTH_A_CLUSTER_SECONDS else usable_cores()


def drive(
    ledger: Ledger,
    left: Sequence[CellStack],
    samples: StudySamples,
    *,
    workers: int,
    cluster: str | None,
    on_progress: OnProgress | None,
) -> None:
    """Hand out the stacks that are left and record the result of each."""
    if not left:
        return
    began = time.time()
    ledger.note(driver={**this_driver(), "began": began})
    with open_pool(samples, workers=workers, cluster=cluster, tasks=len(left)) as pool:
        ledger.note(driver={**this_driver(), "began": began, "ready": time.time(), "workers": pool.workers})
        tell = on_progress or (lambda _: None)
        tell(ledger.progress())
        for finished in pool.run(run_stack, left):
            if finished.reason is None:
                ledger.record(finished.value)
            else:
                ledger.fail(left[finished.number], finished.reason)
            tell(ledger.progress())
    ledger.note(ended=time.time())


def take_up(ledger: Ledger, declared: Declaration, stacks: Sequence[CellStack], samples: str, folder: Path) -> None:
    """Begin a ledger, or check that it is of this very study and of these samples."""
    facts, versions = ledger.facts(), {package: version(package) for package in PACKAGES}
    if not facts:
        numbers = {cell.hash: number for number, cell in enumerate(declared.cells)}
        known: JsonObject = {
            "declaration": declared.to_json(),
            "folder": str(folder),
            "samples": samples,
            "versions": versions,
        }
        known |= {"origin": origin_of(ledger.folder)} if codes_of(declared.configurations) else {}
        ledger.declare(stacks, numbers, **known, created=time.time())
        return
    check_whole(facts, ledger.folder)
    if facts["declaration"] != declared.to_json():
        raise SettingsError(
            f"{ledger.folder} holds another study, or this one before it was changed: choose another folder"
        )
    if facts["samples"] != samples:
        raise DataError(f"the data have changed since the study in {ledger.folder} began: start anew in another folder")
    if facts["versions"] != versions:
        said = ", ".join(f"{package} {number}" for package, number in facts["versions"].items())
        warnings.warn(f"the study began with {said}: results may differ", TopiaristWarning, stacklevel=3)


def given_sources(declared: Declaration, data: Data | Mapping[str, Data | Source]) -> dict[str, Source]:
    """Use samples that are in memory for all cells."""
    sources = {}
    for settings in (cell.settings.data for cell in declared.cells):
        given = data if isinstance(data, Data) else data.get(settings.location)
        if given is None:
            raise DataError(f"no data are given for '{settings.location}'")
        source = given.source if isinstance(given, Data) else given
        if source is None:
            raise DataError("a study needs samples in memory; these are datasets read batch by batch")
        sources[source_key(settings)] = source
    return sources


def check_whole(facts: JsonObject, folder: Path) -> None:
    """Raise TopiaristError where a ledger does not say what is needed to resume its study."""
    absent = [name for name in NEEDED if name not in facts]
    if absent:
        raise TopiaristError(f"the ledger in {folder} is damaged: it does not say the study's {absent[0]}")


def declared_in(folder: Path) -> tuple[JsonObject, Path, object]:
    """Read the study that a folder holds, the folder that its paths start from, and by whom it was begun where."""
    facts = Results.read(folder).facts
    check_whole(facts, folder)
    return facts["declaration"], Path(facts["folder"]), facts.get("origin")
