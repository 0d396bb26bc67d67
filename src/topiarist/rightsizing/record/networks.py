"""The networks of a rightsizing, the simple models beside them, and the files that they are in."""

import math

from topiarist.evolution.lineage import Lineage
from topiarist.settings import Record

BASELINE = "baseline"


class EpochRecord(Record):
    """One epoch of a network's trainings, numbered through."""

    epoch: int
    training_loss: float | None
    validation_loss: float | None
    validation_score: float | None


class LayerRecord(Record):
    """The width of a space before and after."""

    name: str
    before: int
    after: int


class NetworkRecord(Record):
    """One network: who made it, what it takes, what it is worth, and how it came about.

    Networks made like it, without the samples judged, have the metric `judged_score` over the folds. `marker` is the
    shape of its method's points in figures. `relearned` is whether it learned once more, from the training and the
    validation part, when all was decided; `validation_score` and `validation_loss` are those of before.
    """

    id: str
    name: str
    method: str | None
    marker: str | None
    ratio: float | None
    parameters: int
    nonzero: int
    file_kb: float
    memory_kb: float
    macs: int
    latency_ms: float | None
    onnx_latency_ms: float | None = None
    onnx_kb: float | None = None
    judged_score: float | None
    fold_scores: tuple[float | None, ...]
    validation_score: float | None
    validation_loss: float | None
    relearned: bool = False
    winner: bool
    front: bool
    fits: bool
    curve: tuple[EpochRecord, ...]
    layers: tuple[LayerRecord, ...]
    reasons: tuple[str, ...]
    lineage: Lineage | None


class ReferenceRecord(Record):
    """A simple model beside the networks, such as "majority" or "logistic regression".

    `score` is the metric that decides over the samples that networks are judged on, by models made without them;
    `test_score` that of the test part. `seconds` of the processor is what making it once took.
    """

    name: str
    score: float | None
    test_score: float | None = None
    parameters: int | None = None
    file_kb: float | None = None
    seconds: float | None = None


class NearestRecord(Record):
    """A network that comes near to fitting the budget and being good enough."""

    id: str
    text: str
    lost: float | None


class GainsRecord(Record):
    """How many times smaller and faster the network is, and how much better or worse on the test part.

    `speed` is what the times of torch and ONNX Runtime say together, in words.
    """

    size: float | None
    parameters: float | None
    macs: float | None
    nonzero: float | None
    memory: float | None
    latency: float | None
    onnx_latency: float | None = None
    onnx_size: float | None = None
    speed: str = ""
    score: float | None


class ExportsRecord(Record):
    """The files beside the record."""

    model: str | None = None
    baseline: str | None = None
    linear: str | None = None
    onnx: str | None = None
    onnx_difference: float | None = None
    onnx_samples: int | None = None


def finite(value: float | None) -> float | None:
    """Return a number, and None for one that JSON has no word for."""
    return value if value is not None and math.isfinite(value) else None
