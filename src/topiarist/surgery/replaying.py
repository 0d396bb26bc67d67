"""Makes the structure that a plan says, without its values: those come from a file, or from another network."""

from collections.abc import Sequence

from torch import nn

from topiarist.errors import ModelError
from topiarist.models.copying import copied
from topiarist.surgery.applying import anatomy_for, change_structure
from topiarist.surgery.edits import kinds
from topiarist.surgery.edits.examples import make_example
from topiarist.surgery.edits.plan import Plan, attach_plan, parted
from topiarist.tracing import Anatomy, ExampleInput


def rebuild(plan: Plan, model: nn.Module, example_input: ExampleInput | None = None) -> nn.Module:
    """Return a copy of a network with the structure that a plan makes; what is new in it has no values yet."""
    copy = copied(model)
    try:
        replay(plan, [copy], example_input=example_input)
    except ModelError as error:  # the whole numbers of the remembered example may not go together
        if example_input is not None or plan.example is None:
            raise
        rebuilt = _rebuilt_evenly(plan, model)
        if rebuilt is None:
            raise ModelError(
                f"with an example of the shape that it was cut with, {error}: pass example_input"
            ) from error
        copy = rebuilt
    attach_plan(copy, plan)
    return copy


def _rebuilt_evenly(plan: Plan, model: nn.Module) -> nn.Module | None:
    """Replay a plan with an example of equal whole numbers; return None where that fails too."""
    copy = copied(model)
    try:
        assert plan.example is not None
        replay(plan, [copy], example_input=make_example(plan.example, even=True))
    except ModelError:
        return None
    return copy


def replay(
    plan: Plan, networks: Sequence[nn.Module], anatomy: Anatomy | None = None, example_input: ExampleInput | None = None
) -> None:
    """Change the structure of networks of the same layers as a plan does, in place; the first must be able to run.

    Without an example input, one of the shape that the plan remembers serves.
    """
    for path, part in parted(plan, networks[0]).items():
        members = [network.get_submodule(path) for network in networks]
        remembered = None if part.example is None else make_example(part.example)
        example = remembered if example_input is None else example_input
        known = None if path else anatomy
        for edit in part.edits:
            if isinstance(edit, kinds.SettleNetwork):
                continue
            found = anatomy_for(edit, members[0], example, known)
            known, *_ = (change_structure(member, edit, found, structure_only=True).anatomy for member in members)
