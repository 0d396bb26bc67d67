"""Joint spaces: where one integer of the code ties several spaces, their units go together, in equal shares."""

import math
from dataclasses import replace
from itertools import combinations

import numpy

from topiarist.tracing.constraints import Constraint
from topiarist.tracing.integers import Literal
from topiarist.tracing.labels import Labels
from topiarist.tracing.solving import Solution, Solver
from topiarist.tracing.spaces import Indices, Meeting, Space, find_spaces

MOST_TOGETHER = 3  # spaces that one space is joined with at most: width, heads and dims are the known case
MOST_TRIED = 64  # choices of one to three among the spaces nearby: all of them for seven spaces (7 + 21 + 35 = 63)


def join_spaces(labels: Labels, meetings: list[Meeting], solver: Solver) -> dict[str, Space]:
    """Return the spaces of a network: those that the code allows to change alone, and joined ones where it does not.

    A space that the code allows to change in no company is fixed, with what the code asks for as the reason.
    """
    counted: set[int] = set()
    while True:
        spaces = find_spaces(labels, meetings)
        touched: set[int] = set()
        for space in spaces.values():
            _settle(labels, solver, spaces, space, counted, touched)
        if not touched:
            return {
                name: replace(space, counted=bool(counted.intersection(space.units.tolist())))
                for name, space in spaces.items()
            }


def _settle(
    labels: Labels, solver: Solver, spaces: dict[str, Space], space: Space, counted: set[int], touched: set[int]
) -> None:
    """Join a space with others, or fix it, where it cannot change alone; `touched` gets the units of those."""
    if space.fixed or space.size < 2 or not touched.isdisjoint(space.units.tolist()):
        return
    solution = _trial(labels, solver, [space])
    if not solution.violated:
        if solution.softened:
            counted.update(space.units.tolist())
        return
    partners = _find_partners(labels, solver, spaces, space, solution)
    if partners is None:
        labels.fix(space.units[:, None], str(_reason(solution)))
        touched.update(space.units.tolist())
        return
    joined = [space, *partners]
    if touched.isdisjoint(unit for each in joined for unit in each.units.tolist()):
        _join(labels, joined)
        solver.index_units()
    touched.update(unit for each in joined for unit in each.units.tolist())


def _reason(solution: Solution) -> Constraint:
    """Return what speaks against a change most clearly: a number that must not change, or one written in the code."""
    return min(solution.violated, key=lambda each: (each.vector is not None, not isinstance(each.expression, Literal)))


def _trial(labels: Labels, solver: Solver, spaces: list[Space]) -> Solution:
    """Try to take half of the units of some spaces, the last and then the first, in blocks where they are joined.

    Where nothing but the answer to a comparison speaks against it, two less than half of them are tried too.
    """
    blocks = math.gcd(*(space.size for space in spaces))
    half = (blocks + 1) // 2
    solution = Solution()
    for kept in range(half, min(half + 3, blocks)):
        solution = _trial_of(labels, solver, spaces, blocks, kept)
        if not all(constraint.is_comparison for constraint in solution.violated) or not solution.violated:
            break
    return solution


def _trial_of(labels: Labels, solver: Solver, spaces: list[Space], blocks: int, kept: int) -> Solution:
    """Try to keep so many blocks of the units of some spaces, the first and then the last."""
    solution = Solution()
    for gone in (slice(kept, blocks), slice(0, blocks - kept)):
        copies = numpy.ones(len(labels), numpy.int64)
        for space in spaces:
            copies[space.units.reshape(blocks, -1)[gone]] = 0
        solution = solver.solve(copies)
        if solution.violated:
            break
    return solution


def _find_partners(
    labels: Labels, solver: Solver, spaces: dict[str, Space], space: Space, solution: Solution
) -> list[Space] | None:
    """Return the fewest other spaces with which a space can change; None where there are none."""
    home = numpy.full(len(labels), -1)
    listed = [other for other in spaces.values() if not other.fixed]
    for number, other in enumerate(listed):
        home[other.units] = number
    near = _missing(solver, solution, home, listed, [space])
    few = _few_partners(labels, solver, space, near, home, listed)
    return _partners_of_one_kind(labels, solver, space, near, home, listed) if few is None else few


def _few_partners(
    labels: Labels, solver: Solver, space: Space, near: list[Space], home: Indices, listed: list[Space]
) -> list[Space] | None:
    """Return the fewest spaces nearby with which a space can change; None where there are none among the first."""
    softened: list[Space] | None = None
    tried = 0
    for count in range(1, MOST_TOGETHER + 1):
        for partners in combinations(near, count):
            together = [space, *partners]
            found = _trial(labels, solver, together)
            if found.violated:
                together += _missing(solver, found, home, listed, together)
                found = _trial(labels, solver, together)
            tried += 1
            if tried > MOST_TRIED:
                return softened
            if not found.violated and math.gcd(*(each.size for each in together)) > 1:
                if not found.softened:
                    return together[1:]
                softened = softened or together[1:]
    return softened


def _partners_of_one_kind(
    labels: Labels, solver: Solver, space: Space, near: list[Space], home: Indices, listed: list[Space]
) -> list[Space] | None:
    """Return spaces of one kind with which a space can change: the heads of all layers that share a width, or the dims.

    Where the code of each layer parts the width into heads, one space per layer has to change with it.
    """
    softened: list[Space] | None = None
    for kind in dict.fromkeys(map(_kind_of, near)):
        together, more = [space], [each for each in near if _kind_of(each) == kind]
        found = Solution()
        while more:
            together += more
            found = _trial(labels, solver, together)
            more = [each for each in _missing(solver, found, home, listed, together) if _kind_of(each) == kind]
        if not found.violated and math.gcd(*(each.size for each in together)) > 1:
            if not found.softened:
                return together[1:]
            softened = softened or together[1:]
    return softened


def _kind_of(space: Space) -> tuple[int, str]:
    """Return the size of a space, and what its name says that its units are: ":heads", ":dims"."""
    return space.size, space.name.partition(":")[2].partition("#")[0]


def _missing(solver: Solver, found: Solution, home: Indices, listed: list[Space], together: list[Space]) -> list[Space]:
    """Return the spaces that what is violated counts, and that do not change yet; `home` numbers them by unit."""
    more: list[Space] = []
    for constraint in found.violated:
        for number in numpy.unique(home[solver.units_of(constraint)]).tolist():
            if number >= 0 and listed[number] not in together and listed[number] not in more:
                more.append(listed[number])
    return more


def _join(labels: Labels, spaces: list[Space]) -> None:
    """Let the units of spaces go together: as many blocks as all can be parted into evenly."""
    blocks = math.gcd(*(space.size for space in spaces))
    parts = [space.units.reshape(blocks, -1) for space in spaces]
    together = numpy.concatenate(parts, axis=1)
    for column in range(1, together.shape[1]):
        labels.tie(together[:, :1], together[:, column : column + 1], "they are joined with others")
