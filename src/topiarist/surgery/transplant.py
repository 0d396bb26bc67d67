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
from topiarist.surgery.applying import rebuild
from topiarist.surgery.plan import Plan, plan_of

FRESH = 0.01  # of the usual mean of squares: what fresh units get in gradients before they are read with large weights
SQUARES = ("square", "exp_avg_sq", "max_exp_avg_sq", "square_avg", "sum")  # as our and torch's optimizers call them


def transplant(optimizer: Optimizer, model: nn.Module, new_model: nn.Module) -> Optimizer:
    """Give an optimizer for a network that edits made of another, with the state and the settings of the old one.

    Parameters that survive keep their state, cut and copied as they are, and new ones begin without; new values within
    one that survives get a share of what is usual there. Both networks and the old optimizer are left as they are.
    """
    if isinstance(optimizer, torch.optim.LBFGS):
        raise ModelError("the state of LBFGS belongs to no single parameter and cannot be carried over")
    origins = find_origins(model, new_model)
    old, new = dict(model.named_parameters()), dict(new_model.named_parameters())
    home = new_groups(origins, group_names(optimizer, old))
    accepted = inspect.signature(type(optimizer)).parameters
    defaults = {name: value for name, value in optimizer.defaults.items() if name in accepted}
    groups = [
        group_like(group, [n for n in home if home[n] == index], new)
        for index, group in enumerate(optimizer.param_groups)
    ]
    given = type(optimizer)(groups, **defaults)
    for name in home:
        source, positions = origins[name]
        if source is not None and old[source] in optimizer.state:
            state = follow(optimizer.state[old[source]], old[source], positions)
            if state is not None:
                given.state[new[name]] = state
    return given


def carried(
    memory: Mapping[str, Mapping[str, Tensor]], model: nn.Module, new_model: nn.Module
) -> dict[str, dict[str, Tensor]]:
    """Give what an optimizer remembers of each parameter, by name, for a network that edits made of another."""
    if not memory:
        return {}
    shapes = dict(model.named_parameters())
    given = {}
    for name, (source, positions) in find_origins(model, new_model).items():
        if source is None:
            state: dict[str, Tensor] | None = begun(memory, positions.shape)
        else:
            state = follow(dict(memory[source]), shapes[source], positions) if source in memory else None
        if state is not None:
            given[name] = state
    return given


def begun(memory: Mapping[str, Mapping[str, Tensor]], shape: torch.Size) -> dict[str, Tensor]:
    """Give what to remember of a parameter that is new."""
    every = {key: torch.cat([state[key].flatten() for state in memory.values()]) for key in next(iter(memory.values()))}
    return {key: unknown(key, values).expand(shape).clone() for key, values in every.items()}


def group_like(group: dict[str, Any], names: list[str], parameters: dict[str, nn.Parameter]) -> dict[str, Any]:
    """Give a parameter group with the settings of another; its parameters have names where those had."""
    settings = {name: value for name, value in group.items() if name not in ("params", "param_names")}
    members = [(name, parameters[name]) if "param_names" in group else parameters[name] for name in names]
    return {**settings, "params": members}


Origin = tuple[str | None, Tensor]


def find_origins(model: nn.Module, new_model: nn.Module) -> dict[str, Origin]:
    """Give, for each parameter of a new network, the parameter it comes from and the position of each of its values
    there, -1 for a value that is new.

    The edits are replayed on a network whose parameters hold their own positions.
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
    rest = Plan(plan.edits[len(known) :], plan.example)
    rebuild(rest, model, shadow=ghost)
    replayed = {name: found.detach() for name, found in ghost.named_parameters()}
    shapes = {name: parameter.shape for name, parameter in new_model.named_parameters()}
    if {name: found.shape for name, found in replayed.items()} != shapes:
        raise ModelError("the new network was not made from the old one: their parameters differ")
    return {name: locate(replayed[name], starts) for name in shapes}


def locate(positions: Tensor, starts: dict[str, int]) -> Origin:
    """Give the parameter that positions belong to, and the positions within it."""
    found = positions[~positions.isnan()]
    if not len(found):
        return None, torch.full(positions.shape, -1)
    name = max((name for name, start in starts.items() if start <= float(found[0])), key=starts.__getitem__)
    return name, torch.nan_to_num(positions - starts[name], nan=-1.0).long()


def group_names(optimizer: Optimizer, parameters: dict[str, nn.Parameter]) -> dict[str, int]:
    """Give the number of the parameter group of each parameter that the optimizer has."""
    names = {id(parameter): name for name, parameter in parameters.items()}
    groups = {}
    for number, group in enumerate(optimizer.param_groups):
        for parameter in group["params"]:
            if id(parameter) not in names:
                raise ModelError("the optimizer has parameters that the network does not have")
            groups[names[id(parameter)]] = number
    return groups


def new_groups(origins: dict[str, Origin], groups: dict[str, int]) -> dict[str, int]:
    """Give the group of each new parameter: that of its origin or, where it has none, of its nearest relative.

    Those whose origin or relative the optimizer does not have stay out.
    """
    sources = {name: source for name, (source, _) in origins.items() if source is not None}
    names = list(origins)
    given: dict[str, int] = {}
    for number, name in enumerate(names):
        near = sorted(sources, key=lambda other: kinship(name, other, names.index(other) - number))
        source = sources[name] if name in sources else sources[near[0]] if near else None
        if source in groups:
            given[name] = groups[source]
    return given


def kinship(name: str, other: str, distance: int) -> tuple[int, bool, int]:
    """Give how far apart two parameters are: by the modules that they share, then what comes before is nearer."""
    pairs = zip(name.split("."), other.split("."), strict=False)
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    return -shared, distance > 0, abs(distance)


def follow(state: dict[str, Any], parameter: Tensor, positions: Tensor) -> dict[str, Any] | None:
    """Give an optimizer's state for a parameter whose values come from positions of another.

    None where the state has a shape of its own, and the parameter is no longer what it was. New values get what
    `unknown` says: steps divided by a running mean of squares that begins at zero are so long that ReLU units die.
    """
    given = {}
    same = positions.shape == parameter.shape and bool((positions.flatten() == torch.arange(positions.numel())).all())
    for name, value in state.items():
        if not isinstance(value, Tensor) or value.ndim == 0 or same:
            given[name] = value.clone() if isinstance(value, Tensor) else value
        elif value.shape == parameter.shape:
            places = positions.to(value.device)
            taken = value.reshape(-1)[places.clamp_min(0)]
            given[name] = torch.where(places >= 0, taken, unknown(name, taken[places >= 0]))
        else:
            return None
    return given


def unknown(name: str, known: Tensor) -> Tensor:
    """Give what to remember of a new value: a share of the usual mean where it is one of squares, else 0."""
    return FRESH * known.mean() if name in SQUARES else known.new_zeros(())
