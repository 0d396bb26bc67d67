"""The record of a rightsizing: typed, versioned, written as JSON; everything that the report shows."""

import math
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from topiarist.evolution.lineage import Lineage
from topiarist.measurement.budget import Runtime
from topiarist.settings import Record
from topiarist.training.tables.config import TableTeacherName

VERSION = 4  # of the record: 3 had the metric of its task, 4 has references and what exactly was shown
BASELINE = "baseline"
GUESSING: Literal["no better than guessing"] = "no better than guessing"
IN_DEVIATIONS = "in deviations of each target"
OWN_NOTE = "p is that of the network to keep, which lost more than is allowed on the validation part"
RecordStatus = Literal["proven", "unproven", "unchanged", "no better than guessing", "unreachable"]
SizeVerdict = Literal["proven", "not proven", "rejected", "no better than guessing"]
Agreement = Literal["confirms", "does not contradict", "contradicts"]


class OfferRecord(Record):
    """A network that is smaller than the chosen one, not proven and not rejected, and its file beside the others."""

    network: str
    file: str


class VerdictRecord(Record):
    """What was decided; `agreement` is what the test part says of it, `power` and samples are of the deciding test."""

    status: RecordStatus
    sentence: str
    agreement: Agreement | None
    chosen: str
    offered: tuple[OfferRecord, ...] = ()
    why: tuple[str, ...]
    power: float | None
    samples: int | None
    samples_needed: int | None


class MetricRecord(Record):
    """What answers are judged by; `share` is whether it is a share of samples, `relative` whether the margin is.

    `in_units` is whether it is in the units of the target, which are those of each target by itself.
    """

    name: str
    title: str
    higher_is_better: bool
    share: bool
    relative: bool
    in_units: bool = False

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
    """What was asked for; `teacher` is who taught the networks of a table, None where no one did but on its rows."""

    effort: str
    seed: int
    max_drop: float
    alpha: float
    methods: tuple[str, ...]
    budget: BudgetRecord
    model: str
    trained_before: bool
    each: bool = False
    teacher: TableTeacherName | None = None
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


class EachProofRecord(Record):
    """The test of one target or label by itself; `p` and `proven` are Holm's over all of them, `low` is of it alone."""

    difference: float
    low: float
    p: float
    proven: bool


class RungRecord(Record):
    """The test of one size; the figures are those of `statistics.compare`.

    `difference` is positive where the smaller network is better. `won`, `lost` and `discordant` are of decisions alone,
    `r2_difference` of numbers. `verdict` follows from the figures: see `verdict_of`; `level` is that of the test, which
    p may not exceed; `inferior` is whether the size was shown to lose more than is allowed. `guess_difference` and
    `guess_low` are against the best constant answer; `each` has the tests one by one where they were asked for.
    """

    ratio: float
    network: str
    verdict: SizeVerdict
    inferior: bool
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
    guess_difference: float
    guess_low: float
    beats_guess: bool
    chosen_by_fold: tuple[str, ...]
    each: tuple[EachProofRecord, ...] = ()
    notes: tuple[str, ...] = ()


class GuessRecord(Record):
    """The best constant answer of the training parts over the same samples, and how the baseline compares with it."""

    answer: str
    score: float | None
    baseline_score: float | None
    difference: float
    low: float
    samples: int
    beaten: bool


class DecisionRecord(Record):
    """How sizes were tested, and the test of each; the samples needed are those that give `wanted_power`."""

    test: str
    order: str
    wanted_power: float
    guess: GuessRecord
    rungs: tuple[RungRecord, ...]


class EstimateRecord(Record):
    """A metric's value for one network, with a confidence interval; None where there is none."""

    value: float | None
    low: float | None = None
    high: float | None = None


class EachRecord(Record):
    """The primary metric of one class, target or label on the test part, and how many samples have it."""

    samples: int
    before: EstimateRecord
    after: EstimateRecord


class ConfirmationRecord(Record):
    """The chosen network against the baseline on the test part, which no decision saw; all metrics by name.

    `low` and `high` are one-sided bounds of the difference; `score` is the metric that decides, with intervals of
    `confidence`.
    """

    before: dict[str, float | None]
    after: dict[str, float | None]
    score: EachRecord
    confidence: float = 0.95
    each: tuple[EachRecord, ...] = ()
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
    linear: str | None = None
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

    @model_validator(mode="after")
    def _check_claims(self) -> Self:
        """Refuse a word that does not follow from the figures."""
        margin = self.settings.max_drop
        for place, rung in enumerate(self.decision.rungs):
            word = {"tested": rung.tested, "beats_guess": rung.beats_guess}
            found = verdict_of(rung.difference, rung.p, margin=margin, level=rung.level, **word)
            if rung.verdict != found:
                raise ValueError(f"decision.rungs.{place}.verdict must be '{found}' by its figures")
            if rung.inferior != (rung.high < -margin):
                raise ValueError(f"decision.rungs.{place}.inferior does not follow from its upper bound")
        agreement = None if self.verdict.chosen == BASELINE else agreement_of(self.test, margin)
        if self.verdict.agreement != agreement:
            raise ValueError(f"verdict.agreement must be {agreement!r} by the test part")
        self._check_status({rung.network: rung for rung in self.decision.rungs})
        return self

    def _check_status(self, rungs: Mapping[str, RungRecord]) -> None:
        status, chosen = self.verdict.status, self.verdict.chosen
        word = {"proven": "proven", "unproven": "not proven"}.get(status)
        if word is not None and (chosen not in rungs or rungs[chosen].verdict != word):
            raise ValueError(f"verdict.status is '{status}', but the size of '{chosen}' is not '{word}'")
        if word is None and chosen != BASELINE:
            raise ValueError(f"verdict.status is '{status}', but '{chosen}' was chosen")
        if status in ("unchanged", GUESSING) and self.decision.guess.beaten != (status == "unchanged"):
            better = "better" if self.decision.guess.beaten else "no better"
            raise ValueError(f"verdict.status is '{status}', but the baseline is {better} than guessing")
        for offer in self.verdict.offered:
            if offer.network not in rungs or rungs[offer.network].verdict != "not proven":
                raise ValueError(f"verdict.offered: the size of '{offer.network}' is not 'not proven'")

    @property
    def metric(self) -> MetricRecord:
        """What decisions were made by."""
        return self.task.metrics[0]

    @property
    def compared(self) -> MetricRecord:
        """What differences and margins are of: errors of several targets, each in the deviation of its target."""
        metric = self.metric
        if not (metric.relative and metric.in_units and len(self.task.names) > 1):
            return metric
        return metric.model_copy(update={"title": f"{metric.title} {IN_DEVIATIONS}"})

    def network(self, name: str) -> NetworkRecord:
        """Return the record of a network by its id."""
        return next(network for network in self.networks if network.id == name)

    def rung(self, name: str) -> RungRecord:
        """Return the test of the size that a network is of."""
        return next(rung for rung in self.decision.rungs if rung.network == name)

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


def verdict_of(
    difference: float, p: float, *, margin: float, level: float, tested: bool, beats_guess: bool
) -> SizeVerdict:
    """Return the word for a size.

    It is *rejected* only where the loss that was observed exceeds the margin, as it does wherever a loss beyond the
    margin is shown; *proven* where the opposite is shown in its turn, and that it is better than guessing.
    """
    if difference < -margin:
        return "rejected"
    if not beats_guess:
        return GUESSING
    return "proven" if tested and p <= level else "not proven"


def agreement_of(test: ConfirmationRecord | None, margin: float) -> Agreement | None:
    """Return what the test part says: only bounds that lie within the margin confirm, only such beyond contradict."""
    if test is None:
        return None
    if test.proven and test.low >= -margin:
        return "confirms"
    return "contradicts" if test.high < -margin else "does not contradict"


def finite(value: float | None) -> float | None:
    """Return a number, and None for one that JSON has no word for."""
    return value if value is not None and math.isfinite(value) else None
