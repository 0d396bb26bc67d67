"""Reads files that may be damaged, one after the other, and prints a line of JSON about each."""

import json
import resource
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy
import torch
from numpy.typing import NDArray
from PIL import Image

from benchmarks.fuzzing.table import TABLE
from topiarist import load
from topiarist.cli.loading import check_usable, features_for
from topiarist.data import Preprocessing
from topiarist.data.load import find_source
from topiarist.data.preparation import prepare
from topiarist.data.readers.idx import read_idx_array
from topiarist.errors import TopiaristError, is_out_of_memory
from topiarist.models import card_of
from topiarist.report.writing import read_record
from topiarist.study.results import Results
from topiarist.study.study import Study
from topiarist.surgery import Plan
from topiarist.training.inference import predict_logits

HANG_SECONDS, WAITING_SECONDS = 10, 60


def read_table(file: Path) -> None:
    """Read a table as `data show` does."""
    prepare(find_source(file, target="kind"))


def read_samples(file: Path) -> None:
    """Read any other file as `data show` does."""
    prepare(find_source(file))


def read_single(file: Path) -> None:
    """Read an image or a sound as `predict` does."""
    find_source(file, labelled=False)


def read_model(file: Path) -> None:
    """Load a network, see that it can be used, and predict with it: rows of a table where it learned from one."""
    network = load(file)
    check_usable(file, network)
    known = card_of(network).preprocessing
    if known is None:
        return
    with TemporaryDirectory() as folder:
        (Path(folder) / "t.csv").write_text(TABLE)
        rows = features_for(network, f"{folder}/t.csv", target=None) if known.columns else known(zeros(known))
    predict_logits(network, rows)


def zeros(known: Preprocessing) -> NDArray[numpy.float64]:
    """Return two samples of an array, as a network reads them."""
    return numpy.zeros((2, *known.input_shape))


def read_cifar(file: Path) -> None:
    """Read a batch of images, or an archive of batches, as `data show` does."""
    if file.suffix == ".gz":
        return read_samples(file)
    with TemporaryDirectory() as folder:
        read_samples(Path(shutil.copy(file, f"{folder}/data_batch_1.bin")))


def read_annotations(file: Path) -> None:
    """Read a table of labels beside images, as `data show` does."""
    with TemporaryDirectory() as folder:
        for number in range(8):
            Image.fromarray(numpy.full((4, 4), number, numpy.uint8)).save(f"{folder}/{number}.png")
        shutil.copy(file, Path(folder) / "meta.csv")
        prepare(find_source(folder))


def read_plan(file: Path) -> None:
    """Read a plan of edits."""
    try:
        record = json.loads(file.read_text(encoding="utf-8", errors="replace"))
    except (ValueError, RecursionError) as error:
        raise TopiaristError(f"no JSON: {error}") from error
    if not isinstance(record, dict):
        raise TopiaristError("no object")
    Plan.from_record(record)


def read_ledger(file: Path) -> None:
    """Read a ledger as `study results` does, and the study in it as `study resume` does."""
    with TemporaryDirectory() as folder:
        shutil.copy(file, Path(folder) / "ledger.sqlite")
        assert Results.read(folder).cells is not None
        Study.in_folder(folder)


READ: dict[str, Callable[[Path], object]] = {
    "table": read_table,
    "arrays": read_samples,
    "matlab": read_samples,
    "idx": read_idx_array,
    "cifar": read_cifar,
    "annotations": read_annotations,
    "image": read_single,
    "sound": read_single,
    "model": read_model,
    "plan": read_plan,
    "record": read_record,
    "study": Study.from_file,
    "ledger": read_ledger,
}


def result_of(reader: str, file: Path) -> str:
    """Return what came of a file: read, refused, or the kind of what went wrong."""
    signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)  # of the processor: the machine may be busy with other things
    signal.alarm(WAITING_SECONDS)
    try:
        READ[reader](file)
    except TopiaristError as error:
        return "refused" if "\n" not in str(error) else "lines"
    except Exception as error:
        if is_out_of_memory(error):
            return "memory"
        traceback.print_exc()
        print(reader, file, file=sys.stderr)
        return type(error).__name__
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
    return "read"


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for word in sys.argv[1:]:
        name, _, place = word.partition("=")
        result = result_of(name, Path(place))
        print(json.dumps({"result": result, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}), flush=True)
