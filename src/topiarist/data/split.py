"""Stratified and group-aware parts and folds, as row numbers.

Parts and folds are decided on originals alone: an augmented copy is in the training part exactly where its original is,
and in no other part.
"""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.data.source import Rows, Source
from topiarist.errors import DataError
from topiarist.randomness import array_generator, child_seed

Labels = NDArray[Any]
Groups = NDArray[Any] | None


@dataclass(frozen=True, kw_only=True)
class Split:
    """Row numbers of the three parts, each in ascending order."""

    train: Rows
    validation: Rows
    test: Rows


@dataclass(frozen=True, kw_only=True)
class SplitRule:
    """How parts are drawn: the same rule draws the same parts of the same data.

    Parameters
    ----------
    seed
        Decides which samples go where.
    test_fraction, validation_fraction
        The fractions of all samples that are set aside, stratified by class; 0.2 and 0.15 by default.
    """

    seed: int = 0
    test_fraction: float = 0.2
    validation_fraction: float = 0.15


def split_source(source: Source, labels: NDArray[numpy.int64], rule: SplitRule) -> Split:
    """Return the rows of each part, by class numbers or other strata (n_samples,); copies are in training alone."""
    return with_copies(split_originals(source, labels, rule), source.originals)


def split_originals(source: Source, labels: NDArray[numpy.int64], rule: SplitRule) -> Split:
    """Return the rows of each part without any copies."""
    rows = original_rows(source)
    found = split_rows(
        labels[rows],
        groups=None if source.groups is None else source.groups[rows],
        parts=None if source.parts is None else source.parts[rows],
        rule=rule,
    )
    return Split(train=rows[found.train], validation=rows[found.validation], test=rows[found.test])


def with_copies(split: Split, originals: NDArray[Any] | None) -> Split:
    """Add to the training part all copies of the originals in it."""
    if originals is None:
        return split
    return replace(split, train=numpy.flatnonzero(numpy.isin(originals, split.train)))


def original_rows(source: Source) -> Rows:
    """Return the rows that are no copies; raise where a copy is not like its original."""
    count, originals, name = len(source), source.originals, source.name
    if originals is None:
        return numpy.arange(count)
    _check_originals(name, originals, count)
    for what, values in {"label": source.labels, "group": source.groups, "finer class": source.finer}.items():
        if values is None:
            continue
        others = (values != values[originals]).reshape(count, -1).any(axis=1)
        if others.any():
            row = int(numpy.flatnonzero(others)[0])
            original = originals[row]
            raise DataError(
                f"{name}: a copy must have the {what} of its original; found {values[row]} in row {row}"
                f" and {values[original]} in row {original}"
            )
    return numpy.flatnonzero(originals == numpy.arange(count))


def _check_originals(name: str, originals: NDArray[Any], count: int) -> None:
    if originals.shape != (count,) or originals.dtype.kind not in "iu":
        raise DataError(
            f"{name}: original must hold one row number for each of {count} samples;"
            f" found {originals.shape} of type {originals.dtype}"
        )
    outside = numpy.flatnonzero((originals < 0) | (originals >= count))
    if len(outside):
        row = int(outside[0])
        raise DataError(f"{name}: rows are numbered 0 to {count - 1}; row {row} is a copy of {originals[row]}")
    chained = numpy.flatnonzero(originals[originals] != originals)
    if len(chained):
        row = int(chained[0])
        raise DataError(
            f"{name}: row {row} is a copy of row {originals[row]}, which is a copy itself: name the original"
        )


def split_rows(labels: Labels, *, groups: Groups, parts: NDArray[Any] | None, rule: SplitRule) -> Split:
    """Set a test part aside, then a validation part, unless `parts` already marks the rows of either."""
    fractions = {"test": rule.test_fraction, "validation": rule.validation_fraction}
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
            held[free] = hold_out(labels[free], known, fraction=share, seed=rule.seed, name=name)
        chosen[name] = numpy.flatnonzero(held)
        free &= ~held
    return Split(train=numpy.flatnonzero(free), **chosen)


def with_fewer_rows(split: Split, labels: Labels, *, samples: int, seed: int, classes: bool = True) -> Split:
    """Train on `samples` rows at most, stratified, and validate on fewer in proportion; the test part stays.

    Of each class one row stays; other strata may go.
    """
    if samples >= len(split.train):
        return split
    strata = len(numpy.unique(labels[split.train]))
    if classes and samples < strata:
        raise DataError(f"{samples} training samples cannot show {strata} classes")
    fewer, random = round(len(split.validation) * samples / len(split.train)), array_generator
    return replace(
        split,
        train=_draw_stratified(
            split.train, labels, samples, least=int(classes), random=random(seed, "fewer to train on")
        ),
        validation=_draw_stratified(
            split.validation, labels, fewer, least=0, random=random(seed, "fewer to validate on")
        ),
    )


def _draw_stratified(rows: Rows, labels: Labels, total: int, *, least: int, random: numpy.random.Generator) -> Rows:
    """Draw exactly `total` rows, of each class in proportion and at least `least`."""
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


def hold_out(labels: Labels, groups: Groups, *, fraction: float, seed: int, name: str) -> NDArray[numpy.bool_]:
    """Mark about `fraction` of the rows: stratified by label, or whole groups where groups are known."""
    held = numpy.zeros(len(labels), dtype=bool)
    if fraction == 0:
        return held
    if groups is not None:
        wanted, available = max(2, round(1 / fraction)), len(numpy.unique(groups))
        if available < 2:
            raise DataError(f"cannot set a {name} part of whole groups aside: found {available} group to take it from")
        # About the fraction asked for is one fold of as many as the fraction makes: a fifth is one fold of five.
        folds = _group_folds(labels, groups, folds=min(wanted, available), random_state=child_seed(seed, name) % 2**32)
        held[folds[0]] = True
        return held
    random = array_generator(seed, name)
    classes, members = numpy.unique(labels, return_counts=True)
    for label, count in zip(classes, shares(members, fraction), strict=True):
        held[random.permutation(numpy.flatnonzero(labels == label))[:count]] = True
    return held


def shares(members: Rows, fraction: float, *, leave_one: bool = True) -> Rows:
    """Return that fraction of each class: in proportion, the total exact, one of each class left where asked for.

    The largest remainders are rounded up until the total is right: a fifth of classes of 7, 7 and 6 is 1.4, 1.4 and
    1.2; the total of 4 makes it 2, 1 and 1.
    """
    quotas = members * fraction
    most = members - 1 if leave_one else numpy.ceil(quotas)
    counts: Rows = numpy.minimum(numpy.floor(quotas), most).astype(numpy.intp)
    missing = round(float(members.sum() * fraction)) - int(counts.sum())
    by_remainder = numpy.argsort(counts - quotas, kind="stable")
    counts[by_remainder[counts[by_remainder] < most[by_remainder]][: max(missing, 0)]] += 1
    return counts


def fold_splits(
    source: Source,
    labels: Labels,
    rows: Rows,
    *,
    count: int,
    seed: int,
    validation_fraction: float,
    classes: bool = True,
) -> Iterator[Split]:
    """Yield the parts of each fold of some original rows: its test part is the fold; see `fold_tests`."""
    groups = None if source.groups is None else source.groups[rows]
    for number, test in enumerate(fold_tests(labels[rows], groups, folds=count, seed=seed, classes=classes)):
        rest = numpy.delete(numpy.arange(len(rows)), test)
        known, name = None if groups is None else groups[rest], f"validation of fold {number}"
        held = hold_out(labels[rows[rest]], known, fraction=validation_fraction, seed=seed, name=name)
        yield Split(train=rows[rest[~held]], validation=rows[rest[held]], test=rows[test])


def fold_tests(labels: Labels, groups: Groups, *, folds: int, seed: int, classes: bool = True) -> list[Rows]:
    """Return the test rows of each fold: every row once, stratified, whole groups where groups are known.

    Without groups, the shuffled members of each class are dealt out in turn, each class continuing where the one before
    ended, so that folds, and what they have of each class, differ by one sample at most. Every fold must have a sample
    of all `classes`; of other strata it need not.
    """
    if folds < 2:
        raise DataError(f"cross-validation needs at least 2 folds; asked for {folds}")
    counted, what = (labels, "samples") if groups is None else (numpy.unique(groups), "groups")
    if len(counted) < folds:
        raise DataError(f"cannot make {folds} folds of {len(counted)} {what}")
    if groups is not None:
        return _group_folds(labels, groups, folds=folds, random_state=child_seed(seed, "folds") % 2**32)
    smallest = int(numpy.unique(labels, return_counts=True)[1].min())
    if classes and smallest < folds:
        raise DataError(f"cannot make {folds} stratified folds: the smallest class has {smallest} samples")
    random = array_generator(seed, "folds")
    by_class = [random.permutation(numpy.flatnonzero(labels == label)) for label in numpy.unique(labels)]
    fold_of = numpy.empty(len(labels), dtype=numpy.intp)
    fold_of[numpy.concatenate(by_class)] = numpy.arange(len(labels)) % folds
    return [numpy.flatnonzero(fold_of == fold) for fold in range(folds)]


def _group_folds(labels: Labels, groups: NDArray[Any], *, folds: int, random_state: int) -> list[Rows]:
    """Return the rows of each fold of whole groups, none empty, stratified where the groups allow it."""
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
