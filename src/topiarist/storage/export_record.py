"""What an export is worth: its answers beside those of torch."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from topiarist.errors import ModelError
from topiarist.files import check_place
from topiarist.storage.input_form import InputForm, Inputs
from topiarist.storage.trial import Trial
from topiarist.training.metrics import accuracy

Run = Callable[[Inputs], Sequence[Inputs]]
TOLERANCE = 1e-4  # of the largest logit of a sample, or of 1
BATCH = 256
BYTES_PER_KB = 1024


@dataclass(frozen=True, kw_only=True)
class Export:
    """A file whose answers were compared with torch's for `samples` samples, which are from `compared_on`.

    `largest_difference` is that of a logit, `largest_probability_difference` that of a probability, `agreement` the
    share of samples of which both give the same class. `accuracy` is that of the file, `accuracy_in_torch` that of the
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

    def to_json(self) -> dict[str, Any]:
        """Give plain values."""
        return asdict(self) | {"path": str(self.path)}


def place_for(path: str | Path, suffix: str) -> Path:
    """Refuse a place where the file could not be written, before the work of making it."""
    place = Path(path)
    if place.suffix != suffix:
        raise ModelError(f"the file must end in {suffix}; found '{place.name}'")
    check_place(place)
    return place


def compared(run: Run, trial: Trial, *, place: Path, content: bytes, bits: int) -> Export:
    """Run an export on the samples of a trial, and refuse one that does not compute what torch does.

    With fewer than 32 bits, answers need only be finite.
    """
    logits, probabilities = answers(run, trial.inputs)
    difference = (logits - trial.logits).abs()
    apart = (probabilities - trial.logits.softmax(dim=1)).abs().max().item()
    allowed = TOLERANCE * trial.logits.abs().amax(dim=1, keepdim=True).clamp(min=1)
    if not (logits.isfinite().all() and probabilities.isfinite().all()):
        raise ModelError("the export gives numbers that are not finite; nothing was written")
    if bits == 32 and ((difference > allowed).any() or apart > TOLERANCE):
        found = f"logits by {difference.max().item():.2g}, probabilities by {apart:.2g}"
        raise ModelError(f"the export does not compute what torch does: {found}; nothing was written")
    labels = trial.labels
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


def answers(run: Run, inputs: Inputs) -> tuple[Tensor, Tensor]:
    """Give logits and probabilities (n_samples, n_classes); batches of several sizes are tried, and one of 1."""
    starts = [0, *range(1, len(inputs), BATCH), len(inputs)]
    found = [run(inputs[start:end]) for start, end in pairwise(starts)]
    logits, probabilities = (torch.cat([torch.as_tensor(given[place]) for given in found]) for place in (0, 1))
    return logits, probabilities
