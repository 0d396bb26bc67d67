"""Decide for each column of a table what it holds, and read it.

The file is looked at as a whole where a column alone does not tell: '1,234' is 1.234 where others show a decimal comma.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.choices import Choice, ColumnChoices
from topiarist.data.columns.choosing import asked_form, find_form
from topiarist.data.columns.column import Column, check_columns
from topiarist.data.columns.decisions import ColumnDecision, ReadAs, notes_on
from topiarist.data.columns.evidence import FileHints, RawColumn, by_type, find_hints
from topiarist.data.columns.forms import CellForm, read_cells, read_texts
from topiarist.data.columns.identifiers import might_identify, number_identifies, text_identifies
from topiarist.data.columns.texts import Kind
from topiarist.data.source import Source

if TYPE_CHECKING:
    import pandas

_READ_AS: dict[Kind, ReadAs] = {"number": "number", "truth": "yes or no", "category": "category", "date": "date"}


@dataclass(frozen=True, kw_only=True)
class ReadTable:
    """A table whose columns are float64, moments or text, what was decided, and notes of it."""

    frame: "pandas.DataFrame"
    decisions: tuple[ColumnDecision, ...]
    notes: tuple[str, ...]


def read_source_columns(source: Source) -> Source:
    """Decide what the columns of a table hold that was made in a program: all columns of numbers and dates stay."""
    frame: Any = source.features
    read = read_columns(source.name, frame.rename(columns=str), keep_typed=True)
    return replace(source, features=read.frame, columns=read.decisions, notes=(*source.notes, *read.notes))


def read_as_trained(source: Source, columns: Sequence[Column], ignored: Sequence[str]) -> Source:
    """Read the columns of a table as a network does that was trained before; others are left out.

    Tables for networks of before, which do not say how, are returned as they are.
    """
    import pandas  # noqa: PLC0415  # see the top of the package

    frame: Any = source.features
    if not all(column.form for column in columns):
        return source
    check_columns(frame, columns, ignored)
    read, decisions = {}, []
    for column in columns:
        assert column.form is not None
        read[column.name] = values = read_cells(frame[column.name], column.form, new=True)
        gaps = int(_missing(values).sum())
        decisions.append(
            ColumnDecision(
                name=column.name,
                read_as=_READ_AS[column.form.kind],
                distinct=len(pandas.unique(values[~_missing(values)])),
                gaps=(("", gaps),) if gaps else (),
                form=column.form,
                details=("as the network was trained",),
            )
        )
    decisions += [ColumnDecision(name=name, read_as="left out", why="as in training") for name in ignored]
    return replace(source, features=pandas.DataFrame(read, index=frame.index), columns=tuple(decisions))


def read_columns(
    name: str,
    frame: "pandas.DataFrame",
    *,
    choices: ColumnChoices | None = None,
    semicolons: bool = False,
    keep_typed: bool = False,
    plain: Mapping[str, bool] | None = None,
) -> ReadTable:
    """Decide what each column holds and read it; columns that say nothing or name rows are left out.

    Parameters
    ----------
    name, frame
        What messages call the table, and its cells: text as in a file, or already typed.
    choices
        What the user decides; their columns must be there.
    semicolons
        Whether the file had semicolons between its columns.
    keep_typed
        Keep columns of numbers and dates even where they are constant, empty or look like ids: whoever makes a table in
        a program chose its columns.
    plain
        Columns of text that were read as plain numbers already, and whether these show a decimal point.

    Raises
    ------
    DataError
        Where a column cannot be read as it was asked for, or holds lists.
    """
    import pandas  # noqa: PLC0415  # see the top of the package

    named = [str(column) for column in frame.columns if column]
    unnamed = len(frame.columns) - len(named)
    notes = [f"{unnamed} column(s) without a name left out"] if unnamed else []
    asked = (choices or ColumnChoices()).resolve(name, named)
    raw = [RawColumn(by_type(frame[column]), (plain or {}).get(column)) for column in named]
    hints = find_hints(raw, semicolons=semicolons)
    found = [_decide(column, asked.get(column.name), hints, keep_typed=keep_typed) for column in raw]
    if all(values is None for _, values in found):  # a table of one measurement in order is more than no table
        found = [_decide(column, asked.get(column.name), hints, keep_typed=keep_typed, by_name=True) for column in raw]
    decisions, read = [decision for decision, _ in found], {}
    for decision, values in found:
        if values is not None:
            infinite = numpy.isinf(values) if values.dtype == numpy.float64 else numpy.zeros(0, dtype=bool)
            read[decision.name] = numpy.where(infinite, numpy.nan, values) if infinite.any() else values
            if infinite.any():
                notes.append(f"{infinite.sum()} infinite number(s) taken as missing in {decision.name}")
    tidied = pandas.DataFrame(read, index=pandas.RangeIndex(len(frame)), copy=False)
    return ReadTable(frame=tidied, decisions=tuple(decisions), notes=(*notes, *notes_on(decisions)))


def _decide(
    column: RawColumn,
    asked: tuple[Choice, str | None] | None,
    hints: FileHints,
    *,
    keep_typed: bool,
    by_name: bool = False,
) -> tuple[ColumnDecision, NDArray[Any] | None]:
    """Return what is decided for a column, and its values where it is used; ids `by_name` are those called so."""
    import pandas  # noqa: PLC0415  # see the top of the package

    choice, form_asked = asked or (None, None)
    if choice == "drop":
        return ColumnDecision(name=column.name, read_as="left out", why="as asked"), None
    found = asked_form(column, choice, form_asked, hints) if choice else find_form(column, hints)
    form = found.form
    values = read_cells(column.values, form) if column.typed else read_texts(column.texts, form, name=column.name)
    texts = None if column.typed else form.clean(column.texts)
    gaps = {"": int(_missing(values).sum())} if texts is None else texts.gaps
    distinct = len(pandas.unique(values[~_missing(values)]))
    decision = ColumnDecision(
        name=column.name,
        read_as=_READ_AS[form.kind],
        distinct=distinct,
        gaps=tuple((word, count) for word, count in sorted(gaps.items(), key=lambda gap: -gap[1]) if count),
        form=form,
        remarks=found.remarks,
        details=(*found.details, *(("as asked",) if choice else ())),
    )
    if choice is not None or (keep_typed and column.typed and column.points is None):
        return decision, values
    why = _why_left_out(column, form, values, decision, by_name=by_name)
    if why:
        remarks = decision.remarks if form.kind == "category" else ()  # it may have been meant as numbers
        return replace(decision, read_as="left out", form=None, why=why, remarks=remarks, details=()), None
    if form.kind == "number" and might_identify(values):
        said = "different in every row, kept as a measurement: --drop it if it is an id"
        decision = replace(decision, remarks=(*decision.remarks, said))
    return decision, values


def _why_left_out(
    column: RawColumn, form: CellForm, values: NDArray[Any], decision: ColumnDecision, *, by_name: bool
) -> str | None:
    if not decision.distinct:
        return "empty"
    if decision.distinct == 1 and not decision.missing:
        return "constant"
    if form.kind == "number":
        return number_identifies(column.name, values, by_name=by_name)
    if form.kind == "category":
        return text_identifies(form.clean(column.texts), len(values))
    return None


def _missing(values: NDArray[Any]) -> NDArray[numpy.bool_]:
    import pandas  # noqa: PLC0415  # see the top of the package

    return numpy.asarray(pandas.isna(values))
