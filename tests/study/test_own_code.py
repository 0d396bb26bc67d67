"""Code of a study runs where the user said so: made for studies, in a ledger that was begun here, or allowed."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import invoke
from topiarist.errors import SettingsError
from topiarist.study.study import Study

HUB = """
data = "iris"
[training]
epochs = 1
[model]
code = "torch.hub:load"
[model.options]
repo_or_dir = "{place}"
model = "make"
source = "local"
trust_repo = true
"""
OWN = """
import pathlib
from topiarist.models import mlp
pathlib.Path("ran").touch()
def make(input_shape, classes):
    return mlp([4, 5, classes])
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOPIARIST_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_a_study_file_does_not_run_a_file_of_its_own_choice_through_a_library(here: Path) -> None:
    (here / "strange").mkdir()
    touched = f"import pathlib\npathlib.Path({str(here / 'ran')!r}).touch()\ndef make(**_): ...\n"
    (here / "strange" / "hubconf.py").write_text(touched)
    (here / "s.toml").write_text(HUB.format(place=here / "strange"))
    code, out, err = invoke("study", "run", "s.toml")
    assert (code, out, err.count("\n")) == (2, "", 1) and "torch.hub:load" in err and "--allow-code" in err
    assert not (here / "ran").exists() and not (here / "s").exists()
    invoke("study", "run", "s.toml", "--allow-code")
    assert (here / "ran").exists()


@pytest.mark.parametrize("code", ["subprocess:run", "os:system", "torch:load", "torch.jit:load", "builtins:exec"])
def test_functions_of_libraries_are_not_made_for_studies(here: Path, code: str) -> None:
    (here / "s.toml").write_text(f'data = "iris"\nmodel.code = "{code}"\n')
    with pytest.raises(SettingsError, match=f"{code}, that is not made to build networks for studies"):
        Study.from_file("s.toml")


def test_a_copied_ledger_runs_no_code_unless_allowed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / "own_code_of_a_test.py").write_text(OWN)
    (here / "s.toml").write_text('data = "iris"\ntraining.epochs = 1\nmodel.code = "own_code_of_a_test:make"\n')
    assert invoke("study", "run", "s.toml", "--workers", 1)[0] == 0
    assert invoke("study", "resume", "s")[0] == 0
    shutil.copytree("s", "copy")
    refused = "begun elsewhere, by another user or in another folder, and runs code (own_code_of_a_test:make)"
    code, out, err = invoke("study", "resume", "copy")
    assert (code, out, err.count("\n")) == (2, "", 1) and refused in err and "--allow-code" in err
    assert invoke("study", "resume", "copy", "--allow-code")[0] == 0
    assert invoke("study", "status", "copy")[0] == 0 and invoke("study", "results", "copy")[0] == 0
    monkeypatch.setenv("TOPIARIST_CACHE", str(here / "of another user"))
    code, _, err = invoke("study", "resume", "s")
    assert code == 2 and refused in err
    assert sys.platform == "win32" or (here / "cache" / "origin.key").stat().st_mode & 0o777 == 0o600


def test_a_copied_ledger_without_code_is_resumed(here: Path) -> None:
    (here / "s.toml").write_text('data = "iris"\ntraining.epochs = 1\n')
    assert invoke("study", "run", "s.toml", "--workers", 1)[0] == 0
    shutil.copytree("s", "copy")
    assert invoke("study", "resume", "copy")[0] == 0
