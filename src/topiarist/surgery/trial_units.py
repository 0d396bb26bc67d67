"""Which units a proof takes away: half of each space, or a little less where code compares their numbers."""

from collections.abc import Iterable

from topiarist.tracing import Anatomy

FEWER = (0, 1, 2)  # units that stay besides half of them


def trial_units(anatomy: Anatomy, names: Iterable[str]) -> dict[str, range]:
    """Return the first half of the units of some spaces; fewer where just half of them sends the code another way.

    A recurrent layer with a projection, for instance, takes no hidden size that is that of the projection.
    """
    sizes = {name: anatomy.spaces[name].size for name in names}
    halves = {name: range(size // 2) for name, size in sizes.items()}
    for fewer in FEWER:
        units = {name: range(max(size // 2 - fewer, 1)) for name, size in sizes.items()}
        if not _changes_an_answer(anatomy, units):
            return units
    return halves


def _changes_an_answer(anatomy: Anatomy, units: dict[str, range]) -> bool:
    """Return whether a comparison in the code has another answer without the first units."""
    if anatomy.solver is None:
        return False
    left = {name: anatomy.spaces[name].units[len(numbers) :] for name, numbers in units.items()}
    violated = anatomy.solver.solve(anatomy.copies(left)).violated
    return any(constraint.is_comparison for constraint in violated)
