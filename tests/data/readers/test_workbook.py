import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pandas
import pytest

from topiarist.data import limits
from topiarist.data.readers.table_files import read_excel, read_parquet
from topiarist.errors import DataError, MissingExtraError

FRAME = pandas.DataFrame({"a": [1.5, 2.5], "b": ["x", None], "c": [1, 2]})


def test_parquet(tmp_path: Path) -> None:
    folder = tmp_path / "year=2020"
    folder.mkdir()
    FRAME.to_parquet(folder / "t.parquet")
    frame = read_parquet(folder / "t.parquet").frame
    pandas.testing.assert_frame_equal(frame, FRAME, check_dtype=False)


def test_a_named_index_of_parquet_is_a_column(tmp_path: Path) -> None:
    FRAME.set_index("c").to_parquet(tmp_path / "t.parquet")
    assert set(read_parquet(tmp_path / "t.parquet")[0].columns) == {"a", "b", "c"}


def test_excel(tmp_path: Path) -> None:
    with pandas.ExcelWriter(tmp_path / "t.xlsx") as writer:
        FRAME.to_excel(writer, sheet_name="first", index=False)
        FRAME.to_excel(writer, sheet_name="second", index=False)
    frame, notes, *_ = read_excel(tmp_path / "t.xlsx")
    assert frame["a"].tolist() == [1.5, 2.5]
    assert frame["c"].dtype.kind == "i"
    assert frame["b"].isna().tolist() == [False, True]
    assert notes == ["only the first of 2 sheets read: first"]


def test_excel_without_cells_or_with_a_name_twice(tmp_path: Path) -> None:
    pandas.DataFrame().to_excel(tmp_path / "empty.xlsx", index=False)
    with pytest.raises(DataError, match="is empty"):
        read_excel(tmp_path / "empty.xlsx")
    pandas.DataFrame([["a", "a"], [1, 2]]).to_excel(tmp_path / "twice.xlsx", index=False, header=False)
    with pytest.raises(DataError, match="more than once: a"):
        read_excel(tmp_path / "twice.xlsx")


def test_damaged_files(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "t.parquet")
    FRAME.to_excel(tmp_path / "t.xlsx", index=False)
    for name, reader in (("t.parquet", read_parquet), ("t.xlsx", read_excel)):
        content = (tmp_path / name).read_bytes()
        for bad in (b"", b"a,b\n1,2\n", content[: len(content) // 2], content[:-40]):
            (tmp_path / name).write_bytes(bad)
            with pytest.raises(DataError, match=r"Parquet|Excel"):
                reader(tmp_path / name)


def test_a_zip_that_is_no_workbook(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(DataError, match="Excel workbook"):
        read_excel(tmp_path / "t.xlsx")


def test_bombs_are_seen_by_their_declared_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pandas.DataFrame({"a": [0.0] * 200_000}).to_parquet(tmp_path / "t.parquet")
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/workbook.xml", b" " * 2_000_000)
    monkeypatch.setattr(limits, "LARGEST_BYTES", 1_000_000)
    for path, reader in ((tmp_path / "t.parquet", read_parquet), (tmp_path / "t.xlsx", read_excel)):
        assert path.stat().st_size < 1_000_000
        with pytest.raises(DataError, match="at most 1,000,000"):
            reader(path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('<row r="3"', '<row r="1048576"', "reach to row 1,048,576 and column 16,384"),
        ("<v>1", "<v>1e308", "is not a whole Excel workbook"),
    ],
)
def test_a_small_workbook_does_not_ask_for_much_memory(tmp_path: Path, old: str, new: str, said: str) -> None:
    FRAME.to_excel(tmp_path / "t.xlsx", index=False)
    changes = {old: new} | ({'r="C3"': 'r="XFD1048576"', 'r="A3"': 'r="A1048576"'} if "row" in old else {})
    with zipfile.ZipFile(tmp_path / "t.xlsx") as whole, zipfile.ZipFile(tmp_path / "far.xlsx", "w") as far:
        for name in whole.namelist():
            text = whole.read(name).decode()
            for before, after in changes.items():
                text = text.replace(before, after) if "sheet1" in name else text
            # A date is a number in a style; all cells have the first one.
            far.writestr(name, text.replace('numFmtId="0"', 'numFmtId="14"') if "styles" in name else text)
    with pytest.raises(DataError, match=said):
        read_excel(tmp_path / "far.xlsx")


@pytest.mark.parametrize("reader", [read_parquet, read_excel])
def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reader: Callable[[Path], object]
) -> None:
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingExtraError, match=r"topiarist\[tables\]"):
        reader(tmp_path / "t")


def test_a_workbook_with_a_password(tmp_path: Path) -> None:
    path = tmp_path / "t.xlsx"
    FRAME.to_excel(path, index=False)
    content = bytearray(path.read_bytes())
    place = -1
    while (place := content.find(b"PK\x01\x02", place + 1)) >= 0:
        content[place + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="Excel workbook"):
        read_excel(path)
