"""Labels of a single-label classification, as found in a file."""

from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.errors import DataError

FEW_VALUES = 20
LARGEST_WHOLE = 2.0**53


def as_labels(name: str, values: NDArray[Any], *, training: bool) -> NDArray[Any]:
    """Give whole numbers, truth values or text; for training, refuse a single class and a continuous target."""
    labels = plain_values(name, values)
    if training:
        check_classes(name, labels)
    return labels


def plain_values(name: str, values: NDArray[Any]) -> NDArray[Any]:
    """Give `values` as an array of text, truth values, integers or, where fractions occur, floats."""
    if values.dtype.kind == "O":
        values = numpy.asarray([value if isinstance(value, bool) else str(value) for value in values])
    if values.dtype.kind == "f":
        if not numpy.isfinite(values).all():
            raise DataError(f"{name}: some labels are missing or infinite; give every sample a label")
        whole = (values == numpy.floor(values)).all() and (numpy.abs(values) < LARGEST_WHOLE).all()
        return values.astype(numpy.int64) if whole else values
    if values.dtype.kind not in "iubU":
        raise DataError(f"{name}: labels of type {values.dtype} are not understood; give numbers or text")
    return values


def check_classes(name: str, labels: NDArray[Any]) -> None:
    """Refuse labels that are not a choice among at least two classes."""
    distinct = len(numpy.unique(labels))
    if distinct < 2:
        found = f"only the class {labels[0]}" if len(labels) else "no labels"
        raise DataError(f"{name}: at least two classes are needed, found {found}")
    mostly_distinct = 2 * distinct > len(labels)
    many = distinct > FEW_VALUES
    if (labels.dtype.kind == "f" and (many or mostly_distinct)) or (
        labels.dtype.kind in "iu" and many and mostly_distinct
    ):
        raise DataError(
            f"{name}: the target looks continuous ({distinct} distinct numbers in {len(labels)} samples);"
            " only classification is supported: choose another target or put its values into classes"
        )
