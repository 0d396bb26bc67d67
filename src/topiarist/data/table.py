"""A table with one row a sample: text, Parquet or Excel."""

from pathlib import Path
from typing import Any, Literal

import numpy
import pandas
from numpy.typing import NDArray

from topiarist.data.delimited import read_delimited
from topiarist.data.label_values import as_labels
from topiarist.data.source import Source
from topiarist.data.tidying import check_column, drop_uninformative, listed, tidy
from topiarist.data.workbook import read_excel, read_parquet
from topiarist.errors import DataError

TableForm = Literal["text", "parquet", "excel"]
READERS = {"text": read_delimited, "parquet": read_parquet, "excel": read_excel}


def read_table(
    path: Path, *, form: TableForm = "text", target: str | None, group: str | None, labelled: bool
) -> Source:
    """Read a table whose column `target` holds the labels and whose column `group` holds the groups."""
    frame, notes = READERS[form](path)
    name = path.resolve().name
    columns = [str(column) for column in frame.columns]
    if frame.empty:
        raise DataError(f"{name} has a header and no rows: {listed(columns)}")
    if not labelled:
        return unlabelled(name, frame, notes, target=target, group=group)
    if target is None:
        raise DataError(f"{name}: say with --target which column holds the label: {listed(columns)}")
    frame, labels, dropped = split_labels(name, frame, target)
    groups = None if group is None else group_values(name, frame, group, target=target)
    features, changes = tidy(name, frame.drop(columns=[target, *([] if group is None else [group])]))
    features, left_out = drop_uninformative(features)
    if features.columns.empty:
        raise DataError(f"{name}: no column is left to learn from; {'; '.join(left_out) or 'give features'}")
    notes = [*notes, *dropped, *changes, *left_out]
    return Source(name=name, features=features, labels=labels, groups=groups, notes=tuple(notes))


def unlabelled(
    name: str, frame: pandas.DataFrame, notes: list[str], *, target: str | None, group: str | None
) -> Source:
    """Give every row and column for prediction, with labels where `target` is there and complete."""
    labels = None
    if target in frame.columns:
        found = label_column(frame, target)
        if found.notna().all():
            labels = as_labels(name, values_of(found), training=False)
        else:
            notes = [*notes, f"labels not used: {found.isna().sum()} missing in {target}"]
    features, changes = tidy(name, frame.drop(columns=[target, group], errors="ignore"))
    return Source(name=name, features=features, labels=labels, notes=(*notes, *changes))


def split_labels(name: str, frame: pandas.DataFrame, target: str) -> tuple[pandas.DataFrame, NDArray[Any], list[str]]:
    """Give the rows that have a label, their labels, and a note of how many had none."""
    check_column(name, list(frame.columns), target, option="--target")
    found = label_column(frame, target)
    known = found.notna()
    missing = int((~known).sum())
    if missing == len(frame):
        raise DataError(f"{name}: every value of the target {target} is missing; choose another --target")
    labels = as_labels(name, values_of(found[known]), training=True)
    notes = [f"{missing} row(s) without a label in {target} left out"] if missing else []
    return frame[known].reset_index(drop=True), labels, notes


def label_column(frame: pandas.DataFrame, target: str | None) -> "pandas.Series[Any]":
    """Give the target, an infinite number in it as missing."""
    return frame[target].replace([numpy.inf, -numpy.inf], numpy.nan)


def values_of(column: "pandas.Series[Any]") -> NDArray[Any]:
    """Give a column without missing values as an array of numbers, truth values or objects."""
    numbers = pandas.api.types.is_numeric_dtype(column)
    plain = column.astype(object).infer_objects() if numbers else column.astype(object)
    return plain.infer_objects().to_numpy()


def group_values(name: str, frame: pandas.DataFrame, group: str, *, target: str) -> NDArray[Any]:
    """Give the group of each row, refusing rows without one."""
    check_column(name, list(frame.columns), group, option="--group")
    if group == target:
        raise DataError(f"{name}: --target and --group are both {group}; choose two columns")
    missing = int(frame[group].isna().sum())
    if missing:
        raise DataError(f"{name}: {missing} row(s) have no group in {group}; fill them or leave out --group")
    return as_labels(name, values_of(frame[group]), training=False)
