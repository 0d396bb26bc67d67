"""Chooses the units to remove, so that a refit makes up for them best.

Space after space, from input to output: the activations are those of the network as cut and refitted so far, what is
needed is what the readers got in the whole network. No labels, no gradients.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral, Real

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from topiarist.errors import ModelError, SettingsError
from topiarist.surgery.applying import apply, check_runs, copied_with_plan
from topiarist.surgery.calibration import Calibration, CalibrationBatches, batches_for
from topiarist.surgery.choice.evidence import blind_spot, gather_evidence, weight_shares
from topiarist.surgery.choice.selection import Strategy, select
from topiarist.surgery.edits.examples import shape_of
from topiarist.surgery.edits.kinds import RemoveUnits
from topiarist.surgery.edits.plan import Plan, attach_plan, plan_of
from topiarist.surgery.proving import ensure_proven
from topiarist.surgery.refit.fitting import refit
from topiarist.surgery.refit.moments import Moments
from topiarist.surgery.settling.settler import settle_edits
from topiarist.surgery.width.change import change_widths
from topiarist.surgery.width.reexpressions import removal, round_up
from topiarist.tracing import Anatomy, ExampleInput, ensure_anatomy
from topiarist.tracing.running import sharing_copy
from topiarist.tracing.steps import behind

Keep = float | Mapping[str, int | float]
Units = dict[str, tuple[int, ...]]


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
    return _Cutting(model, found, batches_for(calibration, model, example_input)).cut(widths, strategy)


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

    Where each reader reads one of the cut spaces and no batch norm follows, as in a plain perceptron, the network that
    the choice cut and refitted step by step is that network, to within rounding; otherwise it is refitted as a whole.
    Either is settled, in as many steps as are asked for or suit the size of the work.
    """
    calibration = list(calibration) if isinstance(calibration, Iterator) else calibration  # it is read more than once
    found = ensure_anatomy(model, example_input, anatomy)
    batches = batches_for(calibration, model, example_input)
    with torch.inference_mode(False):
        cutting = _Cutting(model, found, batches)
        units = cutting.cut(wanted_widths(found, keep, multiple_of), strategy)
        cut, edit = cutting.network, RemoveUnits(units=units, refit=True)
        if units and cutting.is_final:
            ensure_proven(model, example_input, found, units)
            check_runs(cut, example_input)
            attach_plan(cut, plan_of(model).then(edit, cutting.numbers, shape_of(example_input)))
            settle_edits(cutting.whole, cut, batches, steps=settling)
        elif units:
            cut = apply(Plan((edit,)), model, example_input, calibration=calibration, anatomy=found, settling=settling)
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


class _Cutting:
    """A copy of a network that is cut and refitted step by step."""

    def __init__(self, model: nn.Module, anatomy: Anatomy, batches: CalibrationBatches) -> None:
        self.whole, self.network = sharing_copy(model), copied_with_plan(model)
        self.before = self.now = anatomy
        self.batches = batches
        self.rows: dict[str, Tensor] = {}  # of the whole network that are left
        self.fitted: list[str] = []
        self.plain = True  # plain layers read all that was cut

    def cut(self, widths: Mapping[str, int], strategy: Strategy) -> Units:
        """Cut spaces to widths, in the order in which they are written; return the units that went."""
        chosen: Units = {}
        for name, space in self.before.spaces.items():
            if widths.get(name, space.size) < space.size:
                fits: dict[str, Moments] = {}
                networks = self.whole, self.network, self.before, self.now
                plain = blind_spot(space) is None  # else what is left of what its readers see changes with the cut
                evidence = gather_evidence(*networks, name, self.batches, fits if plain else None)
                self.plain &= plain
                if evidence is None:
                    kept = weight_shares(self.network, self.now[name]).topk(widths[name]).indices.tolist()
                else:
                    kept = select(evidence, widths[name], strategy)
                chosen[name] = tuple(sorted(set(range(space.size)) - set(kept)))
                self._remove(name, chosen[name], sorted(kept), fits)
        return chosen

    def _remove(self, name: str, units: Sequence[int], kept: Sequence[int], fits: Mapping[str, Moments]) -> None:
        """Remove units of one more space, and refit its readers."""
        readers = {place.module: place.repeat for place in self.now[name].readers}
        changed, self.now = change_widths(self.network, self.now, {name: removal(self.now[name], units)})
        for module, left in changed.items():
            self.rows[module] = self.rows[module][left] if module in self.rows else left
        moments = {path: fit.restricted(kept, self.rows.get(path)) for path, fit in fits.items()}
        networks = self.whole, self.network, self.before
        refit(*networks, readers, self.rows, self.batches, norms=False, moments=moments)
        self.fitted += [path for path in self.before.calls if path in readers]

    @property
    def is_final(self) -> bool:
        """Return whether one refit of all readers after all cuts would find the same.

        It would unless something else than plain layers reads what was cut, or unless a layer was fitted twice, or runs
        twice, or before a layer that comes before it, or the statistics of a batch norm have to follow.
        """
        calls = self.before.calls
        again = len(set(self.fitted)) < len(self.fitted) or any(calls[path].count > 1 for path in self.fitted)
        if not self.plain or again:
            return False
        for number, path in enumerate(self.fitted):
            after = behind([calls[path].step])
            if any(calls[earlier].step in after for earlier in self.fitted[:number]):
                return False
        after = behind(calls[path].step for path in self.fitted)
        modules = (self.whole.get_submodule(path) for path, call in calls.items() if call.step in after)
        return not any(isinstance(module, _BatchNorm) and module.running_mean is not None for module in modules)

    @property
    def numbers(self) -> dict[str, Tensor]:
        """Return the tensors of the layers that were fitted, by name."""
        modules = {path: self.network.get_submodule(path) for path in self.fitted}
        return {
            f"{path}.{name}": tensor.detach()
            for path, module in modules.items()
            for name, tensor in module.named_parameters(recurse=False)
        }
