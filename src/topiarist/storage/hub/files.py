"""The files of a Hugging Face folder: what they say and hold, or one line about what is wrong with them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from topiarist.errors import ModelError
from topiarist.files import JsonObject

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
PICKLES = (".bin", ".pt", ".pth", ".ckpt")
CODE = ("auto_map", "trust_remote_code")  # what asks for Python code that comes with the folder
COUNTS = ("layers", "layer", "depth", "depths", "blocks")  # how the keys end that count what is built one by one
MOST_LAYERS = 1000  # as many as the deepest networks that were published
LABELS, MOST_LABELS = "num_labels", 1_000_000  # each is given a name before any weight is looked at
_WITHOUT_CODE = "if the class is one of transformers itself, remove that entry"


def read_config(folder: Path) -> JsonObject:
    """Return the configuration of a network that needs nothing but the installed package.

    Raises
    ------
    ModelError
        If it is missing or damaged, asks for code of the folder's own, or says that the weights are quantised.
    """
    if not folder.is_dir():
        raise ModelError("there is no such folder" if not folder.exists() else "it is not a folder")
    if not (folder / CONFIG).is_file():
        raise ModelError(f"it has no {CONFIG}, as a Hugging Face folder has; name a .safetensors file, if there is one")
    config = _read_json(folder / CONFIG)
    for key, value in _entries(config):
        if key in CODE and value:
            raise ModelError(f"its {CONFIG} asks for code of its own ('{key}'), which is never run: {_WITHOUT_CODE}")
        asked = sum(max(each, 0) for each in (value if isinstance(value, list) else [value]) if isinstance(each, int))
        if key.endswith(COUNTS) and asked > MOST_LAYERS:
            raise ModelError(f"its {CONFIG} asks for {asked:,} layers ('{key}'); at most {MOST_LAYERS:,} are built")
        if key == LABELS and asked > MOST_LABELS:
            raise ModelError(f"its {CONFIG} asks for {asked:,} labels; at most {MOST_LABELS:,} are named")
        if key == "quantization_config" and value:
            raise ModelError("its weights are quantised ('quantization_config'): take a folder with plain numbers")
    return config


def find_weights(folder: Path) -> list[Path]:
    """Return the files that hold the weights: one file, the shards of an index, or all `.safetensors` there are."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if (folder / INDEX).is_file():
        return _shards(folder)
    if found := sorted(file for file in folder.glob("*.safetensors") if file.is_file()):
        return found
    pickles = [file for file in folder.iterdir() if file.suffix in PICKLES and file.is_file()]
    if pickles:
        largest = max(pickles, key=lambda file: file.stat().st_size).name
        raise ModelError(
            f"its weights are a pickle ({largest}), which is never read: "
            "convert them to .safetensors, as save_pretrained of transformers writes them"
        )
    raise ModelError("it holds no weights: there is no .safetensors file")


def read_weights(files: list[Path]) -> dict[str, Tensor]:
    """Return all tensors of some files by name, copied to memory."""
    tensors: dict[str, Tensor] = {}
    for file in files:
        try:
            with safe_open(file, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118  # no dict
                    if name in tensors:
                        raise ModelError(f"'{name}' is in {file.name} and in another file too")
                    tensors[name] = opened.get_tensor(name).clone()
        except (OSError, SafetensorError) as error:
            raise ModelError(f"{file.name} is not a whole .safetensors file ({error})") from error
    if not tensors:
        raise ModelError(f"{files[0].name} holds no tensors")
    return tensors


def _shards(folder: Path) -> list[Path]:
    """Return the files that an index names, each of which must be there."""
    named = _read_json(folder / INDEX).get("weight_map")
    if not isinstance(named, dict) or not named or not all(isinstance(name, str) for name in named.values()):
        raise ModelError(f"its {INDEX} is damaged: it has no 'weight_map' from tensors to files")
    shards = sorted(set(named.values()))
    for name in shards:
        if Path(name).name != name or not name.endswith(".safetensors"):
            raise ModelError(f"its {INDEX} names '{name}', which is not a .safetensors file of the folder")
        if not _is_there(folder / name):
            raise ModelError(f"its {INDEX} names '{name}', which is not there")
    return [folder / name for name in shards]


def _is_there(file: Path) -> bool:
    """Return whether a file is there; one whose name is longer than any can be is not."""
    try:
        return file.is_file()
    except OSError:
        return False


def _read_json(file: Path) -> JsonObject:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"its {file.name} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # neither UTF-8 nor JSON, or nested too deeply
        raise ModelError(f"its {file.name} is damaged: {error}") from error
    if not isinstance(content, dict):
        raise ModelError(f"its {file.name} is damaged: it holds no JSON object")
    return content


def _entries(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the keys and values of a JSON value at any depth: a configuration may hold those of its parts."""
    if isinstance(value, dict):
        yield from value.items()
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _entries(inner)
