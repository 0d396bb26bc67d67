"""Files that somebody made up, or that are none: exit code 2, one line, at once."""

import os
import shlex
import shutil
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from tests.cli.conftest import Run, invoke
from topiarist import Data, save
from topiarist.models import mlp
from topiarist.storage.header import KEY, parse_header, sign

DEEP = "[" * 100_000 + "]" * 100_000
DIGITS = "9" * 400
CELLS = range(1, 1291)


def forged(good: Path, out: Path, change: dict[str, Any], tensors: Callable[[Tensor], Any] = lambda _: None) -> None:
    """Write a model file again with another header or other weights, and a digest that is right."""
    with safe_open(good, framework="pt") as file:
        header = parse_header(file.metadata()[KEY])
        found = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118  # no dict
    tensors(found["output.bias"])
    header = header.model_copy(update=change)
    save_file(found, out, metadata={KEY: sign(header, found).to_text()})


def write_models(folder: Path) -> None:
    x = numpy.arange(120.0).reshape(60, 2) % 7
    data = Data.from_arrays(x, ["no", "yes"] * 30, scaling="auto")
    good = save(mlp([2, 4, 2]), folder / "good.safetensors", data=data)
    assert data.preprocessing is not None
    known = data.preprocessing.to_json()
    forged(good, folder / "more.safetensors", {"classes": ("a", "b", "c")})
    forged(good, folder / "fewer.safetensors", {"classes": ("a",)})
    forged(good, folder / "infinite.safetensors", {}, lambda bias: bias.fill_(float("inf")))
    forged(good, folder / "shifted.safetensors", {"preprocessing": {**known, "shift": [1.0, 2.0, 3.0]}})
    forged(good, folder / "texts.safetensors", {"preprocessing": {**known, "scale": ["a", "b"]}})
    forged(good, folder / "shaped.safetensors", {"preprocessing": {**known, "input_shape": [10**9]}})
    for name, shape in {"axes": [2] * 200, "vast": [2**40]}.items():
        plain = {**known, "scaling": "none", "shift": [], "scale": [], "input_shape": shape}
        forged(good, folder / f"{name}.safetensors", {"preprocessing": plain})
    forged(good, folder / "negative.safetensors", {"input_shape": (-2,)})
    forged(good, folder / "wide.safetensors", {"spec": {"family": "mlp", "sizes": [2, 10**9, 2]}})
    layers = {"family": "vgg", "a": 10**9, "b": 1, "c": 1, "d": 1, "input_shape": [1, 8, 8], "classes": 2}
    forged(good, folder / "deep.safetensors", {"spec": layers})
    nested: dict[str, Any] = {"family": "mlp", "sizes": [2, 2]}
    for _ in range(50):
        nested = {"family": "ensemble", "members": [nested], "weights": [1.0]}
    forged(good, folder / "nested.safetensors", {"spec": nested})


@pytest.fixture(scope="module")
def strange(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("strange")
    write_models(folder)
    x, y = numpy.full((40, 3), numpy.nan), numpy.arange(40) % 2
    numpy.savez(folder / "nan.npz", x=x, y=y)
    numpy.savez(folder / "axes.npz", x=numpy.arange(40.0).reshape(40, *[1] * 17), y=y)
    (folder / "long.csv").write_bytes(b"a,y\n" + b"," * 17_000_000)
    digits = "\n".join(f"{i},{DIGITS}{i}" for i in range(40))
    (folder / "digits.csv").write_text(f"a,y\n{digits}\n")
    (folder / "named.csv").write_text("a," + "n" * 100_000 + "\n1,2\n")
    numpy.savez(folder / "own.npz", x=numpy.zeros((3000, 2)), y=numpy.array([f"c{i}" for i in range(3000)]))
    (folder / "own.csv").write_text("\n".join(["a,y", *(f"{i},c{i}" for i in range(3000))]))
    (folder / "wide.csv").write_text(",".join(f"c{i}" for i in range(1_000_000)) + "\n1\n")
    (folder / "idx").mkdir()
    (folder / "idx" / "t10k-images-idx3-ubyte").write_bytes(bytes([0, 0, 8, 255]) + struct.pack(">255I", *[1] * 255))
    records = {"deep": DEEP, "objects": f'{{"networks":{DEEP}}}', "nul": "\0", "digits": f'{{"networks":{"9" * 5000}}}'}
    for name, text in records.items():
        (folder / f"{name}.json").write_text(text)
    grid = "\n".join(f'"{name}" = {list(CELLS)}' for name in ("training.batch_size", "training.epochs", "data.seed"))
    studies = {
        "folds": "folds = 100000",
        "grid": f"[grid]\n{grid}",
        "digits": f"folds = {DIGITS}",
        "more": f"folds = {'9' * 5000}",
        "layers": f"model.hidden = {[1] * 20_000}",
        "rate": f"training.epochs = {DIGITS}",
    }
    for name, text in studies.items():
        (folder / f"{name}.toml").write_text(f'data = "iris"\n{text}\n')
    (folder / "dots.toml").write_text("a" + ".a" * 100_000 + "=1")
    (folder / "long.toml").write_text("#" * 5_000_000)
    numpy.savez(folder / "void.npz", x=numpy.arange(80.0).reshape(40, 2), y=numpy.zeros(40, "V5"))
    for name in ("archive", "images/a", "sounds/a", "annotated"):
        (folder / name).mkdir(parents=True)
    inside = ("archive/cifar-10-binary.tar.gz", "images/a/1.png", "sounds/a/1.wav", "annotated/meta.csv")
    for name in ("pipe", "pipe.safetensors", "pipe.toml", "pipe.csv", *inside):
        os.mkfifo(folder / name)
    return folder


CALLS = [
    ("predict {d}/more.safetensors {d}/nan.npz", "returns 2 logits, its file names 3 classes"),
    ("measure {d}/fewer.safetensors {d}/nan.npz", "returns 2 logits, its file names 1 classes"),
    ("predict {d}/infinite.safetensors {d}/nan.npz", "'output.bias' holds numbers that are not finite"),
    ("train {d}/own.csv --target y --base {d}/infinite.safetensors", "'output.bias' holds numbers that are not finite"),
    ("predict {d}/shifted.safetensors {d}/nan.npz", "do not make samples of shape (2,)"),
    ("predict {d}/texts.safetensors {d}/nan.npz", "what is no finite number"),
    ("predict {d}/shaped.safetensors {d}/nan.npz", "its preprocessing cannot be read"),
    ("predict {d}/axes.safetensors {d}/nan.npz", "a sample has at most 16 axes and 67,108,864 numbers"),
    ("predict {d}/vast.safetensors {d}/nan.npz", "a sample has at most 16 axes and 67,108,864 numbers"),
    ("anatomy {d}/negative.safetensors", "no sample has the shape (-2,)"),
    ("anatomy {d}/wide.safetensors", "its spec asks for a network of"),
    ("anatomy {d}/deep.safetensors", "1,000,000,003 layers; at most 10,000 are read"),
    ("anatomy {d}/nested.safetensors", "4 ensembles deep, are read"),
    ("data show {d}/nan.npz", "the samples hold no number at all"),
    ("train {d}/nan.npz", "the samples hold no number at all"),
    ("data show {d}/void.npz", "labels of type |V5 are not understood"),
    ("data show {d}/own.npz", "each of 3000 samples is of a class of its own"),
    ("data show {d}/own.csv --target y", "each of 3000 samples is of a class of its own"),
    ("data show {d}/axes.npz", "a sample has at most 16 axes and 67,108,864 numbers"),
    ("data show {d}/long.csv --target y", "a line of more than 16,777,216 characters"),
    ("data show {d}/digits.csv --target y --task numbers", "40 values of the target y are infinite"),
    ("data show {d}/named.csv --target y", "is not a column, found a, nnn"),
    ("data show {d}/wide.csv --target y", "at most 100,000 columns, found 1,000,000"),
    ("data show {d}/idx", "255 axes"),
    ("rightsize iris --trained", "name it with --model"),
    ("rightsize iris --fresh", "name it with --model"),
    ("report {d}/deep.json", "it is nested too deep"),
    ("report {d}/objects.json", "it is nested too deep"),
    ("report {d}/nul.json", "it is not JSON"),
    ("report {d}/digits.json", "it is not JSON"),
    ("report /dev/zero", "/dev/zero: it is a device; name a file"),
    ("report {d}/pipe", "pipe: it is a pipe; name a file"),
    ("predict {d}/pipe.safetensors iris", "it is a pipe; name a file"),
    ("predict /dev/zero iris", "/dev/zero: it is a device; name a file"),
    ("anatomy {d}/pipe.safetensors", "it is a pipe; name a file"),
    ("train iris --base {d}/pipe.safetensors", "it is a pipe; name a file"),
    ("data show {d}/pipe.csv", "neither a file nor a folder"),
    ("data show {d}/archive", "cifar-10-binary.tar.gz: it is a pipe; name a file"),
    ("data show {d}/images", "1.png: it is a pipe; name a file"),
    ("data show {d}/sounds", "1.wav: it is a pipe; name a file"),
    ("data show {d}/annotated", "meta.csv: it is a pipe; name a file"),
    ("predict {d}/good.safetensors {d}/images", "1.png: it is a pipe; name a file"),
    ("study run {d}/pipe.toml", "it is a pipe; name a file"),
    ("study run /dev/zero", "/dev/zero: it is a device; name a file"),
    ("study run {d}/long.toml", "it has 5,000,000 bytes, at most 1,048,576 are read"),
    ("study run {d}/dots.toml", "its tables are nested too deep"),
    ("study run {d}/layers.toml", "model.hidden: Tuple should have at most 1000 items"),
    ("study run {d}/folds.toml", "folds must be less than or equal to 10000; found 100000"),
    ("study run {d}/grid.toml", "2,146,689,000 cells; a study has at most 100,000"),
    ("study run {d}/digits.toml", "folds must be less than or equal to 10000"),
    ("study run {d}/more.toml", "is not TOML"),
    ("study run {d}/rate.toml", "epochs must be below 2^64; found a number of 400 digits"),
    (f"train iris --epochs {DIGITS}", "epochs must be below 2^64"),
    (f"data show {'n' * 300}.csv", "File name too long"),
    (f"study status {'n' * 300}", "File name too long"),
]


@pytest.mark.parametrize(("call", "said"), CALLS)
def test_what_somebody_made_up_is_one_line(
    command: Run, strange: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = command(*shlex.split(call.format(d=strange)))
    assert (code, out) == (2, ""), err[-500:]
    assert err.startswith("topiarist: ") and err.count("\n") == 1 and said in err, err[-500:]
    assert len(err) < 2100
    assert not list(tmp_path.iterdir())


def test_cells_of_a_parquet_file_that_are_no_numbers_or_text_are_one_line(command: Run, tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    plain = arrow.table({"a": range(40), "y": [0, 1] * 20})
    tables = {
        "column a holds ndarray values": arrow.table({"a": [[1, 2]] * 40, "y": [0, 1] * 20}),
        "time spans of more than 292 years": arrow.table(
            {"a": arrow.array(range(2**60, 2**60 + 40), arrow.duration("us")), "y": [0, 1] * 20}
        ),
        "cannot be read as Parquet": plain.replace_schema_metadata({b"pandas": DEEP.encode()}),
    }
    for said, table in tables.items():
        parquet.write_table(table, tmp_path / "t.parquet")
        code, _, err = command("data", "show", tmp_path / "t.parquet", "--target", "y")
        assert code == 2 and err.count("\n") == 1 and said in err, err


def test_text_of_a_parquet_file_that_is_not_utf8_is_one_line(command: Run, tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    places = arrow.array([0, 1, 2], arrow.int32()).buffers()[1]
    bad = arrow.Array.from_buffers(arrow.string(), 2, [None, places, arrow.py_buffer(b"\xff\xfe")])
    parquet.write_table(arrow.table({"a": [1.0, 2.0], "y": bad}), tmp_path / "t.parquet")
    code, _, err = command("data", "show", tmp_path / "t.parquet", "--target", "y")
    assert code == 2 and err.count("\n") == 1 and "cannot be read as Parquet" in err


def test_a_text_that_is_stored_once_and_repeated_does_not_fill_the_memory(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    once = arrow.DictionaryArray.from_arrays(arrow.array([0] * 400, arrow.int32()), arrow.array(["x" * 5000]))
    columns = {"a": once, "b": range(400), "y": ["no", "yes"] * 200}
    parquet.write_table(arrow.table(columns), tmp_path / "t.parquet", store_schema=False)
    assert (tmp_path / "t.parquet").stat().st_size < 15_000
    words = ("data", "show", tmp_path / "t.parquet", "--target", "y")
    assert command(*words)[0] == 0
    monkeypatch.setattr("topiarist.data.limits.LARGEST_BYTES", 1_000_000)
    code, out, err = command(*words)
    assert (code, out, err.count("\n")) == (2, "", 1) and "takes 2,000,000 bytes or more when expanded" in err


def test_a_part_of_a_workbook_that_is_all_alike_is_refused_before_it_is_parsed(command: Run, tmp_path: Path) -> None:
    workbook = pytest.importorskip("openpyxl").Workbook()
    workbook.active.append(["a", "y"])
    workbook.save(tmp_path / "good.xlsx")
    with zipfile.ZipFile(tmp_path / "good.xlsx") as good, zipfile.ZipFile(tmp_path / "t.xlsx", "w", 8) as bad:
        for member in good.infolist():
            rows = b"<row/>" * 3_000_000 if "sheet1" in member.filename else b""
            bad.writestr(member.filename, good.read(member).replace(b"</sheetData>", rows + b"</sheetData>"))
    code, out, err = command("data", "show", tmp_path / "t.xlsx", "--target", "y")
    assert (code, out, err.count("\n")) == (2, "", 1) and "which no table does: save it as .csv" in err


def test_a_decoder_writes_nothing_by_itself(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        image = Image.fromarray(numpy.arange(64, dtype=numpy.uint8).reshape(8, 8))
        image.save(tmp_path / name / "0.tif", compression="tiff_lzw")
    content = bytearray((tmp_path / "a" / "0.tif").read_bytes())
    content[10:20] = b"\xff" * 10
    (tmp_path / "a" / "0.tif").write_bytes(content)
    code, _, err = invoke("data", "show", tmp_path)
    assert code == 2 and "0.tif cannot be decoded as an image" in err and capfd.readouterr().err == ""


LEDGERS = {
    "null declaration": "UPDATE study SET value = 'null' WHERE key = 'declaration'",
    "no JSON": "UPDATE study SET value = '{' WHERE key = 'declaration'",
    "deep": f"UPDATE study SET value = '{DEEP}' WHERE key = 'declaration'",
    "no declaration": "DELETE FROM study WHERE key = 'declaration'",
    "no folder": "DELETE FROM study WHERE key = 'folder'",
    "number for a folder": "UPDATE study SET value = '5' WHERE key = 'folder'",
    "no result": "UPDATE cells SET result = NULL",
    "result of no JSON": "UPDATE cells SET result = '{'",
    "list for a result": "UPDATE cells SET result = '[]'",
    "deep result": f"UPDATE cells SET result = '{DEEP}'",
    "choices": "UPDATE cells SET choices = 'x'",
    "driver": "UPDATE study SET value = '3' WHERE key = 'driver'",
    "versions": "UPDATE study SET value = '3' WHERE key = 'versions'",
    "no cells": "DELETE FROM cells",
    "another cell": "UPDATE cells SET hash = 'x'",
    "no table": "DROP TABLE cells",
    "endless seconds": "UPDATE cells SET seconds = 9e999",
    "a list for a size": """UPDATE cells SET result = '{"accuracy": 1, "parameters": [1]}'""",
    "text for a size": """UPDATE cells SET result = '{"accuracy": 1, "parameters": "x"}'""",
    "digits for a size": f"""UPDATE cells SET result = '{{"accuracy": 1, "parameters": {DIGITS}}}'""",
    "no samples": """UPDATE cells SET result = '{"accuracy": 1, "parameters": 1}', fold = 0""",
    "trigger": "CREATE TRIGGER t AFTER UPDATE ON cells BEGIN INSERT INTO study VALUES ('x', '1'); END",
    "endless view": """
        ALTER TABLE study RENAME TO former;
        CREATE VIEW study AS WITH RECURSIVE more(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM more)
        SELECT 'declaration' AS key, x AS value FROM more""",
    "computed column": "ALTER TABLE cells ADD COLUMN more TEXT GENERATED ALWAYS AS (zeroblob(1000000000)) VIRTUAL",
    "other kinds of columns": """
        DROP TABLE study;
        CREATE TABLE study (key, value);
        INSERT INTO study VALUES ('declaration', 5)""",
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ledgers")
    (folder / "s.toml").write_text('data = "iris"\ntraining.epochs = 1\n')
    assert invoke("study", "run", folder / "s.toml", "--workers", 1)[0] == 0
    return folder / "s"


@pytest.mark.parametrize("damage", LEDGERS)
def test_a_damaged_ledger_is_one_line(command: Run, finished: Path, tmp_path: Path, damage: str) -> None:
    place = tmp_path / "s"
    shutil.copytree(finished, place)
    connection = sqlite3.connect(place / "ledger.sqlite")
    with connection:
        connection.executescript(LEDGERS[damage])
    connection.close()
    before = (place / "ledger.sqlite").read_bytes()
    refusals = 0
    for words in (("status",), ("results",), ("results", "--format", "csv", "--table", "cells"), ("resume",)):
        code, _, err = command("study", words[0], place, *words[1:])
        assert code in (0, 2) and "Traceback" not in err and err.count("\n") == (code == 2), err
        refusals += code == 2
    assert refusals and (place / "ledger.sqlite").read_bytes() == before


def test_a_ledger_with_names_that_are_not_utf8_is_one_line(command: Run, finished: Path, tmp_path: Path) -> None:
    place = tmp_path / "s"
    shutil.copytree(finished, place)
    content = (place / "ledger.sqlite").read_bytes()
    assert b"KEY, value" in content
    (place / "ledger.sqlite").write_bytes(content.replace(b"KEY, value", b"KEY, val\xe1e"))
    for words in ("status", "results", "resume"):
        code, _, err = command("study", words, place)
        assert (code, err.count("\n")) == (2, 1) and "cannot use the ledger" in err, err


def test_a_ledger_names_no_other_files(finished: Path) -> None:
    from topiarist.errors import TopiaristError
    from topiarist.study.results import Results

    results = Results.read(finished)
    assert results.history(results.rows[0])
    with pytest.raises(TopiaristError, match="it names a file"):
        results.history({**results.rows[0], "history": "../../../etc/passwd"})
    with pytest.raises(TopiaristError, match="it names a file"):
        results.model_path({**results.rows[0], "model": "../good"})
