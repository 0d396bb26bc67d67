"""What `topiarist rightsize TABLE --target y` hands out, scored on rows that none of its parts has seen."""

import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy
import pandas
from numpy.typing import NDArray

from benchmarks.tabulating.contenders import KILOBYTE, scored, tested
from benchmarks.tabulating.records import TableScore
from benchmarks.tabulating.sources import TABLES
from topiarist import Data, rightsize
from topiarist.cli.loading import features_for, load_network
from topiarist.cli.predict import prediction_table
from topiarist.cli.starting import task_and_start
from topiarist.models.evaluation import count_parameters
from topiarist.rightsizing.delivery import BASELINE_FILE, MODEL_FILE, deliver

TARGET = "predicted"  # no table has a column of this name
SMALLER = "× smaller"  # what rightsizing says when the baselines are ready


def delivered(data: Data, split: int) -> list[TableScore]:
    """Return the scores of the network that is handed out and of its baseline, as the files answer to new rows.

    The rows to learn from are written as CSV, and rightsized with the options that the command has by default; beside
    the target, it is told whether that is a class or a number. Of these rows it sets aside a validation and a test part
    itself. The rows to test on are another file, which the networks answer as `topiarist predict` does.
    """
    assert data.split is not None
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes on columns and small classes
        folder = Path(name)
        learned, unseen = (written(data, rows, folder / f"{word}.csv") for word, rows in _parts(data).items())
        watch = _Watch()
        found = rightsize(task_and_start(str(learned), None, None, _asked(data))[0], on_progress=watch)
        deliver(found, folder, onnx=False)
        total, verdict = time.process_time() - watch.begun, str(found.record.verdict.status)
        return [
            scored(data, split, contender, *_answered(data, folder / file, unseen), seconds).model_copy(
                update={"parameters": count_parameters(network), "verdict": verdict}
            )
            for contender, file, network, seconds in (
                ("delivered", MODEL_FILE, found.model, total),
                ("baseline", BASELINE_FILE, found.baseline, watch.baseline),
            )
        ]


def _asked(data: Data) -> dict[str, Any]:
    """Return what the command asks the reader for: all but target and task as it has them by default."""
    left = dict.fromkeys(("group", "weight", "samples", "scaling", "input_shape", "columns"))
    return {**left, "target": TARGET, "task": data.task.kind, "seed": 0}


class _Watch:
    """Processor seconds since it was made, and until the baselines were ready."""

    def __init__(self) -> None:
        self.begun = time.process_time()
        self.baseline: float | None = None

    def __call__(self, share: float, what: str) -> None:
        """Hear from rightsizing what it does."""
        if self.baseline is None and SMALLER in what:
            self.baseline = time.process_time() - self.begun


def _parts(data: Data) -> dict[str, NDArray[Any]]:
    assert data.split is not None
    return {"learned": data.split.train, "unseen": data.split.test}


def written(data: Data, rows: NDArray[Any], file: Path) -> Path:
    """Write rows of a table with their targets."""
    features, targets = TABLES[data.name]()
    features.iloc[rows].assign(**{TARGET: targets[rows]}).to_csv(file, index=False)
    return file


def _answered(data: Data, model: Path, unseen: Path) -> tuple[float, float]:
    """Return accuracy or R² of a model file on rows that are read anew, and its size in KB."""
    network = load_network(model, None)
    x = features_for(network, str(unseen), target=TARGET)
    found = prediction_table(network, x, probabilities=False, passes=None, seed=0)["prediction"].to_numpy()
    truth = pandas.read_csv(unseen, dtype={TARGET: str})[TARGET].to_numpy()
    if data.task.kind == "classes":
        return float((found == truth).mean()), model.stat().st_size / KILOBYTE
    y = tested(data).y.numpy()[:, 0]
    truth = truth.astype(float)
    assert numpy.corrcoef(y, truth)[0, 1] > 0.999, "the rows are those that others are tested on"
    error = found.astype(float) - truth
    return float(1 - numpy.square(error).mean() / truth.var()), model.stat().st_size / KILOBYTE
