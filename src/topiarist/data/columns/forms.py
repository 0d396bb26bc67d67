"""In which form a column writes its values: decided once, saved with the network, and followed at prediction."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.dates import ISO, NEVER, moments, plainly_typed, read_dates, shown_format
from topiarist.data.columns.numbers import Decimal, plain_numbers, read_numbers, without_unit
from topiarist.data.columns.texts import Kind, Texts, texts_of
from topiarist.data.columns.truths import read_truths
from topiarist.errors import DataError

if TYPE_CHECKING:
    from topiarist.data.columns.texts import Cells


@dataclass(frozen=True, kw_only=True)
class CellForm:
    """What cells hold, the decimal mark of numbers, the form of dates, and words that stand for a gap in this column.

    `unit` is what stands behind numbers and is not read, such as "km". `kept` are words that mean a gap elsewhere and a
    value here: "-" beside "+". `date_format` is as in `datetime.strptime`, "ISO8601", or "seconds" or "milliseconds"
    since 1970. Dates in ISO form are read in any column of dates.
    """

    kind: Kind
    decimal: Decimal = "."
    unit: str = ""
    date_format: str = ISO
    gaps: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """Return whether it is one of those that there are: a file that someone made up may hold any other."""
        texts = (self.unit, self.date_format, *self.gaps, *self.kept)
        chosen = self.kind in get_args(Kind) and self.decimal in get_args(Decimal)
        return chosen and all(isinstance(text, str) for text in texts)

    def clean(self, texts: Texts) -> Texts:
        """Return texts without what is a gap in a column of this form."""
        return texts.without_gaps_of(self.kind, more=self.gaps, kept=self.kept)


def read_cells(values: "Cells", form: CellForm) -> NDArray[Any]:
    """Return cells as float64, moments or text, with NaN, NaT or None for gaps; raise for what has another form.

    Cells that already are numbers or dates are taken as such.
    """
    import pandas  # noqa: PLC0415  # see the top of the package

    types, kind, values = pandas.api.types, form.kind, plainly_typed(values)
    if kind in ("number", "truth") and types.is_numeric_dtype(values.dtype):
        return values.astype("Float64" if types.is_extension_array_dtype(values.dtype) else float).to_numpy(
            dtype=float, na_value=numpy.nan
        )
    if kind == "date" and types.is_datetime64_any_dtype(values.dtype):
        return moments(values)
    plain = plain_numbers(values) if kind == "number" and form.decimal == "." and not form.gaps else None
    return read_texts(texts_of(values), form, name=str(values.name)) if plain is None else plain


def read_texts(texts: Texts, form: CellForm, *, name: str) -> NDArray[Any]:
    """Return the cells of a column of text, as `read_cells` does."""
    texts = form.clean(texts)
    if form.kind == "category":
        return texts.spread(texts.words, None)
    if form.kind == "date":
        found = read_dates(texts.words, form.date_format)
        _refuse(texts, numpy.isnat(found), f"column '{name}' must hold dates like {shown_format(form.date_format)}")
        return texts.spread(found, NEVER)
    if form.kind == "truth":
        numbers = read_truths(texts.words)
    else:
        numbers = read_numbers(without_unit(texts.words, form.unit), form.decimal)
    unit = f" with the unit '{form.unit}'" if form.unit else ""
    what = f"numbers{unit}" if form.kind == "number" else "yes or no"
    _refuse(texts, numpy.isnan(numbers), f"column '{name}' must hold {what}")
    return texts.spread(numbers, numpy.nan)


def _refuse(texts: Texts, unread: NDArray[numpy.bool_], said: str) -> None:
    if unread.any():
        raise DataError(f"{said}; found {texts.words[unread][0]!r}")
