"""Choose the form of a column: what its cells suggest, or what the user asked for."""

import re
from typing import Any, NamedTuple

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.choices import Choice
from topiarist.data.columns.dates import DateEvidence, choose_format, find_epoch, find_formats, read_dates, shown_format
from topiarist.data.columns.evidence import FileHints, RawColumn, is_mostly
from topiarist.data.columns.forms import CellForm
from topiarist.data.columns.numbers import NumberEvidence, are_codes, choose_decimal, read_numbers, signs_in
from topiarist.data.columns.texts import case_remarks, opposites
from topiarist.errors import DataError

_MOST_SHOWN = 3  # words in a remark
_TIME_NAME = re.compile(r"time|date|epoch|unix|created|updated|_at$|^ts$|_ts$|zeit|datum|heure|fecha", re.IGNORECASE)


class FormFound(NamedTuple):
    """The form of a column, what the user should know of it, and what a table of decisions adds."""

    form: CellForm
    remarks: tuple[str, ...] = ()
    details: tuple[str, ...] = ()


def find_form(column: RawColumn, hints: FileHints) -> FormFound:
    """Return what a column holds, and what should be said about it."""
    if column.typed is not None:
        return FormFound(CellForm(kind=column.typed), _epoch_remarks(column))
    if column.in_words:
        return FormFound(CellForm(kind="truth"))
    dates, numbers, measures = column.dates, column.numbers, column.measures
    if dates is not None and is_mostly(measures, ~numpy.isnat(read_dates(measures.words, dates.formats[0]))):
        return _date_form(column, dates, hints)
    if numbers is not None and is_mostly(measures, numbers.share) and not are_codes(column.amounts):
        return _number_form(column, numbers, hints)
    if not len(measures.words):
        return FormFound(CellForm(kind="number"))
    remarks = ["digits with leading zeros are codes"] if are_codes(measures) else []
    if numbers is not None and not remarks and 2 * measures.counts[numbers.share].sum() > measures.filled:
        words = int(measures.counts[~numbers.share].sum())
        such = f"such as {_shown(measures.words[~numbers.share])}"
        remarks = [f"numbers and {words:,} cells of words, {such}: --number {column.name} takes these as missing"]
    return FormFound(CellForm(kind="category", kept=opposites(column.texts)), (*remarks, *case_remarks(measures.words)))


def asked_form(column: RawColumn, choice: Choice, form_asked: str | None, hints: FileHints) -> FormFound:
    """Return the form of a column that is to be read as the user says; what cannot be read so is a gap."""
    if choice == "category":
        return FormFound(CellForm(kind="category", kept=opposites(column.texts)))
    if choice == "number":
        if column.typed in ("number", "truth"):
            return FormFound(CellForm(kind="number"))
        found = column.numbers if column.typed is None else None
        if found is None or not found.share.any():
            raise DataError(
                f"--number {column.name}: none of its cells is a number; found {_shown(column.texts.words)}"
            )
        return _number_form(column, found, hints)
    if column.typed == "date":
        return FormFound(CellForm(kind="date"))
    return _asked_date(column, form_asked, hints)


def _asked_date(column: RawColumn, form_asked: str | None, hints: FileHints) -> FormFound:
    measures = column.measures
    dates = find_formats(measures, share=0.0)
    if form_asked is None and dates is None:
        form_asked = find_epoch(read_numbers(measures.words, "."))
    if form_asked is not None:
        cells = int(measures.counts[~numpy.isnat(read_dates(measures.words, form_asked))].sum())
        dates = DateEvidence(formats=(form_asked,), cells=cells)
    if dates is None or not dates.cells:
        how = f"as {form_asked}" if form_asked else "in a form that is known"
        advice = "" if form_asked else f": name the form, as in --date {column.name}=%d/%m/%Y"
        raise DataError(
            f"--date {column.name}: none of its cells is a date {how}; found {_shown(column.texts.words)}{advice}"
        )
    return _date_form(column, dates, hints)


def _epoch_remarks(column: RawColumn) -> tuple[str, ...]:
    """Return a note that numbers of a column called a time may be moments: as numbers they have no weekday, no hour."""
    if column.points is None or not _TIME_NAME.search(column.name):
        return ()
    unit = find_epoch(column.values.to_numpy(dtype=float, na_value=numpy.nan))
    return (f"kept as a number; may be {unit} since 1970: --date {column.name} reads them so",) if unit else ()


def _number_form(column: RawColumn, found: NumberEvidence, hints: FileHints) -> FormFound:
    measures, amounts = column.measures, column.amounts
    decimal = choose_decimal(found, amounts.words, leaning=hints.commas, semicolons=hints.semicolons)
    gaps = tuple(measures.words[~found.share])
    remarks = []
    if found.ambiguous:
        place = int(numpy.flatnonzero(found.share & (found.by_point != found.by_comma))[0])
        word = amounts.words[place]
        chosen = read_numbers(numpy.array([word], dtype=object), decimal)[0]
        remarks.append(f"'{word}' could be {found.by_point[place]:g} or {found.by_comma[place]:g}, read as {chosen:g}")
    elif decimal == ",":
        remarks.append("decimal comma")
    fewer = min(found.only_comma, found.only_point)
    if fewer:
        remarks.append(f"both decimal marks occur: {fewer:,} cells read by the rarer")
    if column.unit:
        remarks.append(f"the unit '{column.unit}' is left aside")
    signs = tuple(f"{count:,} cells with {sign}" for sign, count in signs_in(amounts).items())
    return FormFound(CellForm(kind="number", decimal=decimal, unit=column.unit, gaps=gaps), tuple(remarks), signs)


def _date_form(column: RawColumn, dates: DateEvidence, hints: FileHints) -> FormFound:
    measures = column.measures
    chosen = choose_format(dates, leaning=hints.day_first)
    gaps = tuple(measures.words[numpy.isnat(read_dates(measures.words, chosen))])
    form, shown = CellForm(kind="date", date_format=chosen, gaps=gaps), shown_format(chosen)
    if len(dates.formats) == 1:
        return FormFound(form, (), (shown,))
    other = next(each for each in dates.formats if each != chosen)
    doubt = f"read as {shown}, could be {shown_format(other)}: --date {column.name}={other} says so"
    return FormFound(form, (doubt,), (shown,))


def _shown(words: NDArray[Any]) -> str:
    shown = ", ".join(repr(str(word)) for word in words[:_MOST_SHOWN])
    return shown or "nothing"
