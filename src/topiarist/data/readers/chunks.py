"""A large text table read some rows at a time: columns of plain numbers are numbers before the next rows are read.

The cells of a table as text take twice the size of the file, and pandas takes four times more on the way. What a column
becomes does not depend on the chunks: it is text wherever it would be text if all of it were looked at at once.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.numbers import plain_numbers, shows_point
from topiarist.data.readers.contents import TextContent

if TYPE_CHECKING:
    import pandas

    from topiarist.data.columns.texts import Cells

LARGE_BYTES = 2**23  # of a file, from which on it is read in chunks: below, all of it takes little memory
CHUNK_CELLS, FEWEST_ROWS = 2**19, 2**10  # in a chunk; more rows than `shows_point` looks at first


class TextOptions(TypedDict):
    """What pandas must know to read a text table; columns are called by their places, "0", "1", …"""

    sep: str
    decimal: str
    names: list[str]
    encoding: str


@dataclass
class GrowingColumn:
    """The cells of a column so far: numbers while all are plain, else text; `broken` where numbers turn out to be text.

    `points` is whether the numbers show a decimal point, as in `shows_point`; None for text. Numbers are written where
    they stay: pieces that are joined in the end take twice the memory, and leave gaps in it.
    """

    rows: int  # that are expected; what is not written to takes no memory
    points: bool | None = None
    texts: list[Any] = field(default_factory=list)
    numbers: NDArray[numpy.float64] | None = None
    filled: int = 0
    broken: bool = False

    def add(self, cells: "Cells") -> None:
        """Take some more cells, all of them text."""
        if self.broken:
            return
        if not self.filled:
            self.points = shows_point(cells) if plain_numbers(cells) is not None else None
        if self.points is None:
            self.texts.append(cells)
        else:
            self._write(self._numbers(cells))
        self.filled += len(cells)

    def joined(self) -> Any:
        """Return all cells as one array or column; pieces of text are forgotten, so that a table is in memory once."""
        import pandas  # noqa: PLC0415  # see `table_files`

        if self.numbers is not None:
            return self.numbers[: self.filled]
        texts, self.texts = self.texts, []
        return pandas.concat(texts)

    def _write(self, found: NDArray[numpy.float64] | None) -> None:
        """Add numbers behind those that are there; forget all of them where the cells are none."""
        if found is None:
            self.broken, self.numbers = True, None
            return
        needed = self.filled + len(found)
        if self.numbers is None:
            self.numbers = numpy.empty(max(self.rows, needed))
        elif needed > len(self.numbers):
            self.numbers = numpy.concatenate([self.numbers[: self.filled], numpy.empty(needed)])
        self.numbers[self.filled : needed] = found

    def _numbers(self, cells: "Cells") -> NDArray[numpy.float64] | None:
        """Return cells as the numbers that the first ones are; None where they are none, or show another form."""
        found = plain_numbers(cells)
        if found is None:
            blank = bool(((cells == "") | cells.isna()).all())
            return numpy.full(len(cells), numpy.nan) if blank else None
        return found if self.points or shows_point(cells) is False else None


def read_chunks(
    content: TextContent,
    options: TextOptions,
    inferred: Sequence[str],
    gaps: Sequence[str],
    *,
    rows: int,
    codes: Sequence[str] = (),
) -> "tuple[pandas.DataFrame, Mapping[str, bool]]":
    """Return a table, and which of its columns are plain numbers already: True for those that show a decimal point.

    Columns that are `inferred` are numbers or text as pandas finds, the `codes` among them text, with `gaps` for what
    is missing; `rows` are expected.
    """
    import pandas  # noqa: PLC0415  # see `table_files`

    columns = {name: GrowingColumn(rows) for name in options["names"]}
    _grow(content, options, columns, as_text=inferred)
    again = {name: GrowingColumn(rows) for name, column in columns.items() if column.broken}
    if again:
        _grow(content, options, again, as_text=list(again))
    grown = columns | again
    cells = {name: column.joined() for name, column in grown.items()}
    plain = {name: column.points for name, column in grown.items() if column.points is not None}
    cells |= {name: _inferred(cells[name], options, gaps, codes=name in codes) for name in inferred}
    return pandas.DataFrame(cells, copy=False), plain


def _grow(
    content: TextContent, options: TextOptions, columns: Mapping[str, GrowingColumn], *, as_text: Sequence[str]
) -> None:
    """Read all rows of some columns, those in `as_text` without looking for numbers."""
    import pandas  # noqa: PLC0415  # see `table_files`

    rows = max(FEWEST_ROWS, CHUNK_CELLS // len(options["names"]))
    with (
        content.open() as stream,
        pandas.read_csv(
            stream,
            **options,
            usecols=list(columns),
            header=0,
            index_col=False,
            dtype=str,
            keep_default_na=False,
            skipinitialspace=True,
            chunksize=rows,
        ) as chunks,
    ):
        for chunk in chunks:
            for name, column in columns.items():
                if name in as_text:
                    column.texts.append(chunk[name])
                else:
                    column.add(chunk[name])


def _inferred(cells: "Cells", options: TextOptions, gaps: Sequence[str], *, codes: bool) -> "Cells":
    """Return a column of text as pandas would have read it, codes as they are."""
    import pandas  # noqa: PLC0415  # see `table_files`

    written = io.StringIO(cells.to_csv(index=False, header=False))
    read = pandas.read_csv(
        written,
        names=[str(cells.name)],
        dtype=str if codes else None,
        decimal=options["decimal"],
        keep_default_na=False,
        na_values=list(gaps),
        skipinitialspace=True,
        skip_blank_lines=False,
        low_memory=False,
    )
    found = read[str(cells.name)]
    found.index = cells.index
    return found
