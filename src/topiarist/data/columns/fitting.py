"""Fit columns on training rows: which inputs there are follows from the whole table, every number from those rows."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.column import Column, Encoding
from topiarist.data.columns.dates import date_numbers, date_parts, is_cyclic
from topiarist.data.columns.effects import EffectTargets, fit_effects
from topiarist.data.columns.forms import CellForm, read_cells
from topiarist.data.columns.texts import Texts, texts_of
from topiarist.data.columns.vocabulary import MOST_EFFECTS, choose_vocabulary, room, shared_place

if TYPE_CHECKING:
    import pandas

    from topiarist.data.columns.texts import Cells

Rows = NDArray[numpy.intp]


def fit_columns(
    table: "pandas.DataFrame",
    training_rows: Rows,
    forms: Mapping[str, CellForm] | None = None,
    *,
    encoding: Encoding = "one-hot",
    indicators: bool = True,
    targets: EffectTargets | None = None,
) -> tuple[Column, ...]:
    """Return the columns of a table; those without a form are taken by their type.

    Of columns whose gaps are in the same rows, the first alone marks them. With `targets` of all rows, texts that are
    too many for an input each are read by their effect on those of the training rows.
    """
    known = forms or {}
    chosen = {str(name): known.get(str(name)) or form_by_type(table[name]) for name in table.columns}
    texts = {name: form.clean(texts_of(table[name])) for name, form in chosen.items() if form.kind == "category"}
    most = room({name: len(found.words) for name, found in texts.items()}, len(table))
    columns, marked = [], set()
    for name, form in chosen.items():
        if name in texts:
            fitted = _fit_text(name, form, texts[name], training_rows, most, encoding)
            if len(fitted.shared) > 1 and targets is not None and encoding == "one-hot" and len(training_rows):
                fitted = _fit_text(name, form, texts[name], training_rows, MOST_EFFECTS, encoding)
                fitted = _with_effects(fitted, table[name].iloc[training_rows], targets.take(training_rows))
            columns.append(fitted)
            continue
        column, gaps = _fit_numbers(table[name], form, training_rows)
        pattern = gaps.tobytes()
        columns.append(replace(column, indicator=bool(indicators and gaps.any() and pattern not in marked)))
        marked.add(pattern)
    return tuple(columns)


def form_by_type(values: "Cells") -> CellForm:
    """Return the form of cells that are typed; what is neither number nor date is a category."""
    import pandas  # noqa: PLC0415  # see the top of the package

    if pandas.api.types.is_numeric_dtype(values.dtype):
        return CellForm(kind="number")
    return CellForm(kind="date" if pandas.api.types.is_datetime64_any_dtype(values.dtype) else "category")


def _fit_numbers(values: "Cells", form: CellForm, training_rows: Rows) -> tuple[Column, NDArray[numpy.bool_]]:
    """Return a column of numbers or dates, and where its gaps are."""
    found, name = read_cells(values, form), str(values.name)
    if form.kind == "date":
        parts = date_parts(found)
        numbers = date_numbers(found[training_rows], parts)
        fill = [0.0 if is_cyclic(part) else _median(numbers[:, place]) for place, part in enumerate(parts)]
        return Column(name=name, kind="date", form=form, parts=parts, fill=tuple(fill)), numpy.isnat(found)
    numbers = numpy.where(numpy.isinf(found), numpy.nan, found)
    fill = [_median(numbers[training_rows])]
    return Column(name=name, kind="number", form=form, fill=tuple(fill)), numpy.isnan(numbers)


def _median(numbers: NDArray[numpy.float64]) -> float:
    known = numbers[~numpy.isnan(numbers)]
    return float(numpy.median(known)) if len(known) else 0.0


def _fit_text(name: str, form: CellForm, texts: Texts, training_rows: Rows, most: int, encoding: Encoding) -> Column:
    words = [str(word) for word in texts.words]
    chosen = choose_vocabulary(dict(zip(words, texts.counts.tolist(), strict=True)), most)
    codes = texts.codes[training_rows]
    shown = dict(zip(words, numpy.bincount(codes[codes >= 0], minlength=len(words)).tolist(), strict=True))
    own, shared = set(chosen.own), [0] * chosen.shared
    for word in words if shared else ():
        if word not in own:
            shared[shared_place(word, len(shared))] += shown[word]
    return Column(
        name=name,
        kind="text",
        form=form,
        categories=chosen.own,
        counts=tuple(shown[text] for text in chosen.own),
        shared=tuple(shared),
        indicator=bool((texts.codes < 0).any()),
        frequency=bool(shared),
        encoding=encoding,
    )


def _with_effects(column: Column, cells: "Cells", targets: EffectTargets) -> Column:
    effects, shrinking = fit_effects(column.name, column.places_of(cells), targets, column.places)
    rows = tuple(tuple(row) for row in effects.tolist())
    return replace(column, encoding="effect", effects=rows, shrinking=shrinking, frequency=True)


def category_notes(columns: Sequence[Column]) -> tuple[str, ...]:
    """Note which columns have texts without a place of their own."""
    return tuple(
        f"column '{column.name}': {len(column.categories):,} texts {_read_by(column)}{_shared_by(column)}"
        for column in columns
        if column.shared or column.encoding == "effect"
    )


def _read_by(column: Column) -> str:
    if column.encoding == "effect":
        return "are read by their effect on the target in the training rows, too many for an input each"
    return "have an input each"


def _shared_by(column: Column) -> str:
    return f", all rarer ones share {len(column.shared)}" if column.shared else ""
