"""The confirmation: the baseline and the chosen network on the test part, which no decision saw."""

import math
from collections.abc import Mapping
from typing import Literal

import numpy

from topiarist.rightsizing.judging import JudgedAnswers, evidence_of
from topiarist.rightsizing.record import (
    CalibrationRecord,
    ConfirmationRecord,
    ConfusionRecord,
    EachRecord,
    EstimateRecord,
    MetricRecord,
    finite,
)
from topiarist.statistics.metrics import Metric, metrics_of
from topiarist.statistics.proofs.comparing import FEWEST_COMPARED
from topiarist.statistics.proofs.intervals import is_fraction, value_interval, wilson
from topiarist.tasks import Task
from topiarist.tasks.probabilities import ProbabilityTask

Tested = Mapping[Literal["before", "after"], JudgedAnswers]  # of one network each
MANY = 100  # classes or labels: with more, metrics that look at each by itself take long


def confirm(tested: Tested, *, margin: float, alpha: float) -> ConfirmationRecord | None:
    """Return how the two compare; None where there are too few samples."""
    if len(tested["before"]) < FEWEST_COMPARED:
        return None
    found = evidence_of([tested["after"]], [tested["before"]], margin=margin, alpha=alpha)
    return ConfirmationRecord(
        before=_quality(tested["before"]),
        after=_quality(tested["after"]),
        score=EachRecord(
            samples=found.samples,
            before=_estimate(tested["before"], found.baseline_score),
            after=_estimate(tested["after"], found.score),
        ),
        each=_each(tested),
        difference=found.difference,
        low=found.low,
        high=found.high,
        p=found.p,
        proven=found.proven,
        won=found.won,
        lost=found.lost,
        r2_difference=found.r2_difference,
        samples=found.samples,
        power=found.power,
        samples_needed=found.samples_needed,
    )


def metrics_shown(task: Task) -> tuple[Metric, ...]:
    """Return the metrics of a page, the primary one first: all of the task, unless it has very many outputs."""
    known = [metric for metric in metrics_of(task.kind) if task.outputs <= MANY or metric.name in task.reported]
    first = task.primary_metric
    return (first, *(metric for metric in known if metric.name != first.name))


def metric_record(metric: Metric) -> MetricRecord:
    """Return how a metric is to be read."""
    return MetricRecord(
        name=metric.name,
        title=metric.title,
        higher_is_better=metric.higher_is_better,
        share=metric.share,
        relative=metric.relative,
        in_units=metric.errors is not None and metric.in_units,
    )


def _quality(judged: JudgedAnswers) -> dict[str, float | None]:
    task, (outputs,) = judged.task, judged.outputs
    values = {each.name: task.value(each, outputs, judged.y, judged.weights) for each in metrics_shown(task)}
    return {name: finite(value) for name, value in values.items()}


def _estimate(judged: JudgedAnswers, value: float, column: int | None = None) -> EstimateRecord:
    """Return the primary metric of all answers, or of one target or label, with its interval."""
    answers, targets = judged.answers[0], judged.task.true_answers(judged.y).numpy()
    if column is not None:
        answers, targets = answers[:, [column]], targets[:, [column]]
    weights = None if judged.weights is None else judged.weights.numpy()
    low, high = value_interval(judged.task.primary_metric, answers, targets, weights)
    return EstimateRecord(value=finite(value), low=finite(low), high=finite(high))


def _each(tested: Tested) -> tuple[EachRecord, ...]:
    """Return the primary metric of each class, target or label; nothing where there is but one, or it has none."""
    judged = tested["before"]
    metric, task = judged.task.primary_metric, judged.task
    if metric.each is None or task.outputs < 2:
        return ()
    targets = task.true_answers(judged.y).numpy()
    weights = None if judged.weights is None else judged.weights.numpy()
    values = {side: metric.each(found.answers[0], targets, weights)[: task.outputs] for side, found in tested.items()}
    counts = numpy.bincount(targets, minlength=task.outputs) if metric.kind == "classes" else (targets != 0).sum(axis=0)
    if metric.kind == "numbers":
        counts = numpy.full(task.outputs, len(targets))

    def estimate(side: Literal["before", "after"], place: int) -> EstimateRecord:
        value = float(values[side][place])
        if not math.isfinite(value):
            return EstimateRecord(value=None)
        if metric.kind != "classes":
            return _estimate(tested[side], value, place)
        low, high = wilson(value, float(counts[place])) if is_fraction(metric) else (math.nan, math.nan)
        return EstimateRecord(value=value, low=finite(low), high=finite(high))

    return tuple(
        EachRecord(samples=int(counts[place]), before=estimate("before", place), after=estimate("after", place))
        for place in range(task.outputs)
    )


def calibration_record(judged: JudgedAnswers, samples: int) -> CalibrationRecord | None:
    """Return what the temperature that so many samples led to does on the test part; None of what has none."""
    task, (outputs,) = judged.task, judged.outputs
    if not isinstance(task, ProbabilityTask) or len(judged) < FEWEST_COMPARED:
        return None
    sides = []
    for each in (task.uncalibrated(), task):
        values = each.metrics(outputs, judged.y, judged.weights, names=each.calibration_metrics)
        sides.append({name: finite(values[name]) for name in each.calibration_metrics})
    return CalibrationRecord(temperature=task.temperature, samples=samples, before=sides[0], after=sides[1])


def confusions(tested: Tested) -> ConfusionRecord:
    """Count the samples of each class that each network takes for each class; nothing where there are no classes."""
    counts = {side: judged.task.confusion(judged.outputs[0], judged.y) for side, judged in tested.items()}
    return ConfusionRecord(**{side: found.tolist() for side, found in counts.items() if found is not None})
