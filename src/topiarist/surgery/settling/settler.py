"""Settling as a part of plans: where it comes in the order of edits, what it makes up for, and its numbers."""

from torch import nn

from topiarist.errors import ModelError, SettingsError
from topiarist.models.card import card_of
from topiarist.surgery.calibration import Calibration, CalibrationBatches, batches_for
from topiarist.surgery.edits.kinds import Edit, FoldLayer, RemoveBlock, RemoveUnits, SettleNetwork
from topiarist.surgery.edits.plan import Numbers, Plan, attach_plan, plan_of
from topiarist.surgery.settling.divergence import divergence_of
from topiarist.surgery.settling.settling import put_settled, settle
from topiarist.tasks import Task
from topiarist.tracing import ExampleInput
from topiarist.tracing.running import sharing_copy


def is_refitted(edit: Edit) -> bool:
    """Return whether an edit is one that calibration data make up for."""
    return isinstance(edit, (RemoveUnits, FoldLayer, RemoveBlock)) and edit.refit


class Settler:
    """Settles a network at the places that a plan says; after its last edit where it has refits and says nothing.

    `settling` is the number of steps, None for the plan's own, and 0 for none at all. For each settling, the network
    is remembered as it was before the edits that are made up for: its tensors are shared, not copied.
    """

    def __init__(
        self, plan: Plan, example_input: ExampleInput | None, calibration: Calibration | None, settling: int | None
    ) -> None:
        if settling is not None and (isinstance(settling, bool) or settling < 0):
            raise SettingsError(f"settling is a number of steps, 0 for none; found {settling!r}")
        self.example_input, self.calibration, self.settling = example_input, calibration, settling
        self.number = -1  # of the edit that comes next
        asked = {at: edit for at, edit in enumerate(plan.edits) if isinstance(edit, SettleNetwork)}
        self.starts = {at: max(at - edit.edits, 0) for at, edit in asked.items()}
        self.last = len(plan)
        if calibration is not None and settling != 0 and not asked and any(map(is_refitted, plan.edits)):
            self.starts[self.last] = 0
        self.wholes: dict[int, nn.Module] = {}

    def remember(self, network: nn.Module) -> None:
        """Look at the network before each edit of the plan."""
        self.number += 1
        if self.number in self.starts.values():
            self.wholes[self.number] = sharing_copy(network)

    def carry_out(self, network: nn.Module, edit: SettleNetwork, numbers: Numbers) -> None:
        """Settle in place as the plan says: with its numbers, or anew on calibration data."""
        if self.settling == 0:
            return
        if self.calibration is not None:
            whole, steps = self.wholes[self.starts[self.number]], edit.steps if self.settling is None else self.settling
            settle_edits(whole, network, self._batches(network), steps=steps, edits=edit.edits, seed=edit.seed)
        elif numbers:
            put_settled(network, numbers)
            attach_plan(network, plan_of(network).then(edit, numbers))
        else:
            raise ModelError("the plan has no numbers for its settling: pass calibration data, or settling=0")

    def finish(self, network: nn.Module) -> None:
        """Settle in place after the last edit, where the plan does not say where."""
        if self.last in self.starts:
            settle_edits(self.wholes[0], network, self._batches(network), steps=self.settling, edits=self.last)

    def _batches(self, network: nn.Module) -> CalibrationBatches:
        assert self.calibration is not None
        return batches_for(self.calibration, network, self.example_input)


def settle_edits(
    whole: nn.Module,
    cut: nn.Module,
    batches: CalibrationBatches,
    *,
    steps: int | None = None,
    edits: int = 1,
    seed: int = 0,
    task: Task | None = None,
) -> None:
    """Settle a network in place that so many edits made of another; where that helps, its plan says so.

    Without a task, what its answers mean is as the card of the whole network says.
    """
    divergence = divergence_of(card_of(whole).task if task is None else task)
    settled = settle(whole, cut, batches, steps=steps, seed=seed, divergence=divergence)
    if settled.numbers:
        edit = SettleNetwork(steps=settled.steps, seed=seed, edits=max(edits, 1))
        attach_plan(cut, plan_of(cut).then(edit, settled.numbers))
