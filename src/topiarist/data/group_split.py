"""Folds of whole groups, by scikit-learn."""

import warnings
from importlib import import_module
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.source import Rows


def group_folds(labels: NDArray[Any], groups: NDArray[Any], *, folds: int, random_state: int) -> list[Rows]:
    """Give the rows of each fold of whole groups, none empty, stratified where the groups allow it."""
    splitters = import_module("sklearn.model_selection")  # only here: it takes a second to import
    if folds <= numpy.unique(labels, return_counts=True)[1].max():
        stratified = splitters.StratifiedGroupKFold(folds, shuffle=True, random_state=random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a class smaller than the number of folds
            tests = [test for _, test in stratified.split(labels, labels, groups)]
        if all(map(len, tests)):
            return tests
    plain = splitters.GroupKFold(folds, shuffle=True, random_state=random_state)
    return [test for _, test in plain.split(labels, groups=groups)]
