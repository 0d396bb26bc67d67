"""What the cells of a column, and of the columns beside it, say about what it holds."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.dates import DateEvidence, find_formats, is_day_first, is_month_first, plainly_typed
from topiarist.data.columns.numbers import (
    NumberEvidence,
    are_codes,
    find_unit,
    plain_numbers,
    shows_point,
    weigh,
    without_unit,
)
from topiarist.data.columns.texts import Kind, Texts, are_words, texts_of
from topiarist.data.columns.truths import are_truths

if TYPE_CHECKING:
    from topiarist.data.columns.texts import Cells

_LEAST_SHARE = 0.95  # of the cells, for the rest of a column of numbers or dates to count as gaps
_LEAST_MEASURED = 0.5  # the same where the rest are a few words without a digit: those stand for no measurement
_FEW_WORDS = 10  # different ones
_FEWEST_NUMBERS = 20  # different ones: with fewer, words beside them may be codes like them


@dataclass(frozen=True, eq=False)
class RawColumn:
    """A column before anything is decided; what is found out about it is found out once.

    `shown` is set where its text was read as plain numbers already: whether these show a decimal point.
    """

    given: "Cells"
    shown: bool | None = None

    @cached_property
    def values(self) -> "Cells":
        """Its cells; plain numbers are read at once."""
        import pandas  # noqa: PLC0415  # see the top of the package

        if self.points is None or self.shown is not None:
            return self.given
        return pandas.Series(self._plain, index=self.given.index, name=self.given.name)

    @cached_property
    def _plain(self) -> NDArray[numpy.float64] | None:
        return plain_numbers(self.given)

    @cached_property
    def points(self) -> bool | None:
        """Whether text that is all plain numbers shows a decimal point; None for all else."""
        if self.shown is not None:
            return self.shown
        return None if self._plain is None else shows_point(self.given)

    @property
    def name(self) -> str:
        """What the table calls it."""
        return str(self.given.name)

    @cached_property
    def texts(self) -> Texts:
        """Its cells as text."""
        return texts_of(self.values)

    @cached_property
    def measures(self) -> Texts:
        """Its cells as text, without what stands for a gap among numbers and dates."""
        return self.texts.without_gaps_of("number")

    @cached_property
    def typed(self) -> Kind | None:
        """What the type of its cells says; None for text and whatever is mixed."""
        import pandas  # noqa: PLC0415  # see the top of the package

        types = pandas.api.types
        if types.is_bool_dtype(self.values.dtype):
            return "truth"
        if types.is_numeric_dtype(self.values.dtype):
            return "number"
        return "date" if types.is_datetime64_any_dtype(self.values.dtype) else None

    @cached_property
    def numbers(self) -> NumberEvidence | None:
        """What it is as numbers, without their unit; None where its cells have a type."""
        return weigh(self.amounts) if self.typed is None else None

    @cached_property
    def unit(self) -> str:
        """What stands behind most of its numbers, such as "km"; "" where nothing does.

        Where there are few different texts, they are categories as they are; where there are two units, neither is
        left aside: 5 km are no 5 miles.
        """
        measures = self.measures
        unit = find_unit(measures) if len(measures.words) > _FEWEST_NUMBERS else ""
        if not unit or is_mostly(measures, weigh(measures).share):
            return ""
        bare = replace(measures, words=without_unit(measures.words, unit))
        read = weigh(bare).share
        return unit if are_words(bare.words[~read]) and is_mostly(bare, read) and not are_codes(bare) else ""

    @cached_property
    def amounts(self) -> Texts:
        """Its cells as text, without what stands for a gap and without the unit of numbers."""
        return replace(self.measures, words=without_unit(self.measures.words, self.unit))

    @cached_property
    def dates(self) -> DateEvidence | None:
        """What it is as dates; None where it is none, or its cells have a type."""
        return find_formats(self.measures) if self.typed is None else None

    @property
    def in_words(self) -> bool:
        """Whether its cells say yes and no."""
        return self.typed is None and are_truths(self.measures.words)


@dataclass(frozen=True, kw_only=True)
class FileHints:
    """What the columns of a file that are clear say about those that are not.

    `commas` is how many columns show a decimal comma, less those that show a point; `day_first` how many dates write
    the day first, less those that write the month first; with `semicolons` between columns, a comma may be a decimal
    mark.
    """

    commas: int
    day_first: int
    semicolons: bool


def by_type(values: "Cells") -> "Cells":
    """Return objects that are all numbers, truth values or dates by their type; categories of pandas as their texts."""
    import pandas  # noqa: PLC0415  # see the top of the package

    if isinstance(values.dtype, pandas.CategoricalDtype):
        return values.astype(object)
    if values.dtype != object:
        return plainly_typed(values)
    kind = pandas.api.types.infer_dtype(values, skipna=True)
    if kind in ("integer", "floating", "mixed-integer-float", "decimal", "boolean"):
        return values.astype("boolean" if kind == "boolean" else float)
    if kind in ("timedelta", "timedelta64"):
        return plainly_typed(pandas.to_timedelta(values))
    if kind == "datetime":  # of several zones perhaps: clock time as it is
        values = values.map(lambda cell: cell if pandas.isna(cell) else cell.replace(tzinfo=None))
    return pandas.to_datetime(values) if kind in ("date", "datetime64", "datetime") else values


def find_hints(raw: Iterable[RawColumn], *, semicolons: bool) -> FileHints:
    """Ask the columns of a file that are clear about decimal marks and the order of day and month."""
    commas = day_first = 0
    for column in raw:
        commas -= int(bool(column.points))
        if column.typed is not None:
            continue
        if column.dates is not None:
            if len(column.dates.formats) == 1:
                form = column.dates.formats[0]
                day_first += int(is_day_first(form)) - int(is_month_first(form))
        elif column.numbers is not None and is_mostly(column.measures, column.numbers.share):
            commas += int(numpy.sign(column.numbers.only_comma - column.numbers.only_point))
    return FileHints(commas=commas, day_first=day_first or max(commas, 0), semicolons=semicolons)


def is_mostly(texts: Texts, read: NDArray[numpy.bool_]) -> bool:
    """Return whether nearly all cells are read, and the rest stand beside many different values.

    Where the rest are a few words such as 'not measured', half of the cells will do.
    """
    if read.all():
        return bool(len(read))
    rest = texts.words[~read]
    least = _LEAST_MEASURED if len(rest) <= _FEW_WORDS and are_words(rest) else _LEAST_SHARE
    return bool(texts.counts[read].sum() >= least * texts.filled and read.sum() > _FEWEST_NUMBERS)
