import gzip
from pathlib import Path

import pytest

from topiarist.data.readers import contents
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


def test_a_large_gzip_is_expanded_as_often_as_needed_and_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "HELD_BYTES", 1_000)
    path = write(tmp_path, gzip.compress(b"a,b\n" + b"1,2\n" * 3_000))
    content = contents.TextContent.of(path)
    assert content.held is None and content.size == 12_004 > path.stat().st_size
    assert read_delimited(path).frame["b"].tolist() == [2] * 3_000
    path.write_bytes(path.read_bytes()[:-9])  # behind what would be held
    with pytest.raises(DataError, match="truncated"):
        read_delimited(path)


def test_quotes_spaces_and_blank_lines(tmp_path: Path) -> None:
    frame = read_delimited(write(tmp_path, b'\na , "b"\n1, "x, y"\n\n2, "two\nlines"\n')).frame
    assert frame.to_dict("list") == {"a": [1, 2], "b": ["x, y", "two\nlines"]}


def test_decimal_comma_is_noted(tmp_path: Path) -> None:
    frame, notes, *_ = read_delimited(write(tmp_path, b"a;b\n1,5;x\n2,25;y\n"))
    assert frame["a"].tolist() == [1.5, 2.25]
    assert notes == ["numbers read with a decimal comma"]


@pytest.mark.parametrize(
    "content", [b"a,b\n1,x,\n2,y,,\n3,z\n", b"a,b,\n1,x\n2,y\n3,z\n", b"a,b,,\n1,x,\n2,y,,\n3,z\n"]
)
@pytest.mark.parametrize("inferred", [None, ()])
def test_separators_at_the_end_part_nothing(tmp_path: Path, content: bytes, inferred: tuple[str, ...] | None) -> None:
    frame = read_delimited(write(tmp_path, content), inferred=inferred).frame
    assert frame["b"].tolist() == ["x", "y", "z"] and [int(cell) for cell in frame["a"]] == [1, 2, 3]
    assert all(name == "" for name in frame.columns[2:])


def test_comments_before_the_header(tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-16"):
        frame, notes, *_ = read_delimited(write(tmp_path, "# made in\r\n# Köln\r\na;b\r\n1;ü\r\n".encode(encoding)))
        assert frame.to_dict("list") == {"a": [1], "b": ["ü"]}
        assert notes[-1] == "2 line(s) of comments before the header left out"
    frame, notes, *_ = read_delimited(write(tmp_path, b"## about\n#id\tb\n1\tx\n"))
    assert list(frame.columns) == ["#id", "b"] and notes == ["1 line(s) of comments before the header left out"]
    assert list(read_delimited(write(tmp_path, b"#a,b\n1,2\n")).frame.columns) == ["#a", "b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"Report\n\na,b\n1,2\n", "line 3: expected 1 values as in the header, found 2; is the first line a title?"),
        (b"1,1\n2,3\n", "found more than once: 1; some of these are numbers: the first line must be a header"),
        (b"a,b\n1,2\nsource: us\n", "line 3: expected 2 values as in the header, found 1"),
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
