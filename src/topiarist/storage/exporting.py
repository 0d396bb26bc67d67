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

import torch
from torch import nn
from torch.export import Dim, ExportedProgram

from topiarist.data import Data
from topiarist.errors import ModelError, TopiaristError
from topiarist.files import BYTES_PER_KB, check_place, write_atomically
from topiarist.storage.deployable import InputForm, Inputs
from topiarist.storage.trial import RawSamples, Trial, make_trial
from topiarist.training.metrics import accuracy

Run = Callable[[Inputs], Sequence[Inputs]]
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
    """

    path: Path
    file_kb: float
    bits: int
    input: InputForm
    compared_on: str
    samples: int
    largest_difference: float
    largest_probability_difference: float
    agreement: float
    accuracy: float | None
    accuracy_in_torch: float | None

    def to_json(self) -> dict[str, object]:
        """Return plain values."""
        return asdict(self) | {"path": str(self.path)}


def export_program(
    model: nn.Module, path: str | Path, *, data: Data | None = None, samples: RawSamples | None = None
) -> Export:
    """Write a network with its preprocessing as one `.pt2` file, compared with torch as `export_onnx` does.

    `torch.export.load(path).module()` reads samples as the ONNX file does and returns logits and probabilities.
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
    program, stream = trace(trial), BytesIO()
    with quietly("the network cannot be exported"):
        torch.export.save(program, stream, extra_files={NOTES: json.dumps(known)})
        stream.seek(0)
        loaded = torch.export.load(stream).module()

    def run(inputs: Inputs) -> list[Inputs]:
        with torch.no_grad():
            return [output.numpy() for output in loaded(torch.from_numpy(inputs))]

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
    answers = [run(trial.inputs[start:end]) for start, end in pairwise(starts)]
    logits, probabilities = (torch.cat([torch.as_tensor(given[output]) for given in answers]) for output in (0, 1))
    if not (logits.isfinite().all() and probabilities.isfinite().all()):
        raise ModelError("the export gives numbers that are not finite; nothing was written")
    difference = (logits - trial.logits).abs()
    apart = (probabilities - trial.logits.softmax(dim=1)).abs().max().item()
    allowed = TOLERANCE * trial.logits.abs().amax(dim=1, keepdim=True).clamp(min=1)
    if bits == 32 and ((difference > allowed).any() or apart > TOLERANCE):
        found = f"logits by {difference.max().item():.2g}, probabilities by {apart:.2g}"
        raise ModelError(f"the export does not compute what torch does: {found}; nothing was written")
    labels = trial.labels
    write_atomically(place, content)
    return Export(
        path=place,
        file_kb=len(content) / BYTES_PER_KB,
        bits=bits,
        input=trial.form,
        compared_on=trial.origin,
        samples=len(logits),
        largest_difference=difference.max().item(),
        largest_probability_difference=apart,
        agreement=accuracy(logits, trial.logits.argmax(dim=1)),
        accuracy=None if labels is None else accuracy(logits, labels),
        accuracy_in_torch=None if labels is None else accuracy(trial.logits, labels),
    )


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
