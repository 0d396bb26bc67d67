"""The cells of table files: text (plain or gzip), Parquet or Excel, before anything is decided about them.

pandas is imported when a table is read: other data are read without it, in half a second less.
"""

import csv
import io
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from xml.etree.ElementTree import ParseError

from topiarist.data.columns.names import check_header
from topiarist.data.extras import import_extra
from topiarist.data.limits import check_size
from topiarist.data.readers import chunks
from topiarist.data.readers.contents import TextContent
from topiarist.data.readers.encodings import encoding_notes, find_encoding
from topiarist.data.readers.repeated_texts import check_repeated
from topiarist.data.readers.sheet_extent import check_extent
from topiarist.errors import DataError

if TYPE_CHECKING:
    import pandas

_DELIMITERS = ",;\t|"
# What stands for a label that is not there: what pandas takes as missing, and the question mark.
LABEL_GAPS = [
    *("", "?", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A"),
    *("NA", "NULL", "NaN", "None", "n/a", "nan", "null"),
]
_SAMPLE_CHARACTERS = 64 * 1024  # enough lines to see the form of a table
_DECIMAL_COMMA = re.compile(r"(^|;)\s*[-+]?\d+,\d+\s*(;|$)", re.MULTILINE)
_SEPARATOR_LINE = re.compile(r'"?sep=(?P<mark>[,;|\t])"?\s*$', re.IGNORECASE)  # before the header, by a spreadsheet
_BYTES_PER_VALUE = 8
LONGEST_LINE = 2**24  # characters: 100,000 columns, the most there may be, with 160 characters each
# The last of them from what pandas itself keeps in the file, as JSON.
_PARQUET_DAMAGE = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RuntimeError)


class RawTable(NamedTuple):
    """A table before anything is decided, notes on how it was read, and whether semicolons part its columns.

    `plain` are columns of text that were read as plain numbers, and whether these show a decimal point.
    """

    frame: "pandas.DataFrame"
    notes: list[str]
    semicolons: bool = False
    plain: Mapping[str, bool] = MappingProxyType({})


def read_delimited(path: Path, *, inferred: Sequence[str] | None = None, narrow: bool = False) -> RawTable:
    """Read a text table with a header: comma, semicolon, tab or bar between the values.

    Columns that are `inferred`, all for None, are numbers or text as pandas finds; others are as they are written, but
    those of a large table that are plain numbers are such where they may be: with `narrow`.
    """
    import pandas  # noqa: PLC0415  # see the top of the file

    content = TextContent.of(path)
    encoding = found_encoding = find_encoding(path, content)
    with content.lines(encoding) as lines:
        named = _SEPARATOR_LINE.match(lines.readline(_SAMPLE_CHARACTERS))
    if named:  # what follows is read as any other text
        content, encoding = content.without_first_line(encoding), "utf-8"
    try:
        with content.lines(encoding) as lines:
            comments = _comment_lines(lines.read(_SAMPLE_CHARACTERS))
        if comments:
            content, encoding = content.without_lines(encoding, comments), "utf-8"
        with content.lines(encoding) as lines:
            sample = lines.read(_SAMPLE_CHARACTERS)
        first = next((line for line in sample.splitlines() if line.strip()), "")
        delimiter = max(_DELIMITERS, key=lambda one: _values_in(first, one))
        delimiter = delimiter if named is None else named["mark"]
        header, longest, rows, coded = _check_rows(path, content, encoding, delimiter, watched=inferred or ())
        if longest > len(header):
            content, encoding = _cut_rows(content, encoding, delimiter, len(header)), "utf-8"
        decimal = "," if delimiter == ";" and _DECIMAL_COMMA.search(sample) else "."
        written = [str(place) for place, name in enumerate(header) if inferred is not None and name not in inferred]
        names = [str(place) for place in range(len(header))]
        codes = [str(header.index(name)) for name in coded]
        if narrow and inferred is not None and content.size > chunks.LARGE_BYTES:
            options = chunks.TextOptions(sep=delimiter, decimal=decimal, names=names, encoding=encoding)
            others = [name for name in names if name not in written]
            frame, plain = chunks.read_chunks(content, options, others, LABEL_GAPS, rows=rows, codes=codes)
            frame.columns = pandas.Index(header)
            shown = {header[int(name)]: points for name, points in plain.items()}
            return RawTable(frame, [*encoding_notes(found_encoding), *_left_aside(comments)], delimiter == ";", shown)
        gaps = {name: LABEL_GAPS for name in names if name not in written}
        with content.open() as stream:
            frame = pandas.read_csv(
                stream,
                sep=delimiter,
                decimal=decimal,
                names=names,
                header=0,
                index_col=False,
                dtype=dict.fromkeys([*written, *codes], str),
                keep_default_na=inferred is None,
                na_values=None if inferred is None else gaps,
                skipinitialspace=True,
                encoding=encoding,
                low_memory=False,
            )
    except (csv.Error, pandas.errors.ParserError, pandas.errors.EmptyDataError) as error:
        raise DataError(f"{path} cannot be read as a table: {error}") from error
    frame.columns = pandas.Index(header)
    notes = ["numbers read with a decimal comma"] if decimal == "," and inferred is None else []
    said = [*encoding_notes(found_encoding), *_left_aside(comments), *notes]
    return RawTable(frame, said, semicolons=delimiter == ";")


def _cut_rows(content: TextContent, encoding: str, delimiter: str, width: int) -> TextContent:
    """Return the text with so many values in a row: what follows them is blank."""
    found = io.StringIO(newline="")
    with content.lines(encoding) as lines:
        rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
        csv.writer(found, delimiter=delimiter).writerows(row[:width] for row in rows)
    return TextContent.of_text(content.path, found.getvalue())


def _values_in(line: str, delimiter: str) -> int:
    return len(next(csv.reader([line], delimiter=delimiter), []))


def _comment_lines(sample: str) -> int:
    """Return how many lines before the header are comments: they begin with # and hold fewer values than the rows."""
    lines = sample.splitlines()
    begins = [line.lstrip().startswith("#") for line in lines]
    if not lines or not begins[0] or all(begins):
        return 0
    first = begins.index(False)
    mark = max(_DELIMITERS, key=lambda one: _values_in(lines[first], one))
    fewer = [_values_in(line, mark) < _values_in(lines[first], mark) for line in lines[:first]]
    return fewer.index(False) if False in fewer else first


def _left_aside(comments: int) -> list[str]:
    return [f"{comments} line(s) of comments before the header left out"] if comments else []


def _bounded(path: Path, lines: io.TextIOWrapper) -> Iterator[str]:
    """Yield the lines of a text; raise for one that is too long before it is parted into millions of values."""
    while line := lines.readline(LONGEST_LINE + 1):
        if len(line) > LONGEST_LINE:
            raise DataError(f"{path} has a line of more than {LONGEST_LINE:,} characters: it is no table")
        yield line


@dataclass
class _Codes:
    """What the cells of a column have shown so far: whether they may be codes such as 01234, which are no numbers."""

    length: int | None = None  # of all cells; 0 where they differ, or hold more than digits
    leading_zero: bool = False

    def add(self, cell: str) -> None:
        """Look at one more cell; what stands for a gap is none."""
        if self.length == 0 or cell in LABEL_GAPS:
            return
        same = cell.isdecimal() and len(cell) > 1 and self.length in (None, len(cell))
        self.length = len(cell) if same else 0
        self.leading_zero |= cell.startswith("0")

    @property
    def found(self) -> bool:
        """Whether all cells are digits of one length, some with a leading zero."""
        return bool(self.length) and self.leading_zero


class _Shape(NamedTuple):
    """The header of a text table, the values in its longest row, how many rows there are, which columns hold codes."""

    header: list[str]
    longest: int
    rows: int
    codes: list[str]


def _check_rows(
    path: Path, content: TextContent, encoding: str, delimiter: str, *, watched: Sequence[str] = ()
) -> _Shape:
    """Return the shape of a text table, and which of the columns that are `watched` hold codes such as 01234.

    Raise where a row has more or fewer values than the header. Separators at the end of a line, of the header or of a
    row, part nothing.
    """
    header: list[str] = []
    codes: dict[int, _Codes] = {}
    longest = count = 0
    with content.lines(encoding) as lines:
        rows = csv.reader(_bounded(path, lines), delimiter=delimiter, skipinitialspace=True)
        for row in rows:
            if len(row) < 2 and not "".join(row).strip():
                continue
            if not header:
                header = [column.strip() for column in row]
                check_header(str(path), header)
                codes = {place: _Codes() for place, name in enumerate(header) if name in watched}
                continue
            count += 1
            for place, column in codes.items():
                if place < len(row):
                    column.add(row[place].strip())
            if len(row) != len(header):
                if "".join(row[len(header) :]).strip() or "".join(header[len(row) :]):
                    title = "; is the first line a title? It must be the header" if len(header) == 1 else ""
                    found = f"expected {len(header)} values as in the header, found {len(row)}"
                    raise DataError(f"{path}, line {rows.line_num}: {found}{title}")
                longest = max(longest, len(row))
    if not header:
        raise DataError(f"{path} is empty: a table needs a header line and rows")
    return _Shape(header, longest, count, [header[place] for place, column in codes.items() if column.found])


def read_parquet(path: Path, *, inferred: Sequence[str] | None = None) -> RawTable:
    """Read a Parquet file, its named index as columns; its cells have types of their own, nothing is `inferred`."""
    import pandas  # noqa: PLC0415  # see the top of the file

    arrow = import_extra("pyarrow", what="reading Parquet files", extra="tables")
    parquet = import_extra("pyarrow.parquet", what="reading Parquet files", extra="tables")
    try:
        # An open file, not a path: pyarrow would add columns for folders named like a=b.
        with path.open("rb") as stream:
            metadata = parquet.read_metadata(stream)
            stored = sum(metadata.row_group(place).total_byte_size for place in range(metadata.num_row_groups))
            check_size(str(path), max(stored, _BYTES_PER_VALUE * metadata.num_rows * metadata.num_columns))
            check_header(str(path), parquet.read_schema(stream).names)
            check_repeated(path, parquet.ParquetFile(stream))
            frame = pandas.read_parquet(stream, engine="pyarrow")
        for place in range(frame.shape[1]):
            cells = frame.iloc[:, place].array
            if hasattr(cells, "__arrow_array__"):  # text is not looked at before it is used
                cells.__arrow_array__().validate(full=True)
    except (OSError, *_PARQUET_DAMAGE, arrow.ArrowException) as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}") from error
    frame = frame.reset_index(drop=not any(name is not None for name in frame.index.names))
    frame.columns = pandas.Index([str(column).strip() for column in frame.columns])
    return RawTable(frame, [])


def read_excel(path: Path, *, inferred: Sequence[str] | None = None) -> RawTable:
    """Read the first sheet of an Excel workbook, its first row as the header.

    Its cells have types of their own; text is as it is written in columns that are not `inferred`, all for None.
    """
    import pandas  # noqa: PLC0415  # see the top of the file

    import_extra("openpyxl", what="reading Excel files", extra="tables")
    try:
        with zipfile.ZipFile(path) as archive:
            check_size(str(path), sum(member.file_size for member in archive.infolist()))
            check_extent(path, archive)
        with pandas.ExcelFile(path, engine="openpyxl") as workbook:
            cells = pandas.read_excel(workbook, header=None, keep_default_na=inferred is None, na_values=[""])
            names = workbook.sheet_names
    except (zipfile.BadZipFile, zlib.error, ParseError, EOFError) as error:
        raise DataError(f"{path} cannot be read as an Excel workbook: {error}") from error
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError, RuntimeError) as error:
        raise DataError(f"{path} is not a whole Excel workbook: {error}") from error
    if cells.empty:
        raise DataError(f"{path} is empty: the first sheet needs a header and rows")
    header = ["" if pandas.isna(cell) else str(cell).strip() for cell in cells.iloc[0]]
    check_header(str(path), header)
    frame = cells.iloc[1:].reset_index(drop=True).infer_objects()
    frame.columns = pandas.Index(header)
    for name in inferred or ():
        if name in header:
            frame[name] = frame[name].where(~frame[name].isin(LABEL_GAPS))
    notes = [f"only the first of {len(names)} sheets read: {names[0]}"] if len(names) > 1 else []
    return RawTable(frame.infer_objects(), notes)
