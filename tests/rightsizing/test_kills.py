"""`topiarist rightsize` killed with -9: the same command resumes, and delivers the same bits, whole or not at all."""

import time
from pathlib import Path

import pytest

from tests.rightsizing.tasks import plan_little
from tests.study import drivers

pytestmark = pytest.mark.slow
WORDS = ("rightsize", "iris", "--methods", "distinctiveness", "--max-drop", 0.2, "--no-onnx", "--out")
FILES = {"model.safetensors", "baseline.safetensors", "result.json", "report.html"}
SECONDS = 240


def networks(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.safetensors")}


def completed(folder: Path, *words: object) -> tuple[int, str]:
    """Run the command to its end; return its exit code and what it said."""
    with drivers.driver(folder, *WORDS, *words, prepare=plan_little) as started:
        started.process.join(SECONDS)
        code, _, said = started.end()
    return code, said


def kill_at_stage(folder: Path, stages: int) -> bool:
    """Run the command until so many stages are there, and kill it; return whether it was killed."""
    work = folder / "out.work"
    with drivers.driver(folder, *WORDS, "out", prepare=plan_little) as started:
        begun = time.monotonic()
        while started.running and time.monotonic() - begun < SECONDS:
            if len(list(work.glob("*.safetensors"))) >= stages:
                assert not (folder / "out").exists() or (folder / "out" / "result.json").exists()
                return True
            time.sleep(0.01)
    return False


def test_killed_after_any_stage_the_same_command_delivers_the_same_bits(tmp_path: Path) -> None:
    code, said = completed(tmp_path, "undisturbed")
    assert code == 0, said
    killed = sum(kill_at_stage(tmp_path, stages) for stages in (0, 1, 2, 3))
    assert killed >= 3 and not (tmp_path / "out").exists() and (tmp_path / "out.work").is_dir()
    code, said = completed(tmp_path, "out")
    assert code == 0, said
    delivered, undisturbed = ({path.name for path in (tmp_path / name).iterdir()} for name in ("out", "undisturbed"))
    assert said.count("resuming: ") == 1 and "finished stages in" in said
    assert delivered == undisturbed and delivered - {"linear.safetensors"} == FILES  # a linear network may be as good
    assert networks(tmp_path / "out") == networks(tmp_path / "undisturbed")
    assert not (tmp_path / "out.work").exists()


def test_another_command_does_not_take_up_the_work(tmp_path: Path) -> None:
    assert kill_at_stage(tmp_path, 1)
    code, said = completed(tmp_path, "out", "--seed", 1)
    assert code == 2 and "holds the unfinished work of another rightsizing (other data, network, settings)" in said
    assert said.strip().count("\n") <= 1
