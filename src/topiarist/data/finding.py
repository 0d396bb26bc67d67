"""What a target is: classes, numbers or labels, found from its values.

Text and truth values are classes, fractions are numbers. Whole numbers can be either: a grade of 1 to 5 is a class, a
price is a number. They are classes where there are few different ones that repeat, or where they are codes:

==========================================  ==================================================================
at most 2                                   classes
at most 10, most of which repeat            classes, gaps or not: grades, ratings, codes of a survey
at most 20, each of which repeats           classes where they begin with 0 or 1, and at least half of the range
                                            occurs: scales and codes begin there, ages, years and speeds do not
more                                        classes where they are codes: no gap from 0 or 1 on, each at least 10
                                            times, and none 10 times as often as another; of images and the
                                            like, which are seldom counted or priced, codes without more ado
all else                                    numbers: prices, counts, ages
==========================================  ==================================================================

Several columns are labels where every value is 0 or 1, or says yes or no, and numbers otherwise.
"""

from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.tasks import TaskKind

SURELY_FEW, FEW = 10, 20  # different values: grades and ratings have up to 10, and no scale of classes that we know 20
LEAST_MEMBERS, LARGEST_RATIO = 10, 10  # of codes: the tails of counts and ages are rarer, beside their middle


def kind_of_values(values: NDArray[Any], *, images: bool = False) -> tuple[TaskKind, str]:
    """Return what values without gaps (n_samples,) are, and why in a few words; `images` for targets of images."""
    if values.dtype.kind not in "iuf":
        return "classes", "truth values" if values.dtype.kind == "b" else "text"
    different, counts = numpy.unique(values, return_counts=True)
    found = f"{len(different)} different number{'' if len(different) == 1 else 's'} in {len(values)} rows"
    if not is_whole(different):
        return "numbers", f"{found}, with fractions"
    return ("classes" if _are_classes(different, counts, images) else "numbers"), found


def _are_classes(different: NDArray[Any], counts: NDArray[numpy.intp], images: bool) -> bool:
    number, span = len(different), float(different[-1]) - float(different[0]) + 1
    if number <= 2:
        return True
    if number <= SURELY_FEW:
        return 2 * int((counts > 1).sum()) >= number
    begins = different[0] in (0, 1)
    if number <= FEW:
        return bool(begins and 2 * number >= span and counts.min() > 1)
    are_codes = begins and span == number
    if are_codes and images:
        return 2 * number <= int(counts.sum())
    return bool(are_codes and counts.min() >= LEAST_MEMBERS and counts.max() < LARGEST_RATIO * counts.min())


def is_whole(values: NDArray[Any]) -> bool:
    """Return whether all numbers are whole."""
    return values.dtype.kind != "f" or bool((values == numpy.floor(values)).all())


def may_be_measures(values: NDArray[Any]) -> bool:
    """Return whether values are more than two numbers, and not those that classes are mostly numbered by: 0, 1, 2 …"""
    if values.dtype.kind not in "iuf":
        return False
    different = numpy.unique(values)
    return len(different) > 2 and not numpy.array_equal(different, numpy.arange(len(different)))


def are_binary(values: NDArray[Any]) -> bool:
    """Return whether all values are 0 or 1."""
    return values.dtype.kind == "b" or (values.dtype.kind in "iuf" and bool(((values == 0) | (values == 1)).all()))
