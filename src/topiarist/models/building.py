"""Builds networks from what describes them: settings, the spec that our own networks carry, or the user's code."""

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from torch import nn

from topiarist.errors import ModelError
from topiarist.models.card import Spec, card_of
from topiarist.models.convolutional import inception, vgg
from topiarist.models.ensemble import Ensemble
from topiarist.models.perceptrons import mlp
from topiarist.models.settings import MLP_ARGUMENTS, ModelSettings
from topiarist.randomness import child_seed, generator, isolated
from topiarist.tasks import TaskKind


def build_network(settings: ModelSettings, *, input_shape: tuple[int, ...], classes: int, seed: int = 0) -> nn.Module:
    """Build the network that settings describe, for data at hand; its initial weights follow from the seed.

    It has an output per class or, for another task, as many as `Task.outputs` says.
    Your own code draws from torch's global generator, which is seeded and restored afterwards.

    Raises
    ------
    ModelError : where the settings make no network for such data, or your code fails

    Examples
    --------
    >>> build_network(ModelSettings(hidden=(5,)), input_shape=(1, 8, 8), classes=10).hidden0
    Linear(in_features=64, out_features=5, bias=True)
    """
    if settings.code is not None:
        with isolated(child_seed(seed, "initial weights")):
            return build_by_code(settings.code, input_shape=input_shape, classes=classes, **settings.options)
    random = generator(seed, "initial weights")
    if settings.family == "mlp":
        sizes = [math.prod(input_shape), *settings.hidden, classes]
        return mlp(sizes, **settings.model_dump(include=MLP_ARGUMENTS), generator=random)
    try:
        shape = {"input_shape": input_shape, "classes": classes, "generator": random}
        return _FAMILIES[settings.family](*settings.blocks, **shape, **settings.options)
    except TypeError as error:
        raise ModelError(f"a network of the family {settings.family}: {str(error).rpartition(') ')[2]}") from error


def build_by_code(reference: str, /, **options: Any) -> nn.Module:
    """Call the function that `module:function` names, found from the current folder too, to build a network."""
    with _running(reference):
        model = find_code(reference)(**options)
    if not isinstance(model, nn.Module):
        raise ModelError(f"'{reference}' must return an nn.Module; it returns {type(model).__name__}")
    return model


def find_code(reference: str) -> Callable[..., Any]:
    """Return the function that `module:function` names, found from the current folder too; its module is run."""
    module_name, _, function_name = reference.partition(":")
    if not module_name or not function_name:
        raise ModelError(f"code is named as module:function; found '{reference}'")
    with _running(reference):
        found: Callable[..., Any] = getattr(import_module(module_name), function_name)
        return found


@contextmanager
def _running(reference: str) -> Iterator[None]:
    """Let code find modules in the current folder; whatever goes wrong in it is the user's to mend."""
    here = str(Path.cwd())
    sys.path.insert(0, here)
    try:
        yield
    except ModelError:
        raise
    except (Exception, SystemExit) as error:
        raise ModelError(f"cannot build a network with '{reference}': {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove(here)


def build(spec: Spec) -> nn.Module:
    """Build the network that a spec describes, with fresh weights.

    Raises
    ------
    ModelError : where the family is unknown or the spec does not fit it

    Examples
    --------
    >>> build({"family": "mlp", "sizes": [4, 8, 3]}).output
    Linear(in_features=8, out_features=3, bias=True)
    """
    settings = dict(spec)
    family = settings.pop("family", None)
    if not isinstance(family, str) or family not in _FAMILIES:
        raise ModelError(f"no family of networks is called {family!r}: known are {', '.join(_FAMILIES)}")
    try:
        return _FAMILIES[family](**settings)
    except (TypeError, ModelError) as error:
        raise ModelError(f"the spec of a {family} network cannot be read: {error}") from error


def spec_of(model: nn.Module) -> Spec | None:
    """Return the spec on a network's card, or None where the network is not, or no longer, what it describes."""
    spec = card_of(model).spec
    tied = len(list(model.parameters())) != len(list(model.named_parameters(remove_duplicate=False)))
    return None if spec is None or tied or repr(build(spec)) != repr(model) else spec


def _ensemble(members: Sequence[Spec], weights: Sequence[float], kind: TaskKind | None = None) -> Ensemble:
    return Ensemble([build(member) for member in members], weights, kind)


_FAMILIES: Mapping[str, Callable[..., nn.Module]] = {
    "mlp": mlp,
    "vgg": vgg,
    "inception": inception,
    "ensemble": _ensemble,
}
