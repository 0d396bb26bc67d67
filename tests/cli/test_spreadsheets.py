"""One table as spreadsheets of three countries write it, from `data show` to the ONNX file: everywhere the same."""

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest
from numpy.typing import NDArray

from tests.rightsizing.tasks import use_small_plan
from topiarist.randomness import array_generator
from topiarist.rightsizing import EFFORTS

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
runtime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.slow

Run = Callable[..., tuple[int, str, str]]
COLUMNS = ("row", "price", "share", "since", "paid", "town", "kind")
ROWS = 160


@dataclass(frozen=True)
class Locale:
    """How a country's spreadsheet saves a table as text."""

    encoding: str
    delimiter: str
    thousands: str
    decimal: str
    price: str
    share: str
    day: str
    truths: Mapping[bool, str]
    gap: str

    def number(self, value: float) -> str:
        swap = {",": self.thousands, ".": self.decimal}
        return "".join(swap.get(character, character) for character in f"{value:,.2f}")

    def cells(self, row: Mapping[str, Any]) -> dict[str, str]:
        """Return a row as it is written."""
        price = "" if row["price"] is None else self.price.format(self.number(row["price"]))
        found = {"price": price or self.gap, "share": self.share.format(self.number(row["share"]))}
        found |= {"since": row["since"].strftime(self.day), "paid": self.truths[row["paid"]]}
        return {name: found.get(name, str(row[name])) for name in row}

    def save(self, path: Path, rows: Sequence[Mapping[str, Any]], names: Sequence[str] = COLUMNS) -> Path:
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=self.delimiter, lineterminator="\r\n")
        writer.writerow(names)
        writer.writerows([[self.cells(row)[name] for name in names] for row in rows])
        path.write_bytes(text.getvalue().encode(self.encoding))
        return path


LOCALES = {
    "us": Locale("utf-8-sig", ",", ",", ".", "${}", "{}%", "%m/%d/%Y", {True: "TRUE", False: "FALSE"}, ""),
    "de": Locale("cp1252", ";", ".", ",", "{} €", "{} %", "%d.%m.%Y", {True: "WAHR", False: "FALSCH"}, "-"),
    "fr": Locale(
        *("utf-16", "\t", "\u202f", ",", "{}\u00a0€", "{}\u202f%", "%d/%m/%Y"), {True: "VRAI", False: "FAUX"}, "#N/A"
    ),
}


def rows_of_truth(count: int = ROWS) -> list[dict[str, Any]]:
    random = array_generator(count, "invoices")
    rows: list[dict[str, Any]] = []
    for number in range(count):
        price = round(float(random.uniform(-2_000, 90_000)), 2)
        town, paid = ("Köln", "Orléans", "Boston, MA")[int(random.integers(3))], bool(random.integers(2))
        kind = "large" if price + 40_000 * paid + 20_000 * (town == "Köln") > 70_000 else "small"
        since = pandas.Timestamp("2021-01-01") + pandas.Timedelta(days=int(random.integers(900)))
        row: dict[str, Any] = {"row": number + 1, "price": None if number % 11 == 0 else price}
        row |= {"share": round(float(random.uniform(0, 100)), 1), "since": since, "paid": paid, "town": town}
        rows.append({**row, "kind": kind})
    return rows


def new_rows() -> list[dict[str, Any]]:
    """Return rows to predict: a gap, a town nobody has heard of, and columns in another order with one more."""
    rows = [{**row, "memo": "x"} for row in rows_of_truth(24)]
    rows[3]["town"] = "Genève"
    return rows


@pytest.fixture(scope="module", autouse=True)
def small_plan() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        use_small_plan(patch)
        patch.setitem(EFFORTS, "quick", replace(EFFORTS["quick"], seeds=1))
        patch.setattr("topiarist.report.writing.rightsizing_page", lambda record: "")
        yield


def onnx_answers(path: Path, locale: Locale, rows: Sequence[Mapping[str, Any]]) -> NDArray[Any]:
    """Return probabilities of cells as they are written; dates by the code that the file carries."""
    session = runtime.InferenceSession(str(path))
    notes = session.get_modelmeta().custom_metadata_map
    code: dict[str, Any] = {}
    exec(notes["code"], code)
    reads = {each["name"]: each for each in json.loads(notes["inputs"])}
    written = [locale.cells(row) for row in rows]
    wide = numpy.float64 if session.get_inputs()[0].type == "tensor(double)" else numpy.float32
    given: dict[str, NDArray[Any]] = {}
    for name, read in reads.items():
        if read["reads"] == "text":
            given[name] = numpy.array([[cells[name]] for cells in written], dtype=object)
        elif read["reads"] == "date parts":
            days = numpy.array([row[name].to_datetime64() for row in rows])
            given[name] = code["date_parts"](days, read["parts"]).astype(wide)
        else:
            part = 100 if name == "share" else 1
            numbers = [numpy.nan if row[name] is None else row[name] / part for row in rows]
            given[name] = numpy.array(numbers)[:, None].astype(wide)
    found: NDArray[Any] = session.run(["probabilities"], given)[0]
    return found


@pytest.fixture(scope="module")
def made(command: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, pandas.DataFrame]]:
    """Return for each locale the folder of a rightsizing of its file, and what its network predicts."""
    found = {}
    for name, locale in LOCALES.items():
        place = tmp_path_factory.mktemp(name)
        table = locale.save(place / "invoices.csv", rows_of_truth())
        words = ("--target", "kind", "--effort", "quick", "--methods", "distinctiveness", "--max-drop", 0.3)
        code, _, err = command("rightsize", table, *words, "--out", place / "out")
        assert code == 0, err
        wanted = locale.save(place / "new.csv", new_rows(), ("memo", *COLUMNS[-2:0:-1]))
        code, out, err = command("predict", place / "out" / "model.safetensors", wanted, "--probabilities")
        assert code == 0 and "columns that the network was not trained with, which are not used: memo" in err
        found[name] = (place, pandas.read_csv(io.StringIO(out)))
    return found


READ_AS = {
    "row": "left out",
    "price": "number",
    "share": "number",
    "since": "date",
    "paid": "yes or no",
    "town": "category",
    "kind": "target",
}


@pytest.mark.parametrize("name", LOCALES)
def test_what_a_table_holds_is_told_the_same_everywhere(
    command: Run, made: dict[str, tuple[Path, pandas.DataFrame]], name: str
) -> None:
    code, out, _ = command("data", "show", made[name][0] / "invoices.csv", "--target", "kind", "--json")
    assert code == 0
    columns = {each["name"]: each for each in json.loads(out)["columns"]}
    assert {column: each["read_as"] for column, each in columns.items()} == READ_AS
    gaps = sum(row["price"] is None for row in rows_of_truth())
    assert columns["price"]["gaps"] == {LOCALES[name].gap: gaps}
    assert columns["town"]["different"] == 3


@pytest.mark.parametrize("name", LOCALES)
def test_the_command_and_the_onnx_file_answer_alike(made: dict[str, tuple[Path, pandas.DataFrame]], name: str) -> None:
    place, predicted = made[name]
    answers = onnx_answers(place / "out" / "model.onnx", LOCALES[name], new_rows())
    own = predicted[["p(large)", "p(small)"]].to_numpy()
    numpy.testing.assert_allclose(answers, own, atol=1e-5)
    assert (predicted["prediction"] == numpy.array(["large", "small"])[answers.argmax(axis=1)]).all()


def test_one_table_makes_one_network(made: dict[str, tuple[Path, pandas.DataFrame]]) -> None:
    expected = made["us"][1][["p(large)", "p(small)"]]
    for _, predicted in made.values():
        pandas.testing.assert_frame_equal(predicted[["p(large)", "p(small)"]], expected, rtol=1e-6)
    truth = [row["kind"] for row in new_rows()]
    assert (made["us"][1]["prediction"] == truth).mean() > 0.6


def test_a_column_that_is_missing_is_named(
    command: Run, made: dict[str, tuple[Path, pandas.DataFrame]], tmp_path: Path
) -> None:
    table = LOCALES["de"].save(tmp_path / "less.csv", new_rows(), ("price", "since", "paid", "town", "memo"))
    code, out, err = command("predict", made["de"][0] / "out" / "model.safetensors", table)
    assert code != 0 and out == ""
    assert "columns that the network was trained on are missing: share (found instead: memo)" in err
