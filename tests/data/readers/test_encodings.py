"""Encodings are told by their bytes, and said where they are not UTF-8."""

import codecs
from pathlib import Path

import pytest

from topiarist.data.readers.contents import TextContent
from topiarist.data.readers.encodings import find_encoding
from topiarist.data.readers.table_files import read_delimited

TEXT = "stadt,größe\nMünchen,1\nKöln,2\n"
GUESSED = "; if letters are wrong, save it as UTF-8"


@pytest.mark.parametrize(
    ("content", "encoding", "notes"),
    [
        (TEXT.encode(), "utf-8", []),
        (TEXT.encode("utf-8-sig"), "utf-8-sig", []),
        (TEXT.encode("utf-16"), "utf-16", ["not UTF-8: read as UTF-16"]),
        (codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"), "utf-16", ["not UTF-8: read as UTF-16"]),
        (TEXT.encode("utf-16-le"), "utf-16-le", ["not UTF-8: read as UTF-16"]),
        (TEXT.encode("utf-16-be"), "utf-16-be", ["not UTF-8: read as UTF-16"]),
        (TEXT.encode("utf-32"), "utf-32", ["not UTF-8: read as UTF-32"]),
        (TEXT.encode("latin-1"), "latin-1", [f"not UTF-8: read as Latin-1{GUESSED}"]),
    ],
)
def test_letters_are_read_in_every_encoding(tmp_path: Path, content: bytes, encoding: str, notes: list[str]) -> None:
    (tmp_path / "t.csv").write_bytes(content)
    assert find_encoding("t", TextContent(Path("t"), len(content), content)) == encoding
    frame, found, *_ = read_delimited(tmp_path / "t.csv", inferred=())
    assert frame.to_dict("list") == {"stadt": ["München", "Köln"], "größe": ["1", "2"]}
    assert found == notes


def test_the_letters_of_windows_are_known(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes("a;b\n€ 5;“x”\n".encode("cp1252"))
    frame, notes, semicolons, _ = read_delimited(tmp_path / "t.csv", inferred=())
    assert frame.to_dict("list") == {"a": ["€ 5"], "b": ["“x”"]}
    assert notes == [f"not UTF-8: read as Windows-1252{GUESSED}"]
    assert semicolons
    assert find_encoding("t", TextContent(Path("t"), 5, b"a,\x81\x8d\n")) == "latin-1"
