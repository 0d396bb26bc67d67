"""A column as a network reads it: fitted on training rows, plain values in JSON."""

from collections.abc import Sequence
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, Self, get_args

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.dates import DATE_PARTS, date_numbers, is_cyclic
from topiarist.data.columns.forms import CellForm, read_cells
from topiarist.data.columns.names import listed
from topiarist.data.columns.texts import Texts, gap_words, texts_of
from topiarist.data.columns.vocabulary import shared_place
from topiarist.errors import DataError
from topiarist.files import JsonObject

if TYPE_CHECKING:
    import pandas

    from topiarist.data.columns.texts import Cells

Kinds = Literal["number", "text", "date"]
Encoding = Literal["one-hot", "index", "effect"]
MOST_ROWS = 2**53  # up to which floating-point numbers count one by one
Inputs = NDArray[numpy.float64]
MISSING_TEXT, UNSEEN_TEXT, FIRST_TEXT = 0, 1, 2  # the places of an index


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table: numbers with what replaces a gap, dates with the parts that are read, or text.

    Parameters
    ----------
    name, kind, form
        What the table calls it, what the network reads, and how cells are written; None in files of before, whose
        tables were read by pandas alone.
    fill
        What replaces a gap: of numbers one value, of dates one per part.
    indicator
        Whether one more input is 1 where a cell is a gap.
    categories, counts
        The texts with a place of their own, and in how many training rows each stands; one that stands in none keeps
        its place, but counts as unseen.
    shared
        In how many training rows each of the places stands that all other texts share, by `shared_place`.
    frequency
        Whether one more input is the logarithm of 1 + the number of training rows with the same text.
    parts
        What is read of a date, as in `date_parts`.
    encoding
        Text as one-hot inputs; or as one number: 0 for a gap, 1 for unseen text, then the categories, then the shared
        places; or by its effect on the target.
    effects, shrinking
        The effects of those places on each output, and how much they are shrunk, as in `fit_effects`.
    """

    name: str
    kind: Kinds
    form: CellForm | None = None
    fill: tuple[float, ...] = ()
    indicator: bool = False
    categories: tuple[str, ...] = ()
    counts: tuple[int, ...] = ()
    shared: tuple[int, ...] = ()
    frequency: bool = False
    parts: tuple[str, ...] = ()
    encoding: Encoding = "one-hot"
    effects: tuple[tuple[float, ...], ...] = ()
    shrinking: float = 0.0

    @property
    def raw_width(self) -> int:
        """How many numbers this column is before gaps are filled."""
        if self.kind == "number" or (self.kind == "text" and self.encoding == "index"):
            return 1
        if self.kind == "date":
            return len(self.parts)
        texts = len(self.effects[0]) if self.encoding == "effect" else len(self.categories) + len(self.shared)
        return texts + self.indicator + self.frequency

    @property
    def marks_gaps(self) -> bool:
        """Whether an input that marks gaps follows the numbers of this column; text has it among them."""
        return self.indicator and self.kind != "text"

    @property
    def width(self) -> int:
        """How many inputs of the network this column takes."""
        return self.raw_width + self.marks_gaps

    @property
    def places(self) -> int:
        """How many different numbers an index may be."""
        return FIRST_TEXT + len(self.categories) + len(self.shared)

    @property
    def scaled(self) -> tuple[bool, ...]:
        """Which of its inputs are scaled: not those that are 0 or 1, or lie on a circle."""
        if self.kind == "text" and self.encoding == "effect":
            return (*[True] * len(self.effects[0]), *[False] * self.indicator, *[True] * self.frequency)
        if self.kind == "text":
            plain = self.raw_width - self.frequency if self.encoding == "one-hot" else 1
            return (*[False] * plain, *[True] * (self.raw_width - plain))
        numbers = (True,) if self.kind == "number" else tuple(not is_cyclic(part) for part in self.parts)
        return (*numbers, *[False] * self.marks_gaps)

    @property
    def known(self) -> tuple[str, ...]:
        """The categories that training showed."""
        return tuple(text for text, count in zip(self.categories, self.counts, strict=True) if count)

    def numbers(self, values: "Cells") -> Inputs:
        """Return cells as numbers (n_samples, raw_width), NaN for gaps of numbers and dates."""
        if self.kind == "text":
            return self._of_text(values)
        form = self.form or CellForm(kind="number")
        found = read_cells(values, form, new=True)
        if self.kind == "date":
            return date_numbers(found, self.parts)
        return numpy.where(numpy.isinf(found), numpy.nan, found)[:, None]

    def _of_text(self, values: "Cells") -> Inputs:
        return self.of_places(self.places_of(values))

    def places_of(self, values: "Cells") -> NDArray[numpy.intp]:
        """Return the place of each cell of text: 0 for a gap, 1 for unseen text, then categories and shared places."""
        texts = texts_of(values)
        return self._index(texts if self.form is None else self.form.clean(texts))

    def of_places(self, index: NDArray[numpy.intp]) -> Inputs:
        """Return what texts with these places are as numbers (n_samples, raw_width)."""
        if self.encoding == "index":
            return index[:, None].astype(float)
        inputs = numpy.zeros((len(index), self.raw_width))
        if self.encoding == "effect":
            known = len(self.effects[0])
            inputs[:, :known] = numpy.array(self.effects)[index]
        else:
            known = len(self.categories) + len(self.shared)
            rows = numpy.flatnonzero(index >= FIRST_TEXT)
            inputs[rows, index[rows] - FIRST_TEXT] = 1.0
        if self.indicator:
            inputs[:, known] = index == MISSING_TEXT
        if self.frequency:
            rows_of_place = numpy.array([0, 0, *self.counts, *[1] * len(self.shared)])
            inputs[:, -1] = numpy.log1p(rows_of_place)[index]
        return inputs

    def _index(self, texts: Texts) -> NDArray[numpy.intp]:
        """Return the place of each cell's text."""
        own = {text.strip(): place for place, text in enumerate(self.categories)}  # files of before kept blanks
        places = numpy.array([self._place(str(word), own) for word in texts.words], dtype=numpy.intp)
        return texts.spread(places, MISSING_TEXT)

    def place_of(self, text: str) -> int:
        """Return the place of a text that is no gap."""
        return self._place(text, {own.strip(): place for place, own in enumerate(self.categories)})

    def gap_words(self) -> frozenset[str]:
        """Return the words that stand for a gap in this column, as they are usually written."""
        if self.form is None:
            return frozenset({""})
        return (gap_words(self.form.kind) | {"", *self.form.gaps}) - {*self.form.kept}

    def _check_kinds(self) -> None:
        """Raise ValueError where a value is not of the kind that it must be, as in a file that someone made up."""
        texts = (self.name, *self.categories, *self.parts)
        counts = (*self.counts, *self.shared)
        known = self.kind in get_args(Kinds) and self.encoding in get_args(Encoding)
        known = known and {*self.parts} <= {*DATE_PARTS} and (self.form is None or self.form.is_known)
        if not known or not all(type(text) is str for text in texts):
            raise ValueError(f"a column is called {self.name!r:.50}, or its texts are none")
        if not all(type(count) is int and 0 <= count < MOST_ROWS for count in counts):
            raise ValueError(f"column {self.name} counts rows with what is no number of rows")
        if not {type(self.indicator), type(self.frequency)} <= {bool}:
            raise ValueError(f"column {self.name} does not say whether it marks gaps and counts rows")

    def _place(self, text: str, own: dict[str, int]) -> int:
        if text in own:
            return FIRST_TEXT + own[text] if self.counts[own[text]] else UNSEEN_TEXT
        if not self.shared:
            return UNSEEN_TEXT
        place = shared_place(text, len(self.shared))
        return FIRST_TEXT + len(self.categories) + place if self.shared[place] else UNSEEN_TEXT

    def to_json(self) -> JsonObject:
        """Return plain values, without those that are as they are by default."""
        record = _without_defaults(self)
        return record if self.form is None else record | {"form": _without_defaults(self.form)}

    @classmethod
    def from_json(cls, record: JsonObject) -> Self:
        """Return what `to_json` wrote down, also in files of before, which list the categories known."""
        values = dict(record)
        if "known" in values:
            shown = set(values.pop("known"))
            values["counts"] = [int(text in shown) for text in values["categories"]]
            values["fill"] = [values["fill"]] if values["kind"] == "number" else []
        if values.get("form") is not None:
            values["form"] = CellForm(**_with_tuples(values["form"]))
        values["effects"] = [tuple(map(float, row)) for row in values.get("effects", ())]
        found = cls(**_with_tuples(values))
        found._check_kinds()
        widths = {len(row) for row in found.effects}
        whole = len(found.effects) == (found.places if found.encoding == "effect" else 0) and len(widths) <= 1
        if not whole or not numpy.isfinite(numpy.array(found.effects)).all() or 0 in widths:
            raise ValueError(f"column {found.name} has effects that do not fit its texts")
        if len(found.counts) != len(found.categories) or len(found.fill) != (found.kind != "text") * found.raw_width:
            raise ValueError(f"column {found.name} does not fit together")
        return found


def _without_defaults(found: Any) -> JsonObject:
    values = [(each.name, getattr(found, each.name), each.default) for each in fields(found)]
    return {name: value for name, value, default in values if default is MISSING or value != default}


def _with_tuples(record: JsonObject) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()}


def encode(table: "pandas.DataFrame", columns: Sequence[Column]) -> Inputs:
    """Return the table as numbers (n_samples, width): text as one-hot or index, gaps filled and marked."""
    return fill_gaps(raw_numbers(table, columns), columns)


def raw_numbers(table: "pandas.DataFrame", columns: Sequence[Column]) -> Inputs:
    """Return the table as numbers (n_samples, raw_width), NaN for gaps; columns are found by name, in any order."""
    check_columns(table, columns)
    parts = [column.numbers(table[column.name]) for column in columns]
    return numpy.concatenate(parts, axis=1) if parts else numpy.empty((len(table), 0))


def check_columns(table: "pandas.DataFrame", columns: Sequence[Column], ignored: Sequence[str] = ()) -> None:
    """Raise where columns that a network was trained on are missing, and name what is new in their place."""
    names = [str(name) for name in table.columns]
    absent = [column.name for column in columns if column.name not in names]
    if absent:
        known = {*(column.name for column in columns), *ignored}
        others = [name for name in names if name not in known]
        found = f" (found instead: {listed(others)})" if others else ""
        raise DataError(f"columns that the network was trained on are missing: {listed(absent)}{found}")


def fill_gaps(raw: Inputs, columns: Sequence[Column]) -> Inputs:
    """Return what is written for gaps, and the inputs that mark them, (n_samples, width)."""
    gaps = numpy.isnan(raw)
    filled = numpy.where(gaps, numpy.array(fills_of(columns)), raw) if gaps.any() else raw
    if not any(column.marks_gaps for column in columns):
        return filled
    return numpy.concatenate([filled, gaps], axis=1)[:, input_order(columns)]


def fills_of(columns: Sequence[Column]) -> list[float]:
    """Return what replaces a gap in each raw number; text has none."""
    return [fill for column in columns for fill in (column.fill or (0.0,) * column.raw_width)]


def input_order(columns: Sequence[Column]) -> list[int]:
    """Return for each input which it is of the raw numbers followed by the marks of their gaps."""
    total, start = sum(column.raw_width for column in columns), 0
    order: list[int] = []
    for column in columns:
        order += range(start, start + column.raw_width)
        order += [total + start] if column.marks_gaps else []
        start += column.raw_width
    return order
