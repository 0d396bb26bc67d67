"""Makes the structure that a plan says, without its values: those come from a file, or from another network."""

from collections.abc import Sequence
from contextlib import suppress

from torch import nn

from topiarist.errors import ModelError
from topiarist.models.copying import copied
from topiarist.models.evaluation import evaluating
from topiarist.surgery.applying import anatomy_for, change_structure
from topiarist.surgery.edits import kinds
from topiarist.surgery.edits.examples import make_example
from topiarist.surgery.edits.plan import Plan, attach_plan, parted
from topiarist.tracing import Anatomy, ExampleInput
from topiarist.tracing.running import call


def rebuild(plan: Plan, model: nn.Module, example_input: ExampleInput | None = None) -> nn.Module:
    """Return a copy of a network with the structure that a plan makes; what is new in it has no values yet."""
    try:
        copy = _replayed(plan, model, example_input)
    except ModelError as error:
        other = _rebuilt_otherwise(plan, model, example_input)
        if other is None and example_input is None and plan.example is not None:
            raise ModelError(
                f"with an example of the shape that it was cut with, {error}: pass example_input"
            ) from error
        if other is None:
            raise
        copy = other
    attach_plan(copy, plan)
    return copy


def _rebuilt_otherwise(plan: Plan, model: nn.Module, example_input: ExampleInput | None) -> nn.Module | None:
    """Replay a plan in other ways; return None where all of them fail.

    The whole numbers of the remembered example may not go together: equal ones may. And a network that keeps what its
    first run computed, such as a table of positions, may have had a run before it was cut.
    """
    if example_input is None and plan.example is not None:
        with suppress(ModelError):
            return _replayed(plan, model, make_example(plan.example, even=True))
        example_input = make_example(plan.example)
    if example_input is not None:
        with suppress(ModelError):
            return _replayed(plan, model, example_input, after_a_run=True)
    return None


def _replayed(
    plan: Plan, model: nn.Module, example_input: ExampleInput | None, *, after_a_run: bool = False
) -> nn.Module:
    """Return a copy that a plan was replayed on."""
    copy = copied(model)
    if after_a_run and example_input is not None:
        with evaluating(copy):
            call(copy, example_input)
    replay(plan, [copy], example_input=example_input)
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
