"""The inputs of a training part that effects on the target make, and how some of its rows make them for all.

A fold of a training part, or rows on which a training stops, must not be in the effects that the others learn from: so
a part knows the texts behind these inputs, and is divided into rows to learn from, whose effects are measured on each
other, and rows to judge by, which are read by the effects of the former.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.effects import EffectTargets, Numbers, Places, crossed_effects, fit_effects

_CONSTANT = 1e-12  # a spread below it is rounding


@dataclass(frozen=True, eq=False, kw_only=True)
class EffectColumn:
    """One column of text: the place of each row's text among `count`, and the inputs from `start` on it becomes."""

    name: str
    start: int
    count: int
    places: Places


@dataclass(frozen=True, eq=False, kw_only=True)
class EffectInputs:
    """The columns of a part that are read by their effect, and the targets of its rows; `scaled` to a spread of 1."""

    columns: tuple[EffectColumn, ...]
    targets: EffectTargets
    scaled: bool

    def take(self, rows: Places) -> Self:
        """Return what is known of some rows."""
        columns = tuple(replace(column, places=column.places[rows]) for column in self.columns)
        return replace(self, columns=columns, targets=self.targets.of_rows(rows))

    def divided(self, learned: Places, judged: Places) -> "list[tuple[slice, Numbers, Numbers]]":
        """Return for each column its inputs, and their values in rows to learn from and in rows to judge by.

        All is measured on the targets of the former: effects, how much they are shrunk, and their scale. One of these
        rows has the effects of other rows among them.
        """
        found, targets = [], self.targets.take(learned)
        for column in self.columns:
            places = column.places[learned]
            effects, shrinking = fit_effects(column.name, places, targets, column.count)
            crossed = crossed_effects(column.name, places, targets, column.count, shrinking)
            shift, scale = _moments(effects[places]) if self.scaled else (0.0, 1.0)
            inputs = slice(column.start, column.start + effects.shape[1])
            found.append((inputs, (crossed - shift) * scale, (effects[column.places[judged]] - shift) * scale))
        return found


def _moments(values: Numbers) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """Return the mean and what scales the spread to 1; 0 for what is constant."""
    spread = values.std(axis=0)
    return values.mean(axis=0), numpy.where(spread > _CONSTANT, 1 / numpy.where(spread > _CONSTANT, spread, 1.0), 0.0)
