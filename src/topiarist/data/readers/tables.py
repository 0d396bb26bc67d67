"""Tables with one row per sample: features, labels and groups from the columns of a file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.choices import ColumnChoices
from topiarist.data.columns.deciding import read_columns
from topiarist.data.columns.decisions import ColumnDecision
from topiarist.data.columns.identifiers import TEXT_REASON
from topiarist.data.columns.names import check_column, listed
from topiarist.data.labels import as_labels
from topiarist.data.readers.table_files import RawTable, read_delimited, read_excel, read_parquet
from topiarist.data.readers.target_columns import (
    TargetColumns,
    TargetReader,
    column_values,
    named_targets,
    without_blanks,
)
from topiarist.data.source import Source
from topiarist.data.targets import check_weights
from topiarist.errors import DataError
from topiarist.tasks import TaskKind

if TYPE_CHECKING:
    import pandas

TableForm = Literal["text", "parquet", "excel"]
CellReading = Literal["decided", "written", "inferred"]
SpecialUse = Literal["target", "group", "weight"]
TEXT_ADVICE = (
    "free text is not read: make numbers of it first, such as with TfidfVectorizer and TruncatedSVD of scikit-learn,"
    " and give them as columns, or as x and y of an .npz"
)
_READERS: dict[TableForm, Callable[..., RawTable]] = {
    "text": read_delimited,
    "parquet": read_parquet,
    "excel": read_excel,
}


def read_table(
    path: Path,
    *,
    form: TableForm = "text",
    target: TargetColumns | None,
    group: str | None,
    labelled: bool,
    weight: str | None = None,
    task: TaskKind | None = None,
    choices: ColumnChoices | None = None,
    cells: CellReading | None = None,
) -> Source:
    """Read a table with columns of targets, of groups and of weights, as far as they are named.

    Without `labelled`, for prediction, every row and column stays, and labels are returned where all are there.

    Parameters
    ----------
    task
        What the targets are; what they suggest unless given.
    choices
        What the user decides about columns.
    cells
        "decided", the default for training, decides what each column holds and leaves out those that say nothing;
        "written", the default for prediction, keeps them as they are, for a network that knows how to read them;
        "inferred" lets pandas read them, for a network of before that was trained so.
    """
    mode = cells or ("decided" if labelled else "written")
    asked = [*named_targets(target, ()), *([target] if isinstance(target, str) else []), group, weight]
    narrow = {"narrow": True} if form == "text" and mode == "decided" else {}
    found = _READERS[form](path, inferred=None if mode == "inferred" else [name for name in asked if name], **narrow)
    name, frame = path.resolve().name, found.frame
    columns = [str(column) for column in frame.columns]
    if frame.empty:
        raise DataError(f"{name} has a header and no rows: {listed(columns)}")
    targets = named_targets(target, columns)
    reader = TargetReader(name, targets, task, found.semicolons)
    special: dict[str, SpecialUse] = {**dict.fromkeys(targets, "target"), **({group: "group"} if group else {})}
    special |= {weight: "weight"} if weight else {}
    for column in {*targets, *([group] if group else [])} & {*columns} if mode != "inferred" else ():
        frame[column] = without_blanks(frame[column])
    if not labelled:
        known, unused = reader.known(frame)
        features = frame.drop(columns=list(special), errors="ignore")
        source = Source(name=name, features=features, labels=known, notes=(*found.notes, *unused))
        return replace(source, targets=targets, weights=None if known is None else _weights(name, frame, weight))
    if not targets:
        raise DataError(f"{name}: name the column that holds the label with --target: {listed(columns)}")
    _check_apart(name, targets, group, weight)
    frame, labels, dropped = reader.split(frame)
    features = frame.drop(columns=[column for column in special if column in columns])
    source = Source(
        name=name,
        features=features,
        labels=labels,
        groups=None if group is None else group_values(name, frame, group, target=targets[0]),
        targets=targets,
        weights=_weights(name, frame, weight),
        notes=(*found.notes, *dropped),
    )
    if mode != "decided":
        return source
    _check_choices(name, choices, special)
    read = read_columns(name, features, choices=choices, semicolons=found.semicolons, plain=found.plain)
    if read.frame.columns.empty:
        raise DataError(f"{name}: no column is left to learn from; {_why_nothing_is_left(read.notes)}")
    decisions = _in_order(columns, read.decisions, frame, special)
    return replace(source, features=read.frame, notes=(*source.notes, *read.notes), columns=decisions)


def _why_nothing_is_left(notes: Sequence[str]) -> str:
    """Return what was left out and why; of text that means something, what can be done with it."""
    said = "; ".join(notes) or "add features"
    return f"{said}; {TEXT_ADVICE}" if any(TEXT_REASON in note for note in notes) else said


def _check_apart(name: str, targets: tuple[str, ...], group: str | None, weight: str | None) -> None:
    """Raise where one column is asked for two things; of target and group, `group_values` says so."""
    if weight is not None and weight in (*targets, group):
        other = "--group" if weight == group else "--target"
        raise DataError(f"{name}: {other} and --weight are both {weight}; choose two columns")
    if len(targets) > 1 and group in targets:
        raise DataError(f"{name}: --target and --group are both {group}; choose two columns")


def _weights(name: str, frame: "pandas.DataFrame", weight: str | None) -> NDArray[numpy.float64] | None:
    """Return how much each row counts, where a column says so."""
    if weight is None:
        return None
    check_column(name, list(frame.columns), weight, option="--weight")
    return check_weights(f"{name}, column {weight}", frame[weight].to_numpy(), len(frame))


def _check_choices(name: str, choices: ColumnChoices | None, special: Mapping[str, SpecialUse]) -> None:
    named = () if choices is None else (*choices.drop, *choices.category, *choices.number, *choices.date)
    for column, use in special.items():
        if column in named:
            raise DataError(f"{name}: {column} is the column of --{use}, and no feature to choose a reading for")


def _in_order(
    columns: list[str],
    decisions: tuple[ColumnDecision, ...],
    frame: "pandas.DataFrame",
    special: Mapping[str, SpecialUse],
) -> tuple[ColumnDecision, ...]:
    """Return the decisions in the order of the file, those for targets, groups and weights among them."""
    known = {decision.name: decision for decision in decisions}
    for column, use in special.items():
        known[column] = ColumnDecision(name=column, read_as=use, distinct=int(frame[column].nunique()))
    return tuple(known[column] for column in columns if column in known)


def group_values(name: str, frame: "pandas.DataFrame", group: str, *, target: str) -> NDArray[Any]:
    """Return the group of each row; raise where a row has none."""
    check_column(name, list(frame.columns), group, option="--group")
    if group == target:
        raise DataError(f"{name}: --target and --group are both {group}; choose two columns")
    missing = int(frame[group].isna().sum())
    if missing:
        raise DataError(f"{name}: {missing} row(s) have no group in {group}; fill them or leave out --group")
    return as_labels(name, column_values(frame[group]), training=False)
