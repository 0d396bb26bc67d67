"""Runs tasks in this process, on a local Dask cluster or on a running one: one thread of torch per task, same results.

Dask is loaded when a cluster is asked for, and not before.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from topiarist.errors import SettingsError, TopiaristError
from topiarist.threads import torch_threads

RETRIES = 1  # of a task that raised something unexpected

Function = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class TaskResult:
    """A task by its number, and the value it returned; or, where it could not be done, the reason."""

    number: int
    value: Any = None
    reason: str | None = None


class Pool(Protocol):
    """Somewhere to run tasks."""

    workers: int

    def run(self, function: Function, tasks: Sequence[Any]) -> Iterator[TaskResult]:
        """Call `function(task, shared)` for each task and yield the results as they come.

        The function is named at the top of a module, so that workers find it.
        """
        ...

    def sharing(self, shared: Any) -> "AbstractContextManager[Pool]":
        """Return the same workers with something else that all tasks read, for as long as a block."""
        ...


@contextmanager
def open_pool(shared: Any, *, workers: int = 1, cluster: str | None = None, tasks: int | None = None) -> Iterator[Pool]:
    """Yield this process for one worker, a local cluster for more, or the cluster whose scheduler is at an address.

    `shared` is what all tasks read. Where the number of tasks is known, no more workers are started than have one.
    """
    check_workers(workers)
    if cluster is None and workers == 1:
        yield InProcess(shared)
        return
    from topiarist.parallel import dask_cluster  # noqa: PLC0415  # loads distributed, some 340 modules

    if cluster is not None:
        with dask_cluster.connected(cluster) as client, dask_cluster.holding(client, shared) as name:
            yield dask_cluster.DaskPool(client, name)
    else:
        with dask_cluster.local_cluster(workers if tasks is None else min(workers, tasks)) as client:
            yield dask_cluster.DaskPool(client, dask_cluster.sent(client, shared))  # it is gone when the workers end


def check_workers(count: int) -> None:
    """Refuse to work without workers."""
    if count < 1:
        raise SettingsError(f"workers must be at least 1; found {count}")


class InProcess:
    """Runs tasks one after the other, here."""

    workers = 1

    def __init__(self, shared: Any) -> None:
        self.shared = shared

    def run(self, function: Function, tasks: Sequence[Any]) -> Iterator[TaskResult]:
        """Run a task whenever the next result is asked for."""
        for number, task in enumerate(tasks):
            yield self._attempt(function, number, task)

    @contextmanager
    def sharing(self, shared: Any) -> "Iterator[InProcess]":
        """Run tasks here that read something else."""
        yield InProcess(shared)

    def _attempt(self, function: Function, number: int, task: Any) -> TaskResult:
        for tries_left in reversed(range(RETRIES + 1)):
            try:
                with torch_threads(1):
                    return TaskResult(number, value=function(task, self.shared))
            except Exception as error:  # whatever a task raises is its result, and the others continue
                if isinstance(error, TopiaristError) or not tries_left:
                    return TaskResult(number, reason=describe(error))
        raise AssertionError("unreachable")


def describe(error: BaseException) -> str:
    """Return in one line why a task failed."""
    said = " ".join(str(error).split())
    return said if isinstance(error, TopiaristError) else f"{type(error).__name__}: {said}"
