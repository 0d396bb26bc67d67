"""Reads files that may be damaged, one after the other, and prints a line of JSON about each."""

import json
import resource
import shutil
import signal
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy
import torch
from numpy.typing import NDArray
from PIL import Image

from benchmarks.fuzzing.folders import ENDING, unpacked
from benchmarks.fuzzing.hub import read_hub
from benchmarks.fuzzing.kept import read_cache, read_study_folder
from benchmarks.fuzzing.large import low_limits
from benchmarks.fuzzing.predicting import own_cache, predict
from benchmarks.fuzzing.resuming import resume, resume_rightsizing
from benchmarks.fuzzing.table import TABLE
from topiarist import load
from topiarist.cli.loading import check_usable, features_for
from topiarist.data import Data, Part, Preprocessing
from topiarist.data.load import find_source
from topiarist.data.preparation import prepare
from topiarist.data.readers.idx import read_idx_array
from topiarist.errors import TopiaristError, is_out_of_memory
from topiarist.features.described import load_described
from topiarist.models import card_of
from topiarist.report.writing import read_record
from topiarist.reproductions.faces.expressions import read_expressions
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


def read_large_table(file: Path) -> None:
    """Read a table as if it were a large one."""
    with low_limits():
        read_table(file)


def read_large_arrays(file: Path) -> None:
    """Read arrays as if they were large ones, and prepare their rows."""
    with low_limits(), whole_of(file) as place:
        part = Data.from_source(find_source(place)).train
        assert isinstance(part, Part)
        part.samples[torch.arange(len(part))]


def read_folder(file: Path) -> None:
    """Read a folder of images or sounds as `train` does."""
    with unpacked(file) as folder, own_cache():
        load_described(folder)


@contextmanager
def whole_of(file: Path) -> Iterator[Path]:
    """Yield a file as it is; a folder where the file is one."""
    if file.suffix == ENDING:
        with unpacked(file) as folder:
            yield folder
    else:
        yield file


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
    "large table": read_large_table,
    "large arrays": read_large_arrays,
    "folder": read_folder,
    "spreadsheet": read_expressions,
    "prediction": predict,
    "hub": read_hub,
    "study folder": read_study_folder,
    "checkpoint": resume,
    "work folder": resume_rightsizing,
    "cache": read_cache,
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
