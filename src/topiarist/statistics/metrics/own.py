"""A user's own metric: a function of answers and targets, and perhaps of weights."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy
from numpy.typing import ArrayLike

from topiarist.errors import SettingsError
from topiarist.statistics.metrics.judged import Kind, judged
from topiarist.statistics.metrics.metric import Metric, PerSampleFunction, ValueFunction
from topiarist.statistics.samples import Floats


def own_metric(
    name: str,
    function: Callable[..., float],
    higher_is_better: bool,
    per_sample: Callable[..., Any] | None = None,
    *,
    kind: Kind = "any",
    title: str = "",
    margin: float = 0.01,
) -> Metric:
    """Make a metric of a function.

    Parameters
    ----------
    name, title
        What to call it, in options and in tables.
    function
        `function(answers, targets)` or `function(answers, targets, weights)`, a finite number. One that takes no
        weights is refused where there are some.
    higher_is_better
        Its direction.
    per_sample
        `per_sample(answers, targets)`, (n_samples,) numbers whose mean it is, where it is a mean: the proof is then
        that of paired means. Without it, the function is called 100 times per network, each time without some samples.
    kind
        The tasks that it is for; answers and targets are then checked as for other metrics.
    margin
        The loss that may be excluded unless the user says otherwise, in its own units.

    Raises
    ------
    SettingsError
        When it is called and the function returns what is no number, or not as many as there are samples.

    Examples
    --------
    >>> within = own_metric("within_one", lambda found, wanted: float((abs(found - wanted) <= 1).mean()), True)
    >>> within.value([[1.0], [5.0]], [[1.5], [2.0]])
    0.5
    """
    return Metric(
        name=name,
        title=title or name,
        kind=kind,
        higher_is_better=higher_is_better,
        value=_value(name, function, kind),
        per_sample=None if per_sample is None else _per_sample(name, per_sample, kind),
        within_folds=per_sample is None,
        margin=margin,
    )


def _value(name: str, function: Callable[..., float], kind: Kind) -> ValueFunction:
    weighs = _takes_weights(function)

    def value(answers: ArrayLike, targets: ArrayLike, weights: ArrayLike | None = None) -> float:
        found = judged(kind, answers, targets, weights)
        if weights is not None and not weighs:
            raise SettingsError(f"metric '{name}' takes no weights: give its function a third argument for them")
        arrays = (found.answers, found.targets, found.weights)
        result = function(*arrays) if weighs else function(*arrays[:2])
        try:
            return float(result)
        except (TypeError, ValueError) as error:
            raise SettingsError(f"metric '{name}' must return a number; found {type(result).__name__}") from error

    return value


def _per_sample(name: str, function: Callable[..., Any], kind: Kind) -> PerSampleFunction:
    def per_sample(answers: ArrayLike, targets: ArrayLike) -> Floats:
        found = judged(kind, answers, targets)
        values = numpy.asarray(function(found.answers, found.targets), dtype=numpy.float64)
        if values.shape != (len(found.targets),):
            raise SettingsError(
                f"metric '{name}' must return one number per sample; found shape {values.shape}"
                f" for {len(found.targets)} samples"
            )
        return values

    return per_sample


def _takes_weights(function: Callable[..., float]) -> bool:
    """Return whether a function can be called with three arguments."""
    try:
        inspect.signature(function).bind(None, None, None)
    except (TypeError, ValueError):  # it takes two; or it is a builtin, of which nothing is known
        return False
    return True
