"""Reads a network from a Hugging Face folder.

The installed package `transformers` brings the class; it gets a configuration and tensors, and never the folder itself.
So no code of the folder runs, nothing is unpickled, and nothing is fetched from a network.
"""

import importlib
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from topiarist.data.extras import import_extra
from topiarist.errors import ModelError, TopiaristWarning
from topiarist.files import JsonObject
from topiarist.randomness import isolated
from topiarist.storage.exporting import quietly
from topiarist.storage.hub.files import CONFIG, find_weights, read_config, read_weights

# A configuration must not ask for far more memory than its weights take; tied and computed tensors are in no file.
MOST_PER_STORED, MOST_BESIDES = 2, 2**26


def load_folder(path: str | Path) -> nn.Module:
    """Return the network of a Hugging Face folder, with its weights, on the CPU and in evaluation mode.

    Attention and experts are computed by plain operations of torch (`eager`), whatever the folder asks for.

    Parameters
    ----------
    path
        A folder with `config.json` and one or more `.safetensors` files, as `save_pretrained` writes it. The class is
        the first one of `architectures`, looked up in the installed package.

    Returns
    -------
    nn.Module
        The network, which keeps its configuration as `.config`; `hub_example` returns an input for it.

    Raises
    ------
    MissingExtraError
        If transformers is not installed.
    ModelError
        If the folder is missing or damaged, names no class of the installed package, asks for code of its own, holds
        pickles only, or its weights do not fit the class.
    """
    place = Path(path)
    with _explained(place):
        config = read_config(place)
        files = find_weights(place)
        transformers = import_extra("transformers", what="a Hugging Face folder", extra="hub")
        kind = _find_class(transformers, config)
        tensors = read_weights(files)
        with _offline(), isolated(0), quietly(f"transformers refuses it as {kind.__name__}"):
            configuration = kind.config_class.from_json_file(place / CONFIG)
            configuration._attn_implementation = configuration._experts_implementation = "eager"
            _check_size(kind, configuration, tensors)
            network, report = kind.from_pretrained(
                None,
                config=configuration,
                state_dict=tensors,
                dtype="auto",
                ignore_mismatched_sizes=True,  # they are refused below, in one line
                output_loading_info=True,
                local_files_only=True,
            )
        _check_report(kind.__name__, report)
    loaded: nn.Module = network
    return loaded


def _find_class(transformers: Any, config: JsonObject) -> Any:
    """Return the class of a network, from the installed package and from nowhere else."""
    named = config.get("architectures")
    if not isinstance(named, list) or not named or not isinstance(named[0], str):
        raise ModelError(f"its {CONFIG} names no class in 'architectures'")
    with quietly(f"'{named[0]}' of transformers cannot be imported"):
        kind: Any = getattr(transformers, named[0], None)
    is_network = isinstance(kind, type) and issubclass(kind, transformers.PreTrainedModel)
    if not is_network:
        raise ModelError(f"the installed transformers {transformers.__version__} has no network '{named[0]}'")
    if kind.config_class is None:
        raise ModelError(f"'{named[0]}' is no network of its own: it has no configuration")
    return kind


def _check_size(kind: Any, configuration: Any, tensors: Mapping[str, Tensor]) -> None:
    """Refuse a network without parameters, or with far more of them than the files hold, before they are made."""
    with torch.device("meta"):
        skeleton: nn.Module = kind(configuration)
    if next(skeleton.parameters(), None) is None:
        raise ModelError(f"'{kind.__name__}' is no network of its own: it has no parameters")
    asked = sum(parameter.numel() for parameter in skeleton.parameters())
    stored = sum(tensor.numel() for tensor in tensors.values())
    if asked > MOST_PER_STORED * stored + MOST_BESIDES:
        raise ModelError(f"its {CONFIG} asks for {asked:,} parameters, and its files hold {stored:,} numbers")


def _check_report(name: str, report: Mapping[str, Any]) -> None:
    """Refuse weights that do not fit the network; mention those that it does not use."""
    for tensor, stored, asked in sorted(report["mismatched_keys"]):
        shapes = f"{tuple(stored)} in its files, {tuple(asked)} in its {CONFIG}"
        raise ModelError(f"the weights do not fit {name}: '{tensor}' is {shapes}")
    if missing := sorted(report["missing_keys"]):
        raise ModelError(f"the weights do not fit {name}: its files lack {_listed(missing)}")
    if report.get("error_msgs"):
        raise ModelError(f"the weights do not fit {name}: {report['error_msgs'][0]}")
    if unused := sorted(report["unexpected_keys"]):
        warnings.warn(f"{name} does not use {_listed(unused)} of the files", TopiaristWarning, stacklevel=3)


def _listed(names: list[str]) -> str:
    return f"'{names[0]}'" + (f" and {len(names) - 1} more" if len(names) > 1 else "")


@contextmanager
def _offline() -> Iterator[None]:
    """Let huggingface_hub refuse every request, whatever the environment says."""
    constants: Any = importlib.import_module("huggingface_hub.constants")
    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


@contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Begin every error with the folder's path."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"cannot load {folder}: {error}") from error
