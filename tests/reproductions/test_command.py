"""The options of `topiarist reproduce`: derived from settings, refused by their names, and shown without torch."""

import subprocess
import sys
from pathlib import Path

import pytest

from topiarist.cli import main

OUT = "never-written"


def refusal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], line: str) -> str:
    """Return the one line with which a call is refused."""
    monkeypatch.setattr(sys, "argv", ["topiarist", "reproduce", *line.split(), "--out", OUT])
    with pytest.raises(SystemExit) as stop:
        main()
    said = capsys.readouterr()
    assert stop.value.code == 2 and said.out == "" and said.err.count("\n") == 1
    return said.err


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("faces --align", "--align belongs to a folder of images: name it with --data"),
        ("faces --augment 2 --target mood", "--augment and --target belong to a folder of images"),
        ("faces --augment=-1", "--augment must be greater than or equal to 0; found -1"),
        ("faces --missing some", "'some' is not one of 'whole', 'skip'"),
        ("scenes --runs 0", "--runs must be greater than or equal to 1; found 0"),
        ("scenes --epochs 0", "--epochs must be greater than or equal to 1; found 0"),
        ("scenes --folds 1", "--folds must be greater than or equal to 2; found 1"),
        ("scenes --vgg-members=-1", "--vgg-members must be greater than or equal to 0; found -1"),
        ("scenes --prune-from=-1", "--prune-from must be greater than or equal to 0; found -1"),
        ("surgeon --topology small,huge", "no topology 'huge'; there are small, medium, large"),
        ("surgeon --samples 1", "--samples must be greater than or equal to 2; found 1"),
    ],
)
def test_a_bad_option_is_refused_by_its_name(
    line: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert message in refusal(monkeypatch, capsys, line)
    assert not (tmp_path / OUT).exists()


@pytest.mark.slow
def test_help_needs_no_torch() -> None:
    program = "import sys, topiarist.cli.reproduce; print('torch' in sys.modules, 'pandas' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["False", "False"]
