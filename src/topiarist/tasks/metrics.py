"""What answers are judged by, from outputs (n_samples, n_outputs) and targets, with or without weights of samples.

Numbers are judged in the user's units; what has several targets or labels is the mean over them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from topiarist.errors import SettingsError
from topiarist.tasks.losses import TaskKind

if TYPE_CHECKING:
    from torch import Tensor

    from topiarist.tasks.task import Task

Function = Callable[["Task", "Tensor", "Tensor", "Tensor | None"], float]


@dataclass(frozen=True)
class TaskMetric:
    """A metric by name; `better` says which of two values is."""

    name: str
    function: Function
    better: Literal["higher", "lower"] = "higher"

    def __call__(self, task: "Task", outputs: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> float:
        """Return the metric of outputs (n_samples, n_outputs)."""
        return self.function(task, outputs, y, weights)

    def signed(self, value: float) -> float:
        """Return a value so that larger is better."""
        return value if self.better == "higher" else -value


def accuracy(logits: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> float:
    """Return the fraction of samples that are right (micro accuracy)."""
    return _mean((logits.argmax(dim=1) == y).double(), weights)


def macro_accuracy(logits: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> float:
    """Return the mean over the classes present of the fraction of their samples that are right."""
    found = logits.argmax(dim=1) == y
    members = y.bincount(weights=weights, minlength=logits.shape[1]).double()
    some = None if weights is None else weights[found]
    right = y[found].bincount(weights=some, minlength=logits.shape[1]).double()
    present = members > 0
    return (right[present] / members[present]).mean().item()


def log_loss(logits: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> float:
    """Return the mean of −ln p(right class)."""
    from torch.nn import functional  # noqa: PLC0415  # tasks are known without torch

    if weights is None:
        return functional.cross_entropy(logits.double(), y).item()
    return _mean(functional.cross_entropy(logits.double(), y, reduction="none"), weights)


def rmse(task: "Task", outputs: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> float:
    """Return the root of the mean squared error of each target, as a mean over targets."""
    return _means(_errors(task, outputs, y).square(), weights).sqrt().mean().item()


def mae(task: "Task", outputs: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> float:
    """Return the mean absolute error."""
    return _means(_errors(task, outputs, y).abs(), weights).mean().item()


def r2(task: "Task", outputs: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> float:
    """Return the share of the variance of each target that is explained, as a mean over targets; NaN without any."""
    wanted = task.answers(task.as_targets(y))
    about = (wanted - _means(wanted, weights)).square()
    left = _means(_errors(task, outputs, y).square(), weights)
    return (1 - left / _means(about, weights)).mean().item()


def label_accuracy(task: "Task", outputs: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> float:
    """Return the fraction of labels, over all samples, that are right at a probability of one half."""
    return _mean(((outputs > 0) == (task.as_targets(y) > 0.5)).double().mean(dim=1), weights)


def exact_match(task: "Task", outputs: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> float:
    """Return the fraction of samples of which every label is right."""
    return _mean(((outputs > 0) == (task.as_targets(y) > 0.5)).all(dim=1).double(), weights)


def label_f1(task: "Task", outputs: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> float:
    """Return 2 · true positives / (positives found + positives there), as a mean over labels; 0 without any."""
    found, there = (outputs > 0).double(), task.as_targets(y).double()
    both, all_of = _means(found * there, weights), _means(found + there, weights)
    return (2 * both / all_of.clamp(min=1e-300)).mean().item()


def label_log_loss(task: "Task", outputs: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> float:
    """Return the mean binary cross-entropy over samples and labels."""
    from topiarist.tasks.formulas import binary_entropy  # noqa: PLC0415  # it needs losses, which need no metrics

    return _means(binary_entropy(outputs.double(), task.as_targets(y).double()), weights).mean().item()


def label_auc(task: "Task", outputs: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> float:
    """Return the area under the ROC curve, as a mean over the labels that are there and not there; NaN without any.

    It is the probability that a sample with the label gets a higher score than one without; ties count half.
    """
    there = task.as_targets(y).double()
    found = [_auc(scores, truth, weights) for scores, truth in zip(outputs.T, there.T, strict=True)]
    known = [value for value in found if value == value]
    return sum(known) / len(known) if known else float("nan")


def _auc(scores: "Tensor", truth: "Tensor", weights: "Tensor | None") -> float:
    share = truth.new_ones(len(truth)) if weights is None else weights.double()
    places: Tensor = scores.unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]  # scores ascending
    positive, negative = (places.bincount(weights=share * side).double() for side in (truth, 1 - truth))
    below = negative.cumsum(dim=0) - 0.5 * negative
    both = float(positive.sum() * negative.sum())
    return float((positive * below).sum()) / both if both else float("nan")


def _errors(task: "Task", outputs: "Tensor", y: "Tensor") -> "Tensor":
    return task.answers(outputs) - task.answers(task.as_targets(y))


def _mean(values: "Tensor", weights: "Tensor | None") -> float:
    if weights is None:
        return values.mean().item()
    wide = weights.double()
    return ((values * wide).sum() / wide.sum()).item()


def _means(values: "Tensor", weights: "Tensor | None") -> "Tensor":
    """Return the means (n_outputs,) over samples."""
    if weights is None:
        return values.mean(dim=0)
    wide = weights.double()[:, None]
    return (values * wide).sum(dim=0) / wide.sum()


def _of_classes(function: "Callable[[Tensor, Tensor, Tensor | None], float]") -> Function:
    return lambda task, outputs, y, weights: function(outputs, y, weights)


_ALL: Mapping[TaskKind, tuple[TaskMetric, ...]] = {  # the first of each kind is the primary one
    "classes": (
        TaskMetric("accuracy", _of_classes(accuracy)),
        TaskMetric("macro_accuracy", _of_classes(macro_accuracy)),
        TaskMetric("log_loss", _of_classes(log_loss), "lower"),
    ),
    "numbers": (TaskMetric("rmse", rmse, "lower"), TaskMetric("mae", mae, "lower"), TaskMetric("r2", r2)),
    "labels": (
        TaskMetric("roc_auc", label_auc),
        TaskMetric("f1", label_f1),
        TaskMetric("label_accuracy", label_accuracy),
        TaskMetric("exact_match", exact_match),
        TaskMetric("log_loss", label_log_loss, "lower"),
    ),
}
METRICS: Mapping[TaskKind, Mapping[str, TaskMetric]] = {
    kind: {metric.name: metric for metric in metrics} for kind, metrics in _ALL.items()
}


def find_metric(kind: TaskKind, name: str) -> TaskMetric:
    """Return a metric by name; raise where it is one of another kind of task, or of none."""
    if name in METRICS[kind]:
        return METRICS[kind][name]
    owners = [each for each in METRICS if name in METRICS[each]]
    of_others = f" is for {' and '.join(owners)}, and these are {kind}" if owners else " is not known"
    raise SettingsError(f"the metric {name}{of_others}: choose among {', '.join(METRICS[kind])}")
