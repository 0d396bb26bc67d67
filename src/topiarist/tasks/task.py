"""What every task has: names, a loss, a head of so many outputs, metrics, and a baseline to beat."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Self

from topiarist.errors import SettingsError
from topiarist.files import JsonObject
from topiarist.tasks.losses import Loss, TaskKind, usual_loss

if TYPE_CHECKING:
    from torch import Tensor

    from topiarist.statistics.metrics import Metric

DIVERGED = 1e6  # an output that stands for an infinite one
OwnLoss = Callable[["Tensor", "Tensor"], "Tensor"]  # outputs and targets → a loss per sample, or one number for all


@dataclass(frozen=True, kw_only=True)
class Task(ABC):
    """What is predicted.

    Targets `y` are (n_samples,) of class numbers, or (n_samples, n_outputs) of numbers; outputs are (n_samples,
    n_outputs). Methods on stacks have outputs along axis -2 and samples along the last; `stacked_targets` brings
    targets into that form.

    Parameters
    ----------
    loss
        The loss by name; the usual one of the kind unless given.
    own_loss
        A function of outputs and targets in its place. It is never saved, and such networks train one by one.
    metric
        The name of the metric that decisions are made by; the first of `reported` unless given.
    own_metric
        A metric of the user's in its place, from `statistics.own_metric`. It is never saved.
    """

    kind: ClassVar[TaskKind]
    reported: ClassVar[tuple[str, ...]]  # metrics that are always measured; the first one decides
    credit_title: ClassVar[str]  # what the mean of `rightness` is called

    loss: Loss | None = None
    own_loss: OwnLoss | None = field(default=None, compare=False, repr=False)
    metric: str | None = field(default=None, repr=False)
    own_metric: "Metric | None" = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.loss is None:
            object.__setattr__(self, "loss", usual_loss(self.kind))
        self.named_loss.check_kind(self.kind)
        if self.metric is not None:
            object.__setattr__(self, "metric", self.find_metric(self.metric).name)

    @property
    def named_loss(self) -> Loss:
        """The loss by name."""
        assert self.loss is not None
        return self.loss

    @property
    @abstractmethod
    def names(self) -> tuple[str, ...]:
        """The classes, targets or labels, in the order of the outputs."""

    @property
    def outputs(self) -> int:
        """How many outputs a network for this task has."""
        return len(self.names)

    @abstractmethod
    def __str__(self) -> str:
        """Return what is predicted, in a few words."""

    def with_loss(self, loss: str | None) -> Self:
        """Return the task with a loss by name, such as `huber` or `quantile:0.9`; None changes nothing."""
        return self if loss is None else replace(self, loss=Loss.parse(loss))

    def with_metric(self, metric: "str | Metric | None") -> Self:
        """Return the task with another metric to decide by, by name or one's own; None changes nothing."""
        if metric is None:
            return self
        if isinstance(metric, str):
            return replace(self, metric=metric, own_metric=None)
        return replace(self, metric=None, own_metric=metric)

    def asked_like(self, other: "Task") -> Self:
        """Return the task with the loss and the metric of another of its kind, such as that of all folds."""
        asked = {name: getattr(other, name) for name in ("loss", "own_loss", "metric", "own_metric")}
        return replace(self, **asked)

    # What targets and outputs are.

    @abstractmethod
    def check_targets(self, y: object) -> None:
        """Raise DataError for targets that are not those of this task."""

    def as_targets(self, y: "Tensor") -> "Tensor":
        """Return targets of any type in the form of this task."""
        return y.reshape(len(y), self.outputs).float()

    def stacked_targets(self, y: "Tensor") -> "Tensor":
        """Return targets (…, n_samples, n_outputs) with the samples last."""
        return y.mT

    @abstractmethod
    def answers(self, outputs: "Tensor") -> "Tensor":
        """Return what a user reads: probabilities, or numbers in the user's units (n_samples, n_outputs)."""

    def finite_answers(self, outputs: "Tensor") -> "Tensor":
        """Return answers in double precision that can be compared, also those of a network that diverged."""
        return self.answers(outputs.double().nan_to_num(nan=0.0, posinf=DIVERGED, neginf=-DIVERGED))

    def answering_like(self, other: "Task | None") -> Self:
        """Return the task with the temperature of another one, where both have one."""
        return self

    def uncalibrated(self) -> Self:
        """Return the task at temperature 1."""
        return self

    def calibrated(self, outputs: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> Self:
        """Return the task with the temperature at which its probabilities mean most on samples; numbers have none."""
        return self

    def scaled(self, outputs: "Tensor") -> "Tensor":
        """Return outputs as answers are read from them: logits divided by a temperature, where there is one."""
        return outputs

    # What training asks.

    @abstractmethod
    def losses(self, outputs: "Tensor", y: "Tensor") -> "Tensor":
        """Return the loss of each sample (…, n_samples), differentiable; outputs lie along axis -2."""

    @abstractmethod
    def losses_and_slopes(self, outputs: "Tensor", y: "Tensor") -> "tuple[Tensor, Tensor]":
        """Return the loss of each sample, and its slope in the outputs; outputs lie along axis -2."""

    @abstractmethod
    def distilled(
        self, outputs: "Tensor", teacher: "Tensor", y: "Tensor", *, weight: float, temperature: float
    ) -> "tuple[Tensor, Tensor]":
        """Return losses and slopes against targets and a teacher's outputs, which count `weight` of all."""

    def mean_loss(
        self, outputs: "Tensor", y: "Tensor", *, weights: "Tensor | None" = None, class_weights: "Tensor | None" = None
    ) -> "Tensor":
        """Return the mean loss over samples, outputs (n_samples, n_outputs), which sample weights may weigh."""
        losses = self._own_or_named(outputs, y, single=weights is None)
        if weights is None:
            return losses.mean()
        return (losses * weights).sum() / weights.sum().clamp(min=1e-30)

    def _own_or_named(self, outputs: "Tensor", y: "Tensor", *, single: bool) -> "Tensor":
        """Return the loss of each sample; `single`: a loss of the user's own may also be one number for all."""
        if self.own_loss is None:
            return self.losses(outputs.T, self.stacked_targets(y))
        losses = self.own_loss(outputs, y)
        if losses.shape != (len(outputs),) and not (single and losses.ndim == 0):
            wanted = f"() or ({len(outputs)},)" if single else f"({len(outputs)},), one per sample"
            raise SettingsError(f"the loss must return a tensor {wanted}; found shape {tuple(losses.shape)}")
        return losses

    def loss_of(self, outputs: "Tensor", y: "Tensor", *, weights: "Tensor | None" = None) -> float:
        """Return the mean loss in double precision, as it is reported."""
        wide = None if weights is None else weights.double()
        return self.mean_loss(outputs.double(), self._wide(y), weights=wide).item()

    def each_loss(self, outputs: "Tensor", y: "Tensor") -> "Tensor":
        """Return the loss of each sample (n_samples,) in double precision; of one number for all, that number."""
        return self._own_or_named(outputs.double(), self._wide(y), single=True).expand(len(outputs))

    def _wide(self, y: "Tensor") -> "Tensor":
        return self.as_targets(y).double()

    # What measuring and comparing ask.

    @abstractmethod
    def divergence(self, outputs: "Tensor", teacher: "Tensor") -> "Tensor":
        """Return how far outputs are from those of another network, of each sample (n_samples,)."""

    @abstractmethod
    def credit(self, outputs: "Tensor", y: "Tensor") -> "Tensor":
        """Return how good the answer to each sample is (n_samples,): 1 is best, and the mean is what to gain."""

    def rightness(self, outputs: "Tensor", y: "Tensor") -> "Tensor":
        """Return how right the answer to each sample is (n_samples,): 1 or 0 of classes, and their credit of others."""
        return self.credit(outputs, y)

    def confusion(self, outputs: "Tensor", y: "Tensor") -> "Tensor | None":
        """Return how many samples of each class (rows) are taken for each class; None of what has no classes."""
        return None

    @abstractmethod
    def guess(self, y: "Tensor", weights: "Tensor | None" = None) -> "Tensor":
        """Return the constant outputs (n_outputs,) that answer best without looking: the baseline to beat."""

    def true_answers(self, y: "Tensor") -> "Tensor":
        """Return targets in the form of `answers`: class numbers, 0 and 1, or numbers in the user's units."""
        return self.as_targets(y)

    def find_metric(self, name: str) -> "Metric":
        """Return a metric of this kind of task by name; raise for one of another kind."""
        from topiarist.statistics.metrics import find_metric  # noqa: PLC0415  # tasks are known without numpy

        return find_metric(self.kind, name)

    @property
    def primary_metric(self) -> "Metric":
        """The metric that decisions are made by."""
        return self.own_metric or self.find_metric(self.metric or self.reported[0])

    @property
    def primary(self) -> str:
        """The name of the metric that decisions are made by."""
        return self.metric or self.reported[0] if self.own_metric is None else self.own_metric.name

    def value(self, metric: "Metric", outputs: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> float:
        """Return a metric of outputs (n_samples, n_outputs); NaN where they are not finite, unless it counts decisions.

        A classifier whose outputs are NaN still names its first class.
        """
        wide, wanted = outputs.detach().cpu().double(), self.true_answers(y.cpu()).numpy()
        answers = self.answers(wide)
        if not bool(answers.isfinite().all()):
            if not metric.decisions:
                return math.nan
            answers = self.finite_answers(wide)
        return metric.value(answers.numpy(), wanted, None if weights is None else weights.cpu().numpy())

    def metrics(
        self, outputs: "Tensor", y: "Tensor", weights: "Tensor | None" = None, names: tuple[str, ...] = ()
    ) -> Mapping[str, float]:
        """Return metrics by name, of outputs (n_samples, n_outputs): the primary one and those `reported` or named."""
        asked = {self.primary: self.primary_metric}
        asked |= {name: self.find_metric(name) for name in names or self.reported if name not in asked}
        order = [name for name in (*(names or self.reported), *asked) if name in asked]
        return {name: self.value(asked[name], outputs, y, weights) for name in dict.fromkeys(order)}

    def score(self, outputs: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> float:
        """Return the primary metric so that larger is better, and a loss of 0.01 means what `max_drop` says."""
        metric = self.primary_metric
        return metric.direction * self.value(metric, outputs, y, weights)

    @property
    def chosen(self) -> JsonObject:
        """What was chosen besides names and loss, as plain values: nothing where all is as usual."""
        return {} if self.metric is None else {"metric": self.metric}

    def to_record(self) -> JsonObject:
        """Return plain values; a loss or a metric of the user's own is not among them."""
        return {"kind": self.kind, "names": list(self.names), "loss": self.named_loss.to_record(), **self.chosen}
