"""The verbs of surgery: each gives a new network, leaves its argument as it is, and remembers the edit in its plan."""

from collections.abc import Iterable, Mapping

import torch
from torch import nn

from topiarist.errors import ModelError, SettingsError
from topiarist.surgery.applying import perform
from topiarist.surgery.calibration import Calibration
from topiarist.surgery.edits import (
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
from topiarist.surgery.rounding import put_back, round_up
from topiarist.surgery.unit_numbers import Units, unit_numbers
from topiarist.tracing import Inputs, anatomy


def remove_units(
    model: nn.Module,
    example_input: Inputs,
    *,
    space: str,
    units: Units,
    calibration: Calibration | None = None,
    multiple_of: int = 1,
) -> nn.Module:
    """Remove units of a space; with calibration data, the layers that read them are refitted.

    With `multiple_of`, the last of the units named stay where the width would not be a multiple of it.
    """
    return remove(model, example_input, units={space: units}, calibration=calibration, multiple_of=multiple_of)


def remove(
    model: nn.Module,
    example_input: Inputs,
    *,
    units: Mapping[str, Units],
    calibration: Calibration | None = None,
    multiple_of: int = 1,
) -> nn.Module:
    """Remove units of several spaces at once: `units` names them by space."""
    named = {space: unit_numbers(found) for space, found in units.items()}
    if multiple_of != 1:
        spaces = anatomy(model, example_input, partial=True)
        named = {space: put_back(found, spaces.space(space).size, multiple_of) for space, found in named.items()}
    some = {space: found for space, found in named.items() if found}
    edit = RemoveUnits(units=some, refit=bool(some) and calibration is not None)
    return perform(model, edit, example_input, calibration=calibration)


def merge_units(model: nn.Module, example_input: Inputs, *, space: str, merges: Iterable[Merge]) -> nn.Module:
    """Remove units of a space, each expressed by one that stays: `Merge(unit=3, into=1)`, `complement(3, 1)`."""
    return perform(model, MergeUnits(space=space, merges=tuple(merges)), example_input)


def widen(
    model: nn.Module,
    example_input: Inputs,
    *,
    space: str,
    by: int,
    generator: torch.Generator,
    multiple_of: int = 1,
    even: bool = False,
) -> nn.Module:
    """Copy units of a space; the network computes the same, and the copies can diverge in training.

    With `even`, what a unit sent out is split into equal shares, and its copies stay equal in training.
    """
    wanted = rounded(model, example_input, space, by, multiple_of)
    return perform(model, WidenSpace(space=space, by=wanted, seed=drawn(generator), even=even), example_input)


def grow(
    model: nn.Module, example_input: Inputs, *, space: str, by: int, generator: torch.Generator, multiple_of: int = 1
) -> nn.Module:
    """Add fresh units to a space, with zero outgoing weights; the network computes the same."""
    wanted = rounded(model, example_input, space, by, multiple_of)
    return perform(model, GrowSpace(space=space, by=wanted, seed=drawn(generator)), example_input)


def project(model: nn.Module, example_input: Inputs, *, space: str, to: int) -> nn.Module:
    """Reduce a space to the first singular directions of the layer that writes it, and let its reader read those.

    The activation between the two is ignored: without one, and with all directions that the layer has, it is exact.
    """
    return perform(model, ProjectSpace(space=space, to=to), example_input)


def deepen(model: nn.Module, example_input: Inputs, *, after: str, batch_norm: bool = False) -> nn.Module:
    """Insert an identity layer after a layer; the network computes the same."""
    return perform(model, DeepenNetwork(after=after, batch_norm=batch_norm), example_input)


def fold(
    model: nn.Module,
    example_input: Inputs,
    *,
    layer: str,
    linearise: bool = False,
    calibration: Calibration | None = None,
) -> nn.Module:
    """Multiply a layer into the next, or a batch norm into the layer before it.

    That is exact unless an activation lies between, which `linearise` drops; the layer that took the other in is then
    refitted, where there are calibration data.
    """
    edit = FoldLayer(layer=layer, linearise=linearise, refit=calibration is not None)
    return perform(model, edit, example_input, calibration=calibration)


def factorise(model: nn.Module, *, layer: str, rank: int) -> nn.Module:
    """Replace a linear layer or a convolution by two thinner ones, with the nearest product of that rank."""
    return perform(model, FactoriseLayer(layer=layer, rank=rank), None)


def drawn(generator: torch.Generator) -> int:
    """Draw a seed, so that an edit is data and can be replayed."""
    if not isinstance(generator, torch.Generator):
        raise SettingsError(f"generator must be a torch.Generator; found {type(generator).__name__}")
    return int(torch.randint(2**62, (), generator=generator, device=generator.device))


def rounded(model: nn.Module, example_input: Inputs, space: str, by: int, multiple_of: int) -> int:
    """Give by how many units a space grows, so that its width becomes a multiple of a number."""
    if by < 1:
        raise ModelError(f"a space grows by at least 1 unit; found by={by}")
    if multiple_of == 1:
        return by
    size = anatomy(model, example_input, partial=True).space(space).size
    return round_up(size + by, multiple_of) - size
