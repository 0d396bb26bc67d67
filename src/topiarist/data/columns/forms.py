"""In which form a column writes its values: decided once, saved with the network, and followed at prediction."""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.dates import ISO, NEVER, moments, plainly_typed, read_dates, shown_format
from topiarist.data.columns.numbers import Decimal, plain_numbers, read_numbers, without_unit
from topiarist.data.columns.texts import Kind, Texts, are_words, texts_of
from topiarist.data.columns.truths import read_truths
from topiarist.errors import DataError, TopiaristWarning

if TYPE_CHECKING:
    from topiarist.data.columns.texts import Cells

MOST_UNREAD = 0.05  # of new cells, for those that cannot be read to count as gaps, as in training (evidence.py)
MOST_UNREAD_WORDS = 0.5  # the same where none of them has a digit: a single one always counts as a gap


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


def read_cells(values: "Cells", form: CellForm, *, new: bool = False) -> NDArray[Any]:
    """Return cells as float64, moments or text, with NaN, NaT or None for gaps; raise for what has another form.

    Cells that already are numbers or dates are taken as such. Of `new` ones, which training did not see, a few that
    cannot be read are gaps, and a warning names the first.
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
    return read_texts(texts_of(values), form, name=str(values.name), new=new) if plain is None else plain


def read_texts(texts: Texts, form: CellForm, *, name: str, new: bool = False) -> NDArray[Any]:
    """Return the cells of a column of text, as `read_cells` does."""
    texts = form.clean(texts)
    if form.kind == "category":
        return texts.spread(texts.words, None)
    if form.kind == "date":
        found = read_dates(texts.words, form.date_format)
        _check_read(texts, numpy.isnat(found), name, f"dates like {shown_format(form.date_format)}", new=new)
        return texts.spread(found, NEVER)
    if form.kind == "truth":
        numbers = read_truths(texts.words)
    else:
        numbers = read_numbers(without_unit(texts.words, form.unit), form.decimal)
    unit = f" with the unit '{form.unit}'" if form.unit else ""
    what = f"numbers{unit}" if form.kind == "number" else "yes or no"
    _check_read(texts, numpy.isnan(numbers), name, what, new=new)
    return texts.spread(numbers, numpy.nan)


def _check_read(texts: Texts, unread: NDArray[numpy.bool_], name: str, what: str, *, new: bool) -> None:
    """Raise where words of a column cannot be read; warn where they are few among `new` cells, which are gaps then."""
    if not unread.any():
        return
    place = int(numpy.flatnonzero(unread)[0])
    word, count = texts.words[place], int(texts.counts[unread].sum())
    where = f"in row {int((texts.codes == place).argmax()) + 1} below the header"
    words = are_words(texts.words[unread])
    most = max(1.0, MOST_UNREAD_WORDS * texts.filled) if words else MOST_UNREAD * texts.filled
    if not new or count > most:
        remedy = "correct such cells, or leave them empty where the value is missing"
        raise DataError(f"column '{name}' must hold {what}; found {word!r} {where}: {remedy}")
    found = f"{count:,} cell(s) taken as missing in column '{name}', which holds {what}"
    warnings.warn(f"{found}: the first is {word!r} {where}", TopiaristWarning, stacklevel=2)
