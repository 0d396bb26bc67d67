"""A study on a Dask scheduler and two worker processes of their own."""

import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.study.clusters import running_cluster
from tests.study.networks import by_code
from tests.study.studies import check_whole, outcome, rows
from tests.study.tasks import lines
from topiarist.errors import SettingsError
from topiarist.parallel import dask_cluster
from topiarist.study.ledger import StudyProgress
from topiarist.study.study import Study


@pytest.mark.slow
@pytest.mark.usefixtures("all_steps")  # as in other processes
def test_a_cluster_gives_what_one_worker_gives_and_a_worker_that_is_killed_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    declared: dict[str, Any] = {
        "data": "iris",
        "training": {"epochs": 1},
        "variants": [
            {"name": "stacked", "model.hidden": [4, 3]},
            {"name": "slow", "model": by_code(width=3, pause=0.05, log=str(log))},
            {"name": "fails", "model": by_code(kind="fails")},
        ],
        "methods": [{}, {"name": "distinctiveness", "keep_fraction": 0.5}],
        "seeds": 4,
    }
    Study(**declared).run(tmp_path / "alone")
    log.unlink()
    with running_cluster(tmp_path) as cluster:
        with monkeypatch.context() as patch:
            patch.setattr(dask_cluster, "PATIENCE", "0.5s")
            with pytest.raises(SettingsError, match=f"the scheduler at {cluster.address} has no workers: start some"):
                Study(**declared).run(tmp_path / "none", cluster=cluster.address)
        assert {row["state"] for row in rows(tmp_path / "none")} == {"waiting"}

        workers = {str(worker.pid): worker for worker in (cluster.add_worker(), cluster.add_worker())}
        seen: list[StudyProgress] = []
        killed: list[subprocess.Popen[bytes]] = []

        def kill_the_worker_that_trains(progress: StudyProgress) -> None:
            seen.append(progress)
            begun = lines(log)
            if begun and len(killed) == 0:
                killed.append(workers[begun[-1].split()[1]])
                killed[0].kill()
                killed[0].wait(timeout=10)

        Study(**declared).run(tmp_path / "both", cluster=cluster.address, on_progress=kill_the_worker_that_trains)
        assert sum(worker.poll() is None for worker in workers.values()) == 1

    check_whole(tmp_path / "both")
    assert outcome(tmp_path / "both") == outcome(tmp_path / "alone")
    assert {row["machine"] for row in rows(tmp_path / "both")} >= {rows(tmp_path / "alone")[0]["machine"]}
    assert (seen[-1].done, seen[-1].failed) == (16, 8)
    with sqlite3.connect(tmp_path / "both" / "ledger.sqlite") as connection:
        (driver,) = connection.execute("SELECT value FROM study WHERE key = 'driver'").fetchone()
    assert '"workers":' in driver
