"""The record of a rightsizing: typed, versioned, written as JSON; everything that the report shows."""

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from topiarist.evolution.lineage import Lineage
from topiarist.measurement.budget import Runtime
from topiarist.settings import Record

VERSION = 4  # of the record: 3 had the metric of its task, 4 has references and what exactly was shown
BASELINE = "baseline"
RecordStatus = Literal["proven", "unproven", "unchanged", "unreachable"]


class VerdictRecord(Record):
    """What was decided; `confirmed` is whether the test part lost no more than allowed."""

    status: RecordStatus
    sentence: str
    confirmed: bool | None
    chosen: str
    why: tuple[str, ...]
    power: float | None
    samples: int | None
    samples_needed: int | None


class MetricRecord(Record):
    """What answers are judged by; `share` is whether it is a share of samples, `relative` whether the margin is."""

    name: str
    title: str
    higher_is_better: bool
    share: bool
    relative: bool

    @property
    def direction(self) -> int:
        """1 where more is better, −1 where less is."""
        return 1 if self.higher_is_better else -1


class TaskRecord(Record):
    """What is predicted; `names` are the classes, targets or labels, and the first of the metrics decides."""

    kind: str
    summary: str
    names: tuple[str, ...]
    metrics: Annotated[tuple[MetricRecord, ...], Field(min_length=1)]


class GainsRecord(Record):
    """How many times smaller and faster the network is, and how much better or worse on the test part."""

    size: float | None
    parameters: float | None
    macs: float | None
    nonzero: float | None
    memory: float | None
    latency: float | None
    onnx_latency: float | None = None
    onnx_size: float | None = None
    score: float | None


class ColumnRecord(Record):
    """What was decided for one column of a table, how its gaps are written, and how many inputs it takes."""

    name: str
    read_as: str
    different: int
    missing: int
    gaps: str
    inputs: int
    remarks: tuple[str, ...]


class DataRecord(Record):
    """What the data are; `columns` is empty for what is no table."""

    name: str
    input_shape: tuple[int, ...]
    training: int
    validation: int
    test: int
    notes: tuple[str, ...]
    columns: tuple[ColumnRecord, ...] = ()


class BudgetRecord(Record):
    """The limits that were given, in the words of `Budget`."""

    file_kb: float | None
    memory_kb: float | None
    parameters: int | None
    macs: int | None
    latency_ms: float | None
    runtime: Runtime = "torch"
    threads: int = 1


class SettingsRecord(Record):
    """What was asked for."""

    effort: str
    seed: int
    max_drop: float
    alpha: float
    methods: tuple[str, ...]
    budget: BudgetRecord
    model: str
    trained_before: bool
    objective: Literal["parameters", "macs", "file", "latency"] | None = None
    time_limit: float | None = None
    command: str | None = None


class WorkPlanRecord(Record):
    """What was planned, in `work` multiply-accumulates, about `seconds` on this machine, by which nothing was decided.

    `left_out` says what the declared work leaves out for the sizes of data and network, `cut_short` what a time limit
    cost, and notes what could not be done. The ratios are the coarse sizes, between which there may be `finer` ones.
    """

    work: float
    seconds: float | None
    design: str
    folds: int
    seeds: int
    epochs: int
    finetuning_epochs: int
    trainings: int
    ratios: tuple[float, ...]
    finer: int
    methods: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    cut_short: str | None = None
    notes: tuple[str, ...]


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
    shape of its method's points in figures.
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


class RungRecord(Record):
    """The test of one size; the figures are those of `statistics.compare`.

    It is proven where p is at most its `level`. `difference` is positive where the smaller network is better. `won`,
    `lost` and `discordant` are of decisions alone, `r2_difference` of numbers.
    """

    ratio: float
    network: str
    proven: bool
    tested: bool
    level: float
    score: float
    baseline_score: float
    difference: float
    low: float
    high: float
    p: float
    won: float | None = None
    lost: float | None = None
    discordant: float | None = None
    r2_difference: float | None = None
    samples: int
    power: float
    samples_needed: int
    chosen_by_fold: tuple[str, ...]
    notes: tuple[str, ...] = ()


class DecisionRecord(Record):
    """How sizes were tested, and the test of each; the samples needed are those that give `wanted_power`."""

    test: str
    order: str
    wanted_power: float
    rungs: tuple[RungRecord, ...]


class SidesRecord(Record):
    """The primary metric of each class, target or label on the test part, before and after."""

    before: tuple[float | None, ...] = ()
    after: tuple[float | None, ...] = ()


class ConfirmationRecord(Record):
    """The chosen network against the baseline on the test part, which no decision saw; all metrics by name."""

    before: dict[str, float | None]
    after: dict[str, float | None]
    each: SidesRecord = SidesRecord()
    difference: float
    low: float
    high: float
    p: float
    proven: bool
    won: float | None = None
    lost: float | None = None
    r2_difference: float | None = None
    samples: int
    power: float
    samples_needed: int


class CalibrationRecord(Record):
    """The temperature of the chosen network, fitted on the validation part, and what it does on the test part."""

    temperature: float
    samples: int
    before: dict[str, float | None]
    after: dict[str, float | None]


class ConfusionRecord(Record):
    """Samples of each class (rows) that were taken for each class, on the test part."""

    before: tuple[tuple[int, ...], ...] = ()
    after: tuple[tuple[int, ...], ...] = ()


class ExportsRecord(Record):
    """The files beside the record."""

    model: str | None = None
    baseline: str | None = None
    onnx: str | None = None
    onnx_difference: float | None = None
    onnx_samples: int | None = None


class NearestRecord(Record):
    """A network that comes near to fitting the budget and being good enough."""

    id: str
    text: str
    lost: float | None


class VersionsRecord(Record):
    """What is needed to repeat it: packages, platform, and the threads that trained."""

    topiarist: str | None
    torch: str | None
    numpy: str | None
    scipy: str | None
    onnxruntime: str | None
    python: str
    platform: str
    threads: int


class RightsizingRecord(Record):
    """Everything that is known at the end of a rightsizing, but for the networks themselves."""

    version: int = VERSION
    verdict: VerdictRecord
    task: TaskRecord
    gains: GainsRecord
    data: DataRecord
    settings: SettingsRecord
    plan: WorkPlanRecord
    networks: Annotated[tuple[NetworkRecord, ...], Field(min_length=1)]
    decision: DecisionRecord
    references: tuple[ReferenceRecord, ...] = ()
    test: ConfirmationRecord | None
    confusion: ConfusionRecord
    calibration: CalibrationRecord | None = None
    exports: ExportsRecord = ExportsRecord()
    nearest: tuple[NearestRecord, ...] = ()
    seconds: dict[str, float]
    versions: VersionsRecord

    @model_validator(mode="after")
    def _check_chosen(self) -> Self:
        names = [network.id for network in self.networks]
        if self.verdict.chosen not in names:
            raise ValueError(f"verdict.chosen must be one of {', '.join(names)}; found '{self.verdict.chosen}'")
        return self

    @property
    def metric(self) -> MetricRecord:
        """What decisions were made by."""
        return self.task.metrics[0]

    def network(self, name: str) -> NetworkRecord:
        """Return the record of a network by its id."""
        return next(network for network in self.networks if network.id == name)

    @property
    def chosen(self) -> NetworkRecord:
        """The network that was chosen; the baseline where none was."""
        return self.network(self.verdict.chosen)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know about the run: what was left out, what a limit cost, what could not be done."""
        cut = () if self.plan.cut_short is None else (self.plan.cut_short,)
        return (*self.plan.left_out, *cut, *self.plan.notes)

    def with_command(self, command: str) -> "RightsizingRecord":
        """Return the record with the command that made it."""
        return self.model_copy(update={"settings": self.settings.model_copy(update={"command": command})})

    def with_note(self, note: str) -> "RightsizingRecord":
        """Return the record with one more note."""
        return self.model_copy(update={"plan": self.plan.model_copy(update={"notes": (*self.plan.notes, note)})})


def finite(value: float | None) -> float | None:
    """Return a number, and None for one that JSON has no word for."""
    return value if value is not None and math.isfinite(value) else None
