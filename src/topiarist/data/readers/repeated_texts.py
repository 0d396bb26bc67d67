"""How much memory the texts of a Parquet file take: one that is stored once may be in a million rows."""

from pathlib import Path
from typing import Any

from topiarist.data import limits

_TEXT = "BYTE_ARRAY"


def check_repeated(path: Path, file: Any) -> None:
    """Raise where the texts of a `pyarrow.parquet.ParquetFile`, each as often as it is there, are too many.

    What is stored of a column is its different texts and a number for each row. Only where the product of both could
    be too much are they looked at, as they are stored.
    """
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    most = dict.fromkeys(range(file.metadata.num_columns), 0)
    for group in groups:
        for place in most:
            column = group.column(place)
            if column.physical_type == _TEXT:
                most[place] += column.num_values * column.total_uncompressed_size
    names = [groups[0].column(place).path_in_schema for place, size in most.items() if size > limits.LARGEST_BYTES]
    if names:
        limits.check_size(str(path), sum(_size_of(path, name) for name in names))


def _size_of(path: Path, name: str) -> int:
    """Return how many bytes the texts of a column take, one for each row."""
    from pyarrow import compute, parquet  # noqa: PLC0415  # an extra, which is there

    with path.open("rb") as stream:
        (column,) = parquet.read_table(stream, columns=[name], read_dictionary=[name]).columns
    size = 0
    for chunk in column.chunks:
        lengths = compute.binary_length(chunk.dictionary) if hasattr(chunk, "dictionary") else None
        taken = compute.binary_length(chunk) if lengths is None else lengths.take(chunk.indices)
        size += compute.sum(compute.cast(taken, "int64")).as_py() or 0
    return size
