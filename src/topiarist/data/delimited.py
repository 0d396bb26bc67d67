"""Text tables: comma, semicolon or tab between the values, plain or gzip."""

import csv
import io
import re
from pathlib import Path

import pandas

from topiarist.data.expanding import read_whole
from topiarist.data.tidying import check_header
from topiarist.errors import DataError

DELIMITERS = ",;\t"
SAMPLE_CHARACTERS = 64 * 1024
DECIMAL_COMMA = re.compile(r"(^|;)\s*[-+]?\d+,\d+\s*(;|$)", re.MULTILINE)


def read_delimited(path: Path) -> tuple[pandas.DataFrame, list[str]]:
    """Read a text table with a header, and note what was found out about its form."""
    content = read_whole(path)
    if b"\0" in content:
        raise DataError(f"{path} is not text: a table must be UTF-8 text with a header line")
    try:
        sample = first_lines(content)
        delimiter = sniff(sample)
        header = check_rows(path, content, delimiter)
        decimal = "," if delimiter == ";" and DECIMAL_COMMA.search(sample) else "."
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


def first_lines(content: bytes) -> str:
    """Give the first lines as text, enough to see the form of the table."""
    return lines(content).read(SAMPLE_CHARACTERS)


def lines(content: bytes) -> io.TextIOWrapper:
    """Open `content` as UTF-8 text, with or without a byte order mark."""
    return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")


def sniff(sample: str) -> str:
    """Choose the delimiter that splits the header into the most columns."""
    header = next((line for line in sample.splitlines() if line.strip()), "")
    return max(DELIMITERS, key=lambda delimiter: len(next(csv.reader([header], delimiter=delimiter), [])))


def check_rows(path: Path, content: bytes, delimiter: str) -> list[str]:
    """Give the header, after making sure that every row has as many values."""
    rows = csv.reader(lines(content), delimiter=delimiter, skipinitialspace=True)
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
