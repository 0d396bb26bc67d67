"""Exports, compared with torch before they are written; and a network as a `.pt2` file of `torch.export`.

A `.pt2` file runs in torch without the code of its class. The comparison loads what it has just written, in memory; no
such file of others is ever loaded.
"""

import json
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from io import BytesIO, StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from topiarist.data import Data
from topiarist.errors import ModelError, TopiaristError
from topiarist.files import BYTES_PER_KB, check_place, write_atomically
from topiarist.storage.deployable import InputForm, Inputs
from topiarist.storage.trial import RawSamples, Trial, make_trial
from topiarist.tasks import Regression

Run = Callable[[slice], Sequence[Inputs]]  # of some samples of a trial
# Of the largest logit of a sample, or of 1: far above what another order of float32 sums changes, far below what
# changes a class.
TOLERANCE = 1e-4
BATCH = 256  # samples per run: bounds memory
NOTES = "topiarist.json"


@dataclass(frozen=True, kw_only=True)
class Export:
    """A file whose answers were compared with torch's for `samples` samples, which are from `compared_on`.

    `largest_difference` is that of a logit, `largest_probability_difference` that of a probability, `agreement` the
    share of samples for which both give the same class. `accuracy` is that of the file, `accuracy_in_torch` that of the
    network; both are None where there are no labels.

    Of numbers, `largest_difference` is in deviations of the training targets, and there are neither probabilities nor
    an agreement; of labels, the agreement is that about each label. Both have `quality` and `quality_in_torch`, by the
    task's primary `metric`, in the place of accuracy.
    """

    path: Path
    file_kb: float
    bits: int
    input: InputForm
    compared_on: str
    samples: int
    largest_difference: float
    largest_probability_difference: float | None
    agreement: float | None
    accuracy: float | None = None
    accuracy_in_torch: float | None = None
    metric: str = "accuracy"
    quality: float | None = None
    quality_in_torch: float | None = None

    def to_json(self) -> dict[str, object]:
        """Return plain values; those that a classifier does not have are left out."""
        own = ("metric", "quality", "quality_in_torch") if self.metric == "accuracy" else ()
        return {name: value for name, value in asdict(self).items() if name not in own} | {"path": str(self.path)}


def export_program(
    model: nn.Module, path: str | Path, *, data: Data | None = None, samples: RawSamples | None = None
) -> Export:
    """Write a network with its preprocessing as one `.pt2` file, compared with torch as `export_onnx` does.

    `torch.export.load(path).module()` reads samples and returns answers as the ONNX file does.
    Parameters and errors are those of `export_onnx`.

    Examples
    --------
    >>> import tempfile
    >>> from topiarist.models import mlp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_program(mlp([4, 8, 3]), f"{folder}/model.pt2").agreement
    1.0
    """
    place = place_for(path, ".pt2")
    trial = make_trial(model, data, samples)
    known = asdict(trial.form) | {"classes": trial.classes}
    known |= {} if trial.task is None or trial.classes is not None else {"task": trial.task.to_record()}
    program, stream = trace(trial), BytesIO()
    with quietly("the network cannot be exported"):
        torch.export.save(program, stream, extra_files={NOTES: json.dumps(known)})
        stream.seek(0)
        loaded = torch.export.load(stream).module()

    def run(rows: slice) -> list[Inputs]:
        with torch.no_grad():
            return [output.numpy() for output in loaded(torch.from_numpy(trial.inputs[rows]))]

    return write_compared(run, trial, place=place, content=stream.getvalue(), bits=32)


def place_for(path: str | Path, suffix: str) -> Path:
    """Refuse a place where the file could not be written, before the work of making it."""
    place = Path(path)
    if place.suffix != suffix:
        raise ModelError(f"the file must end in {suffix}; found '{place.name}'")
    check_place(place)
    return place


def write_compared(run: Run, trial: Trial, *, place: Path, content: bytes, bits: int) -> Export:
    """Run an export on the samples of a trial; write it unless it does not compute what torch does.

    With fewer than 32 bits, answers need only be finite. Batches of several sizes are tried, and one of 1.
    """
    starts = [0, *range(1, len(trial.inputs), BATCH), len(trial.inputs)]
    runs = [run(slice(start, end)) for start, end in pairwise(starts)]
    given = [torch.cat([torch.as_tensor(each[output]) for each in runs]) for output in range(len(runs[0]))]
    if not all(bool(each.isfinite().all()) for each in given):
        raise ModelError("the export gives numbers that are not finite; nothing was written")
    found = _comparison(given, trial)
    if bits == 32 and found.too_far:
        raise ModelError(f"the export does not compute what torch does: {found.apart}; nothing was written")
    write_atomically(place, content)
    return Export(
        path=place,
        file_kb=len(content) / BYTES_PER_KB,
        bits=bits,
        input=trial.form,
        compared_on=trial.origin,
        samples=len(given[0]),
        largest_difference=found.largest,
        largest_probability_difference=found.of_probabilities,
        agreement=found.agreement,
        **_judged(found.outputs, trial),
    )


@dataclass(frozen=True)
class _Comparison:
    """Outputs of a file beside those of torch: how far they are apart, and whether that is too far."""

    outputs: Tensor
    largest: float
    too_far: bool
    of_probabilities: float | None = None
    agreement: float | None = None

    @property
    def apart(self) -> str:
        if self.of_probabilities is None:
            return f"numbers by {self.largest:.2g} deviations of the targets"
        return f"logits by {self.largest:.2g}, probabilities by {self.of_probabilities:.2g}"


def _comparison(given: Sequence[Tensor], trial: Trial) -> _Comparison:
    """Compare what a file gives, logits and probabilities or numbers, with what torch does."""
    task, wanted = trial.known_task, trial.logits
    allowed = TOLERANCE * wanted.abs().amax(dim=1, keepdim=True).clamp(min=1)
    if isinstance(task, Regression):
        wide = given[0].double()
        outputs = (wide - wide.new_tensor(task.centre)) / wide.new_tensor(task.scale)
        difference = task.in_deviations(outputs - wanted).abs()
        allowed = task.in_deviations(wanted).abs().clamp(min=1) * TOLERANCE
        return _Comparison(outputs, difference.max().item(), bool((difference > allowed).any()))
    outputs, probabilities = given
    difference = (outputs - wanted).abs()
    apart = (probabilities - task.answers(wanted)).abs().max().item()
    same = outputs.argmax(dim=1) == wanted.argmax(dim=1) if task.kind == "classes" else (outputs > 0) == (wanted > 0)
    too_far = bool((difference > allowed).any()) or apart > TOLERANCE
    return _Comparison(outputs, difference.max().item(), too_far, apart, same.double().mean().item())


def _judged(outputs: Tensor, trial: Trial) -> dict[str, Any]:
    """Return the primary metric of the file and of torch, where the targets are known."""
    task, labels = trial.known_task, trial.labels
    metric = task.find_metric("accuracy") if task.kind == "classes" else task.primary_metric
    values = [
        None if labels is None else task.value(metric, each, labels, trial.weights) for each in (outputs, trial.logits)
    ]
    if task.kind == "classes":
        return {"accuracy": values[0], "accuracy_in_torch": values[1]}
    return {"metric": metric.name, "quality": values[0], "quality_in_torch": values[1]}


def trace(trial: Trial) -> ExportedProgram:
    """Trace a network on zeros of the shape and type of its samples; the batch may have any size."""
    example = torch.from_numpy(trial.inputs[:1]).new_zeros((2, *trial.inputs.shape[1:]))
    asked = "whose forward must not depend on values nor on how many samples there are"
    with quietly(f"torch.export cannot follow the network, {asked}"):
        return torch.export.export(trial.module, (example,), dynamic_shapes=({0: Dim.DYNAMIC},))


@contextmanager
def quietly(what: str) -> Iterator[None]:
    """Keep tools of others silent, and turn whatever goes wrong in them into an error of one line."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            yield
    except TopiaristError:
        raise
    except Exception as error:  # whatever a user's forward, an exporter or a runtime raises
        raise ModelError(f"{what}: {_reason_of(error)}") from error
    finally:
        logging.disable(before)


def _reason_of(error: BaseException) -> str:
    """Return the first sentence of the first cause: exporters wrap it in advice."""
    while error.__cause__ is not None:
        error = error.__cause__
    lines = [line.strip(" -") for line in str(error).splitlines() if line.strip()]
    if lines and lines[0].endswith(":"):
        lines = lines[1:]
    return lines[0] if lines else type(error).__name__
