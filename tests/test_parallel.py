"""Pools: the same tasks here and on worker processes, and none of them takes another one down."""

import importlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.study.tasks import Luggage, act, count, lines
from topiarist.errors import SettingsError, TopiaristWarning
from topiarist.parallel import Pool, TaskResult, dask_cluster, describe, open_pool
from topiarist.parallel.dask_cluster import check_versions

Task = tuple[str, int]


def outcomes(pool: Pool, tasks: list[Task]) -> dict[int, TaskResult]:
    found = {finished.number: finished for finished in pool.run(act, tasks)}
    assert sorted(found) == list(range(len(tasks)))
    return found


def test_one_worker_is_this_process_and_tasks_come_one_by_one(tmp_path: Path) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with open_pool(Luggage(tmp_path), workers=1) as pool:
            assert pool.workers == 1
            running = pool.run(act, [("fine", 0), ("fine", 1)])
            assert lines(tmp_path / "begun") == []
            first = next(running)
            assert lines(tmp_path / "begun") == ["0"]
            assert (first.number, first.reason) == (0, None)
            assert (first.value["process"], first.value["threads"]) == (os.getpid(), 1)
            assert torch.get_num_threads() == 2
            assert [finished.number for finished in running] == [1]
    finally:
        torch.set_num_threads(before)
    assert lines(tmp_path / "unpacked") == [], "nothing travels"


def test_what_a_task_raises_is_its_result_and_the_others_go_on(tmp_path: Path) -> None:
    kinds = ["raises", "fine", "refuses", "raises once", "cannot travel", "fine"]
    with open_pool(Luggage(tmp_path), workers=1) as pool:
        found = outcomes(pool, [(kind, number) for number, kind in enumerate(kinds)])
    check_failures(found, tmp_path)


def check_failures(found: dict[int, TaskResult], folder: Path) -> None:
    assert [found[number].reason for number in (0, 2)] == ["ValueError: said 0", "not like this"]
    assert [found[number].reason for number in (1, 3, 5)] == [None] * 3
    assert found[4].reason is not None and found[4].value is None
    assert [count(folder / "begun", number) for number in range(4)] == [2, 1, 1, 2], "what may pass is tried twice"


def test_ctrl_c_is_no_result(tmp_path: Path) -> None:
    def interrupt(task: int, shared: None) -> None:
        raise KeyboardInterrupt

    with open_pool(None, workers=1) as pool, pytest.raises(KeyboardInterrupt):
        next(pool.run(interrupt, [1]))


@pytest.mark.parametrize("workers", [0, -2])
def test_there_is_at_least_one_worker(workers: int) -> None:
    with (
        pytest.raises(SettingsError, match=f"workers must be at least 1; found {workers}"),
        open_pool(None, workers=workers),
    ):
        pass


@pytest.mark.parametrize(("workers", "tasks", "started"), [(2, 1, 1), (2, 9, 2), (3, None, 3)])
def test_where_there_may_be_two_workers_no_task_runs_in_this_process(
    monkeypatch: pytest.MonkeyPatch, workers: int, tasks: int | None, started: int
) -> None:
    """It might die of it; as many are started as have something to do."""
    asked: list[int] = []

    @contextmanager
    def start(count: int) -> Iterator[None]:
        asked.append(count)
        raise LookupError
        yield

    monkeypatch.setattr(dask_cluster, "local_cluster", start)
    with pytest.raises(LookupError), open_pool(None, workers=workers, tasks=tasks):
        pass
    assert asked == [started]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("a\n b\tc"), "ValueError: a b c"),
        (ValueError(), "ValueError: "),
        (SettingsError("of ours"), "of ours"),
    ],
)
def test_a_reason_is_one_line(error: Exception, said: str) -> None:
    assert describe(error) == said


LIGHT = """
import os, signal, sys
del os.sched_getaffinity, signal.pthread_sigmask  # as on macOS and on Windows
from topiarist.parallel import open_pool
from topiarist.threads import usable_cores
with open_pool("shared", workers=1) as pool:
    print([result.value for result in pool.run(lambda task, shared: (task, shared), [1])], usable_cores() > 0)
print({"dask", "distributed"} & set(sys.modules))
"""


@pytest.mark.slow
def test_in_process_dask_is_not_loaded_and_any_system_will_do() -> None:
    found = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, check=True).stdout
    assert found == "[(1, 'shared')] True\nset()\n"


class Cluster:
    """Answers for a cluster that it is not."""

    def __init__(self, workers: list[dict[str, str | None]]) -> None:
        ours = {"torch": "2.13.0", "topiarist": "0.1.0"}
        self.found = {
            "client": {"packages": ours},
            "workers": {f"tcp://worker{number}": {"packages": {**ours, **w}} for number, w in enumerate(workers)},
        }

    def get_versions(self, *, packages: list[str]) -> dict[str, Any]:
        assert set(packages) == {"torch", "topiarist"}
        return self.found


def test_workers_that_have_what_we_have_are_taken_without_a_word() -> None:
    check_versions(Cluster([{}, {}]))


@pytest.mark.parametrize("package", ["torch", "topiarist"])
def test_a_worker_without_a_package_is_refused(package: str) -> None:
    with pytest.raises(SettingsError, match=f"the worker at tcp://worker1 has no {package}: install it there"):
        check_versions(Cluster([{}, {package: None}]))


def test_a_worker_with_another_version_is_warned_of() -> None:
    with pytest.warns(TopiaristWarning, match=r"tcp://worker0 has torch 2\.12\.0, this machine 2\.13\.0"):
        check_versions(Cluster([{"torch": "2.12.0"}]))


@pytest.mark.slow
@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "127.0.0.1:1"])
def test_nobody_at_an_address_is_one_line(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_cluster, "PATIENCE", "0.3s")
    expected = pytest.raises(SettingsError, match=f"no Dask scheduler answers at {address}: ")
    with expected as caught, open_pool(None, cluster=address):
        pass
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    ["", "nonsense", "tcp://", "127.0.0.1", "host:port", "abacus://127.0.0.1:1", "tcp://a b:1"],
)
def test_what_is_no_address_is_one_line(address: str) -> None:
    """Before Dask sees it: a client that cannot begin would hold up the end of the process."""
    expected = pytest.raises(SettingsError, match=f"looks like tcp://host:8786 or tls://host:8786; found '{address}'")
    with expected as caught, open_pool(None, cluster=address):
        pass
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Pool, Path]]:
    """Yield two worker processes and the folder in which they write down what they do.

    As where another cluster has Dask's usual port; nothing is said about it.
    """
    folder = tmp_path_factory.mktemp("pool")
    with socket.socket() as taken:
        with suppress(OSError):  # somebody else has it: as good
            taken.bind(("127.0.0.1", 8787))
            taken.listen()
        with open_pool(Luggage(folder, size=10**7), workers=2) as pool:
            yield pool, folder


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:the cluster has no workers left")  # it may seem so while both are started anew
def test_two_workers(together: tuple[Pool, Path]) -> None:
    pool, folder = together
    assert pool.workers == 2
    found = outcomes(pool, [("slow", number) for number in range(8)])
    assert all(finished.reason is None for finished in found.values())
    processes = {finished.value["process"] for finished in found.values()}
    assert len(processes) == 2 and os.getpid() not in processes
    assert {finished.value["threads"] for finished in found.values()} == {1}
    assert {finished.value["size"] for finished in found.values()} == {10**7}
    assert [finished.value["number"] for _, finished in sorted(found.items())] == list(range(8))
    order = [int(line) for line in lines(folder / "begun")]
    assert len(order) == 8 and all(abs(place - number) <= 1 for place, number in enumerate(order)), "in their order"
    unpacked = lines(folder / "unpacked")
    assert sorted(unpacked) == sorted(str(process) for process in processes), "data travel once to each worker"

    (folder / "begun").unlink()
    kinds = ["raises", "fine", "refuses", "raises once", "cannot travel", "fine"]
    check_failures(outcomes(pool, [(kind, number) for number, kind in enumerate(kinds)]), folder)
    assert lines(folder / "unpacked") == unpacked

    (folder / "begun").unlink()
    kinds = ["dies", "dies once", *["slow"] * 6]
    found = outcomes(pool, [(kind, number) for number, kind in enumerate(kinds)])
    assert found[0].reason == "every worker that took this died (killed, or out of memory)"
    assert [found[number].reason for number in range(1, 8)] == [None] * 7
    assert count(folder / "begun", 0) == dask_cluster.DEATHS and count(folder / "begun", 1) == 2
    unpacked = lines(folder / "unpacked")
    assert len(set(unpacked)) == len(unpacked) <= 2 + 3, "once also to those that take the place of the dead"

    (folder / "begun").unlink()
    running = pool.run(act, [("slow", 0), *[("slow", number) for number in range(1, 30)]])
    assert next(running).reason is None
    running.close()  # type: ignore[attr-defined]  # a generator
    begun = len(lines(folder / "begun"))
    assert begun < 10
    time.sleep(0.5)
    assert len(lines(folder / "begun")) <= begun + 2, "what waits when the caller leaves is not begun"
    assert outcomes(pool, [("fine", 0)])[0].value["number"] == 0


@pytest.mark.slow
def test_nobody_outside_this_machine_is_listened_to(together: tuple[Pool, Path]) -> None:
    psutil: Any = importlib.import_module("psutil")
    me = psutil.Process()
    family = [me, *me.children(recursive=True)]
    heard = {found.laddr.ip for process in family for found in process.net_connections() if found.status == "LISTEN"}
    assert heard == {"127.0.0.1"}


def test_another_user_of_the_machine_cannot_reach_the_workers(tmp_path: Path) -> None:
    from distributed import Client
    from distributed.security import Security

    with dask_cluster.local_cluster(1) as client:
        address = client.scheduler.address
        assert address.startswith("tls://127.0.0.1:") and client.submit(sum, [1, 2]).result() == 3
        foreign = (None, "tcp://"), (Security.temporary(), "tls://")
        for security, protocol in foreign:
            place = f"{protocol}{address.partition('://')[2]}"
            with pytest.raises((OSError, TimeoutError)), Client(place, security=security, timeout="3s"):
                pass
        assert client.submit(sum, [3, 4]).result() == 7


def test_tls_without_certificates_is_one_line() -> None:
    expected = pytest.raises(SettingsError, match="needs certificates: name them in Dask's configuration")
    with expected, open_pool(None, cluster="tls://127.0.0.1:1"):
        pass
