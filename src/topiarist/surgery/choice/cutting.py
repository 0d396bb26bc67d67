"""Cuts a network while it walks beside the whole one: units are chosen, and their readers refitted, layer by layer."""

from collections.abc import Mapping, Sequence

import numpy
import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.surgery.applying import copied_with_plan
from topiarist.surgery.bases.turning import is_turned, turn_bases
from topiarist.surgery.calibration import CalibrationBatches
from topiarist.surgery.choice.evidence import blind_spot, evidence_at, evidence_of_whole, weight_shares
from topiarist.surgery.choice.selection import SelectionEvidence, Strategy, select
from topiarist.surgery.refit.fits import Fitted, readers_of
from topiarist.surgery.refit.fitting import refit
from topiarist.surgery.refit.rows import same_rows
from topiarist.surgery.refit.walking import Walk
from topiarist.surgery.width.change import change_widths
from topiarist.surgery.width.reexpressions import removal
from topiarist.tracing import Anatomy, ExampleInput
from topiarist.tracing.running import sharing_copy

Units = dict[str, tuple[int, ...]]


class Cutting:
    """A copy of a network that is cut and refitted while it walks beside the whole one."""

    def __init__(
        self,
        model: nn.Module,
        example_input: ExampleInput,
        anatomy: Anatomy,
        batches: CalibrationBatches,
        strategy: Strategy,
    ) -> None:
        self.example_input = example_input
        self.whole, self.network = sharing_copy(model), copied_with_plan(model)
        self.before = self.now = anatomy
        self.batches, self.strategy = batches, strategy
        self.rows: dict[str, Tensor] = {}  # of the whole network that are left
        self.chosen: Units = {}
        self.fitted: Fitted = {}

    def cut(self, widths: Mapping[str, int]) -> Units:
        """Cut spaces to widths, refit all that read them, and return the units that went.

        A space with one reader is cut when both networks wait there, and all before it is cut and refitted; the others
        are cut before, by what the whole network shows.
        """
        narrowed = {name: widths[name] for name, space in self.before.spaces.items() if name in widths}
        narrowed = {name: width for name, width in narrowed.items() if width < self.before[name].size}
        turning = [name for name in narrowed if is_turned(self.before[name])]  # their new basis decides which units go
        waiting = {name: reader for name in narrowed if name not in turning and (reader := self._only_reader(name))}
        at_once = [name for name in narrowed if name not in waiting]
        seen = evidence_of_whole(self.whole, self.before, at_once, self.batches)
        first = {name: self._choose(name, evidence, narrowed[name]) for name, evidence in seen.items()}
        turned = turn_bases(self.network, self.example_input, self.before, first, self.batches)
        if turned:
            self.whole = sharing_copy(self.network)
        for name, units in first.items():
            self._remove(name, units)

        def arrive(walk: Walk, path: str) -> None:
            for name in (name for name, reader in waiting.items() if reader == path):
                visits = same_rows(path, self.whole.get_submodule(path), walk.visit(path), self.before, self.now)
                seen = evidence_at(path, name, self.whole, self.before, self.now, visits)
                place = self.now[name].readers[0]
                units = self._choose(name, seen, narrowed[name])
                left = numpy.delete(numpy.arange(place.length), place.positions[list(units)].reshape(-1))
                walk.narrow(path, self._axis_read(path), torch.from_numpy(left))
                self._remove(name, units)

        readers = readers_of(self.whole, (self.before[name] for name in narrowed))
        fitted = refit(
            self.whole,
            self.network,
            self.before,
            readers,
            self.rows,
            self.batches,
            now=lambda: self.now,
            arrive=arrive,
        )
        values = self.network.state_dict()
        self.fitted = {name: values[name] for name in (*turned, *fitted)}  # as cut since then
        self.chosen = {name: self.chosen[name] for name in narrowed}
        return self.chosen

    def _only_reader(self, name: str) -> str | None:
        """Return the layer that alone sees what is left of a space, once; None where there is no such layer."""
        space = self.before[name]
        if blind_spot(space) is not None or len(space.consumers) != 1:
            return None
        (reader,) = space.readers
        module = self.whole.get_submodule(reader.module)
        ordinary = isinstance(module, nn.Linear) or (isinstance(module, _ConvNd) and module.groups == 1)
        again = any(place.module == reader.module for place in (*space.producers, *space.passes))
        return reader.module if ordinary and not again and self.before.calls[reader.module].count == 1 else None

    def _axis_read(self, path: str) -> int:
        return 1 if isinstance(self.whole.get_submodule(path), _ConvNd) else -1

    def _choose(self, name: str, evidence: SelectionEvidence | None, width: int) -> tuple[int, ...]:
        """Return the units of a space that go."""
        if evidence is None:
            kept = weight_shares(self.network, self.now[name]).topk(width).indices.tolist()
        else:
            kept = select(evidence, width, self.strategy)
        self.chosen[name] = tuple(sorted(set(range(self.before[name].size)) - set(kept)))
        return self.chosen[name]

    def _remove(self, name: str, units: Sequence[int]) -> None:
        """Remove units of one more space."""
        changed, self.now = change_widths(self.network, self.now, {name: removal(self.now[name], units)})
        for module, left in changed.items():
            self.rows[module] = self.rows[module][left] if module in self.rows else left
