"""Tables with one row per sample: features, labels and groups from the columns of a file."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.choices import ColumnChoices
from topiarist.data.columns.deciding import read_columns
from topiarist.data.columns.decisions import ColumnDecision
from topiarist.data.columns.names import check_column, listed
from topiarist.data.labels import as_labels
from topiarist.data.readers.table_files import RawTable, read_delimited, read_excel, read_parquet
from topiarist.data.source import Source
from topiarist.errors import DataError

if TYPE_CHECKING:
    import pandas

TableForm = Literal["text", "parquet", "excel"]
CellReading = Literal["decided", "written", "inferred"]
_READERS: dict[TableForm, Callable[..., RawTable]] = {
    "text": read_delimited,
    "parquet": read_parquet,
    "excel": read_excel,
}


def read_table(
    path: Path,
    *,
    form: TableForm = "text",
    target: str | None,
    group: str | None,
    labelled: bool,
    choices: ColumnChoices | None = None,
    cells: CellReading | None = None,
) -> Source:
    """Read a table whose column `target` holds the labels and whose column `group` holds the groups.

    Without `labelled`, for prediction, every row and column stays, and labels are returned where all are there.

    Parameters
    ----------
    choices
        What the user decides about columns.
    cells
        "decided", the default for training, decides what each column holds and leaves out those that say nothing;
        "written", the default for prediction, keeps them as they are, for a network that knows how to read them;
        "inferred" lets pandas read them, for a network of before that was trained so.
    """
    mode = cells or ("decided" if labelled else "written")
    found = _READERS[form](path, inferred=None if mode == "inferred" else [name for name in (target, group) if name])
    name, frame = path.resolve().name, found.frame
    columns = [str(column) for column in frame.columns]
    if frame.empty:
        raise DataError(f"{name} has a header and no rows: {listed(columns)}")
    if not labelled:
        known, unused = known_labels(name, frame, target)
        features = frame.drop(columns=[target, group], errors="ignore")
        return Source(name=name, features=features, labels=known, notes=(*found.notes, *unused))
    if target is None:
        raise DataError(f"{name}: name the column that holds the label with --target: {listed(columns)}")
    frame, labels, dropped = split_labels(name, frame, target)
    frame, labels, alone = without_lone_rows(frame, labels)
    groups = None if group is None else group_values(name, frame, group, target=target)
    features = frame.drop(columns=[target, *([] if group is None else [group])])
    notes = (*found.notes, *dropped, *alone)
    if mode != "decided":
        return Source(name=name, features=features, labels=labels, groups=groups, notes=notes)
    _check_choices(name, choices, target=target, group=group)
    read = read_columns(name, features, choices=choices, semicolons=found.semicolons)
    if read.frame.columns.empty:
        raise DataError(f"{name}: no column is left to learn from; {'; '.join(read.notes) or 'add features'}")
    decisions = _in_order(columns, read.decisions, frame, target=target, group=group)
    notes = (*notes, *read.notes)
    return Source(name=name, features=read.frame, labels=labels, groups=groups, notes=notes, columns=decisions)


def _check_choices(name: str, choices: ColumnChoices | None, *, target: str, group: str | None) -> None:
    for column, option in ((target, "--target"), (group, "--group")):
        named = () if choices is None else (*choices.drop, *choices.category, *choices.number, *choices.date)
        if column in named:
            raise DataError(f"{name}: {column} is the column of {option}, and no feature to choose a reading for")


def _in_order(
    columns: list[str],
    decisions: tuple[ColumnDecision, ...],
    frame: "pandas.DataFrame",
    *,
    target: str,
    group: str | None,
) -> tuple[ColumnDecision, ...]:
    """Return the decisions in the order of the file, those for target and groups among them."""
    known = {decision.name: decision for decision in decisions}
    known[target] = ColumnDecision(name=target, read_as="target", distinct=int(frame[target].nunique()))
    if group is not None:
        known[group] = ColumnDecision(name=group, read_as="group", distinct=int(frame[group].nunique()))
    return tuple(known[column] for column in columns if column in known)


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
    labels = as_labels(name, _values(found[known]), training=True)
    notes = [f"{missing} row(s) without a label in {target} left out"] if missing else []
    return frame[known].reset_index(drop=True), labels, notes


def known_labels(name: str, frame: "pandas.DataFrame", target: str | None) -> tuple[NDArray[Any] | None, list[str]]:
    """Return the labels, None where any is missing or there is no such column, with a note of how many are."""
    if target not in frame.columns:
        return None, []
    found = _finite(frame[target])
    if found.notna().all():
        return as_labels(name, _values(found), training=False), []
    return None, [f"labels not used: {found.isna().sum()} missing in {target}"]


def group_values(name: str, frame: "pandas.DataFrame", group: str, *, target: str) -> NDArray[Any]:
    """Return the group of each row; raise where a row has none."""
    check_column(name, list(frame.columns), group, option="--group")
    if group == target:
        raise DataError(f"{name}: --target and --group are both {group}; choose two columns")
    missing = int(frame[group].isna().sum())
    if missing:
        raise DataError(f"{name}: {missing} row(s) have no group in {group}; fill them or leave out --group")
    return as_labels(name, _values(frame[group]), training=False)


def _finite(column: "pandas.Series[Any]") -> "pandas.Series[Any]":
    return column.replace([numpy.inf, -numpy.inf], numpy.nan)


def _values(column: "pandas.Series[Any]") -> NDArray[Any]:
    """Return a column without missing values as an array of numbers, truth values or objects."""
    return column.astype(object).infer_objects().to_numpy()
