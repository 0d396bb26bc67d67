"""What commands and imports load: torch, pandas and their like only where they are used."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import invoke

pytestmark = pytest.mark.slow

NO_TORCH = ("torch", "distributed", "matplotlib", "sklearn")
STUDY = 'data = "iris"\nfolds = 2\ntraining.epochs = 1\ngrid.model.hidden = [[5], [4]]\n'


def loaded_by(code: str, names: tuple[str, ...]) -> list[str]:
    """Return which of some modules a program loads."""
    watched = (
        f"import sys\ntry:\n    {code}\nfinally:\n    print(sorted({set(names)} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", watched], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = done.stderr.strip().splitlines()[-1]
    return [name for name in names if repr(name) in found]


def loaded_by_command(words: tuple[str, ...], names: tuple[str, ...]) -> list[str]:
    return loaded_by(f"sys.argv = {['topiarist', *words]}; from topiarist.cli import main; main()", names)


def test_showing_a_table_loads_no_torch() -> None:
    assert loaded_by_command(("data", "show", "iris"), NO_TORCH) == []


def test_showing_arrays_loads_no_pandas_either() -> None:
    assert loaded_by_command(("data", "show", "digits"), (*NO_TORCH, "pandas")) == []


def test_the_list_of_commands_loads_nothing() -> None:
    assert loaded_by_command(("--help",), (*NO_TORCH, "pandas", "numpy", "pydantic")) == []


def test_training_on_arrays_loads_torch_and_little_more() -> None:
    words = ("train", "digits", "--epochs", "1", "--hidden", "4")
    assert loaded_by_command(words, (*NO_TORCH, "pandas", "dask")) == ["torch"]


@pytest.mark.parametrize(("names", "allowed"), [("Budget, load_data", []), ("resize, train, rightsize", ["torch"])])
def test_public_names_load_no_more_than_they_need(names: str, allowed: list[str]) -> None:
    assert loaded_by(f"from topiarist import {names}", (*NO_TORCH, "pandas", "dask")) == allowed


def test_looking_at_a_study_loads_no_torch(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(STUDY)
    assert invoke("study", "run", tmp_path / "s.toml", "--workers", 1)[0] == 0
    for command in ("status", "results"):
        assert loaded_by_command(("study", command, str(tmp_path / "s")), NO_TORCH) == []
