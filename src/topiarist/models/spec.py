"""Builds our own networks from the small spec that they carry, so that they load without code."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn

from topiarist.errors import ModelError
from topiarist.models.card import card_of
from topiarist.models.ensemble import Ensemble
from topiarist.models.inception import inception
from topiarist.models.mlp import mlp
from topiarist.models.vgg import vgg


def ensemble(members: Sequence[dict[str, Any]], weights: Sequence[float]) -> Ensemble:
    """Make an ensemble of the networks that specs describe."""
    return Ensemble([build(member) for member in members], weights)


FAMILIES: dict[str, Callable[..., nn.Module]] = {"mlp": mlp, "vgg": vgg, "inception": inception, "ensemble": ensemble}


def build(spec: dict[str, Any]) -> nn.Module:
    """Make the network that a spec describes, with fresh weights."""
    settings = dict(spec)
    family = settings.pop("family", None)
    if not isinstance(family, str) or family not in FAMILIES:
        raise ModelError(f"no family of networks is called {family!r}: known are {', '.join(FAMILIES)}")
    try:
        return FAMILIES[family](**settings)
    except TypeError as error:
        raise ModelError(f"the spec of a {family} network cannot be read: {error}") from error


def spec_of(model: nn.Module) -> dict[str, Any] | None:
    """Give the spec on a network's card, or None where the network is not, or no longer, what it describes."""
    spec = card_of(model).spec
    tied = len(list(model.parameters())) != len(list(model.named_parameters(remove_duplicate=False)))
    return None if spec is None or tied or repr(build(spec)) != repr(model) else spec
