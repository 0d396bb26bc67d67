"""The columns of a table that hold what is predicted: one of classes or numbers, several of numbers or labels."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.evidence import RawColumn, is_mostly
from topiarist.data.columns.names import check_column, listed
from topiarist.data.columns.numbers import are_codes, choose_decimal, read_numbers
from topiarist.data.columns.texts import case_remarks
from topiarist.data.columns.truths import read_truths
from topiarist.data.finding import kind_of_values
from topiarist.data.labels import as_labels
from topiarist.data.readers.table_files import LABEL_GAPS
from topiarist.errors import DataError
from topiarist.tasks import TaskKind

if TYPE_CHECKING:
    import pandas

TargetColumns = str | Sequence[str]


def named_targets(target: TargetColumns | None, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the columns that a call names: one, several, or several in one text with commas."""
    if target is None:
        return ()
    if not isinstance(target, str):
        return tuple(dict.fromkeys(target))
    if target in columns or "," not in target:
        return (target,)
    return tuple(dict.fromkeys(part.strip() for part in target.split(",") if part.strip()))


@dataclass(frozen=True)
class TargetReader:
    """Reads the target columns of a table; `task` is what the call says of them, None for what they suggest.

    With `semicolons` between columns, a comma may be a decimal mark.
    """

    name: str
    targets: tuple[str, ...]
    task: TaskKind | None = None
    semicolons: bool = False

    def split(self, frame: "pandas.DataFrame") -> "tuple[pandas.DataFrame, NDArray[Any], list[str]]":
        """Return the rows that have every target, their targets, and notes on what was left out."""
        for target in self.targets:
            check_column(self.name, list(frame.columns), target, option="--target")
        if self.task == "classes" and len(self.targets) > 1:
            raise DataError(f"{self.name}: classes are one column; found {len(self.targets)}: {listed(self.targets)}")
        if self._holds_classes(frame):
            kept, labels, dropped = split_labels(self.name, frame, self.targets[0])
            kept, labels, alone = without_lone_rows(kept, labels)
            return kept, labels, [*dropped, *alone]
        values = self._values(frame)
        known = numpy.flatnonzero(~numpy.isnan(values).any(axis=1))
        if not len(known):
            raise DataError(f"{self.name}: no row has a value for {listed(self.targets)}; choose another --target")
        missing = len(frame) - len(known)
        notes = [f"{missing} row(s) without a label in {', '.join(self.targets)} left out"] if missing else []
        labels = values[known, 0] if len(self.targets) == 1 else values[known]
        return (frame.iloc[known].reset_index(drop=True) if missing else frame), labels, notes

    def known(self, frame: "pandas.DataFrame") -> tuple[NDArray[Any] | None, list[str]]:
        """Return the targets, None where any is missing or a column is not there, with a note of how many are."""
        if not self.targets or not set(self.targets) <= set(frame.columns):
            return None, []
        if self._holds_classes(frame):
            return known_labels(self.name, frame, self.targets[0])
        values = self._values(frame)
        missing = int(numpy.isnan(values).any(axis=1).sum())
        if missing:
            return None, [f"labels not used: {missing} missing in {', '.join(self.targets)}"]
        return (values[:, 0] if len(self.targets) == 1 else values), []

    def _holds_classes(self, frame: "pandas.DataFrame") -> bool:
        if self.task is not None or len(self.targets) > 1:
            return self.task == "classes"
        numbers = cell_numbers(frame[self.targets[0]], semicolons=self.semicolons)
        if numbers is None:
            return True
        found = numbers[numpy.isfinite(numbers)]
        return not len(found) or kind_of_values(found)[0] == "classes"

    def _values(self, frame: "pandas.DataFrame") -> NDArray[numpy.float64]:
        """Return numbers (n_rows, n_targets), NaN for gaps; words such as yes and no are 1 and 0 among several."""
        columns = []
        for target in self.targets:
            numbers = cell_numbers(frame[target], semicolons=self.semicolons, codes=True)
            if numbers is None and (self.task == "labels" or len(self.targets) > 1):
                numbers = cell_truths(frame[target])
            if numbers is None:
                example = next(iter(frame[target].dropna()), "")
                what = "no number, and neither yes nor no" if len(self.targets) > 1 else "no number"
                raise DataError(f"{self.name}: the target {target} holds text such as '{example}', which is {what}")
            columns.append(numbers)
        values = numpy.stack(columns, axis=1)
        if numpy.isinf(values).any():
            raise DataError(
                f"{self.name}: {int(numpy.isinf(values).sum())} values of the target {listed(self.targets)} are"
                " infinite: replace them"
            )
        return values


def cell_numbers(
    column: "pandas.Series[Any]", *, semicolons: bool, codes: bool = False
) -> NDArray[numpy.float64] | None:
    """Return a column as numbers, NaN for gaps, read as features are: '1,234' is one; None where it holds none.

    Digits with leading zeros are none, unless even `codes` are to be numbers.
    """
    import pandas  # noqa: PLC0415  # only tables need it

    types = pandas.api.types
    if types.is_bool_dtype(column.dtype):
        return None
    if types.is_numeric_dtype(column.dtype):
        return column.to_numpy(float, na_value=numpy.nan)
    raw = RawColumn(column)
    if raw.typed is not None or raw.in_words:
        return None
    measures, evidence = raw.amounts, raw.numbers
    assert evidence is not None
    if (are_codes(measures) and not codes) or not is_mostly(measures, evidence.share):
        return None
    decimal = choose_decimal(evidence, measures.words, leaning=0, semicolons=semicolons)
    return measures.spread(read_numbers(measures.words, decimal), numpy.nan)


def cell_truths(column: "pandas.Series[Any]") -> NDArray[numpy.float64] | None:
    """Return a column of truth values or words such as yes and no as 1 and 0, NaN for gaps; None for any other."""
    import pandas  # noqa: PLC0415  # only tables need it

    if pandas.api.types.is_bool_dtype(column.dtype):
        return column.to_numpy(float, na_value=numpy.nan)
    texts = RawColumn(column.astype(object)).measures
    found = read_truths(texts.words)
    return None if numpy.isnan(found).any() or not len(found) else texts.spread(found, numpy.nan)


def without_lone_rows(
    frame: "pandas.DataFrame", labels: NDArray[Any]
) -> "tuple[pandas.DataFrame, NDArray[Any], list[str]]":
    """Put classes with a single row aside, and note which: one row cannot be trained on and tested by.

    Where fewer than two classes would be left, all rows stay.
    """
    classes, numbers, counts = numpy.unique(labels, return_inverse=True, return_counts=True)
    alone = classes[counts == 1]
    if not len(alone) or len(classes) - len(alone) < 2:
        return frame, labels, []
    kept = counts[numbers] > 1
    names = listed([f"'{name}'" for name in alone.tolist()])
    note = f"put aside, {len(alone)} class(es) with one row each: {names}"
    return frame[kept].reset_index(drop=True), labels[kept], [note]


def split_labels(
    name: str, frame: "pandas.DataFrame", target: str
) -> "tuple[pandas.DataFrame, NDArray[Any], list[str]]":
    """Return the rows that have a label, their labels, and a note of how many had none."""
    check_column(name, list(frame.columns), target, option="--target")
    found = _finite(frame[target])
    known = found.notna()
    missing = int((~known).sum())
    if missing == len(frame):
        raise DataError(f"{name}: every value of the target {target} is missing; choose another --target")
    labels = as_labels(name, column_values(found[known]), training=True)
    notes = [f"{missing} row(s) without a label in {target} left out"] if missing else []
    texts = labels.tolist() if labels.dtype.kind == "U" else []
    notes += [f"{target}: {remark}" for remark in case_remarks(dict.fromkeys(texts))]
    kept = frame[known].reset_index(drop=True) if missing else frame  # of a large table, no second one is made
    return kept, labels, notes


def known_labels(name: str, frame: "pandas.DataFrame", target: str | None) -> tuple[NDArray[Any] | None, list[str]]:
    """Return the labels, None where any is missing or there is no such column, with a note of how many are."""
    if target not in frame.columns:
        return None, []
    found = _finite(frame[target])
    if found.notna().all():
        return as_labels(name, column_values(found), training=False), []
    return None, [f"labels not used: {found.isna().sum()} missing in {target}"]


def _finite(column: "pandas.Series[Any]") -> "pandas.Series[Any]":
    return column.replace([numpy.inf, -numpy.inf], numpy.nan)


def without_blanks(column: "pandas.Series[Any]") -> "pandas.Series[Any]":
    """Return labels or groups without blanks around texts, "yes " as "yes"; what then stands for a gap is one."""
    import pandas  # noqa: PLC0415  # only tables need it

    if not (column.dtype == object or isinstance(column.dtype, pandas.StringDtype)):
        return column
    bare = column.map(lambda cell: cell.strip() if isinstance(cell, str) else cell)
    changed = (bare != column) & column.notna()
    return bare.mask(changed & bare.isin(LABEL_GAPS)) if changed.any() else column


def column_values(column: "pandas.Series[Any]") -> NDArray[Any]:
    """Return a column without missing values as an array of numbers, truth values or objects."""
    return column.astype(object).infer_objects().to_numpy()
