import gzip
from pathlib import Path

import pytest

from topiarist.data.readers.table_files import read_delimited
from topiarist.errors import DataError


def write(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "t.csv"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_delimiters_and_marks(tmp_path: Path, delimiter: str, mark: bytes, newline: str) -> None:
    text = newline.join(delimiter.join(row) for row in (["a", "b c"], ["1", "ü"], ["2", ""]))
    frame, notes, *_ = read_delimited(write(tmp_path, mark + text.encode()))
    assert list(frame.columns) == ["a", "b c"]
    assert frame["a"].tolist() == [1, 2]
    assert frame["b c"].iloc[0] == "ü"
    assert frame["b c"].isna().tolist() == [False, True]
    assert notes == []


def test_gzip(tmp_path: Path) -> None:
    frame = read_delimited(write(tmp_path, gzip.compress(b"a,b\n1,2\n"))).frame
    assert frame.to_dict("list") == {"a": [1], "b": [2]}


def test_quotes_spaces_and_blank_lines(tmp_path: Path) -> None:
    frame = read_delimited(write(tmp_path, b'\na , "b"\n1, "x, y"\n\n2, "two\nlines"\n')).frame
    assert frame.to_dict("list") == {"a": [1, 2], "b": ["x, y", "two\nlines"]}


def test_decimal_comma_is_noted(tmp_path: Path) -> None:
    frame, notes, *_ = read_delimited(write(tmp_path, b"a;b\n1,5;x\n2,25;y\n"))
    assert frame["a"].tolist() == [1.5, 2.25]
    assert notes == ["numbers read with a decimal comma"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"a,b\n1,2\n3\n", "line 3: expected 2 values as in the header, found 1"),
        (b"a,b\n1,2,3\n", "line 2: expected 2 values as in the header, found 3"),
        (b'a,b\n1,"2\n3,4\n', "cannot be read|expected 2 values"),
        (b"a,b,a\n1,2,3\n", "found more than once: a"),
        (b"\x89PNG\r\n\x1a\n\0\0\0", "is not text"),
        ("a,b\n1,2\n".encode("utf-16")[:-1], "is not text"),
        (b"a,b\n\0\0,2\n", "is not text"),
        (b"a,b\n1," + b"x" * 200_000, "field larger than field limit"),
    ],
)
def test_what_cannot_be_read(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_delimited(write(tmp_path, content))


def test_truncated_gzip(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="truncated"):
        read_delimited(write(tmp_path, gzip.compress(b"a,b\n1,2\n" * 99)[:-9]))
