"""The verbs of surgery: each returns a new network, leaves its argument as it is, and adds the edit to its plan."""

from collections.abc import Iterable, Mapping

import torch
from torch import nn

from topiarist.errors import ModelError, SettingsError
from topiarist.surgery.applying import apply, carry_out, copied_with_plan
from topiarist.surgery.calibration import Calibration
from topiarist.surgery.edits.kinds import (
    DeepenNetwork,
    FactoriseLayer,
    FoldLayer,
    GrowSpace,
    Merge,
    MergeUnits,
    ProjectSpace,
    RemoveUnits,
    WidenSpace,
)
from topiarist.surgery.edits.plan import Plan
from topiarist.surgery.width.idle_units import find_idle
from topiarist.surgery.width.reexpressions import UnitNumbers, put_back, round_up, unit_numbers
from topiarist.tracing import Anatomy, Inputs, ensure_anatomy
from topiarist.tracing import anatomy as trace


def remove(
    model: nn.Module,
    example_input: Inputs,
    *,
    units: Mapping[str, UnitNumbers],
    calibration: Calibration | None = None,
    multiple_of: int = 1,
    anatomy: Anatomy | None = None,
) -> nn.Module:
    """Remove units; with calibration data, the layers that read them are refitted.

    Parameters
    ----------
    model, example_input
        The network, which is left as it is, and a batch that it reads.
    units : mapping of names to numbers
        The units that go, by the name of their space or of a layer that writes it: numbers, or a mask of booleans.
    calibration : Tensor, tuple, mapping or iterable of batches, optional
        Samples for the refit; no labels are needed.
    multiple_of : int
        The last of the units named stay where the width would not be a multiple of it.
    anatomy : Anatomy, optional
        That of the network, where it is known.

    Returns
    -------
    nn.Module
        The network without the units.

    Raises
    ------
    ModelError
        A space is unknown or fixed, a unit is not there, or none would stay.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    >>> remove(model, torch.zeros(1, 8), units={"0": [1, 3, 5]}, calibration=torch.randn(64, 8))
    Sequential(
      (0): Linear(in_features=8, out_features=13, bias=True)
      (1): ReLU()
      (2): Linear(in_features=13, out_features=4, bias=True)
    )
    """
    named = {space: unit_numbers(found) for space, found in units.items()}
    if multiple_of != 1:
        anatomy = ensure_anatomy(model, example_input, anatomy)
        named = {space: put_back(found, anatomy[space].size, multiple_of) for space, found in named.items()}
    some = {space: found for space, found in named.items() if found}
    edit = RemoveUnits(units=some, refit=bool(some) and calibration is not None)
    return apply(Plan((edit,)), model, example_input, calibration=calibration, anatomy=anatomy)


def merge_units(
    model: nn.Module,
    example_input: Inputs,
    *,
    space: str,
    merges: Iterable[Merge],
    anatomy: Anatomy | None = None,
) -> nn.Module:
    """Remove units of a space, each expressed by one that stays.

    Parameters
    ----------
    model, example_input, anatomy
        As for `remove`.
    space, merges : str, iterable of Merge
        The space, and the merges: `Merge(unit=3, into=1)`, `complement(3, 1)`.

    Returns
    -------
    nn.Module
        The network without the units.

    Raises
    ------
    ModelError
        A unit is not there, merges into one that goes itself, or has a shift that cannot move into a bias.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.Sigmoid(), nn.Linear(16, 4))
    >>> merge_units(model, torch.zeros(1, 8), space="0", merges=[complement(3, 1)])[0].out_features
    15
    """
    edit = MergeUnits(space=space, merges=tuple(merges))
    return apply(Plan((edit,)), model, example_input, anatomy=anatomy)


def widen(
    model: nn.Module,
    example_input: Inputs,
    *,
    space: str,
    by: int,
    generator: torch.Generator,
    multiple_of: int = 1,
    even: bool = False,
    anatomy: Anatomy | None = None,
) -> nn.Module:
    """Copy units of a space; the network computes the same, and the copies can diverge in training.

    Parameters
    ----------
    model, example_input, anatomy
        As for `remove`.
    space, by : str, int
        The space, and by how many units it grows.
    generator : torch.Generator
        Decides which units are copied, and how what they sent out is split.
    multiple_of : int
        The new width is rounded up to a multiple of it.
    even : bool
        Split into equal shares, as published; the copies then stay equal in training.

    Returns
    -------
    nn.Module
        The wider network.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    >>> widen(model, torch.zeros(1, 8), space="0", by=2, generator=torch.Generator())[0].out_features
    18
    """
    wanted, anatomy = _rounded(model, example_input, space, by, multiple_of, anatomy)
    edit = WidenSpace(space=space, by=wanted, seed=_drawn(generator), even=even)
    return apply(Plan((edit,)), model, example_input, anatomy=anatomy)


def grow(
    model: nn.Module,
    example_input: Inputs,
    *,
    space: str,
    by: int,
    generator: torch.Generator,
    multiple_of: int = 1,
    anatomy: Anatomy | None = None,
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
        The wider network.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    >>> grow(model, torch.zeros(1, 8), space="0", by=2, generator=torch.Generator())[0].out_features
    18
    """
    wanted, anatomy = _rounded(model, example_input, space, by, multiple_of, anatomy)
    edit = GrowSpace(space=space, by=wanted, seed=_drawn(generator))
    return apply(Plan((edit,)), model, example_input, anatomy=anatomy)


def project(
    model: nn.Module, example_input: Inputs, *, space: str, to: int, anatomy: Anatomy | None = None
) -> nn.Module:
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
        The narrower network.

    Raises
    ------
    ModelError
        More than one layer writes or reads the space, or something between them has values for each unit.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    >>> project(model, torch.zeros(1, 8), space="0", to=6)[0].out_features
    6
    """
    return apply(Plan((ProjectSpace(space=space, to=to),)), model, example_input, anatomy=anatomy)


def deepen(
    model: nn.Module,
    example_input: Inputs,
    *,
    after: str,
    batch_norm: bool = False,
    anatomy: Anatomy | None = None,
) -> nn.Module:
    """Insert an identity layer after a layer; the network computes the same.

    Parameters
    ----------
    model, example_input, anatomy
        As for `remove`.
    after, batch_norm : str, bool
        The layer, and whether a batch norm follows the new one.

    Returns
    -------
    nn.Module
        The deeper network.

    Raises
    ------
    ModelError
        The layer does not run as one, or its units do not lie along an axis of a linear layer or a convolution.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    >>> len(deepen(model, torch.zeros(1, 8), after="1"))
    5
    """
    edit = DeepenNetwork(after=after, batch_norm=batch_norm)
    return apply(Plan((edit,)), model, example_input, anatomy=anatomy)


def fold(
    model: nn.Module,
    example_input: Inputs,
    *,
    layer: str,
    linearise: bool = False,
    calibration: Calibration | None = None,
    anatomy: Anatomy | None = None,
) -> nn.Module:
    """Multiply a layer into the next, or a batch norm into the layer before it.

    Parameters
    ----------
    model, example_input, anatomy
        As for `remove`.
    layer : str
        The layer that goes.
    linearise : bool
        Drop an activation between the two, without which folding is exact.
    calibration : Tensor, tuple, mapping or iterable of batches, optional
        Samples on which the layer that took the other in is refitted to make up for that.

    Returns
    -------
    nn.Module
        The network with one layer less.

    Raises
    ------
    ModelError
        Something lies between the two layers, or others read what the layer returns.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.Linear(16, 4))
    >>> fold(model, torch.zeros(1, 8), layer="0")
    Sequential(
      (1): Linear(in_features=8, out_features=4, bias=True)
    )
    """
    edit = FoldLayer(layer=layer, linearise=linearise, refit=calibration is not None)
    return apply(Plan((edit,)), model, example_input, calibration=calibration, anatomy=anatomy)


def factorise(model: nn.Module, *, layer: str, rank: int) -> nn.Module:
    """Replace a linear layer or a convolution by two thinner ones, with the nearest product of that rank.

    Parameters
    ----------
    model : nn.Module
        The network; it is left as it is.
    layer, rank : str, int
        The layer, and the number of units between the two.

    Returns
    -------
    nn.Module
        The network with two layers for one.

    Raises
    ------
    ModelError
        The layer is of another kind, grouped, shared, or of a lower rank.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    >>> factorise(model, layer="0", rank=3)[0].narrow
    Linear(in_features=8, out_features=3, bias=False)
    """
    return apply(Plan((FactoriseLayer(layer=layer, rank=rank),)), model)


def compact(model: nn.Module, example_input: Inputs, *, anatomy: Anatomy | None = None) -> nn.Module:
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
        The smaller network.

    Raises
    ------
    ModelError
        The network cannot be followed as a whole.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    >>> model[2].weight.data[:, :6] = 0
    >>> compact(model, torch.zeros(1, 8))[0].out_features
    10
    """
    known = trace(model, example_input) if anatomy is None else ensure_anatomy(model, example_input, anatomy)
    if known.opaque:
        raise ModelError(f"surgery cannot follow {known.opaque[0]}: units that do nothing cannot be told")
    with torch.inference_mode(False):
        current = copied_with_plan(model)
        while (edit := find_idle(current, known, example_input)).units:
            known = carry_out(current, edit, example_input, known=known)
    return current


def _drawn(generator: torch.Generator) -> int:
    """Draw a seed, so that an edit is data and can be replayed."""
    if not isinstance(generator, torch.Generator):
        raise SettingsError(f"generator must be a torch.Generator; found {type(generator).__name__}")
    return int(torch.randint(2**62, (), generator=generator, device=generator.device))


def _rounded(
    model: nn.Module, example_input: Inputs, space: str, by: int, multiple_of: int, anatomy: Anatomy | None
) -> tuple[int, Anatomy | None]:
    """Return by how many units a space grows, so that its width becomes a multiple of a number; and the anatomy."""
    if by < 1:
        raise ModelError(f"a space grows by at least 1 unit; found by={by}")
    if multiple_of == 1:
        return by, anatomy
    anatomy = ensure_anatomy(model, example_input, anatomy)
    size = anatomy[space].size
    return round_up(size + by, multiple_of) - size, anatomy
