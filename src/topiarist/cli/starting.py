"""What a rightsizing starts from: the data, read as a network of the user's reads them, and that network."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from topiarist.errors import SettingsError

if TYPE_CHECKING:
    from torch import nn

    from topiarist.data import Data
    from topiarist.features.log_mel import LogMel
    from topiarist.rightsizing import Backbone

READ_BY = ("target", "group", "weight", "task", "columns")  # what says how samples are read; the rest prepares them


def task_and_start(
    data: str,
    model: str | None,
    into: str | None,
    how: Mapping[str, Any],
    *,
    trained: bool | None = None,
    base: Path | None = None,
) -> "tuple[Data, nn.Module | Callable[[], nn.Module] | Backbone | None]":
    """Read data and network; the data of a network from a file are preprocessed as it was trained on them."""
    from topiarist.cli.loading import load_network, task_for
    from topiarist.features.described import load_described
    from topiarist.models import card_of
    from topiarist.models.building import build_by_code
    from topiarist.randomness import isolated

    if trained is not None and model is None:
        raise SettingsError("--trained and --fresh say what to do with a network of yours: name it with --model")
    if base is not None and model is not None:
        raise SettingsError("--model is a network for the task as it is, --base one with another last layer: give one")
    if into is not None and model is None and base is None:
        raise SettingsError("--into is what a model file is loaded into: name the file with --model or --base")
    if base is not None:
        return _data_and_backbone(data, base, into, how)
    if model is None:
        return _load_table_or_other(data, how), None
    if Path(model).suffix != ".safetensors":
        if ":" not in model:
            raise SettingsError(f"--model names a .safetensors file or module:function; found '{model}'")
        reference = model
        with isolated(how["seed"]):
            build_by_code(reference)  # whatever is wrong with it is said before the work
        return load_described(data, **how), lambda: build_by_code(reference)
    network = load_network(Path(model), into)
    if card_of(network).preprocessing is None:
        return load_described(data, **how), network
    if any(how[name] is not None for name in ("samples", "input_shape", "scaling")):
        raise SettingsError("--samples, --input-shape and --scaling are as the model's file has them: leave them out")
    if how["columns"]:
        raise SettingsError(
            "columns are read as the model's file says: leave out --drop, --category, --number and --date"
        )
    if how["task"] is not None:
        raise SettingsError("what is predicted is as the model's file has it: leave out --task")
    return task_for(network, data, target=how["target"], group=how["group"], weight=how["weight"]), network


def _data_and_backbone(location: str, base: Path, into: str | None, how: Mapping[str, Any]) -> "tuple[Data, Backbone]":
    """Read a pretrained network, and data as it reads them: sounds as those that it was trained on."""
    from topiarist.cli.loading import as_base_reads, load_network
    from topiarist.features.log_mel import LogMel
    from topiarist.models import card_of
    from topiarist.rightsizing import Backbone

    network = load_network(base, into)
    known = card_of(network).preprocessing
    sounds = None if known is None or known.sound is None else LogMel.like(known.sound)
    read = {name: how[name] for name in READ_BY}
    prepared = {name: value for name, value in how.items() if name not in read}
    found = as_base_reads(network, _load_table_or_other(location, how, sounds), **prepared)
    return found, Backbone(network, base.name)


def _load_table_or_other(location: str, how: Mapping[str, Any], sounds: "LogMel | None" = None) -> "Data":
    """Read and split data, sounds as asked for; of a table of few rows, smaller parts are set aside."""
    from topiarist.data import Data
    from topiarist.features.described import find_described
    from topiarist.rightsizing.folds import parts_set_aside

    read = {name: how[name] for name in READ_BY}
    prepared = {name: value for name, value in how.items() if name not in read}
    source = find_described(location, **read, settings=sounds)
    return Data.from_source(source, **parts_set_aside(source), **prepared)
