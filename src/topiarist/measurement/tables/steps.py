"""Time against two widths: interpolated between the points of a grid, with the steps that processors have between them.

A processor computes channels in blocks: 17 may take as long as 32, or longer. Along each axis, some widths between two
multiples of 16 are timed besides. They show how far each remainder has come on the way from one multiple to the next,

    way(r) = (t(m + r) − t(m)) / (t(m + 16) − t(m)),

which is r / 16 where there are no steps, and 1 where any remainder takes a whole block. A width m + r then counts as an
effective width of m + 16 · way(r), and between the points of the grid time is linear in effective widths. A remainder
that takes longer than the whole block, because a runtime has no fast kernel for it, has a way of 1 and a penalty,
t(m + r) / t(m + 16), which multiplies; of two penalties, that of the inputs and that of the outputs, the larger does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy
from numpy.typing import ArrayLike, NDArray

BLOCK = 16  # numbers that a vector of AVX-512 holds in float32; those of AVX2 and NEON, 8 and 4, divide it
# Remainders that are timed; between two of a class, those that are divisible by as much, the way is linear.
CLASSES = ((1, 15), (2, 14), (4, 12), (8, 8))
PROBED = tuple(sorted({remainder for ends in CLASSES for remainder in ends}))
SMALLEST_RISE = 0.05  # of the time of a block's end: less cannot be told from noise
SMALLEST_PENALTY = 1.05  # likewise
Floats = NDArray[numpy.float64]


def probed_block(width: int) -> int | None:
    """Return the multiple of 16 behind which remainders are timed, near half of a full width; None for narrow axes."""
    return max(BLOCK, width // 2 // BLOCK * BLOCK) if width >= 2 * BLOCK else None


@dataclass(frozen=True)
class Steps:
    """The way (17,) and the penalty (17,) of each remainder of 16."""

    ways: Floats = field(default_factory=lambda: numpy.arange(BLOCK + 1) / BLOCK)
    penalties: Floats = field(default_factory=lambda: numpy.ones(BLOCK + 1))


def find_steps(times: Mapping[int, float], start: int) -> Steps:
    """Return the steps that the times at a block's start, at its end, and at some remainders show."""
    low, high = times[start], times[start + BLOCK]
    plain = Steps()
    ways, penalties = plain.ways.copy(), plain.penalties.copy()
    rises = high - low >= SMALLEST_RISE * high
    for ends in CLASSES:
        found = [times[start + remainder] for remainder in ends]
        members = [remainder for remainder in range(1, BLOCK) if remainder & -remainder == ends[0]]
        between = numpy.interp(members, ends, found) if ends[0] < ends[1] else numpy.array(found[:1])
        if rises:
            ways[members] = numpy.clip((between - low) / (high - low), 0.0, 1.0)
        slower = between / high
        penalties[members] = numpy.where(slower >= SMALLEST_PENALTY, slower, 1.0)
    return Steps(ways, penalties)


@dataclass(frozen=True)
class Axis:
    """The widths of a grid along one axis, and its steps."""

    widths: Sequence[int]
    steps: Steps = field(default_factory=Steps)

    def effective(self, width: Floats) -> Floats:
        """Return effective widths; those of the grid, and those below a block, stay what they are."""
        whole = numpy.floor(width / BLOCK) * BLOCK
        found = whole + BLOCK * self.steps.ways[self._remainder(width)]
        return numpy.where(self._is_plain(width), width, found)

    def penalty(self, width: Floats) -> Floats:
        """Return by what the time at each width is multiplied."""
        return numpy.where(self._is_plain(width), 1.0, self.steps.penalties[self._remainder(width)])

    def _remainder(self, width: Floats) -> NDArray[numpy.intp]:
        return (width % BLOCK).astype(numpy.intp)

    def _is_plain(self, width: Floats) -> NDArray[numpy.bool_]:
        found: NDArray[numpy.bool_] = (width < BLOCK) | numpy.isin(width, self.widths)
        return found

    def weights(self, width: Floats) -> tuple[NDArray[numpy.intp], Floats]:
        """Return the point of the grid before each effective width, and the share of the way to the next one."""
        if len(self.widths) == 1:
            return numpy.zeros(width.shape, numpy.intp), numpy.zeros(width.shape)
        points = numpy.asarray(self.widths, float)
        effective = self.effective(width)
        before = numpy.clip(numpy.searchsorted(points, effective, side="right") - 1, 0, len(points) - 2)
        return before, (effective - points[before]) / (points[before + 1] - points[before])


@dataclass(frozen=True)
class Surface:
    """Times (n_inputs, n_outputs) over a grid of two axes."""

    inputs: Axis
    outputs: Axis
    times: Floats

    def at(self, inputs: ArrayLike, outputs: ArrayLike) -> Floats:
        """Return the times at widths (…): bilinear, never below 0, and with penalties."""
        read, written = numpy.broadcast_arrays(numpy.asarray(inputs, float), numpy.asarray(outputs, float))
        row, down = self.inputs.weights(read)
        column, right = self.outputs.weights(written)
        last_row, last_column = (size - 1 for size in self.times.shape)
        below, beside = numpy.minimum(row + 1, last_row), numpy.minimum(column + 1, last_column)
        upper = self.times[row, column] * (1 - right) + self.times[row, beside] * right
        lower = self.times[below, column] * (1 - right) + self.times[below, beside] * right
        plain: Floats = numpy.maximum(upper * (1 - down) + lower * down, 0.0)
        return plain * self.penalty(inputs, outputs)

    def penalty(self, inputs: ArrayLike, outputs: ArrayLike) -> Floats:
        """Return by what the times at widths (…) are multiplied: 1 where the runtime has a fast kernel for them."""
        read, written = numpy.broadcast_arrays(numpy.asarray(inputs, float), numpy.asarray(outputs, float))
        return numpy.maximum(self.inputs.penalty(read), self.outputs.penalty(written))
