"""Exports, compared with torch before they are written; and a network as a `.pt2` file of `torch.export`.

A `.pt2` file runs in torch without the code of its class. The comparison loads what it has just written, in memory; no
such file of others is ever loaded.
"""

import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass
from io import BytesIO, StringIO
from pathlib import Path

import numpy
import torch
from torch import nn
from torch.export import Dim, ExportedProgram

from topiarist.data import Data
from topiarist.errors import ModelError, TopiaristError
from topiarist.files import BYTES_PER_KB, check_place, write_atomically
from topiarist.storage.cells import Cells
from topiarist.storage.comparing import ComparedOutput, Run, compare_with_torch
from topiarist.storage.deployable import InputForm, Inputs
from topiarist.storage.flat import first_rows
from topiarist.storage.trial import RawSamples, Trial, make_trial

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

    Of whatever else a network returns, `outputs` has the difference of each tensor by its name, in the numbers that the
    network gives; there is nothing else to judge, and `largest_difference` is the largest of them.
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
    outputs: tuple[ComparedOutput, ...] = ()

    def to_json(self) -> dict[str, object]:
        """Return plain values; those that a classifier does not have are left out."""
        own = ("metric", "quality", "quality_in_torch") if self.metric == "accuracy" else ()
        own = own if self.outputs else (*own, "outputs")
        return {name: value for name, value in asdict(self).items() if name not in own} | {"path": str(self.path)}


def export_program(
    model: nn.Module, path: str | Path, *, data: Data | None = None, samples: RawSamples | None = None
) -> Export:
    """Write a network with its preprocessing as one `.pt2` file, compared with torch as `export_onnx` does.

    `torch.export.load(path).module()` reads samples and returns answers, as a tuple, as the ONNX file does.
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
    known |= {} if trial.answers is None else {"outputs": trial.module.outputs}
    program, stream = trace(trial), BytesIO()
    with quietly("the network cannot be exported"):
        torch.export.save(program, stream, extra_files={NOTES: json.dumps(known)})
        stream.seek(0)
        loaded = torch.export.load(stream).module()

    def run(rows: slice) -> list[Inputs]:
        with torch.no_grad():
            inputs = some_inputs(trial.inputs, rows)
            tensors = [inputs] if isinstance(inputs, numpy.ndarray) else inputs.values()
            return [output.numpy() for output in loaded(*map(torch.from_numpy, tensors))]

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

    With fewer than 32 bits, answers need only be finite.
    """
    found = compare_with_torch(run, trial)
    if bits == 32 and found.too_far:
        raise ModelError(f"the export does not compute what torch does: {found.too_far}; nothing was written")
    write_atomically(place, content)
    return Export(
        path=place,
        file_kb=len(content) / BYTES_PER_KB,
        bits=bits,
        input=trial.form,
        compared_on=trial.origin,
        samples=found.samples,
        largest_difference=found.largest,
        largest_probability_difference=found.of_probabilities,
        agreement=found.agreement,
        accuracy=found.accuracy,
        accuracy_in_torch=found.accuracy_in_torch,
        metric=found.metric,
        quality=found.quality,
        quality_in_torch=found.quality_in_torch,
        outputs=found.outputs,
    )


def trace(trial: Trial) -> ExportedProgram:
    """Trace a network on zeros of the shape and type of its samples; the batch may have any size.

    One that reads several tensors is traced on some of its samples: between zeros, it may not run. Where these are one
    sample as a whole, their shapes are those of the file.
    """
    inputs = trial.inputs
    arrays = [inputs] if isinstance(inputs, numpy.ndarray) else list(inputs.values())
    batched = trial.answers is None or trial.answers.batched
    examples = tuple(
        torch.from_numpy(each[:1]).new_zeros((2, *each.shape[1:]))
        if len(arrays) == 1
        else first_rows(torch.from_numpy(each), 2)
        if batched
        else torch.from_numpy(each)
        for each in arrays
    )
    shapes = tuple({0: Dim.DYNAMIC} if batched else {} for _ in examples)
    given = shapes if trial.answers is None else (shapes,)  # those of *tensors are one entry
    asked = "whose forward must not depend on values nor on how many samples there are"
    with quietly(f"torch.export cannot follow the network, {asked}"):
        return torch.export.export(trial.module, examples, dynamic_shapes=given)


def some_inputs(samples: Inputs | Cells, rows: slice) -> Inputs | Cells:
    """Return some of the samples that a file reads."""
    if isinstance(samples, numpy.ndarray):
        return samples[rows]
    return {name: x[rows] if x.ndim else x for name, x in samples.items()}


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
