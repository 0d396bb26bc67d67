"""Optimizer transplant: after an edit, what the optimizer knows of a parameter follows it into the new network."""

import inspect
from collections.abc import Mapping
from itertools import takewhile
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from topiarist.errors import ModelError
from topiarist.models.copying import copied
from topiarist.surgery.edits.plan import Plan, plan_of
from topiarist.surgery.replaying import replay
from topiarist.tracing import Anatomy
from topiarist.tracing.running import sharing_copy

# The mean of squares of a new value, as a share of the usual one: what fresh units get in gradients before they are
# read with large weights. From zero, Adam's first steps are so long that many ReLU units die (docs/methods/surgeon.md).
FRESH = 0.01
SQUARES = ("square", "exp_avg_sq", "max_exp_avg_sq", "square_avg", "sum")  # as our and torch's optimizers call them
Origins = dict[str, tuple[str | None, Tensor]]
Memory = Mapping[str, Mapping[str, Tensor]]


def transplant(
    optimizer: Optimizer, model: nn.Module, new_model: nn.Module, *, anatomy: Anatomy | None = None
) -> Optimizer:
    """Return an optimizer for a network that edits made of another, with the state and the settings of the old one.

    Parameters that survive keep their state, cut and copied as they are, and new ones begin without; new values within
    one that survives begin without momentum and with 1 % of the usual mean of squares.

    Parameters
    ----------
    optimizer : torch.optim.Optimizer
        The optimizer of the old network; it is left as it is.
    model, new_model : nn.Module
        The old network, and the one that edits made of it.
    anatomy : Anatomy, optional
        That of the old network, where it is known.

    Returns
    -------
    torch.optim.Optimizer
        One of the same class.

    Raises
    ------
    ModelError
        The new network was not made from the old one, or the optimizer is not its own, or is LBFGS.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    >>> smaller = remove(model, torch.zeros(1, 8), units={"0": [1, 3]})
    >>> type(transplant(torch.optim.Adam(model.parameters()), model, smaller)).__name__
    'Adam'
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ModelError("the state of LBFGS belongs to no single parameter and cannot be carried over")
    origins = _find_origins(model, new_model, anatomy)
    old, new = dict(model.named_parameters()), dict(new_model.named_parameters())
    home = _new_groups(origins, _group_numbers(optimizer, old))
    accepted = inspect.signature(type(optimizer)).parameters
    defaults = {name: value for name, value in optimizer.defaults.items() if name in accepted}
    groups = []
    for number, group in enumerate(optimizer.param_groups):
        settings = {name: value for name, value in group.items() if name not in ("params", "param_names")}
        names = [name for name in home if home[name] == number]
        members = [(name, new[name]) if "param_names" in group else new[name] for name in names]
        groups.append({**settings, "params": members})
    transplanted = type(optimizer)(groups, **defaults)
    for name in home:
        source, positions = origins[name]
        if source is not None and old[source] in optimizer.state:
            state = _followed(optimizer.state[old[source]], old[source], positions)
            if state is not None:
                transplanted.state[new[name]] = state
    return transplanted


def carried(
    memory: Memory, model: nn.Module, new_model: nn.Module, *, anatomy: Anatomy | None = None
) -> dict[str, dict[str, Tensor]]:
    """Return what an optimizer remembers of each parameter, by name, for a network that edits made of another."""
    if not memory:
        return {}
    shapes = dict(model.named_parameters())
    moved = {}
    for name, (source, positions) in _find_origins(model, new_model, anatomy).items():
        if source is None:
            keys = next(iter(memory.values()))
            every = {key: torch.cat([state[key].flatten() for state in memory.values()]) for key in keys}
            moved[name] = {key: _unknown(key, values).expand(positions.shape).clone() for key, values in every.items()}
        elif source in memory:
            state = _followed(dict(memory[source]), shapes[source], positions)
            moved |= {} if state is None else {name: state}
    return moved


def _find_origins(model: nn.Module, new_model: nn.Module, anatomy: Anatomy | None) -> Origins:
    """Return, for each parameter of a new network, the parameter it comes from and the position of each of its values
    there, -1 for a value that is new.

    The edits are replayed on a network whose parameters hold their own positions, beside one that can run.
    """
    known, plan = plan_of(model), plan_of(new_model)
    if plan.edits[: len(known)] != known.edits:
        raise ModelError("the new network was not made from the old one: their plans differ")
    ghost = copied(model).cpu().double()
    starts: dict[str, int] = {}
    count = 0
    for name, parameter in ghost.named_parameters():
        starts[name] = count
        parameter.data = torch.arange(count, count + parameter.numel(), dtype=torch.float64).reshape(parameter.shape)
        count += parameter.numel()
    replay(Plan(plan.edits[len(known) :], plan.example), [sharing_copy(model), ghost], anatomy)
    replayed = {name: found.detach() for name, found in ghost.named_parameters()}
    shapes = {name: parameter.shape for name, parameter in new_model.named_parameters()}
    if {name: found.shape for name, found in replayed.items()} != shapes:
        raise ModelError("the new network was not made from the old one: their parameters differ")
    return {name: _located(replayed[name], starts) for name in shapes}


def _located(positions: Tensor, starts: Mapping[str, int]) -> tuple[str | None, Tensor]:
    """Return the parameter that positions belong to, and the positions within it."""
    found = positions[~positions.isnan()]
    if not len(found):
        return None, torch.full(positions.shape, -1)
    name = max((name for name, start in starts.items() if start <= float(found[0])), key=starts.__getitem__)
    return name, torch.nan_to_num(positions - starts[name], nan=-1.0).long()


def _group_numbers(optimizer: Optimizer, parameters: Mapping[str, nn.Parameter]) -> dict[str, int]:
    """Return the number of the parameter group of each parameter that the optimizer has."""
    names = {id(parameter): name for name, parameter in parameters.items()}
    groups = {}
    for number, group in enumerate(optimizer.param_groups):
        for parameter in group["params"]:
            if id(parameter) not in names:
                raise ModelError("the optimizer has parameters that the network does not have")
            groups[names[id(parameter)]] = number
    return groups


def _new_groups(origins: Origins, groups: Mapping[str, int]) -> dict[str, int]:
    """Return the group of each new parameter: that of its origin or, where it has none, of its nearest relative.

    The nearest shares most modules; of several, what comes before is nearer. Those whose origin or relative the
    optimizer does not have stay out.
    """
    sources = {name: source for name, (source, _) in origins.items() if source is not None}
    numbers = {name: number for number, name in enumerate(origins)}
    found: dict[str, int] = {}
    for name in origins:

        def distance(other: str, name: str = name) -> tuple[int, bool, int]:
            pairs = zip(name.split("."), other.split("."), strict=False)
            shared = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
            apart = numbers[other] - numbers[name]
            return -shared, apart > 0, abs(apart)

        near = name if name in sources else min(sources, key=distance, default=None)
        if near is not None and sources[near] in groups:
            found[name] = groups[sources[near]]
    return found


def _followed(state: dict[str, Any], parameter: Tensor, positions: Tensor) -> dict[str, Any] | None:
    """Return an optimizer's state for a parameter whose values come from positions of another.

    None where the state has a shape of its own, and the parameter is no longer what it was.
    """
    moved = {}
    same = positions.shape == parameter.shape and bool((positions.flatten() == torch.arange(positions.numel())).all())
    for name, value in state.items():
        if not isinstance(value, Tensor) or value.ndim == 0 or same:
            moved[name] = value.clone() if isinstance(value, Tensor) else value
        elif value.shape == parameter.shape:
            places = positions.to(value.device)
            taken = value.reshape(-1)[places.clamp_min(0)]
            moved[name] = torch.where(places >= 0, taken, _unknown(name, taken[places >= 0]))
        else:
            return None
    return moved


def _unknown(name: str, known: Tensor) -> Tensor:
    """Return what to remember of a new value: a share of the usual mean where it is one of squares, else 0."""
    return FRESH * known.mean() if name in SQUARES else known.new_zeros(())
