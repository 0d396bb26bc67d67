"""Chooses the units to remove, so that a refit makes up for them best.

Space after space, from input to output: the activations are those of the network as cut and refitted so far, what is
needed is what the readers got in the whole network. No labels, no gradients.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral, Real

import torch
from torch import nn

from topiarist.errors import ModelError, SettingsError
from topiarist.surgery.applying import apply, check_runs
from topiarist.surgery.calibration import Calibration, batches_for
from topiarist.surgery.choice.cutting import Cutting, Units
from topiarist.surgery.choice.selection import Strategy
from topiarist.surgery.edits.kinds import RemoveUnits
from topiarist.surgery.edits.plan import Plan, attach_plan, plan_of
from topiarist.surgery.proving import ensure_proven
from topiarist.surgery.settling.settler import settle_edits
from topiarist.surgery.width.reexpressions import round_up
from topiarist.tracing import Anatomy, ExampleInput, ensure_anatomy

Keep = float | Mapping[str, int | float]


def choose_units(
    model: nn.Module,
    example_input: ExampleInput,
    *,
    keep: Keep,
    calibration: Calibration,
    strategy: Strategy = "best",
    multiple_of: int = 1,
    anatomy: Anatomy | None = None,
) -> Units:
    """Choose the units to remove, so that a refit makes up for them best.

    Parameters
    ----------
    model, example_input
        The network, which is left as it is, and a batch that it reads.
    keep : float or mapping
        The fraction of the units that every free space keeps; or, by the name of a space or of a layer that writes it,
        a width (int) or a fraction (float).
    calibration : Tensor, tuple, mapping or iterable of batches
        Samples that show what the units do; no labels are needed.
    strategy : {"best", "elimination", "matching"}
        "best" takes the better of the two greedy searches, each followed by exchanges.
    multiple_of : int
        Widths are rounded up to multiples of it.
    anatomy : Anatomy, optional
        That of the network, where it is known.

    Returns
    -------
    dict[str, tuple[int, ...]]
        The units by space, as `remove(model, example_input, units=…, calibration=…)` takes them.

    Raises
    ------
    ModelError
        A space is unknown or fixed, or a width is not there.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    >>> units = choose_units(model, torch.zeros(1, 8), keep=0.25, calibration=torch.randn(64, 8))
    >>> len(units["0"])
    12
    """
    found = ensure_anatomy(model, example_input, anatomy)
    widths = wanted_widths(found, keep, multiple_of)
    batches = batches_for(calibration, model, example_input)
    return Cutting(model, example_input, found, batches, strategy).cut(widths)


@dataclass(frozen=True)
class WidthCut:
    """The units that went, by space; the network without them, refitted; and its anatomy."""

    units: Units
    model: nn.Module
    anatomy: Anatomy


def cut_to_widths(
    model: nn.Module,
    example_input: ExampleInput,
    *,
    keep: Keep,
    calibration: Calibration,
    strategy: Strategy = "best",
    multiple_of: int = 1,
    anatomy: Anatomy | None = None,
    settling: int | None = None,
) -> WidthCut:
    """Choose units as `choose_units` does, and return them with the network that `remove` makes without them.

    It is the network that the choice cut and refitted, unless forward computes with the number of the units: then it is
    made anew, to be scaled and proven as it must be. It is settled, in as many steps as are asked for or suit the size
    of the work.
    """
    calibration = list(calibration) if isinstance(calibration, Iterator) else calibration  # it is read more than once
    found = ensure_anatomy(model, example_input, anatomy)
    batches = batches_for(calibration, model, example_input)
    with torch.inference_mode(False):
        cutting = Cutting(model, example_input, found, batches, strategy)
        units = cutting.cut(wanted_widths(found, keep, multiple_of))
        cut, edit = cutting.network, RemoveUnits(units=units, refit=True)
        if any(found[name].counted for name in units):
            cut = apply(Plan((edit,)), model, example_input, calibration=calibration, anatomy=found, settling=settling)
        elif units:
            ensure_proven(model, example_input, found, units)
            shape = check_runs(cut, example_input)
            attach_plan(cut, plan_of(model).then(edit, cutting.fitted, shape))
            settle_edits(cutting.whole, cut, batches, steps=settling)
    return WidthCut(units, cut, cutting.now)


def wanted_widths(anatomy: Anatomy, keep: Keep, multiple_of: int) -> dict[str, int]:
    """Return the widths of spaces that are asked for as widths or fractions, rounded up to multiples."""
    if isinstance(keep, Integral) or not isinstance(keep, (Real, Mapping)):
        raise SettingsError(f"keep is a fraction, or widths or fractions by the names of spaces; found {keep!r}")
    asked = anatomy.by_space(keep) if isinstance(keep, Mapping) else dict.fromkeys(anatomy.free, keep)
    widths: dict[str, int] = {}
    for name, count in asked.items():
        size = anatomy.free_space(name).size
        if not isinstance(count, Integral):
            if not isinstance(count, Real) or not 0 < count <= 1:
                raise ModelError(f"'{name}' must keep a width, or a fraction above 0 and at most 1; found {count!r}")
            count = max(1, round(count * size))
        if not 1 <= count <= size:
            raise ModelError(f"'{name}' has {size} units and must keep 1 to {size} of them; found {count}")
        widths[name] = min(round_up(int(count), multiple_of), size)
    return widths
