"""The command line as a user meets it: in this process where time counts, the installed command where it matters."""

import io
import subprocess
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest import mock

import numpy
import pytest

from topiarist.cli import main
from topiarist.errors import TopiaristWarning

Run = Callable[..., tuple[int, str, str]]


def invoke(*arguments: object) -> tuple[int, str, str]:
    """Run a command in this process and return exit code, standard output and standard error."""
    out, err = io.StringIO(), io.StringIO()
    words = ["topiarist", *map(str, arguments)]
    with warnings.catch_warnings(), mock.patch.object(sys, "argv", words), redirect_stdout(out), redirect_stderr(err):
        warnings.simplefilter("default", TopiaristWarning)
        with pytest.raises(SystemExit) as stop:
            main()
    assert isinstance(stop.value.code, int)
    return stop.value.code, out.getvalue(), err.getvalue()


def invoke_installed(*arguments: object) -> tuple[int, str, str]:
    """Run the installed command in a process of its own."""
    script = Path(sys.executable).with_name("topiarist")
    done = subprocess.run([script, *map(str, arguments)], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="session")
def command() -> Run:
    return invoke


@pytest.fixture(scope="session")
def installed() -> Run:
    return invoke_installed


@pytest.fixture(scope="session")
def digits_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a network for digits, with dropout, trained for a moment."""
    path = tmp_path_factory.mktemp("models") / "digits.safetensors"
    code, _, err = invoke("train", "digits", "--hidden", 16, "--epochs", 3, "--dropout", 0.2, "--out", path)
    assert (code, err) == (0, "")
    return path


@pytest.fixture(scope="session")
def flowers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a table with numbers, text and gaps, in which length and colour tell the kind."""
    random = numpy.random.default_rng(0)
    lines = ["length,colour,height,kind"]
    for number in range(150):
        kind = ("lily", "rose", "tulip")[number % 3]
        length = "" if number % 17 == 0 else f"{random.normal(5 + 4 * (number % 3)):.2f}"
        colour = "" if number % 19 == 0 else {"lily": "white", "rose": "red", "tulip": "yellow"}[kind]
        lines.append(f"{length},{colour},{random.normal():.2f},{kind}")
    path = tmp_path_factory.mktemp("tables") / "flowers.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def flowers_model(flowers: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a network for the flowers."""
    path = tmp_path_factory.mktemp("models") / "flowers.safetensors"
    words = ("--target", "kind", "--hidden", 16, "--epochs", 60, "--lr", 0.01, "--out", path)
    code, _, err = invoke("train", flowers, *words)
    assert (code, err) == (0, "")
    return path
