"""`topiarist data list`, `get` and `show`, for people and as JSON."""

import hashlib
import io
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import numpy
import pytest
from typer.testing import CliRunner

from topiarist.cli.data import BUNDLED, app, summarise
from topiarist.cli.data_output import preprocessing_line, progress_bar
from topiarist.data import Source
from topiarist.data.preparation import prepare
from topiarist.data.readers import bundled as bundled_sets
from topiarist.data.readers.catalogue import CATALOGUE, RemoteFile
from topiarist.data.readers.download import fetch
from topiarist.errors import DataError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TOPIARIST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def run_json(*arguments: str) -> dict[str, Any]:
    answer = json.loads(run(*arguments, "--json").splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


def pretend_cached(cache: Path, name: str) -> None:
    for file in CATALOGUE[name].files:
        path = cache / name / file.name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as stream:
            stream.truncate(file.size_bytes)


def test_list_names_every_data_set_and_the_cache(cache: Path) -> None:
    pretend_cached(cache, "mnist")
    listing = run_json("list")
    assert listing["cache"] == str(cache)
    rows = {row["name"]: row for row in listing["data_sets"]}
    assert set(rows) == {*BUNDLED, *CATALOGUE}
    assert {name for name, row in rows.items() if row.get("folder")} == {"mnist"}
    assert rows["svhn"]["samples"] == 99_289


def test_list_is_a_table_for_people(cache: Path) -> None:
    pretend_cached(cache, "mnist")
    lines = run("list").splitlines()
    ends = {line.split()[0]: line.rstrip() for line in lines if line.strip()}
    assert ends["iris"].endswith("bundled")
    assert ends["mnist"].endswith("cached")
    assert "cache" in lines[-1]


@pytest.mark.parametrize("name", bundled_sets.BUNDLED)
def test_what_is_said_of_bundled_sets_is_true(name: str) -> None:
    source = bundled_sets.read_bundled(name)
    assert source.classes is not None
    assert BUNDLED[name]["samples"] == len(source)
    assert BUNDLED[name]["classes"] == len(source.classes)


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[bytes]:
    """Put one small file, on a server of our own, in the place of the files of mnist."""
    content = b"few bytes"
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "a.bin").write_bytes(content)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with HTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path / "served")) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}/a.bin"
        file = RemoteFile(url=url, name="a.bin", checksum=f"sha256:{hashlib.sha256(content).hexdigest()}")
        catalogue = {"mnist": replace(CATALOGUE["mnist"], files=(file,))}
        monkeypatch.setattr("topiarist.data.readers.download.fetch", partial(fetch, catalogue=catalogue))
        yield content
        server.shutdown()
        thread.join()


def test_get_downloads_into_the_cache(cache: Path, served: bytes) -> None:
    assert run_json("get", "mnist")["folder"] == str(cache / "mnist")
    assert (cache / "mnist" / "a.bin").read_bytes() == served
    assert f"mnist is in {cache / 'mnist'}" in run("get", "mnist")


@pytest.mark.parametrize(("name", "answer"), [("imagenet", "there are cifar10"), ("iris", "needs no download")])
def test_get_refuses_what_it_cannot_download(name: str, answer: str) -> None:
    result = CliRunner().invoke(app, ["get", name])
    assert isinstance(result.exception, DataError)
    assert answer in str(result.exception)


def test_show_counts_samples_and_classes(tmp_path: Path) -> None:
    table = tmp_path / "flowers.csv"
    rows = [f"{i % 50},{'red' if i % 3 else 'blue'},{'rose' if i % 2 else 'lily'}" for i in range(60)]
    table.write_text("\n".join(["length,colour,kind", *rows]))
    summary = run_json("show", str(table), "--target", "kind")
    assert sum(summary["samples"].values()) == 60
    for part, count in summary["samples"].items():
        assert sum(row[part] for row in summary["classes"]) == count
    assert [row["name"] for row in summary["classes"]] == ["lily", "rose"]
    expected = {"scaling": "zscore", "number_columns": 1, "text_columns": 1, "effect_columns": 0, "date_columns": 0}
    assert summary["preprocessing"] == expected
    assert summary["input_shape"] == [3]


def test_show_says_what_was_decided_for_each_column(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    rows = [f"{i};{i % 9},5;{'?' if i % 10 == 0 else 'ja'};0{i % 7}1;{'ab'[i % 2]}" for i in range(60)]
    table.write_text("\n".join(["id;price;paid;code;kind", *rows]))
    shown = run("show", str(table), "--target", "kind", "--drop", "code").splitlines()
    place = next(number for number, line in enumerate(shown) if line.startswith("column"))
    assert [" ".join(line.split()) for line in shown[place:]] == [
        "column read as different gaps inputs remarks",
        "id left out 60 its name and its numbers, all different, are those of an id",
        "price number 9 1 decimal comma",
        "paid yes or no 1 6 '?' 2",
        "code left out 0 as asked",
        "kind target 2",
    ]
    summary = run_json("show", str(table), "--target", "kind", "--category", "price,code", "--number", "id")
    assert {row["name"]: row["read_as"] for row in summary["columns"]} == {
        **{"id": "number", "price": "category", "paid": "yes or no", "code": "category", "kind": "target"},
    }
    assert next(row for row in summary["columns"] if row["name"] == "paid")["gaps"] == {"?": 6}


def test_show_is_readable_for_people() -> None:
    shown = run("show", "iris")
    assert "input shape    4\n" in shown
    assert "scaling zscore, 4 columns of numbers" in shown
    assert any(line.split()[:1] == ["setosa"] for line in shown.splitlines())


def test_show_takes_the_seed_of_the_split() -> None:
    assert run_json("show", "wine", "--seed", "3") == run_json("show", "wine", "--seed", "3")


def test_a_summary_counts_each_class_in_each_part() -> None:
    labels = numpy.repeat(["a", "b", "c"], [50, 30, 20])
    source = Source(name="made", features=numpy.arange(200.0).reshape(100, 2), labels=labels, scaling="none")
    summary = summarise(prepare(source))
    assert {row["name"]: row["train"] + row["validation"] + row["test"] for row in summary["classes"]} == {
        "a": 50,
        "b": 30,
        "c": 20,
    }
    assert summary["notes"] == []
    assert json.loads(json.dumps(summary)) == summary


def test_preprocessing_in_a_line() -> None:
    assert (
        preprocessing_line(scaling="none", number_columns=0, text_columns=0, effect_columns=0, date_columns=0)
        == "no scaling"
    )
    line = preprocessing_line(scaling="minmax", number_columns=2, text_columns=3, effect_columns=0, date_columns=1)
    assert line == "scaling minmax, 2 columns of numbers, 3 columns of text as one-hot, 1 column of dates"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_bar_on_a_terminal_and_none_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with progress_bar() as progress:
        assert progress is not None
        progress("a.bin", 10, 20)
        progress("a.bin", 20, 20)
    assert "a.bin" in terminal.getvalue()
    monkeypatch.setattr(sys, "stderr", pipe := io.StringIO())
    with progress_bar() as progress:
        assert progress is None
    assert pipe.getvalue() == ""


@pytest.mark.parametrize("command", ["list", "get", "show"])
def test_help_has_an_example(command: str) -> None:
    assert f"topiarist data {command}" in run(command, "--help")


@pytest.mark.slow
def test_help_needs_no_heavy_import() -> None:
    code = "import sys, topiarist.cli.data; sys.exit(len({'torch', 'pandas', 'sklearn'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("words", [("show", "iris"), ("show", "digits"), ("list",)])
def test_reading_splitting_and_listing_data_load_nothing_heavy(words: tuple[str, ...]) -> None:
    heavy = {"torch", "distributed", "sklearn", "scipy", "matplotlib", "PIL", "requests"}
    code = f"""
import sys
sys.argv = ["topiarist", "data", *{words}]
from topiarist.cli import main
try:
    main()
finally:
    print(sorted({heavy} & set(sys.modules)), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")
