"""Metrics by name."""

from topiarist.errors import SettingsError
from topiarist.statistics.metrics.classes import CLASS_METRICS
from topiarist.statistics.metrics.judged import Kind
from topiarist.statistics.metrics.labels import LABEL_METRICS
from topiarist.statistics.metrics.metric import Metric
from topiarist.statistics.metrics.numbers import NUMBER_METRICS

OTHER_NAMES = {"balanced_accuracy": "macro_accuracy"}  # as scikit-learn calls it
_METRICS: dict[Kind, dict[str, Metric]] = {
    "classes": {metric.name: metric for metric in CLASS_METRICS},
    "numbers": {metric.name: metric for metric in NUMBER_METRICS},
    "labels": {metric.name: metric for metric in LABEL_METRICS},
}


def metrics_of(kind: Kind) -> tuple[Metric, ...]:
    """Return all metrics of a kind of task: "classes", "numbers" or "labels".

    Examples
    --------
    >>> [metric.name for metric in metrics_of("numbers")]
    ['rmse', 'mae', 'r2', 'mape']
    """
    return tuple(_of(kind).values())


def find_metric(kind: Kind, name: str) -> Metric:
    """Return a metric of a kind of task by its name; spaces and hyphens stand for underscores.

    Raises
    ------
    SettingsError
        If there is none of that name, or it is for another kind of task.

    Examples
    --------
    >>> find_metric("classes", "ROC AUC").name
    'roc_auc'
    """
    known = _of(kind)
    plain = name.strip().lower().replace(" ", "_").replace("-", "_")
    plain = OTHER_NAMES.get(plain, plain)
    if plain in known:
        return known[plain]
    others = [other for other, metrics in _METRICS.items() if plain in metrics]
    why = f"'{name}' is a metric of {' and '.join(others)}" if others else f"no metric is called '{name}'"
    raise SettingsError(f"{why}; metrics of {kind} are {', '.join(known)}", setting="metric")


def _of(kind: Kind) -> dict[str, Metric]:
    if kind not in _METRICS:
        raise SettingsError(f"kinds of tasks are {', '.join(_METRICS)}; found '{kind}'")
    return _METRICS[kind]
