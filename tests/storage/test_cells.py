"""An ONNX file of a table reads its cells as they are and answers as the network does; the rest is for code."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest

from topiarist.data import Data
from topiarist.data.columns import fitting
from topiarist.data.columns.dates import date_numbers
from topiarist.data.columns.deciding import read_source_columns
from topiarist.data.source import Scaling, Source
from topiarist.models import card_of, mlp
from topiarist.rightsizing.delivery import encoding_notes
from topiarist.storage.cells import CODE, CellInput, cells_of, lookup_of
from topiarist.storage.deployable import InputForm
from topiarist.storage.onnx_export import Session, export_onnx
from topiarist.training import TrainConfig, train
from topiarist.training.inference import predict_logits

pytestmark = pytest.mark.filterwarnings("ignore::topiarist.TopiaristWarning")  # of what was decided for columns
PARTS = (
    "elapsed days",
    "year",
    "month sine",
    "month cosine",
    "weekday sine",
    "weekday cosine",
    "hour sine",
    "hour cosine",
)


def table(rows: int = 240) -> pandas.DataFrame:
    numbers = numpy.arange(rows)
    return pandas.DataFrame(
        {
            "price": [f"{number % 37},5" if number % 5 else "?" for number in numbers],
            "colour": [("red", "green", "blue", None, "NA")[number % 5] for number in numbers],
            "member": [("yes", "no", "")[number % 3] for number in numbers],
            "day": [f"{n % 28 + 1}.{n % 12 + 1}.{2020 + n % 3}" if n % 7 else "" for n in numbers],
            "town": [f"town {number % 90}" if number < 200 else f"village {number}" for number in numbers],
        }
    )


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Session, Any]:
    raw = table()
    labels = numpy.where(raw["colour"].isin(["red", "blue"]), "warm", "cold")
    data = Data.from_source(read_source_columns(Source(name="t", features=raw, labels=labels)), seed=0)
    network = mlp([data.input_shape[0], 8, 2])
    train(network, data, TrainConfig(epochs=3))
    path = tmp_path_factory.mktemp("cells") / "model.onnx"
    assert export_onnx(network, path, data=data).largest_difference < 1e-4
    return Session(path), network


def test_raw_cells_give_the_answers_of_the_network(exported: tuple[Session, Any]) -> None:
    session, network = exported
    preprocessing = card_of(network).preprocessing
    assert preprocessing is not None
    new = table(60)
    new["colour"] = [
        ("red", "violet", "NA", None, "n/a", "Null")[number % 6] for number in range(60)
    ]  # unseen, and gaps
    new["member"] = [("YES", "No", "n/a", "1", "true")[number % 5] for number in range(60)]
    new.loc[3, "town"] = "a town nobody has heard of"
    cells = dict(cells_of(new, preprocessing.columns, numpy.float64))
    assert cells["colour"].tolist()[4] == ["n/a"]  # as it is written, not as it is encoded
    logits, _ = session(cells)
    numpy.testing.assert_allclose(logits, predict_logits(network, preprocessing(new)).numpy(), atol=1e-4)


def test_the_file_says_what_it_reads(exported: tuple[Session, Any]) -> None:
    notes = exported[0].session.get_modelmeta().custom_metadata_map
    reads = {each["name"]: each["reads"] for each in json.loads(notes["inputs"])}
    assert notes["input"] == "cells" and notes["code"] == CODE
    inputs = tuple(CellInput(each["name"], each["reads"]) for each in json.loads(notes["inputs"]))
    (said,) = encoding_notes(InputForm(kind="cells", shape=(), type="", inputs=inputs))
    assert said.startswith("model.onnx reads the parts of dates in 'day': its metadata has the Python code")
    assert reads == {"price": "number", "colour": "text", "member": "text", "day": "date parts", "town": "text"}
    assert {each.name: each.type for each in exported[0].inputs}["colour"] == "tensor(string)"


def test_the_code_computes_what_columns_do() -> None:
    names: dict[str, Any] = {}
    exec(CODE, names)
    dates = numpy.array(["2024-02-29T13:45", "1969-12-31T23:59", "NaT"], dtype="datetime64[us]")
    numpy.testing.assert_allclose(names["date_parts"](dates, PARTS), date_numbers(dates, PARTS), atol=1e-9)


def test_texts_by_their_effects_are_read_as_text(tmp_path: Path) -> None:
    random = numpy.random.default_rng(0)
    codes = random.integers(0, 1_500, 9_000)
    raw = pandas.DataFrame({"code": [f"c{number}" for number in codes], "x": random.normal(size=9_000)})
    source = Source(name="t", features=raw, labels=numpy.where(codes % 7 < 3, "low", "high"))
    data = Data.from_source(read_source_columns(source), seed=0)
    assert data.preprocessing is not None and data.preprocessing.columns[0].encoding == "effect"
    network, path = mlp([data.input_shape[0], 4, 2]), tmp_path / "model.onnx"
    export = export_onnx(network, path, data=data)
    assert export.largest_difference < 1e-5 and {each.reads for each in export.input.inputs} == {"text", "number"}
    new = pandas.DataFrame({"code": ["c3", "never seen", "?", None], "x": [0.5, 1.0, None, 2.0]})
    cells = {"code": new["code"].fillna("").to_numpy(dtype=object)[:, None]}
    cells["x"] = new["x"].to_numpy(dtype=numpy.float32)[:, None]
    logits, _ = Session(path)(cells)
    numpy.testing.assert_allclose(logits, predict_logits(network, data.preprocessing(new)).numpy(), atol=1e-5)


@pytest.mark.parametrize("encoding", ["one-hot", "effect"])
def test_hashed_texts_are_read_by_their_place(encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "MOST_EFFECTS", 500)
    random = numpy.random.default_rng(0)
    raw = pandas.DataFrame({"code": [f"c{number}" for number in random.integers(0, 3_000, 9_000)], "x": range(9_000)})
    source = read_source_columns(Source(name="t", features=raw, labels=numpy.arange(9_000) % 2))
    scaling: Scaling = "unit" if encoding == "one-hot" else "zscore"  # effects have no place on a sphere
    data = Data.from_source(source, seed=0, scaling=scaling)
    assert data.preprocessing is not None
    column = next(each for each in data.preprocessing.columns if each.name == "code")
    assert len(column.shared) > 1 and column.encoding == encoding
    assert (
        export_onnx(mlp([data.input_shape[0], 4, 2]), tmp_path / "model.onnx", data=data).file_kb < 100
    )  # a matrix of ones and zeros takes 4,440
    names: dict[str, Any] = {}
    exec(CODE, names)
    found = lookup_of(column)
    words = pandas.Series(["c1", "c2", "never seen", None, *raw["code"][:50]], name="code", dtype=object)
    places = [names["text_place"](word, list(column.categories), len(column.shared)) for word in words]
    numpy.testing.assert_array_equal(found.inputs(numpy.array(places)), column.numbers(words))
    index = replace(column, encoding="index")
    numpy.testing.assert_array_equal(lookup_of(index).inputs(numpy.array(places)), index.numbers(words))
