"""What all commands have in common: help, version, interruptions, light start."""

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import numpy
import pytest

import topiarist
from topiarist.methods import registered

Run = Callable[..., tuple[int, str, str]]
COMMANDS = [
    *("rightsize", "train", "anatomy", "recommend", "measure", "predict", "export", "report", "doctor"),
    *("study run", "study resume", "study status", "study results"),
    *("data list", "data get", "data show", "data sounds"),
]
METHODS = [f"resize {name}" for name in registered()]


@pytest.mark.slow
@pytest.mark.parametrize("words", [*COMMANDS, *METHODS])
def test_help_has_an_example_that_calls_the_command(command: Run, words: str) -> None:
    code, out, err = command(*words.split(), "--help")
    assert (code, err) == (0, "")
    assert f"Example: topiarist {words} " in " ".join(out.split()) + " "


def test_help_lists_the_commands(command: Run) -> None:
    code, out, _ = command("--help")
    assert code == 0
    assert all(words.split()[0] in out for words in COMMANDS)


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("topiarist re", ["resize", "recommend", "report", "reproduce"]),
        ("topiarist rightsize --max-m", ["--max-memory", "--max-macs"]),
        ("topiarist study re", ["resume", "results"]),
        ("topiarist resize distinctiveness --ke", ["--keep"]),
    ],
)
def test_a_shell_completes_commands_and_their_options(
    command: Run, monkeypatch: pytest.MonkeyPatch, typed: str, expected: list[str]
) -> None:
    monkeypatch.setenv("_TOPIARIST_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
    assert command() == (0, "\n".join(expected) + "\n", "")


def test_version(command: Run) -> None:
    assert command("--version") == (0, f"{topiarist.__version__}\n", "")


@pytest.mark.parametrize(("words", "where"), [((), "topiarist"), (("data",), "topiarist data")])
def test_without_a_command_help_is_shown(command: Run, words: tuple[str, ...], where: str) -> None:
    code, out, err = command(*words)
    assert (code, err) == (2, f"topiarist: Missing command. (see: {where} --help)\n")
    assert "Usage" in out


@pytest.mark.slow
def test_help_imports_nothing_heavy() -> None:
    """One process shows all of it: what one command loads would still be there after the next."""
    heavy = {"torch", "pandas", "numpy", "sklearn", "scipy"}
    calls = [[], *(words.split() for words in COMMANDS)]
    code = f"""
import sys
from topiarist.cli import main
for words in {calls}:
    sys.argv = ["topiarist", *words, "--help"]
    try:
        main()
    except SystemExit as ended:
        # typer itself checks the words of a command with pydantic
        found = {heavy} | (set() if words else {{"pydantic"}})
        print(words, ended.code, sorted(found & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines() == [f"{words} 0 []" for words in calls]
    assert done.stdout.count("Usage") == len(calls)


def interrupted(*_: Any, **__: Any) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("topiarist.features.described.load_described", "interrupted: run the same command again"),
        ("topiarist.training.rescue.train_with_rescue", "interrupted: nothing was written"),
    ],
)
def test_an_interruption_is_one_line(command: Run, monkeypatch: pytest.MonkeyPatch, place: str, said: str) -> None:
    monkeypatch.setattr(place, interrupted)
    assert command("train", "iris", "--epochs", 1) == (130, "", f"topiarist: {said}\n")


def test_an_interruption_while_python_imports_is_one_line(command: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topiarist.cli.program.run", interrupted)
    assert command("train", "iris") == (130, "", "topiarist: interrupted: run the same command again\n")


@pytest.mark.slow
def test_the_installed_command_is_the_same(command: Run, installed: Run) -> None:
    for words in (("--version",), ("train", "iris", "--epoch", "x")):
        assert installed(*words) == command(*words)


def failing(error: Exception) -> Callable[..., NoReturn]:
    def fail(*_: Any, **__: Any) -> NoReturn:
        raise error

    return fail


def test_what_nobody_thought_of_is_one_line_that_names_the_traceback(
    command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("topiarist.features.described.load_described", failing(KeyError("a\n\x1bb")))
    code, out, err = command("train", "iris")
    assert (code, out, err.count("\n")) == (70, "", 1) and "KeyError" in err and "\x1b" not in err
    (written,) = tmp_path.iterdir()
    assert str(written) in err
    assert "Traceback" in written.read_text() and "in fail" in written.read_text()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MemoryError(), "the memory of this machine does not suffice"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to"), "the memory of this machine"),
        (OSError(36, "File name too long", "nnn"), "cannot use nnn: File name too long"),
        (OSError(28, "No space left on device"), "cannot use its input or output: No space left on device"),
    ],
)
def test_what_the_machine_refuses_is_one_line(
    command: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, said: str
) -> None:
    monkeypatch.setattr("topiarist.features.described.load_described", failing(error))
    code, out, err = command("train", "iris")
    assert (code, out, err.count("\n")) == (2, "", 1) and said in err


STREAMS = """
import os, resource, sys
from unittest import mock
import topiarist.cli.data
from topiarist.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
with mock.patch.object(sys, "argv", ["topiarist", *sys.argv[1:]]):
    main()
"""


@pytest.mark.parametrize(
    ("call", "streams", "code", "said"),
    [
        ("data list", "<&- >&- 2>&-", 0, ""),
        ("data show absent.csv", "2>&-", 2, ""),
        ("data list", "> full", 2, "topiarist: cannot use its input or output: File too large\n"),
        ("data list --json", "> full", 2, "topiarist: cannot use its input or output: File too large\n"),
        ("data show absent.csv", "2> full", 2, ""),
        ("--version", "> full", 2, "topiarist: cannot use its input or output: File too large\n"),
    ],
)
@pytest.mark.parametrize("buffered", [True, False])
def test_streams_that_are_closed_or_full(
    tmp_path: Path, call: str, streams: str, code: int, said: str, buffered: bool
) -> None:
    words = shlex.join([sys.executable, "-c", STREAMS, *call.split()])
    own = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"}
    how: dict[str, Any] = {"shell": True, "cwd": tmp_path, "env": own, "capture_output": True, "text": True}
    done = subprocess.run(f"{words} {streams}", check=False, **how)
    assert (done.returncode, done.stderr) == (code, said)


def test_letters_that_an_encoding_lacks_are_escaped() -> None:
    words = [sys.executable, "-c", "from topiarist.cli import main; main()", "train", "--help"]
    where = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(words, env=where, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "") and "COLUMN\\u2026" in done.stdout.replace(" ", "")


SHORT_OF_MEMORY = """
import resource, sys
import numpy, pandas
from topiarist.cli import main
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + 2**27, taken + 2**27))
sys.argv = ["topiarist", "data", "show", sys.argv[1]]
main()
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the address space is bounded on Linux only")
def test_data_that_do_not_fit_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "large.npz"
    numpy.savez_compressed(path, x=numpy.zeros((75_000, 1000), numpy.float32), y=numpy.arange(75_000) % 2)  # 300 MB
    done = subprocess.run(
        [sys.executable, "-c", SHORT_OF_MEMORY, str(path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("topiarist: the memory of this machine does not suffice")
