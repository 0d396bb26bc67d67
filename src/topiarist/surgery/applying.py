"""Carries out edits: on a copy of a network, which carries its plan from then on."""

import torch
from torch import nn

from topiarist.errors import ModelError, TopiaristError
from topiarist.models.copying import copied
from topiarist.models.evaluation import evaluating
from topiarist.randomness import isolated
from topiarist.surgery import layers
from topiarist.surgery.calibration import Batches, Calibration, count_inputs
from topiarist.surgery.constant_units import move_constants
from topiarist.surgery.containers import find_layer
from topiarist.surgery.deepening import deepen_network
from topiarist.surgery.edits import (
    DeepenNetwork,
    Edit,
    FactoriseLayer,
    FoldLayer,
    GrowSpace,
    MergeUnits,
    ProjectSpace,
    RemoveUnits,
    WidenSpace,
)
from topiarist.surgery.examples import make_example, shape_of
from topiarist.surgery.factorising import factorise_layer
from topiarist.surgery.folding import fold_layer
from topiarist.surgery.plan import Numbers, Plan, attach_plan, parted, plan_of
from topiarist.surgery.projecting import project_space
from topiarist.surgery.reexpressions import free_space, reexpression, removal
from topiarist.surgery.refit import Readers, refit
from topiarist.surgery.width import Rows, change_widths
from topiarist.tracing import Anatomy, Inputs, anatomy
from topiarist.tracing.graph import arguments

ToRefit = tuple[Readers, Rows]


def apply(
    plan: Plan, model: nn.Module, example_input: Inputs | None = None, *, calibration: Calibration | None = None
) -> nn.Module:
    """Give a copy of a network with the edits of a plan, which it adds to its own plan.

    A refit is made anew on calibration data. Without them it takes its numbers from the plan, which are right for the
    weights that the plan was made on; a plan that came from JSON has none.
    """
    given = example_for(plan, example_input)
    with torch.inference_mode(False):
        copy = copied_with_plan(model)
        for edit, numbers in plan.steps():
            carry_out(copy, edit, given, numbers=numbers, calibration=calibration)
    return copy


def perform(
    model: nn.Module, edit: Edit, example_input: Inputs | None, *, calibration: Calibration | None = None
) -> nn.Module:
    """Give a copy of a network with one edit."""
    with torch.inference_mode(False):
        copy = copied_with_plan(model)
        carry_out(copy, edit, example_input, calibration=calibration)
    return copy


def copied_with_plan(model: nn.Module) -> nn.Module:
    """Copy a network with its card and its plan."""
    copy = copied(model)
    attach_plan(copy, plan_of(model))
    return copy


def rebuild(plan: Plan, model: nn.Module, *, shadow: nn.Module | None = None) -> nn.Module:
    """Give a copy of a network with the structure that a plan makes; what is new in it has no values yet.

    The same is done in place to a `shadow`: a network of the same layers that need not be able to run.
    """
    copy = copied(model)
    for path, part in parted(plan, copy).items():
        networks = [network.get_submodule(path) for network in (copy, shadow) if network is not None]
        given = example_for(part, None)
        for edit in part.edits:
            found = anatomy_for(edit, networks[0], given)
            for network in networks:
                change_structure(network, edit, found, structure_only=True)
    attach_plan(copy, plan)
    return copy


def example_for(plan: Plan, example_input: Inputs | None) -> Inputs | None:
    """Give the example input, or one of the shape that the plan remembers, if it does."""
    if example_input is not None or plan.example is None:
        return example_input
    return make_example(plan.example)


def carry_out(
    model: nn.Module,
    edit: Edit,
    example_input: Inputs | None,
    *,
    numbers: Numbers | None = None,
    calibration: Calibration | None = None,
) -> None:
    """Make one edit in place, and add it to the network's plan."""
    example = None if example_input is None else shape_of(example_input)
    known = bool(numbers) and calibration is None  # they are for the network that the plan was made on
    refitted = isinstance(edit, (RemoveUnits, FoldLayer)) and edit.refit and not known
    if refitted and calibration is None:
        raise ModelError("the plan has no numbers for its refit: give calibration data")
    whole = copied(model) if refitted else model
    found = anatomy_for(edit, model, example_input)
    if isinstance(edit, RemoveUnits) and edit.biased and example_input is not None:
        move_constants(model, edit, found, example_input)
    readers, rows = change_structure(model, edit, found, structure_only=False)
    if calibration is not None and refitted:
        batches = Batches(calibration, model, count_inputs(example_input))
        numbers = refit(whole, model, found, readers, rows, batches)
    put_numbers(model, numbers or {})  # a refit has put its own already; those of a plan come here
    if example_input is not None:
        check_runs(model, example_input)
    attach_plan(model, plan_of(model).then(edit, numbers, example))


def anatomy_for(edit: Edit, model: nn.Module, example_input: Inputs | None) -> Anatomy:
    """Give a network's anatomy where an edit needs it."""
    if isinstance(edit, FactoriseLayer):
        return Anatomy({}, {})
    if example_input is None:
        raise ModelError("the plan does not say what the network's input looks like: give example_input")
    return anatomy(model, example_input, partial=True)


def put_numbers(model: nn.Module, numbers: Numbers) -> None:
    """Give layers the tensors that an edit left them, by name."""
    for name, values in numbers.items():
        path, _, tensor = name.rpartition(".")
        module = model.get_submodule(path)
        layers.put(module, tensor, values.to(layers.device_of(module)))


def change_structure(model: nn.Module, edit: Edit, found: Anatomy, *, structure_only: bool) -> ToRefit:
    """Make one edit in place, without the numbers of a refit; give the layers that a refit is for, and rows left."""
    match edit:
        case RemoveUnits():
            return remove(model, edit, found, structure_only)
        case MergeUnits() | WidenSpace() | GrowSpace():
            change = reexpression(free_space(found, edit.space), edit, structure_only)
            change_widths(model, found.spaces, {edit.space: change}, structure_only=structure_only)
        case ProjectSpace():
            project_space(model, edit, found, structure_only)
        case DeepenNetwork():
            deepen_network(model, edit, found, structure_only)
        case FoldLayer():
            return {fold_layer(model, edit, found, structure_only): None}, {}
        case FactoriseLayer():
            factorise_layer(model, edit, structure_only)
    return {}, {}


def remove(model: nn.Module, edit: RemoveUnits, found: Anatomy, structure_only: bool) -> ToRefit:
    """Remove units of one or several spaces."""
    changes = {name: removal(free_space(found, name), units) for name, units in edit.units.items()}
    rows = change_widths(model, found.spaces, changes, structure_only=structure_only)
    for name in edit.biased if structure_only else ():
        layers.ensure_bias(find_layer(model, name), torch.nan)
    readers = (place for name in edit.units for place in found.spaces[name].consumers)
    return {place.module: place.repeat for place in readers}, rows


def check_runs(model: nn.Module, example_input: Inputs) -> None:
    """Make sure that a network still runs: its code may hold a size that no one could see."""
    args, kwargs = arguments(model, example_input)
    try:
        with evaluating(model), isolated(0):
            model(*args, **kwargs)
    except TopiaristError:
        raise
    except Exception as error:  # whatever a user's forward raises
        reason = str(error).split("\n")[0] or type(error).__name__
        raise ModelError(f"the network's own code does not allow this edit: {reason}") from error
