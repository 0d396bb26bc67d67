"""Carries out edits: on a copy of a network, which carries its plan from then on."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from topiarist.errors import ModelError, TopiaristError, first_line
from topiarist.models.buffers import keeping_buffers
from topiarist.models.copying import copied
from topiarist.models.evaluation import evaluating, numbers_of
from topiarist.randomness import isolated
from topiarist.surgery import layers
from topiarist.surgery.bases.turning import turn_bases
from topiarist.surgery.calibration import Calibration, batches_for
from topiarist.surgery.depth.block_proof import prove_blocks
from topiarist.surgery.depth.blocks import check_removable
from topiarist.surgery.depth.containers import find_layer
from topiarist.surgery.depth.deepening import deepen_network
from topiarist.surgery.depth.factorising import factorise_layer
from topiarist.surgery.depth.folding import fold_layer
from topiarist.surgery.depth.passing_over import Behind, pass_over, readers_behind
from topiarist.surgery.edits import kinds
from topiarist.surgery.edits.examples import Example, make_example, shape_of
from topiarist.surgery.edits.plan import Numbers, Plan, attach_plan, plan_of, renamed_edit
from topiarist.surgery.proving import ensure_kept, ensure_proven, prove_counted
from topiarist.surgery.refit.fits import Readers, Rows, readers_of
from topiarist.surgery.refit.fitting import refit
from topiarist.surgery.scales import rescale
from topiarist.surgery.settling.settler import Settler, is_refitted
from topiarist.surgery.width.change import change_widths
from topiarist.surgery.width.idle_units import move_constants
from topiarist.surgery.width.reexpressions import project_space, reexpression, removal
from topiarist.tracing import Anatomy, ExampleInput, ensure_anatomy
from topiarist.tracing.finding import trace_again
from topiarist.tracing.running import Args, Kwargs, call, named_inputs, sharing_copy
from topiarist.tracing.steps import Step


def apply(
    plan: Plan,
    model: nn.Module,
    example_input: ExampleInput | None = None,
    *,
    calibration: Calibration | None = None,
    anatomy: Anatomy | None = None,
    proof: bool = True,
    settling: int | None = None,
) -> nn.Module:
    """Return a copy of a network with the edits of a plan, which it adds to its own plan.

    Where units are refitted on calibration data, the network is settled after the last edit: its parameters move
    towards the answers of the network before the plan, without labels. Parameters that are frozen stay.

    Parameters
    ----------
    plan : Plan
        The edits. Refits and settling take their numbers from the plan, which are right for the weights that it was
        made on.
    model : nn.Module
        The network; it is left as it is.
    example_input : Tensor, sequence or mapping, optional
        A batch that the network reads; without it, one of the shape that the plan remembers.
    calibration : Tensor, tuple, mapping or iterable of batches, optional
        Samples on which refits and settling are made anew; a plan that came from JSON, or is for other weights, needs
        them.
    anatomy : Anatomy, optional
        That of the network, where it is known.
    proof : bool
        Prove, before units go or come, that the network's own code computes the same without them: once for each set
        of spaces, which the anatomy remembers.
    settling : int, optional
        The number of steps, 0 for none. By default as the plan says or, where it has a refit and says nothing, as many
        as suit the size of the work.

    Returns
    -------
    nn.Module
        A network of the same class.

    Raises
    ------
    ModelError
        An edit cannot be made in this network.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    >>> apply(Plan((WidenSpace(space="0", by=2, seed=0),)), model, torch.zeros(1, 8))[0].out_features
    18
    """
    if example_input is None and plan.example is not None:
        example_input = make_example(plan.example)
    calibration = list(calibration) if isinstance(calibration, Iterator) else calibration  # it is read more than once
    known = anatomy if anatomy is None or example_input is None else ensure_anatomy(model, example_input, anatomy)
    with torch.inference_mode(False):
        copy = copied_with_plan(model)
        settler = Settler(plan, example_input, calibration, settling)
        for edit, numbers in plan.steps():
            settler.remember(copy)
            if isinstance(edit, kinds.SettleNetwork):
                settler.carry_out(copy, edit, numbers)
                continue
            known = carry_out(
                copy, edit, example_input, numbers=numbers, calibration=calibration, known=known, proof=proof
            )
        settler.finish(copy)
    return copy


def copied_with_plan(model: nn.Module) -> nn.Module:
    """Copy a network with its card and its plan."""
    copy = copied(model)
    attach_plan(copy, plan_of(model))
    return copy


def carry_out(
    model: nn.Module,
    edit: kinds.Edit,
    example_input: ExampleInput | None,
    *,
    numbers: Numbers | None = None,
    calibration: Calibration | None = None,
    known: Anatomy | None = None,
    proof: bool = True,
) -> Anatomy:
    """Make one edit in place, and add it to the network's plan; return the new anatomy, as far as it follows.

    `numbers` are those of the edit in a plan, for the network that the plan was made on: calibration data come first.
    """
    refitted = is_refitted(edit) and (calibration is not None or not numbers)
    if refitted and calibration is None:
        raise ModelError("the plan has no numbers for its refit: pass calibration data")
    found = anatomy_for(edit, model, example_input, known)
    edit = by_spaces(edit, found)
    for name in _spaces_of(edit):
        found.free_space(name)
    if isinstance(edit, kinds.RemoveBlock) and example_input is not None:
        found = anatomy_to_pass_over(model, example_input, known)
        check_removable(model, example_input, edit)
        if proof:
            prove_blocks(model, example_input, found, edit)
    if proof and example_input is not None:
        ensure_proven(model, example_input, found, _spaces_of(edit))
        if isinstance(edit, kinds.RemoveUnits):
            prove_counted(model, example_input, found, edit.units)
        if isinstance(edit, kinds.WidenSpace | kinds.GrowSpace):
            wider = edit

            def change(network: nn.Module) -> None:
                change_structure(network, wider, found, structure_only=False)

            ensure_kept(model, example_input, found, wider.space, change)
    turned: tuple[str, ...] = ()
    if isinstance(edit, kinds.RemoveUnits) and refitted and calibration is not None and example_input is not None:
        turned = turn_bases(model, example_input, found, edit.units, batches_for(calibration, model, example_input))
    whole = sharing_copy(model) if refitted else model
    if isinstance(edit, kinds.RemoveUnits) and edit.biased and example_input is not None:
        move_constants(model, edit, found, example_input)
    before = copied(model) if any(found.spaces[name].counted for name in _spaces_of(edit)) else model
    changed = change_structure(model, edit, found, structure_only=False)
    if before is not model and example_input is not None:
        rescale(before, example_input, found, model, lambda twin: _repeat(twin, edit, found))
    if refitted and calibration is not None:
        batches = batches_for(calibration, model, example_input)
        numbers = refit(
            whole,
            model,
            found,
            changed.readers,
            changed.rows,
            batches,
            now=lambda: changed.anatomy,
            changed=changed.steps,
        )
        numbers = {**{name: model.get_parameter(name).detach() for name in turned}, **numbers}
    else:
        for name, values in (numbers or {}).items():
            path, _, tensor = name.rpartition(".")
            module = model.get_submodule(path)
            layers.put(module, tensor, values.to(layers.device_of(module)))
    shape = None if example_input is None else check_runs(model, example_input)
    attach_plan(model, plan_of(model).then(edit, numbers, shape))
    return changed.anatomy


def _repeat(twin: nn.Module, edit: kinds.Edit, anatomy: Anatomy) -> None:
    change_structure(twin, edit, anatomy, structure_only=False)


def anatomy_for(
    edit: kinds.Edit, model: nn.Module, example_input: ExampleInput | None, known: Anatomy | None
) -> Anatomy:
    """Return a network's anatomy as an edit needs it: the known one, or a new trace where that says too little."""
    if isinstance(edit, kinds.FactoriseLayer | kinds.RemoveBlock):
        return known or Anatomy({}, {})
    enough = ("all",) if isinstance(edit, kinds.DeepenNetwork) else ("all", "widths")
    if known is not None and known.valid_for in enough:
        return known
    if example_input is None:
        raise ModelError("the plan does not say what the network's input looks like: pass example_input")
    return trace_again(model, example_input, known)


def anatomy_to_pass_over(model: nn.Module, example_input: ExampleInput, known: Anatomy | None) -> Anatomy:
    """Return an anatomy that knows the order of all steps: the known one, or a new trace."""
    return known if known is not None and known.valid_for == "all" else trace_again(model, example_input, known)


def _spaces_of(edit: kinds.Edit) -> tuple[str, ...]:
    """Return the spaces whose width an edit changes."""
    if isinstance(edit, kinds.RemoveUnits):
        return tuple(edit.units)
    if isinstance(edit, kinds.MergeUnits | kinds.WidenSpace | kinds.GrowSpace | kinds.ProjectSpace):
        return (edit.space,)
    return ()


def by_spaces(edit: kinds.Edit, anatomy: Anatomy) -> kinds.Edit:
    """Return an edit that names spaces by their own names, not by those of other layers that write them."""
    if isinstance(edit, kinds.RemoveUnits):
        return edit.model_copy(update={"units": anatomy.by_space(edit.units)})
    if isinstance(
        edit,
        kinds.DeepenNetwork | kinds.FoldLayer | kinds.FactoriseLayer | kinds.RemoveBlock | kinds.SettleNetwork,
    ):
        return edit
    return renamed_edit(edit, lambda name: anatomy[name].name) or edit


@dataclass(frozen=True)
class Changed:
    """The anatomy after a change of structure, the layers that a refit is for, and the rows that others have left.

    `steps` are those that read something else than before, besides the layers.
    """

    anatomy: Anatomy
    readers: Readers = field(default_factory=dict)
    rows: Rows = field(default_factory=dict)
    steps: frozenset[Step] = frozenset()


def change_structure(model: nn.Module, edit: kinds.Edit, anatomy: Anatomy, *, structure_only: bool) -> Changed:
    """Make one edit in place, without the numbers of a refit; with `structure_only`, values are never computed."""
    edit = by_spaces(edit, anatomy)
    outdated = replace(anatomy, valid_for="nothing")
    match edit:
        case kinds.RemoveUnits():
            changes = {name: removal(anatomy.free_space(name), units) for name, units in edit.units.items()}
            rows, after = change_widths(model, anatomy, changes, structure_only=structure_only)
            for name in edit.biased if structure_only else ():
                layers.ensure_bias(find_layer(model, name), torch.nan)
            return Changed(after, readers_of(model, (anatomy[name] for name in edit.units)), rows)
        case kinds.MergeUnits() | kinds.WidenSpace() | kinds.GrowSpace():
            space = anatomy.free_space(edit.space)
            change = reexpression(space, edit, structure_only)
            _, after = change_widths(model, anatomy, {space.name: change}, structure_only=structure_only)
            return Changed(after)
        case kinds.ProjectSpace():
            return Changed(project_space(model, edit, anatomy, structure_only))
        case kinds.DeepenNetwork():
            deepen_network(model, edit, anatomy, structure_only)
        case kinds.FoldLayer():
            return Changed(outdated, {fold_layer(model, edit, anatomy, structure_only): None})
        case kinds.FactoriseLayer():
            factorise_layer(model, edit, structure_only)
        case kinds.RemoveBlock():
            later = readers_behind(model, edit, anatomy) if edit.refit and anatomy.calls else Behind()
            pass_over(model, edit)
            return Changed(outdated, later.readers, steps=later.changed)
    return Changed(outdated)


def check_runs(model: nn.Module, example_input: ExampleInput) -> Example | None:
    """Make sure that a network still runs: its code may hold a size that no one could see, or write into buffers.

    Return what a plan remembers of the example: where that is a function, of what it calls the network with, if it does
    so once.
    """
    calls: list[tuple[Args, Kwargs]] = []
    handle = model.register_forward_pre_hook(lambda _, *given: calls.append(given), prepend=True, with_kwargs=True)
    try:
        _try_out(model, example_input)
    except TopiaristError:
        raise
    except Exception as error:  # whatever a user's forward raises
        reason = first_line(error)
        raise ModelError(f"the network's own code does not allow this edit: {reason}") from error
    finally:
        handle.remove()
    given: ExampleInput = example_input
    if callable(example_input) and not isinstance(example_input, Tensor):
        if len(calls) != 1:
            return None
        args, kwargs = calls[0]
        given = named_inputs(model, args, kwargs) if kwargs else args
    return _remembered(model, given)


def _remembered(model: nn.Module, given: ExampleInput) -> Example | None:
    """Return the shape of an example, with its whole numbers where the network does not run on others."""
    shape = shape_of(given)
    if shape is None or shape == shape_of(given, whole=True):
        return shape
    try:
        _try_out(model, make_example(shape))
    except Exception:  # whatever a user's forward says to other numbers
        return shape_of(given, whole=True)
    return shape


def _try_out(model: nn.Module, example_input: ExampleInput) -> None:
    with evaluating(model), isolated(0, numbers_of(model).device), keeping_buffers(model):
        call(model, example_input)
