"""Tables with one row per sample: text (plain or gzip), Parquet or Excel.

pandas is imported when a table is read: other data are read without it, in half a second less.
"""

import csv
import io
import re
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from xml.etree.ElementTree import ParseError

import numpy
from numpy.typing import NDArray

from topiarist.data.columns import check_column, check_header, drop_uninformative, listed, tidy
from topiarist.data.extras import import_extra
from topiarist.data.labels import as_labels
from topiarist.data.limits import check_size, read_whole
from topiarist.data.source import Source
from topiarist.errors import DataError

if TYPE_CHECKING:
    import pandas

TableForm = Literal["text", "parquet", "excel"]
_DELIMITERS = ",;\t"
_SAMPLE_CHARACTERS = 64 * 1024  # enough lines to see the form of a table
_DECIMAL_COMMA = re.compile(r"(^|;)\s*[-+]?\d+,\d+\s*(;|$)", re.MULTILINE)
_BYTES_PER_VALUE = 8


def read_table(
    path: Path, *, form: TableForm = "text", target: str | None, group: str | None, labelled: bool
) -> Source:
    """Read a table whose column `target` holds the labels and whose column `group` holds the groups.

    Without `labelled`, for prediction, every row and column stays, and labels are returned where all are there.
    """
    frame, notes = {"text": read_delimited, "parquet": read_parquet, "excel": read_excel}[form](path)
    name = path.resolve().name
    columns = [str(column) for column in frame.columns]
    if frame.empty:
        raise DataError(f"{name} has a header and no rows: {listed(columns)}")
    if not labelled:
        known, unused = known_labels(name, frame, target)
        features, changes = tidy(name, frame.drop(columns=[target, group], errors="ignore"))
        return Source(name=name, features=features, labels=known, notes=(*notes, *unused, *changes))
    if target is None:
        raise DataError(f"{name}: name the column that holds the label with --target: {listed(columns)}")
    frame, labels, dropped = split_labels(name, frame, target)
    groups = None if group is None else group_values(name, frame, group, target=target)
    features, changes = tidy(name, frame.drop(columns=[target, *([] if group is None else [group])]))
    features, left_out = drop_uninformative(features)
    if features.columns.empty:
        raise DataError(f"{name}: no column is left to learn from; {'; '.join(left_out) or 'add features'}")
    notes = [*notes, *dropped, *changes, *left_out]
    return Source(name=name, features=features, labels=labels, groups=groups, notes=tuple(notes))


def split_labels(
    name: str, frame: "pandas.DataFrame", target: str
) -> "tuple[pandas.DataFrame, NDArray[Any], list[str]]":
    """Return the rows that have a label, their labels, and a note of how many had none."""
    check_column(name, list(frame.columns), target, option="--target")
    found = _finite(frame[target])
    known = found.notna()
    missing = int((~known).sum())
    if missing == len(frame):
        raise DataError(f"{name}: every value of the target {target} is missing; choose another --target")
    labels = as_labels(name, _values(found[known]), training=True)
    notes = [f"{missing} row(s) without a label in {target} left out"] if missing else []
    return frame[known].reset_index(drop=True), labels, notes


def known_labels(name: str, frame: "pandas.DataFrame", target: str | None) -> tuple[NDArray[Any] | None, list[str]]:
    """Return the labels, None where any is missing or there is no such column, with a note of how many are."""
    if target not in frame.columns:
        return None, []
    found = _finite(frame[target])
    if found.notna().all():
        return as_labels(name, _values(found), training=False), []
    return None, [f"labels not used: {found.isna().sum()} missing in {target}"]


def group_values(name: str, frame: "pandas.DataFrame", group: str, *, target: str) -> NDArray[Any]:
    """Return the group of each row; raise where a row has none."""
    check_column(name, list(frame.columns), group, option="--group")
    if group == target:
        raise DataError(f"{name}: --target and --group are both {group}; choose two columns")
    missing = int(frame[group].isna().sum())
    if missing:
        raise DataError(f"{name}: {missing} row(s) have no group in {group}; fill them or leave out --group")
    return as_labels(name, _values(frame[group]), training=False)


def _finite(column: "pandas.Series[Any]") -> "pandas.Series[Any]":
    return column.replace([numpy.inf, -numpy.inf], numpy.nan)


def _values(column: "pandas.Series[Any]") -> NDArray[Any]:
    """Return a column without missing values as an array of numbers, truth values or objects."""
    return column.astype(object).infer_objects().to_numpy()


def read_delimited(path: Path) -> "tuple[pandas.DataFrame, list[str]]":
    """Read a text table with a header: comma, semicolon or tab between the values; note a decimal comma."""
    import pandas  # noqa: PLC0415  # see the top of the file

    content = bytes(read_whole(path))
    if b"\0" in content:
        raise DataError(f"{path} is not text: a table must be UTF-8 text with a header line")
    try:
        sample = _lines(content).read(_SAMPLE_CHARACTERS)
        first = next((line for line in sample.splitlines() if line.strip()), "")
        delimiter = max(_DELIMITERS, key=lambda one: len(next(csv.reader([first], delimiter=one), [])))
        header = _check_rows(path, content, delimiter)
        decimal = "," if delimiter == ";" and _DECIMAL_COMMA.search(sample) else "."
        frame = pandas.read_csv(
            io.BytesIO(content),
            sep=delimiter,
            decimal=decimal,
            names=[str(place) for place in range(len(header))],
            header=0,
            index_col=False,
            skipinitialspace=True,
            encoding="utf-8-sig",
            low_memory=False,
        )
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text ({error.reason}): save it as UTF-8") from error
    except (csv.Error, pandas.errors.ParserError, pandas.errors.EmptyDataError) as error:
        raise DataError(f"{path} cannot be read as a table: {error}") from error
    frame.columns = pandas.Index(header)
    return frame, ["numbers read with a decimal comma"] if decimal == "," else []


def _lines(content: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")


def _check_rows(path: Path, content: bytes, delimiter: str) -> list[str]:
    """Return the header; raise where a row has more or fewer values than it."""
    rows = csv.reader(_lines(content), delimiter=delimiter, skipinitialspace=True)
    header: list[str] = []
    for row in rows:
        if len(row) < 2 and not "".join(row).strip():
            continue
        if not header:
            header = [column.strip() for column in row]
            check_header(str(path), header)
        elif len(row) != len(header):
            raise DataError(
                f"{path}, line {rows.line_num}: expected {len(header)} values as in the header, found {len(row)}"
            )
    if not header:
        raise DataError(f"{path} is empty: a table needs a header line and rows")
    return header


def read_parquet(path: Path) -> "tuple[pandas.DataFrame, list[str]]":
    """Read a Parquet file, its named index as columns."""
    import pandas  # noqa: PLC0415  # see the top of the file

    parquet = import_extra("pyarrow.parquet", what="reading Parquet files", extra="tables")
    try:
        # An open file, not a path: pyarrow would add columns for folders named like a=b.
        with path.open("rb") as stream:
            metadata = parquet.read_metadata(stream)
            stored = sum(metadata.row_group(place).total_byte_size for place in range(metadata.num_row_groups))
            check_size(str(path), max(stored, _BYTES_PER_VALUE * metadata.num_rows * metadata.num_columns))
            check_header(str(path), parquet.read_schema(stream).names)
            frame = pandas.read_parquet(stream, engine="pyarrow")
    except (OSError, ValueError, KeyError, TypeError, NotImplementedError) as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}") from error
    frame = frame.reset_index(drop=not any(name is not None for name in frame.index.names))
    frame.columns = pandas.Index([str(column).strip() for column in frame.columns])
    return frame, []


def read_excel(path: Path) -> "tuple[pandas.DataFrame, list[str]]":
    """Read the first sheet of an Excel workbook, its first row as the header."""
    import pandas  # noqa: PLC0415  # see the top of the file

    import_extra("openpyxl", what="reading Excel files", extra="tables")
    try:
        with zipfile.ZipFile(path) as archive:
            check_size(str(path), sum(member.file_size for member in archive.infolist()))
        with pandas.ExcelFile(path, engine="openpyxl") as workbook:
            cells = pandas.read_excel(workbook, header=None)
            names = workbook.sheet_names
    except (zipfile.BadZipFile, zlib.error, ParseError, EOFError) as error:
        raise DataError(f"{path} cannot be read as an Excel workbook: {error}") from error
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RuntimeError) as error:
        raise DataError(f"{path} is not a whole Excel workbook: {error}") from error
    if cells.empty:
        raise DataError(f"{path} is empty: the first sheet needs a header and rows")
    header = ["" if pandas.isna(cell) else str(cell).strip() for cell in cells.iloc[0]]
    check_header(str(path), header)
    frame = cells.iloc[1:].reset_index(drop=True).infer_objects()
    frame.columns = pandas.Index(header)
    return frame, [f"only the first of {len(names)} sheets read: {names[0]}"] if len(names) > 1 else []
