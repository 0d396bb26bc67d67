"""Texts of a column by their effect on the target: a learned number per text and output, in place of an input per text.

Of thousands of texts, one-hot inputs take memory and weights without end, and a hash of them loses what each one says.
The effect of a text is the mean of the target over its training rows less that over all, shrunk towards 0 where rows
are few: Σ (y − ȳ) / (n + m), after Micci-Barreca (2001). m is the one with which effects of other rows come nearest to
the target. A training row must not see its own target: its effect is that of the rows of other folds.
"""

from dataclasses import dataclass, replace

import numpy
from numpy.typing import NDArray

from topiarist.randomness import array_generator

Numbers = NDArray[numpy.float64]
Places = NDArray[numpy.intp]

FOLDS = 5  # as many as scikit-learn's TargetEncoder has
SHRINKING = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)  # rows that speak for no effect, to choose from
_DIGITS = 6  # of an effect, in the file


@dataclass(frozen=True, eq=False, kw_only=True)
class EffectTargets:
    """What effects are measured on: numbers of all rows (n_rows, n_outputs), how much rows count, and their groups."""

    numbers: Numbers
    weights: Numbers | None = None
    groups: NDArray[numpy.object_] | None = None

    def of_rows(self, rows: Places) -> "EffectTargets":
        """Return the targets of some rows as they are."""
        weights = None if self.weights is None else self.weights[rows]
        groups = None if self.groups is None else self.groups[rows]
        return EffectTargets(numbers=self.numbers[rows], weights=weights, groups=groups)

    def take(self, rows: Places) -> "EffectTargets":
        """Return the targets of some rows; the numbers become differences from their mean, in spreads."""
        found = self.of_rows(rows)
        centred = found.numbers - numpy.average(found.numbers, axis=0, weights=found.weights)
        spread = centred.std(axis=0)
        return replace(found, numbers=centred / numpy.where(spread > 0, spread, 1.0))


def effects_of(places: Places, targets: EffectTargets, count: int, shrinking: float) -> Numbers:
    """Return the effect of each place (count, n_outputs) by the rows that have it; 0 for those without a row.

    Examples
    --------
    >>> targets = EffectTargets(numbers=numpy.array([[1.0], [1.0], [-2.0]]))
    >>> effects_of(numpy.array([0, 0, 1]), targets, 3, 2.0)[:, 0].round(2).tolist()
    [0.5, -0.67, 0.0]
    """
    weights = numpy.ones(len(places)) if targets.weights is None else targets.weights / targets.weights.mean()
    rows = numpy.bincount(places, weights, minlength=count)
    sums = [numpy.bincount(places, weights * column, minlength=count) for column in targets.numbers.T]
    return numpy.stack(sums, axis=1) / (rows + shrinking)[:, None]


def fit_effects(name: str, places: Places, targets: EffectTargets, count: int) -> tuple[Numbers, float]:
    """Return the effects of a column's places on the targets of its training rows, and how much they are shrunk."""
    losses = {}
    for shrinking in SHRINKING:
        missed = numpy.square(targets.numbers - crossed_effects(name, places, targets, count, shrinking)).mean(axis=1)
        losses[shrinking] = numpy.average(missed, weights=targets.weights)
    best = min(SHRINKING, key=losses.__getitem__)
    return rounded(effects_of(places, targets, count, best)), best


def crossed_effects(name: str, places: Places, targets: EffectTargets, count: int, shrinking: float) -> Numbers:
    """Return for each training row the effect of its place by the rows of other folds (n_rows, n_outputs).

    Rows of one group are in one fold. The folds follow from the name of the column and the number of rows.
    """
    of_row = (
        numpy.arange(len(places)) if targets.groups is None else numpy.unique(targets.groups, return_inverse=True)[1]
    )
    dealt = array_generator(0, "folds of effects", name).permutation(int(of_row.max(initial=0)) + 1) % FOLDS
    folds, found = dealt[of_row], numpy.zeros(targets.numbers.shape)
    for fold in range(FOLDS):
        others, own = numpy.flatnonzero(folds != fold), numpy.flatnonzero(folds == fold)
        if len(others) and len(own):
            weights = None if targets.weights is None else targets.weights[others]
            rest = EffectTargets(numbers=targets.numbers[others], weights=weights)
            found[own] = effects_of(places[others], rest, count, shrinking)[places[own]]
    return rounded(found)


def rounded(effects: Numbers) -> Numbers:
    """Return effects with as many digits as a file keeps."""
    return numpy.round(effects, _DIGITS)
