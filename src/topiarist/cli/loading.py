"""A saved network, and data seen through what the network's card says."""

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from topiarist.errors import DataError, ModelError

if TYPE_CHECKING:
    from torch import Tensor, nn

    from topiarist.data import AnyPart


def load_network(path: Path, into: str | None) -> "nn.Module":
    """Load a model file, into the user's own module where its code is named."""
    from topiarist.storage import load

    return load(path) if into is None else load(path, into=make_module(into))


def make_module(reference: str) -> "nn.Module":
    """Call the function that `module:function` names, found from the current folder too, to build a network."""
    from torch import nn

    module_name, _, function_name = reference.partition(":")
    if not module_name or not function_name:
        raise ModelError(f"code is named as module:function; found '{reference}'")
    sys.path.insert(0, str(Path.cwd()))
    try:
        function = getattr(import_module(module_name), function_name)
    except (ImportError, AttributeError) as error:
        raise ModelError(f"cannot find '{reference}': {error}") from error
    finally:
        sys.path.pop(0)
    made = function()
    if not isinstance(made, nn.Module):
        raise ModelError(f"'{reference}' must give an nn.Module; it gives {type(made).__name__}")
    return made


def load_for(
    network: "nn.Module",
    location: str,
    *,
    target: str | None,
    group: str | None,
    part: Literal["train", "validation", "test", "all"],
    seed: int | None,
) -> "AnyPart":
    """Read a part of the data with the network's own preprocessing and classes."""
    from topiarist.data import Data, find_source
    from topiarist.models import card_of

    card = card_of(network)
    chosen = seed if seed is not None else card.seed or 0
    data = Data.from_source(
        find_source(location, target=target, group=group),
        seed=chosen,
        preprocessing=card.preprocessing,
        classes=card.classes,
        **({"test_fraction": 0.0, "validation_fraction": 0.0} if part == "all" else {}),
    )
    if part == "all":
        return data.whole()
    parts: dict[str, AnyPart] = {"train": data.train, "validation": data.validation, "test": data.test}
    return parts[part]


def features_for(network: "nn.Module", location: str, *, target: str | None) -> "Tensor":
    """Read raw samples, labelled or not, and turn them into what the network reads."""
    from topiarist.data import find_source
    from topiarist.models import card_of

    source = find_source(location, target=target, labelled=False)
    preprocessing = card_of(network).preprocessing
    if preprocessing is None:
        raise DataError(
            "the model file does not say how to read raw samples: save it with save(model, path, data=data)"
        )
    return preprocessing(source.features)
