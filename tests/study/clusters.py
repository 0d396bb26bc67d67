"""A Dask scheduler and workers as processes of their own, on the loopback."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.study.studies import until

ROOT = Path(__file__).parents[2]


@dataclass
class Cluster:
    """Processes that know one another by an address."""

    folder: Path
    address: str = ""
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self, module: str, *words: object) -> subprocess.Popen[bytes]:
        """Start one more process."""
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])  # this tree, whatever else is installed
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
        with (self.folder / f"{module}-{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{module}", *map(str, words)],
                cwd=self.folder,
                env=environment,
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker that nobody looks after."""
        return self.start("dask_worker", self.address, "--no-nanny", "--nthreads", 1, "--no-dashboard")


@contextmanager
def running_cluster(folder: Path) -> Iterator[Cluster]:
    """Start a scheduler; it and its workers end with the block."""
    cluster, place = Cluster(folder), folder / "scheduler.json"
    try:
        words = ("--host", "127.0.0.1", "--port", 0, "--dashboard-address", "127.0.0.1:0")
        cluster.start("dask_scheduler", *words, "--scheduler-file", place)
        until(lambda: place.exists() and bool(place.read_text().strip()))
        cluster.address = json.loads(place.read_text())["address"]
        yield cluster
    finally:
        for process in reversed(cluster.processes):
            process.kill()
        for process in cluster.processes:
            process.wait(timeout=10)
