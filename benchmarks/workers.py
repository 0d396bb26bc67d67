"""Rightsizing of a convolutional network with one worker, with two, and on a running cluster: same bits, and how fast.

`python -m benchmarks.workers FOLDER` with a folder of Fashion-MNIST's files. One and two workers take turns, round by
round, so that what else the machine does falls on both; what is said of speed is of the clock on the wall, which is of
use only where the load before each round is next to none: it is in the table. Then once on a scheduler with two workers
on loopback. The share of the work that one process does alone bounds what more workers can gain (Amdahl).
"""

import argparse
import hashlib
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from benchmarks.paging.records import Grid, Sheet
from benchmarks.paging.writing import stamp, write_results
from tests.study.clusters import running_cluster
from topiarist import load_data, rightsize
from topiarist.data import Data
from topiarist.rightsizing import EFFORTS, Rightsizing
from topiarist.rightsizing.planning import EffortName

IMAGES, ROUNDS = 2_000, 2
AIM = 1.6  # times faster, with two workers


class Convolutions(nn.Sequential):
    """A small network with convolutions, as a user would write it: there is work for several folds in it."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(32 * 7 * 7, 10),
        )


@dataclass(frozen=True)
class Run:
    """One rightsizing: who worked, what came out, and how long it took."""

    who: str
    digest: str
    chosen: str
    seconds: float
    here: float
    load: float
    stages: dict[str, float]


def digest_of(found: Rightsizing) -> str:
    """Return a hash of all networks that could be kept, and of what was found of each size."""
    digest = hashlib.sha256()
    for name, network in sorted(found.networks.items()):
        digest.update(name.encode())
        for key, value in network.state_dict().items():
            digest.update(key.encode() + value.contiguous().numpy().tobytes())
    for rung in found.record.decision.rungs:
        digest.update(f"{rung.ratio} {rung.score} {rung.p}".encode())
    return digest.hexdigest()[:16]


def run(who: str, data: Data, effort: EffortName, **where: Any) -> Run:
    """Rightsize once."""
    load, begun, own = os.getloadavg()[0], time.perf_counter(), time.process_time()
    found = rightsize(data, Convolutions, effort=effort, **where)
    seconds, here = time.perf_counter() - begun, time.process_time() - own
    stages = {name: each for name, each in found.record.seconds.items() if name != "total"}
    made = Run(who, digest_of(found), found.record.verdict.chosen, seconds, here, load, stages)
    print(made, flush=True)
    return made


def main() -> int:
    """Let one and two workers take turns, then a cluster; write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, default=IMAGES)
    parser.add_argument("--effort", choices=list(EFFORTS), default="normal")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    asked = parser.parse_args()
    data = load_data(str(asked.folder), samples=asked.images)
    runs = []
    for _ in range(asked.rounds):
        runs += [run("one worker", data, asked.effort, workers=1), run("two workers", data, asked.effort, workers=2)]
    with tempfile.TemporaryDirectory() as place, running_cluster(Path(place)) as cluster:
        cluster.add_worker()
        cluster.add_worker()
        runs.append(run("a scheduler and two workers", data, asked.effort, cluster=cluster.address))
    one, two = (
        statistics.median(each.seconds for each in runs if each.who == who) for who in ("one worker", "two workers")
    )
    alone = min(each.here for each in runs if each.who == "one worker")
    serial = min(each.here for each in runs if each.who == "two workers") / alone
    same = len({each.digest for each in runs}) == 1
    rows = tuple(
        (each.who, f"{each.seconds:.0f} s", f"{each.here:.0f} s", f"{each.load:.1f}", each.chosen, f"`{each.digest}`")
        for each in runs
    )
    head = ("who works", "wall", "processor, of this process", "load before", "chosen", "networks and tests")
    told = (
        f"{'The bits are the same in all runs.' if same else 'THE BITS DIFFER.'} Two workers are"
        f" {one / two:.2f} times as fast as one by the median of {asked.rounds} rounds; the aim is {AIM:g}."
        f" With two, this process itself takes {serial:.0%} of the processor time of all work."
    )
    command = (
        f"python -m benchmarks.workers FOLDER --images {asked.images} --effort {asked.effort} --rounds {asked.rounds}"
    )
    sheet = Sheet(**stamp(command), grids={"runs": Grid(head=head, rows=rows)}, notes={"findings": told})
    print(told, write_results("workers", sheet), sep="\n")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
