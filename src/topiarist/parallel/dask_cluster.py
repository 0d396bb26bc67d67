"""Runs tasks on the workers of a Dask cluster, one started here or one that is running.

What all tasks read travels once to each worker, also to one that joins later or takes the place of one that died.
Whoever reaches a scheduler can have its workers run code. One started here therefore speaks TLS with a certificate made
for the run, which no other user of the machine has; the address of a running one may begin with tls://, with the
certificates that Dask's own configuration names.
"""

import logging
import multiprocessing.resource_tracker
import os
import re
import signal
import threading
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from typing import Any

import dask
from distributed import Client, KilledWorker, LocalCluster, WorkerPlugin, wait
from distributed.security import Security

from topiarist.errors import SettingsError, TopiaristError, TopiaristWarning
from topiarist.parallel import RETRIES, Function, TaskResult, describe
from topiarist.threads import torch_threads

DEATHS = 2  # of workers with one task in hand, after which the task is given up: one may be an accident
LOOK_SECONDS = 5  # without a result, after which the workers are looked for
PATIENCE = "15s"  # for a scheduler to answer, and for its first worker to come

ADDRESS = re.compile(r"((tcp|tls)://)?[^\s/]+:\d+")
UNGUARDED = (
    "the workers speak without TLS, so that other users of this machine could have them run code: "
    "pip install cryptography"
)

_HELD: dict[str, Any] = {}  # in a worker: what all tasks read, by name


class DaskPool:
    """Runs tasks on the workers of a Dask cluster."""

    def __init__(self, client: Client, shared: str) -> None:
        self.client, self.shared = client, shared
        self.workers = sum(client.nthreads().values())

    def run(self, function: Function, tasks: Sequence[Any]) -> Iterator[TaskResult]:
        """Hand tasks out in their order; what still waits or runs when the caller leaves is cancelled."""
        run = uuid.uuid4().hex
        numbers = {
            self.client.submit(
                _run_remotely,
                function,
                number,
                task,
                self.shared,
                key=f"topiarist-{run}-{number}",
                priority=-number,
                retries=RETRIES,
            ): number
            for number, task in enumerate(tasks)
        }
        try:
            yield from (_result_of(numbers[future], future) for future in self._ended(set(numbers)))
        finally:
            self.client.cancel(list(numbers), force=True)

    @contextmanager
    def sharing(self, shared: Any) -> "Iterator[DaskPool]":
        """Run tasks on the same workers that read something else."""
        with holding(self.client, shared) as name:
            yield DaskPool(self.client, name)

    def _ended(self, left: set[Any]) -> Iterator[Any]:
        """Yield futures as they end; warn where there is no worker to end them."""
        deserted = False
        while left:
            try:
                done, left = wait(left, timeout=LOOK_SECONDS, return_when="FIRST_COMPLETED")
                yield from done
            except TimeoutError:
                empty = not self.client.nthreads()
                if empty and not deserted:
                    said = "the cluster has no workers left: waiting for one; Ctrl-C ends the run, which can be resumed"
                    warnings.warn(said, TopiaristWarning, stacklevel=2)
                deserted = empty


def _run_remotely(function: Function, number: int, task: Any, name: str) -> TaskResult:
    """Run a task on a worker; an error of ours is final, any other is raised, so that Dask tries again elsewhere."""
    try:
        with torch_threads(1):
            return TaskResult(number, value=function(task, _HELD[name]))
    except TopiaristError as error:
        return TaskResult(number, reason=describe(error))


def _result_of(number: int, future: Any) -> TaskResult:
    """Return the result of a task, or the reason why there is none."""
    if future.status == "finished":
        result: TaskResult = future.result()
        return result
    error = future.exception() if future.status == "error" else RuntimeError("the cluster gave the task up")
    died = "every worker that took this died (killed, or out of memory)"
    return TaskResult(number, reason=died if isinstance(error, KilledWorker) else describe(error))


class _Shared(WorkerPlugin):  # type: ignore[misc]  # typed in part
    """Puts what all tasks read into a worker's memory, once, and takes it out again."""

    def __init__(self, name: str, value: Any) -> None:
        self.name, self.value = name, value

    def setup(self, worker: Any) -> None:
        _HELD[self.name] = self.value

    def teardown(self, worker: Any) -> None:
        _HELD.pop(self.name, None)


def sent(client: Client, shared: Any) -> str:
    """Send to every worker, now and later, what all tasks read, and return the name it has there."""
    name = f"topiarist-{uuid.uuid4().hex}"
    client.register_plugin(_Shared(name, shared), name=name)
    return name


@contextmanager
def holding(client: Client, shared: Any) -> Iterator[str]:
    """Let the workers of a cluster that outlives the block hold what all tasks read, for as long as the block."""
    name = sent(client, shared)
    try:
        yield name
    finally:
        with suppress(OSError):  # a worker that is gone holds nothing
            client.unregister_worker_plugin(name)


@contextmanager
def local_cluster(workers: int) -> Iterator[Client]:
    """Start worker processes on this machine, ready to compute, and end them with the block."""
    settings = {
        "distributed.scheduler.worker-saturation": 1.0,
        "distributed.scheduler.allowed-failures": DEATHS - 1,
        "distributed.worker.profile.enabled": False,  # it would look at the tasks a hundred times a second
        # Dask's own setting makes workers give memory back at once and ask for it again: training takes twice as long.
        "distributed.nanny.pre-spawn-environ": {"OMP_NUM_THREADS": 1, "MKL_NUM_THREADS": 1, "OPENBLAS_NUM_THREADS": 1},
    }
    with ExitStack() as opened, dask.config.set(settings):
        with _without_interrupts():
            guard = own_certificate()
            cluster = LocalCluster(
                n_workers=workers,
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                silence_logs=logging.CRITICAL,
                **guard,
            )
            opened.callback(_end, cluster)
            client = Client(cluster, **{name: value for name, value in guard.items() if name == "security"})
            opened.callback(client.close)
        yield client


def own_certificate() -> dict[str, Any]:
    """Return what makes a cluster speak TLS with a certificate of its own; without cryptography, nothing but warn."""
    if find_spec("cryptography") is None:
        warnings.warn(UNGUARDED, TopiaristWarning, stacklevel=3)
        return {}
    return {"security": Security.temporary(), "protocol": "tls://"}


def _end(cluster: LocalCluster) -> None:
    """End the workers of a cluster; those of a busy machine that do not end in time end with this process."""
    with suppress(TimeoutError):
        cluster.close(timeout=5)


@contextmanager
def _without_interrupts() -> Iterator[None]:
    """Keep Ctrl-C, which a terminal sends to all, from the threads and processes that the block starts.

    They inherit the mask. The tracker, which would lift it, is started before. A request to end this process waits
    until the block is done: a cluster that is half started cannot be stopped. Windows has no such masks.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    multiprocessing.resource_tracker.ensure_running()
    requests: list[int] = []
    handler = signal.signal(signal.SIGTERM, lambda number, _: requests.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        if requests:
            os.kill(os.getpid(), signal.SIGTERM)


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Join a running cluster, whose workers must have the packages that we have."""
    if not ADDRESS.fullmatch(address):
        forms = "tcp://host:8786 or tls://host:8786"
        raise SettingsError(f"the address of a Dask scheduler looks like {forms}; found '{address}'")
    guard = Security() if address.startswith("tls://") else None
    if guard is not None and guard.get_connection_args("client").get("ssl_context") is None:
        keys = "distributed.comm.tls.ca-file and distributed.comm.tls.client.cert and .key"
        raise SettingsError(f"{address} needs certificates: name them in Dask's configuration as {keys}")
    try:
        client = Client(address, timeout=PATIENCE, security=guard)
    except (OSError, ValueError, TimeoutError) as error:
        raise SettingsError(f"no Dask scheduler answers at {address}: {str(error).splitlines()[0]}") from error
    try:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise SettingsError(f"the scheduler at {address} has no workers: start some with `dask worker`") from None
        check_versions(client)
        yield client
    finally:
        client.close()


def check_versions(client: Client) -> None:
    """Refuse workers that cannot run our tasks; warn of those that may round differently."""
    found = client.get_versions(packages=["torch", "topiarist"])
    ours = found["client"]["packages"]
    for address, worker in found["workers"].items():
        for package in ("topiarist", "torch"):
            theirs = worker["packages"].get(package)
            if theirs is None:
                raise SettingsError(f"the worker at {address} has no {package}: install it there")
            if theirs != ours[package]:
                said = f"the worker at {address} has {package} {theirs}, this machine {ours[package]}"
                warnings.warn(f"{said}: results may differ in the last digits", TopiaristWarning, stacklevel=3)
