"""Stratified and group-aware parts and folds, as row numbers."""

from dataclasses import dataclass, replace
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.group_split import group_folds
from topiarist.data.source import Rows
from topiarist.errors import DataError
from topiarist.randomness import array_generator, child_seed


@dataclass(frozen=True, kw_only=True)
class Split:
    """Row numbers of the three parts, each in ascending order."""

    train: Rows
    validation: Rows
    test: Rows


@dataclass(frozen=True, kw_only=True)
class SplitRule:
    """How parts are drawn; the same rule gives the same parts of the same data."""

    seed: int = 0
    test_fraction: float = 0.2
    validation_fraction: float = 0.15


def split_rows(
    labels: NDArray[Any], *, groups: NDArray[Any] | None, parts: NDArray[Any] | None, rule: SplitRule
) -> Split:
    """Set a test part aside, then a validation part, unless `parts` already marks the rows of either."""
    fractions, seed = {"test": rule.test_fraction, "validation": rule.validation_fraction}, rule.seed
    for name, fraction in fractions.items():
        if not 0 <= fraction < 1:
            raise DataError(f"the {name} part must be a fraction from 0 to below 1 of the data; found {fraction}")
    if sum(fractions.values()) >= 1:
        raise DataError("the test and validation parts leave nothing to train on")
    free = numpy.ones(len(labels), dtype=bool)
    chosen: dict[str, Rows] = {}
    for name, fraction in fractions.items():
        if parts is not None and (parts == name).any():
            held = parts == name
        else:
            held = numpy.zeros(len(labels), dtype=bool)
            known = None if groups is None else groups[free]
            share = fraction * len(labels) / int(free.sum()) if parts is None else fraction
            held[free] = hold_out(labels[free], known, fraction=share, seed=seed, name=name)
        chosen[name] = numpy.flatnonzero(held)
        free &= ~held
    return Split(train=numpy.flatnonzero(free), **chosen)


def with_fewer_rows(split: Split, labels: NDArray[Any], *, samples: int, seed: int) -> Split:
    """Train on `samples` rows at most, stratified, and validate on fewer in proportion; the test part stays."""
    if samples >= len(split.train):
        return split
    classes = len(numpy.unique(labels[split.train]))
    if samples < classes:
        raise DataError(f"{samples} training samples cannot show {classes} classes")
    validated = round(len(split.validation) * samples / len(split.train))
    return replace(
        split,
        train=draw_rows(split.train, labels, samples, least=1, random=array_generator(seed, "fewer to train on")),
        validation=draw_rows(
            split.validation, labels, validated, least=0, random=array_generator(seed, "fewer to validate on")
        ),
    )


def draw_rows(rows: Rows, labels: NDArray[Any], total: int, *, least: int, random: numpy.random.Generator) -> Rows:
    """Draw exactly `total` rows, of each class in proportion and at least so many."""
    if not len(rows):
        return rows
    classes, members = numpy.unique(labels[rows], return_counts=True)
    quotas = members * total / len(rows)
    counts = numpy.clip(numpy.floor(quotas).astype(numpy.intp), least, members)
    while counts.sum() != total:
        step = 1 if counts.sum() < total else -1
        possible = counts < members if step > 0 else counts > least
        counts[numpy.argmax(numpy.where(possible, step * (quotas - counts), -numpy.inf))] += step
    drawn = [
        random.permutation(rows[labels[rows] == label])[:count] for label, count in zip(classes, counts, strict=True)
    ]
    return numpy.sort(numpy.concatenate(drawn))


def hold_out(
    labels: NDArray[Any], groups: NDArray[Any] | None, *, fraction: float, seed: int, name: str
) -> NDArray[numpy.bool_]:
    """Mark about `fraction` of the rows, stratified by label, whole groups where groups are given."""
    if fraction == 0:
        return numpy.zeros(len(labels), dtype=bool)
    if groups is not None:
        return hold_out_groups(labels, groups, fraction=fraction, seed=seed, name=name)
    random = array_generator(seed, name)
    classes, members = numpy.unique(labels, return_counts=True)
    held = numpy.zeros(len(labels), dtype=bool)
    for label, count in zip(classes, shares(members, fraction), strict=True):
        held[random.permutation(numpy.flatnonzero(labels == label))[:count]] = True
    return held


def shares(members: Rows, fraction: float) -> Rows:
    """Give how many of each class to hold out: proportional, the total exact, one of each class left where possible.

    The largest remainders are rounded up until the total is right.
    """
    quotas = members * fraction
    counts: Rows = numpy.minimum(numpy.floor(quotas).astype(numpy.intp), members - 1)
    missing = round(float(members.sum() * fraction)) - int(counts.sum())
    by_remainder = numpy.argsort(counts - quotas, kind="stable")
    for index in by_remainder[counts[by_remainder] < members[by_remainder] - 1][: max(missing, 0)]:
        counts[index] += 1
    return counts


def hold_out_groups(
    labels: NDArray[Any], groups: NDArray[Any], *, fraction: float, seed: int, name: str
) -> NDArray[numpy.bool_]:
    """Mark whole groups, about `fraction` of the rows: one fold of as many as that fraction makes."""
    wanted = max(2, round(1 / fraction))
    available = len(numpy.unique(groups))
    if available < 2:
        raise DataError(f"cannot set a {name} part of whole groups aside: found {available} group to take it from")
    folds = group_folds(labels, groups, folds=min(wanted, available), random_state=child_seed(seed, name) % 2**32)
    held = numpy.zeros(len(labels), dtype=bool)
    held[folds[0]] = True
    return held


def fold_tests(labels: NDArray[Any], groups: NDArray[Any] | None, *, folds: int, seed: int) -> list[Rows]:
    """Give the test rows of each fold: every row once, stratified, whole groups where groups are given."""
    if folds < 2:
        raise DataError(f"cross-validation needs at least 2 folds; asked for {folds}")
    counted, what = (labels, "samples") if groups is None else (numpy.unique(groups), "groups")
    if len(counted) < folds:
        raise DataError(f"cannot make {folds} folds of {len(counted)} {what}")
    if groups is not None:
        return group_folds(labels, groups, folds=folds, random_state=child_seed(seed, "folds") % 2**32)
    smallest = int(numpy.unique(labels, return_counts=True)[1].min())
    if smallest < folds:
        raise DataError(f"cannot make {folds} stratified folds: the smallest class has {smallest} samples")
    return deal(labels, folds=folds, random=array_generator(seed, "folds"))


def deal(labels: NDArray[Any], *, folds: int, random: numpy.random.Generator) -> list[Rows]:
    """Deal the shuffled members of each class out to the folds in turn, going on where the class before ended.

    So the folds, and what they have of each class, differ by one sample at most.
    """
    by_class = [random.permutation(numpy.flatnonzero(labels == label)) for label in numpy.unique(labels)]
    fold_of = numpy.empty(len(labels), dtype=numpy.intp)
    fold_of[numpy.concatenate(by_class)] = numpy.arange(len(labels)) % folds
    return [numpy.flatnonzero(fold_of == fold) for fold in range(folds)]
