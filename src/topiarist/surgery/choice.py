"""Chooses the units to remove, so that a refit makes up for them best.

Space after space, from input to output: the activations are those of the network as cut and refitted so far, what is
needed is what the readers got in the whole network. No labels, no gradients.
"""

from collections.abc import Mapping

from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.models.copying import copied
from topiarist.surgery.calibration import Batches, Calibration, count_inputs
from topiarist.surgery.evidence import gather_evidence
from topiarist.surgery.reexpressions import free_space, removal
from topiarist.surgery.refit import refit
from topiarist.surgery.rounding import round_up
from topiarist.surgery.selection import Strategy, select
from topiarist.surgery.width import change_widths
from topiarist.tracing import Anatomy, Inputs, anatomy


def choose_units(
    model: nn.Module,
    example_input: Inputs,
    *,
    keep: Mapping[str, int],
    calibration: Calibration,
    strategy: Strategy = "best",
    multiple_of: int = 1,
) -> dict[str, tuple[int, ...]]:
    """Give the units to remove, by space, such that each space keeps as many as `keep` says.

    `remove(model, example_input, units=choose_units(…), calibration=…)` then cuts and refits. The strategy "best" takes
    the better of greedy "elimination" and greedy "matching", each followed by exchanges.
    """
    found = anatomy(model, example_input, partial=True)
    widths = {name: wanted_width(found, name, count, multiple_of) for name, count in keep.items()}
    batches = Batches(calibration, model, count_inputs(example_input))
    cut = copied(model)
    rows: dict[str, Tensor] = {}
    chosen: dict[str, tuple[int, ...]] = {}
    for name in found.spaces:
        if name in widths and widths[name] < found.spaces[name].size:
            now = anatomy(cut, example_input, partial=True)
            evidence = gather_evidence(model, cut, found, now, name, batches)
            kept = range(widths[name]) if evidence is None else select(evidence, widths[name], strategy)
            chosen[name] = tuple(sorted(set(range(found.spaces[name].size)) - set(kept)))
            remove_and_refit(model, cut, found, now, name, chosen[name], rows, batches)
    return chosen


def wanted_width(found: Anatomy, name: str, count: int, multiple_of: int) -> int:
    """Give the width of a space, rounded up to a multiple."""
    space = free_space(found, name)
    if not 1 <= count <= space.size:
        raise ModelError(f"'{name}' has {space.size} units and must keep 1 to {space.size} of them; found {count}")
    return min(round_up(count, multiple_of), space.size)


def remove_and_refit(
    whole: nn.Module,
    cut: nn.Module,
    found: Anatomy,
    now: Anatomy,
    name: str,
    units: tuple[int, ...],
    rows: dict[str, Tensor],
    batches: Batches,
) -> None:
    """Remove units of one more space, in place, and refit its readers; `rows` are those of the whole network so far."""
    changed = change_widths(cut, now.spaces, {name: removal(now.spaces[name], units)})
    for module, kept in changed.items():
        rows[module] = rows[module][kept] if module in rows else kept
    readers = {place.module: place.repeat for place in now.spaces[name].consumers}
    refit(whole, cut, found, readers, rows, batches, norms=False)
