"""Large text tables are read in chunks: what each column becomes does not depend on it, and memory is bounded."""

import tracemalloc
from pathlib import Path

import numpy
import pandas
import pytest

from topiarist.data import load_data
from topiarist.data.readers import chunks
from topiarist.data.readers.table_files import read_delimited
from topiarist.data.readers.tables import read_table
from topiarist.data.source import Source, take_rows

ROWS = 40
COLUMNS = {
    "whole": [str(row * 7 % 13) for row in range(ROWS)],
    "point": [f"{row}.25" for row in range(ROWS)],
    "point_later": [str(row) if row < 30 else f"{row}.5" for row in range(ROWS)],
    "thousands": [f"{row + 1}.{row:03d}" for row in range(ROWS)],
    "word_last": [str(row % 9) if row < ROWS - 1 else "many" for row in range(ROWS)],
    "gap_last": [f"{row}.5" if row < ROWS - 1 else "?" for row in range(ROWS)],
    "blank_chunk": ["" if 10 <= row < 24 else f"{row}.75" for row in range(ROWS)],
    "blank_first": ["" if row < 12 else str(row % 5) for row in range(ROWS)],
    "zeros": [f"{row % 7:03d}" for row in range(ROWS)],
    "zeros_later": [str(row + 10) if row < 30 else f"0{row}" for row in range(ROWS)],
    "date": [f"2024-01-{row % 28 + 1:02d}" for row in range(ROWS)],
    "day": [f"202401{row % 28 + 1:02d}" for row in range(ROWS)],
    "word": ["north" if row % 3 else '"south, far"' for row in range(ROWS)],
    "truth": ["yes" if row % 2 else "no" for row in range(ROWS)],
    "huge": [f"{row}e30" if row % 2 else "inf" for row in range(ROWS)],
}
TARGETS = {
    "classes": ["a" if row % 2 else "b" for row in range(ROWS)],
    "mixed": [str(row % 3) if row < 30 else "x" for row in range(ROWS)],
    "numbers": [f"{row * 0.5}" if row != 5 else "NA" for row in range(ROWS)],
    "codes": [
        "NA" if row == 5 else f"{row % 3}{7 + row % 2}" if row < 30 else f"0{7 + row % 2}" for row in range(ROWS)
    ],
    "quoted": ['"007"' if row % 2 else '""' if row == 4 else '"8"' for row in range(ROWS)],
}


def write(folder: Path, target: str) -> Path:
    cells = {**COLUMNS, "target": TARGETS[target]}
    lines = [",".join(cells), *(",".join(row) for row in zip(*cells.values(), strict=True))]
    file = folder / "table.csv"
    file.write_text("\n".join(lines) + "\n")
    return file


def read(file: Path) -> Source:
    return read_table(file, target="target", group=None, labelled=True)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("rows", [10, 1_000])
def test_a_table_in_chunks_is_the_table_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, rows: int
) -> None:
    file = write(tmp_path, target)
    whole = read(file)
    monkeypatch.setattr(chunks, "LARGE_BYTES", 0)
    monkeypatch.setattr(chunks, "CHUNK_CELLS", 0)
    monkeypatch.setattr(chunks, "FEWEST_ROWS", rows)
    pieces = read(file)
    one, other = (pandas.DataFrame(take_rows(each.features, numpy.arange(len(each)))) for each in (pieces, whole))
    pandas.testing.assert_frame_equal(one, other)
    assert pieces.columns == whole.columns
    assert pieces.notes == whole.notes
    assert pieces.labels is not None and whole.labels is not None
    assert pieces.labels.dtype == whole.labels.dtype
    numpy.testing.assert_array_equal(pieces.labels, whole.labels)


def test_a_large_table_becomes_the_same_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, "classes")
    with pytest.warns(UserWarning):
        whole = load_data(file, target="target")
    monkeypatch.setattr("topiarist.data.preprocessing.LARGE_TABLE", 0)
    monkeypatch.setattr("topiarist.data.preprocessing.CHUNK_BYTES", 1_000)
    with pytest.warns(UserWarning):
        pieces = load_data(file, target="target")
    assert whole.preprocessing is not None and pieces.preprocessing is not None
    assert pieces.preprocessing.columns == whole.preprocessing.columns
    assert pieces.preprocessing.shift == pytest.approx(whole.preprocessing.shift, rel=1e-12, abs=1e-12)
    for one, other in ((pieces.train, whole.train), (pieces.test, whole.test)):
        numpy.testing.assert_allclose(one.x.numpy(), other.x.numpy(), rtol=1e-5, atol=1e-6)  # type: ignore[union-attr]


def test_a_large_file_is_not_held_beside_its_table(tmp_path: Path) -> None:
    """The file as bytes, and numbers joined from pieces, would take twice as much as is allowed here."""
    file, rows, columns = tmp_path / "large.csv", 30_000, 40
    numbers = numpy.random.default_rng(0).standard_normal((rows, columns))
    frame = pandas.DataFrame(numbers, columns=[f"n{place}" for place in range(columns)])
    frame.to_csv(file, index=False, float_format="%.9f")
    assert file.stat().st_size > chunks.LARGE_BYTES
    tracemalloc.start()
    try:
        found = read_delimited(file, inferred=("n0",), narrow=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.frame.shape == (rows, columns)
    numpy.testing.assert_allclose(found.frame.to_numpy(dtype=float), numbers, atol=1e-9)
    assert peak < 8 * rows * columns + 2**23, f"{peak / 2**20:.1f} MB"
