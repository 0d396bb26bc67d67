"""Metrics of classes, numbers and labels, by name, with weights; checked against scikit-learn."""

from topiarist.statistics.metrics.judged import Kind
from topiarist.statistics.metrics.metric import Metric
from topiarist.statistics.metrics.own import own_metric
from topiarist.statistics.metrics.registry import find_metric, metrics_of

__all__ = ["Kind", "Metric", "find_metric", "metrics_of", "own_metric"]
