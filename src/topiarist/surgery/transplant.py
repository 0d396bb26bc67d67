"""Optimizer transplant: after an edit, what the optimizer knows of a parameter follows it into the new network."""

import inspect
import math
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from topiarist.errors import ModelError
from topiarist.surgery.applying import rebuild
from topiarist.surgery.plan import Plan, plan_of


def transplant(optimizer: Optimizer, model: nn.Module, new_model: nn.Module) -> Optimizer:
    """Give an optimizer for a network that edits made of another, with the state and the settings of the old one.

    Parameters that survive keep their state, cut and copied as they are; new ones begin without. Both networks and the
    old optimizer are left as they are.
    """
    origins = find_origins(model, new_model)
    old = dict(model.named_parameters())
    new = dict(new_model.named_parameters())
    groups = group_names(optimizer, old)
    home = new_groups(origins, groups)
    settings = [{name: value for name, value in group.items() if name != "params"} for group in optimizer.param_groups]
    members = [[new[name] for name, number in home.items() if number == index] for index in range(len(settings))]
    accepted = inspect.signature(type(optimizer)).parameters
    defaults = {name: value for name, value in optimizer.defaults.items() if name in accepted}
    given = type(optimizer)(
        [{**group, "params": own} for group, own in zip(settings, members, strict=True)], **defaults
    )
    for name, origin in origins.items():
        source = origin[0]
        if name in home and source is not None and old[source] in optimizer.state:
            given.state[new[name]] = follow(optimizer.state[old[source]], old[source], origin[1])
    return given


Origin = tuple[str | None, Tensor]


def find_origins(model: nn.Module, new_model: nn.Module) -> dict[str, Origin]:
    """Give, for each parameter of a new network, the parameter it comes from and the position of each of its values
    there, -1 for a value that is new.

    The edits are replayed on a network whose parameters hold their own positions.
    """
    known, plan = plan_of(model), plan_of(new_model)
    if plan.edits[: len(known)] != known.edits:
        raise ModelError("the new network was not made from the old one: their plans differ")
    ghost = deepcopy(model).double()
    starts: dict[str, int] = {}
    count = 0
    for name, parameter in ghost.named_parameters():
        starts[name] = count
        parameter.data = torch.arange(count, count + parameter.numel(), dtype=torch.float64).reshape(parameter.shape)
        count += parameter.numel()
    rest = Plan(plan.edits[len(known) :], plan.example)
    replayed = dict(rebuild(rest, ghost.cpu()).named_parameters())
    return {name: locate(replayed[name].detach(), starts) for name, _ in new_model.named_parameters()}


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
    """Give the group of each new parameter: that of its origin, or of the parameter before it where it has none."""
    given: dict[str, int] = {}
    last = 0
    for name, (source, _) in origins.items():
        if source is not None and source not in groups:
            continue
        last = groups.get(source, last) if source is not None else last
        given[name] = last
    return given


def follow(state: dict[str, Any], parameter: Tensor, positions: Tensor) -> dict[str, Any]:
    """Give an optimizer's state for a parameter whose values come from positions of another."""
    given = {}
    for name, value in state.items():
        if isinstance(value, Tensor) and value.shape == parameter.shape and math.prod(value.shape) > 0 and value.ndim:
            places = positions.to(value.device)
            taken = value.reshape(-1)[places.clamp_min(0)]
            given[name] = torch.where(places >= 0, taken, torch.zeros_like(taken))
        else:
            given[name] = value.clone() if isinstance(value, Tensor) else value
    return given
