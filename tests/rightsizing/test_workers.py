"""The same bits here, on two workers, and on a cluster that runs already; and on a busy machine."""

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from distributed import LocalCluster

from tests.rightsizing.tasks import blobs, shrunk, small_network
from tests.rightsizing.test_descent import pictures
from tests.rightsizing.test_resuming import same
from topiarist.models import vgg

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("small_plan")]


def convolutions() -> Any:
    return vgg(1, 1, 0, 0, input_shape=(1, 12, 12), classes=3)


def spin() -> None:
    while True:
        pass


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Let other processes take the processor."""
    processes = [multiprocessing.get_context("spawn").Process(target=spin, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def test_the_same_bits_with_one_worker_with_two_and_on_a_running_cluster() -> None:
    settings: dict[str, Any] = {"methods": ("distinctiveness", "genetic-front"), "max_drop": 0.9}
    here = shrunk(pictures(90), convolutions, **settings)
    assert not here.record.plan.trainings > 1
    assert same(here, shrunk(pictures(90), convolutions, workers=2, **settings))
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        assert same(here, shrunk(pictures(90), convolutions, cluster=cluster.scheduler_address, **settings))


def test_the_same_bits_where_stacks_are_tasks_and_the_machine_is_busy() -> None:
    settings: dict[str, Any] = {"methods": ("distinctiveness", "magnitude"), "max_drop": 0.9}
    idle = shrunk(blobs(), small_network, **settings)
    with busy(2):
        assert same(idle, shrunk(blobs(), small_network, **settings))
    assert same(idle, shrunk(blobs(), small_network, workers=2, **settings))
