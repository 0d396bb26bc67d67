"""The spreadsheet of facial expressions, with merged titles, as one finds it; and layouts that are others."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import openpyxl
import pandas
import pytest

from topiarist.data import Data, Source
from topiarist.errors import DataError
from topiarist.reproductions.faces.expressions import EXPRESSIONS, read_expressions

Rows = list[list[Any]]
TITLES = ("first 5 components of LPQ features", "first 5 components of PHOG features")
HEADER: list[Any] = [None, "label", TITLES[0], *[None] * 4, TITLES[1], *[None] * 4]


def samples(count: int = 70) -> Rows:
    numbers = numpy.random.default_rng(0).normal(size=(count, 10))
    return [[f"film_{row}.png", row % 7 + 1, *numbers[row].tolist()] for row in range(count)]


def write(tmp_path: Path, rows: Rows, *, header: list[Any] | None = None, merged: bool = True) -> Path:
    book = openpyxl.Workbook()
    sheet = book.active
    for row in [HEADER if header is None else header, *rows]:
        sheet.append(row)
    for cells in ("C1:G1", "H1:L1") if merged else ():
        sheet.merge_cells(cells)
    book.save(tmp_path / "faces.xlsx")
    return tmp_path / "faces.xlsx"


def table(source: Source) -> pandas.DataFrame:
    assert isinstance(source.features, pandas.DataFrame)
    return source.features


@pytest.mark.slow
def test_columns_classes_and_images(tmp_path: Path) -> None:
    rows = samples()
    source = read_expressions(write(tmp_path, rows))
    assert list(table(source).columns) == [f"{name} {number}" for name in ("LPQ", "PHOG") for number in range(1, 6)]
    numpy.testing.assert_allclose(table(source).to_numpy(), [row[2:] for row in rows], rtol=1e-15, atol=0)
    assert table(source).index.tolist() == [row[0] for row in rows]
    assert source.labels is not None and source.labels.tolist() == [EXPRESSIONS[row[1] - 1] for row in rows]
    assert source.classes == ("angry", "disgust", "fear", "happy", "sad", "surprise", "neutral")
    assert (source.name, source.notes, source.scaling) == ("faces.xlsx", (), "zscore")
    data = Data.from_source(source)
    assert data.input_shape == (10,) and data.classes == EXPRESSIONS
    assert len(data.folds(10)) == 10


def test_a_row_with_empty_cells_is_left_out_and_named(tmp_path: Path) -> None:
    rows = samples()
    rows[30][2] = 1e6
    rows[30][7:] = [None] * 5
    source = read_expressions(str(write(tmp_path, rows)))
    assert len(source) == 69 and "film_30.png" not in table(source).index
    assert source.notes == ("1 row(s) with empty cells left out: film_30.png",)
    rows[31][1], rows[32][0], rows[32][5] = None, None, None
    source = read_expressions(write(tmp_path, rows))
    assert source.notes == ("3 row(s) with empty cells left out: film_30.png, film_31.png, row 34",)


def test_a_row_without_anything_is_no_row(tmp_path: Path) -> None:
    source = read_expressions(write(tmp_path, [*samples()[:30], [None] * 12, *samples()[30:], [None] * 12]))
    assert len(source) == 70 and source.notes == ()


def test_whole_numbers_and_an_image_without_a_name_are_fine(tmp_path: Path) -> None:
    rows = samples()
    rows[4] = [None, 3.0, *range(10)]
    source = read_expressions(write(tmp_path, rows))
    assert source.labels is not None and source.labels[4] == "fear"
    assert table(source).iloc[4].tolist() == list(range(10)) and table(source).index[4] == "row 6"


@pytest.mark.parametrize(
    ("titles", "names"),
    [
        (("PHOG", "lpq"), ["PHOG 1", "LPQ 5"]),
        (("phase", "gradients"), ["phase 1", "gradients 5"]),
        (("LPQ of the left", "LPQ of the right"), ["LPQ of the left 1", "LPQ of the right 5"]),
    ],
)
def test_columns_are_named_after_the_titles(tmp_path: Path, titles: tuple[str, str], names: list[str]) -> None:
    header = [None, " Label ", titles[0], *[None] * 4, titles[1], *[None] * 4]
    found = table(read_expressions(write(tmp_path, samples(), header=header))).columns
    assert [found[0], found[9]] == names


def with_cell(row: int, column: int, value: Any) -> Rows:
    rows = samples()
    rows[row][column] = value
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "header", "said"),
    [
        (samples(), ["name", "kind", *HEADER[2:]], "expected a header of 12 cells, .*; found 12: name, kind, first"),
        (samples(), [None, "label", *[f"LPQ {n}" for n in range(10)]], r"found 12: \(empty\), label, LPQ 0, LPQ 1"),
        (samples(), [None, "label", None, "LPQ", *[None] * 3, "PHOG", *[None] * 4], "expected a header of 12 cells"),
        ([row[:11] for row in samples()], HEADER[:11], "found 11: "),
        ([[*row, 1.0] for row in samples()], HEADER, "found 13: "),
        ([[1]], ["x"], "found 1: x"),
        ([], HEADER, "found 8: "),
        ([["a.png", None, *range(10)]], HEADER, "found 1 rows, none without empty cells"),
        (with_cell(3, 4, "high"), HEADER, "LPQ 3 of film_3.png must be a number; found 'high'"),
        (with_cell(3, 11, "low"), HEADER, "PHOG 5 of film_3.png must be a number; found 'low'"),
        (with_cell(3, 1, True), HEADER, "whole number from 1 to 7; found 'True'"),
        (with_cell(5, 1, 8), HEADER, "the label of film_5.png must be a whole number from 1 to 7; found '8'"),
        (with_cell(5, 1, 0), HEADER, "whole number from 1 to 7; found '0'"),
        (with_cell(5, 1, 1.5), HEADER, "whole number from 1 to 7; found '1.5'"),
        (with_cell(5, 1, "fear"), HEADER, "whole number from 1 to 7; found 'fear'"),
    ],
)
def test_another_layout_is_one_line(tmp_path: Path, rows: Rows, header: list[Any], said: str) -> None:
    path = write(tmp_path, rows, header=header, merged=header is HEADER)
    with pytest.raises(DataError, match=said) as caught:
        read_expressions(path)
    assert "\n" not in str(caught.value) and "faces.xlsx" in str(caught.value)


def empty(path: Path) -> None:
    openpyxl.Workbook().save(path)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (empty, "is empty"),
        (lambda path: path.write_text("a,b\n1,2\n"), "Excel workbook"),
        (lambda path: None, "cannot read .*faces.xlsx: No such file"),
        (Path.mkdir, "cannot read .*faces.xlsx: Is a directory"),
    ],
)
def test_what_is_no_workbook_is_one_line(tmp_path: Path, make: Callable[[Path], object], said: str) -> None:
    make(tmp_path / "faces.xlsx")
    with pytest.raises(DataError, match=said):
        read_expressions(tmp_path / "faces.xlsx")
