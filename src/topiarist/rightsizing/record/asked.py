"""What was asked for and of what: data, task, settings and the plan of the work."""

from typing import Annotated, Literal

from pydantic import Field

from topiarist.measurement.budget import Runtime
from topiarist.settings import Record
from topiarist.training.tables.config import TableTeacherName

IN_DEVIATIONS = "in deviations of each target"


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
    """What was asked for; `teacher` is who taught the networks of a table, None where no one did but on its rows.

    `base` is the pretrained network that baselines start from, its file and the hash of its weights.
    """

    effort: str
    seed: int
    max_drop: float
    alpha: float
    methods: tuple[str, ...]
    budget: BudgetRecord
    model: str
    trained_before: bool
    base: str | None = None
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
