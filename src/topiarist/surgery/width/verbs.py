"""The verbs that change widths: each returns a new network, leaves its argument alone, and adds the edit to its plan.

In the examples, `model` is `nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))` and `x` a batch for it.
"""

from collections.abc import Iterable, Mapping

import torch
from torch import nn

from topiarist.errors import ModelError, SettingsError
from topiarist.models.evaluation import check_values
from topiarist.surgery.applying import apply, carry_out, copied_with_plan
from topiarist.surgery.calibration import Calibration
from topiarist.surgery.edits.kinds import GrowSpace, Merge, MergeUnits, ProjectSpace, RemoveUnits, WidenSpace
from topiarist.surgery.edits.plan import Plan
from topiarist.surgery.width.idle_units import find_idle
from topiarist.surgery.width.reexpressions import UnitNumbers, put_back, round_up, unit_numbers
from topiarist.tracing import Anatomy, ExampleInput, ensure_anatomy

Known = Anatomy | None


def remove(
    model: nn.Module,
    example_input: ExampleInput,
    *,
    units: Mapping[str, UnitNumbers],
    calibration: Calibration | None = None,
    multiple_of: int = 1,
    anatomy: Known = None,
    proof: bool = True,
    settling: int | None = None,
) -> nn.Module:
    """Remove units; with calibration data, the layers that read them are refitted, and the network is settled.

    Parameters
    ----------
    model, example_input : nn.Module, Inputs
        The network, and a batch that it reads: a tensor, a sequence of arguments, or a mapping by name.
    units : mapping of names to units
        By the name of a space, or of a layer that writes it, the units that go: numbers, or a mask of booleans.
    calibration : Tensor, tuple, mapping or iterable of batches, optional
        Samples for the refit and for settling, which moves all parameters that are not frozen towards the answers of
        the whole network; no labels are needed.
    multiple_of : int
        The last of the units named stay where the width would not be a multiple of it.
    anatomy : Anatomy, optional
        That of the network, where it is known.
    proof : bool
        Prove first that the network's own code computes the same without units of these spaces; see `apply`.
    settling : int, optional
        The number of steps of settling, 0 for none; by default as many as suit the size of the work.

    Returns
    -------
    nn.Module

    Raises
    ------
    ModelError
        A space is unknown or fixed, a unit is not there, or none would stay.

    Examples
    --------
    >>> remove(model, x, units={"0": [1, 3, 5]}, calibration=torch.randn(64, 8))[2].in_features
    13
    """
    named = {space: unit_numbers(found) for space, found in units.items()}
    if multiple_of != 1:
        anatomy = ensure_anatomy(model, example_input, anatomy)
        named = {space: put_back(found, anatomy[space].size, multiple_of) for space, found in named.items()}
    some = {space: found for space, found in named.items() if found}
    edit = RemoveUnits(units=some, refit=bool(some) and calibration is not None)
    return apply(
        Plan((edit,)),
        model,
        example_input,
        calibration=calibration,
        anatomy=anatomy,
        proof=proof,
        settling=settling,
    )


def merge_units(
    model: nn.Module, example_input: ExampleInput, *, space: str, merges: Iterable[Merge], anatomy: Known = None
) -> nn.Module:
    """Remove units of a space, each expressed by one that stays.

    Parameters
    ----------
    model, example_input, anatomy
        As for `remove`.
    space, merges : str, iterable of Merge
        The space, and for each unit that goes what stands for it: `Merge(unit=3, into=1)`, `complement(3, 1)`.

    Returns
    -------
    nn.Module

    Raises
    ------
    ModelError
        A unit is not there, merges into one that goes itself, or has a shift that cannot move into a bias.

    Examples
    --------
    >>> merge_units(model, x, space="0", merges=[Merge(unit=3, into=1)])[0].out_features
    15
    """
    edit = MergeUnits(space=space, merges=tuple(merges))
    return apply(Plan((edit,)), model, example_input, anatomy=anatomy)


def widen(
    model: nn.Module,
    example_input: ExampleInput,
    *,
    space: str,
    by: int,
    generator: torch.Generator,
    multiple_of: int = 1,
    even: bool = False,
    anatomy: Known = None,
) -> nn.Module:
    """Copy units of a space; the network computes the same, and the copies can diverge in training.

    Parameters
    ----------
    model, example_input, anatomy
        As for `remove`.
    space, by, multiple_of : str, int, int
        The space, and by how many units it grows; the new width is rounded up to a multiple.
    generator, even : torch.Generator, bool
        Decides which units are copied, and how what they sent out is split; in equal shares, as published, the copies
        stay equal in training.

    Returns
    -------
    nn.Module

    Examples
    --------
    >>> widen(model, x, space="0", by=2, generator=torch.Generator())[0].out_features
    18
    """
    wanted, anatomy = _rounded(model, example_input, space, by, multiple_of, anatomy)
    edit = WidenSpace(space=space, by=wanted, seed=_drawn(generator), even=even)
    return apply(Plan((edit,)), model, example_input, anatomy=anatomy)


def grow(
    model: nn.Module,
    example_input: ExampleInput,
    *,
    space: str,
    by: int,
    generator: torch.Generator,
    multiple_of: int = 1,
    anatomy: Known = None,
) -> nn.Module:
    """Add fresh units to a space, which nothing reads yet; the network computes the same.

    Parameters
    ----------
    model, example_input, space, by, multiple_of, anatomy
        As for `widen`.
    generator : torch.Generator
        Decides the incoming weights of the new units.

    Returns
    -------
    nn.Module

    Examples
    --------
    >>> grow(model, x, space="0", by=2, generator=torch.Generator())[0].out_features
    18
    """
    wanted, anatomy = _rounded(model, example_input, space, by, multiple_of, anatomy)
    edit = GrowSpace(space=space, by=wanted, seed=_drawn(generator))
    return apply(Plan((edit,)), model, example_input, anatomy=anatomy)


def project(model: nn.Module, example_input: ExampleInput, *, space: str, to: int, anatomy: Known = None) -> nn.Module:
    """Reduce a space to the first singular directions of the layer that writes it, and let its reader read those.

    The activation between the two is ignored: without one, and with all directions that the layer has, it is exact.

    Parameters
    ----------
    model, example_input, anatomy
        As for `remove`.
    space, to : str, int
        The space, and its new number of units.

    Returns
    -------
    nn.Module

    Raises
    ------
    ModelError
        More than one layer writes or reads the space, or something between them has values for each unit.

    Examples
    --------
    >>> project(model, x, space="0", to=6)[0].out_features
    6
    """
    return apply(Plan((ProjectSpace(space=space, to=to),)), model, example_input, anatomy=anatomy)


def compact(model: nn.Module, example_input: ExampleInput, *, anatomy: Known = None) -> nn.Module:
    """Remove the units that do nothing, exactly: the network computes the same.

    A unit that no one reads, its outgoing weights being zero, just goes. One whose incoming weights are zero is a
    constant, which moves to the biases of the layers that read it. What goes may leave others with nothing to do, so
    all is looked at again until nothing changes.

    Parameters
    ----------
    model, example_input, anatomy
        As for `remove`.

    Returns
    -------
    nn.Module

    Examples
    --------
    >>> sparse = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    >>> sparse[2].weight.data[:, :6] = 0
    >>> compact(sparse, x)[0].out_features
    10
    """
    check_values(model, "compacting")
    known = ensure_anatomy(model, example_input, anatomy)
    with torch.inference_mode(False):
        current = copied_with_plan(model)
        while (edit := find_idle(current, known, example_input)).units:
            known = ensure_anatomy(current, example_input, carry_out(current, edit, example_input, known=known))
    return current


def _drawn(generator: torch.Generator) -> int:
    """Draw a seed, so that an edit is data and can be replayed."""
    if not isinstance(generator, torch.Generator):
        raise SettingsError(f"generator must be a torch.Generator; found {type(generator).__name__}")
    return int(torch.randint(2**62, (), generator=generator, device=generator.device))


def _rounded(
    model: nn.Module, example_input: ExampleInput, space: str, by: int, multiple_of: int, anatomy: Known
) -> tuple[int, Known]:
    """Return by how many units a space grows, so that its width becomes a multiple of a number; and the anatomy."""
    if by < 1:
        raise ModelError(f"a space grows by at least 1 unit; found by={by}")
    if multiple_of == 1:
        return by, anatomy
    anatomy = ensure_anatomy(model, example_input, anatomy)
    size = anatomy[space].size
    return round_up(size + by, multiple_of) - size, anatomy
