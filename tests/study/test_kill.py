"""`kill -9` of the driver at random moments: nothing recorded is lost or done again, and the end is the same."""

import signal
import time
from pathlib import Path

import numpy
import pytest

from tests.study.drivers import command, driver, no_orphans
from tests.study.studies import begun, check_whole, driven_by, outcome, until
from tests.study.tasks import lines

KILLS = 3
STUDY = """
data = "iris"
training.epochs = 2
stack = 3
seeds = 2
methods = [{ name = "none" }, { name = "distinctiveness", keep_fraction = 0.5 }]
grid."training.learning_rate" = [0.01, 0.02]

[[variants]]
name = "stacked"
model.hidden = [6, 5]

[[variants]]
name = "slow"
model = { code = "tests.study.networks:network", options = { pause = 0.04, log = "LOG" } }
"""  # 16 cells of 8 trainings: 2 stacks, and 4 that take 0.3 s each


@pytest.mark.slow
def test_kill_9_of_the_driver(tmp_path: Path) -> None:
    random, log = numpy.random.default_rng(4), tmp_path / "log"
    file, whole, out = tmp_path / "study.toml", tmp_path / "whole", tmp_path / "out"
    file.write_text(STUDY.replace("LOG", str(log)))
    assert command(tmp_path, "study", "run", file, "--workers", 1, "--out", whole)[0] == 0
    expected = outcome(whole)
    assert len(lines(log)) == 4
    log.unlink()

    words: tuple[object, ...] = ("study", "run", file, "--out", out)
    kept: dict[str, float] = {}
    for _ in range(KILLS):
        with driver(tmp_path, *words, "--workers", 1) as started:
            until(lambda: driven_by(out) == started.pid)
            time.sleep(random.uniform(0, 0.5))
            assert started.running, "too quick to be killed"
            started.send(signal.SIGKILL)
            assert started.end()[0] == -signal.SIGKILL
        check_whole(out)
        now = begun(out)
        assert {key: now[key] for key in kept} == kept, "what is recorded is never done again"
        assert {key: outcome(out)[key] for key in now} == {key: expected[key] for key in now}
        kept, words = now, ("study", "resume", out)
    assert command(tmp_path, *words, "--workers", 1)[0] == 0
    check_whole(out)
    assert outcome(out) == expected and {key: begun(out)[key] for key in kept} == kept
    assert 4 <= len(lines(log)) <= 4 + KILLS, "at most the training that was under way is begun again"
    assert no_orphans(tmp_path)
