"""Outputs: what is no regular file is refused and stays, links are followed, nothing that is read is written over.

Each call names data that are not there: where the place of the output is what is refused, it was looked at first.
"""

import os
import shlex
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Run

FILES = [
    "train absent.csv --out {out}.safetensors",
    "resize distinctiveness absent.safetensors absent.csv --out {out}.safetensors",
    "resize surgeon absent.safetensors absent.csv --out {out}.safetensors",
    "predict absent.safetensors absent.csv --out {out}.csv",
    "export absent.safetensors --onnx {out}.onnx",
    "export absent.safetensors --torch {out}.pt2",
    "study results absent --format csv --out {out}.csv",
    "data sounds absent --out {out}.npz",
]
FOLDERS = [
    "rightsize absent.csv --out {out}",
    "report absent.json --out {out}",
    "reproduce practices --data absent.csv --out {out}",
    "reproduce faces --data absent.xlsx --out {out}",
    "reproduce scenes --data absent --out {out}",
    "reproduce surgeon --data SVHN=absent --out {out}",
]
KINDS = {"pipe": "a pipe", "socket": "a socket", "device": "a device", "folder": "a folder"}


def ending_of(call: str) -> str:
    return call.rpartition("{out}")[2]


@pytest.fixture
def near(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder that is the current one: sockets need short names."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def make(kind: str, place: Path) -> None:
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as opened:
            opened.bind(place.name)
    elif kind == "folder":
        place.mkdir()
    else:
        try:
            os.mknod(place, stat.S_IFCHR | 0o600, os.makedev(1, 3))  # a null device, in the test's own folder
        except PermissionError:
            pytest.skip("only root makes devices")


def refused(run: Run, call: str, said: str) -> None:
    code, out, err = run(*shlex.split(call))
    assert (code, out) == (2, ""), err
    assert err.startswith("topiarist: ") and err.count("\n") == 1 and said in err, err


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", FILES)
def test_only_a_regular_file_is_written(command: Run, near: Path, call: str, kind: str) -> None:
    place = near / f"o{ending_of(call)}"
    make(kind, place)
    mode = place.stat().st_mode
    refused(command, call.format(out="o"), f"it is {KINDS[kind]}; name a file")
    assert place.stat().st_mode == mode and names(near) == [place.name]


@pytest.mark.parametrize("call", FILES)
def test_a_file_without_permission_to_write_is_refused_also_for_root(command: Run, near: Path, call: str) -> None:
    place = near / f"o{ending_of(call)}"
    place.write_text("mine")
    place.chmod(0o444)
    refused(command, call.format(out="o"), "the file is read-only")
    assert place.read_text() == "mine" and names(near) == [place.name]


@pytest.mark.parametrize("call", FILES)
@pytest.mark.parametrize(("name", "said"), [("absent/o", "there is no folder"), ("n" * 300, "File name too long")])
def test_a_place_that_cannot_be_is_refused_before_the_work(
    command: Run, near: Path, call: str, name: str, said: str
) -> None:
    refused(command, call.format(out=name), said)
    assert names(near) == []


@pytest.mark.parametrize("call", FILES)
def test_a_folder_without_permission_to_write_is_refused_also_for_root(command: Run, near: Path, call: str) -> None:
    (near / "closed").mkdir(mode=0o555)
    refused(command, call.format(out="closed/o"), "cannot be written to")
    assert names(near / "closed") == []


@pytest.mark.parametrize("call", FOLDERS)
def test_a_folder_of_results_is_a_folder(command: Run, near: Path, call: str) -> None:
    (near / "o").write_text("mine")
    refused(command, call.format(out="o"), "o is a file")
    refused(command, call.format(out="o/below"), "o is a file")
    os.mkfifo(near / "pipe")
    refused(command, call.format(out="pipe"), "pipe is a pipe")
    (near / "closed").mkdir(mode=0o555)
    refused(command, call.format(out="closed/results"), "closed cannot be written to")
    refused(command, call.format(out="n" * 300), "File name too long")
    assert (near / "o").read_text() == "mine" and names(near) == ["closed", "o", "pipe"]


@pytest.mark.parametrize("call", FOLDERS)
def test_files_of_a_folder_of_results_are_looked_at_before_the_work(command: Run, near: Path, call: str) -> None:
    page = near / ("index.html" if call.startswith("reproduce") else "report.html")
    os.mkfifo(page)
    refused(command, call.format(out="."), f"{page.name}: it is a pipe")
    assert stat.S_ISFIFO(page.stat().st_mode)


@pytest.mark.parametrize(
    "call",
    [
        "predict m.safetensors d.csv --out m.safetensors",
        "predict m.safetensors d.csv --out ./d.csv",
        "predict m.safetensors d.csv --out other/../m.safetensors",
        "predict m.safetensors d.csv --out link",
        "predict m.safetensors d.csv --out hard.csv",
        "predict m.safetensors images --out images/a/1.png",
        "train d.csv --base m.safetensors --out m.safetensors",
        "resize distinctiveness m.safetensors d.csv --out m.safetensors",
        "export m.safetensors d.onnx --onnx d.onnx",
        "report report.html --out .",
        "report d.csv comparison.html",
    ],
)
def test_what_is_read_is_never_written_over(command: Run, near: Path, call: str) -> None:
    (near / "images" / "a").mkdir(parents=True)
    (near / "other").mkdir()
    for name in ("m.safetensors", "d.csv", "d.onnx", "report.html", "comparison.html", "images/a/1.png"):
        (near / name).write_text("mine")
    (near / "link").symlink_to("m.safetensors")
    (near / "hard.csv").hardlink_to(near / "d.csv")
    refused(command, call, "read too")
    assert {path.read_text() for path in near.rglob("*") if path.is_file()} == {"mine"}


def test_a_link_is_followed(command: Run, flowers: Path, flowers_model: Path, near: Path) -> None:
    (near / "elsewhere").mkdir()
    (near / "elsewhere" / "real.csv").write_text("old")
    (near / "elsewhere" / "real.csv").chmod(0o640)
    (near / "link.csv").symlink_to("elsewhere/real.csv")
    (near / "hanging.csv").symlink_to("elsewhere/new.csv")
    for name in ("link.csv", "hanging.csv"):
        code, _, err = command("predict", flowers_model, flowers, "--out", name)
        assert (code, err) == (0, "") and (near / name).is_symlink()
    made = (near / "elsewhere" / "real.csv").read_text()
    assert made.startswith("prediction,") and (near / "elsewhere" / "new.csv").read_text() == made
    assert (near / "elsewhere" / "real.csv").stat().st_mode & 0o777 == 0o640
    (near / "circle.csv").symlink_to("circle.csv")
    refused(command, f"predict {flowers_model} {flowers} --out circle.csv", "its links lead in a circle")


def test_a_table_of_a_study_needs_a_form_to_be_written(command: Run, near: Path) -> None:
    refused(command, "study results absent --out t.csv", "name its form with --format")


@pytest.mark.parametrize("name", ["ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-journal", "lock"])
def test_a_pipe_in_the_folder_of_a_study_stays(command: Run, near: Path, name: str) -> None:
    (near / "s.toml").write_text('data = "absent"\n')
    (near / "s").mkdir()
    os.mkfifo(near / "s" / name)
    refused(command, "study run s.toml", f"{name}: it is a pipe")
    assert stat.S_ISFIFO((near / "s" / name).stat().st_mode) and names(near / "s") == [name]


def test_a_file_in_the_place_of_a_folder_of_a_study_shows_before_the_work(command: Run, near: Path) -> None:
    (near / "s.toml").write_text('data = "absent"\n')
    (near / "s").mkdir()
    (near / "s" / "histories").write_text("mine")
    refused(command, "study run s.toml", "a folder is needed")


def test_a_study_that_is_read_has_no_pipe_beside_its_ledger(command: Run, near: Path) -> None:
    (near / "s").mkdir()
    (near / "s" / "ledger.sqlite").write_text("no database, " * 100)
    refused(command, "study status s", "file is not a database")
    os.mkfifo(near / "s" / "ledger.sqlite-wal")
    refused(command, "study status s", "ledger.sqlite-wal: it is a pipe")


def test_results_are_not_written_over_what_a_study_keeps(command: Run, near: Path) -> None:
    (near / "s").mkdir()
    for name in ("ledger.sqlite", "ledger.sqlite-wal", "lock"):
        (near / "s" / name).write_text("mine")
        refused(command, f"study results s --format csv --out s/{name}", "read too")
