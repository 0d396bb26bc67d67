"""Tasks as plain values, and back."""

from collections.abc import Callable, Mapping
from typing import Any

from topiarist.files import JsonObject
from topiarist.tasks.classification import Classification
from topiarist.tasks.losses import Loss
from topiarist.tasks.multilabel import MultiLabel
from topiarist.tasks.regression import Regression
from topiarist.tasks.task import Task

TASKS: Mapping[str, type[Task]] = {task.kind: task for task in (Classification, Regression, MultiLabel)}


def task_from_record(record: JsonObject) -> Task:
    """Return what `Task.to_record` wrote down.

    Raises
    ------
    LookupError, TypeError, ValueError
        Where the record is not one of a task.

    Examples
    --------
    >>> task_from_record(MultiLabel(("red", "ripe")).to_record())
    MultiLabel(loss=Loss(name='cross-entropy', parameter=None), labels=('red', 'ripe'))
    """
    loss = Loss(record["loss"]["name"], record["loss"].get("parameter"))
    numbers: dict[str, Any] = {name: tuple(record[name]) for name in ("centre", "scale", "spread") if name in record}
    numbers |= {name: record[name] for name in ("metric", "temperature") if name in record}
    make: Callable[..., Task] = TASKS[record["kind"]]
    return make(tuple(str(name) for name in record["names"]), loss=loss, **numbers)
