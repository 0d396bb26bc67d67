"""Tables in Parquet and Excel files, which need the extra 'tables'."""

import zipfile
import zlib
from pathlib import Path
from xml.etree.ElementTree import ParseError

import pandas

from topiarist.data.extras import import_extra
from topiarist.data.limits import check_size
from topiarist.data.tidying import check_header
from topiarist.errors import DataError

BYTES_A_VALUE = 8


def read_parquet(path: Path) -> tuple[pandas.DataFrame, list[str]]:
    """Read a Parquet file, its named index as columns."""
    parquet = import_extra("pyarrow.parquet", what="reading Parquet files", extra="tables")
    try:
        # An open file, not a path: pyarrow would add columns for folders named like a=b.
        with path.open("rb") as stream:
            metadata = parquet.read_metadata(stream)
            stored = sum(metadata.row_group(place).total_byte_size for place in range(metadata.num_row_groups))
            check_size(str(path), max(stored, BYTES_A_VALUE * metadata.num_rows * metadata.num_columns))
            check_header(str(path), parquet.read_schema(stream).names)
            frame = pandas.read_parquet(stream, engine="pyarrow")
    except (OSError, ValueError, KeyError, TypeError, NotImplementedError) as error:
        raise DataError(f"{path} cannot be read as Parquet: {error}") from error
    named = any(name is not None for name in frame.index.names)
    frame = frame.reset_index(drop=not named)
    frame.columns = pandas.Index([str(column).strip() for column in frame.columns])
    return frame, []


def read_excel(path: Path) -> tuple[pandas.DataFrame, list[str]]:
    """Read the first sheet of an Excel workbook, its first row as the header."""
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
