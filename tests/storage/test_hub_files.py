"""Hugging Face folders that are refused in one line before the package transformers is asked for."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from tests.storage.hub_networks import refused
from topiarist.errors import MissingExtraError
from topiarist.storage.hub import load_folder
from topiarist.storage.hub.files import INDEX, WEIGHTS

PLAIN = {"architectures": ["BertModel"], "model_type": "bert"}


def written(folder: Path, config: object) -> Path:
    folder.mkdir()
    content = config if isinstance(config, bytes) else json.dumps(config).encode()
    (folder / "config.json").write_bytes(content)
    return folder


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (b"", "its config.json is damaged: "),
        (b'{"architectures": ["BertModel"', "its config.json is damaged: "),
        (b"\xff\xfe\x00", "its config.json is damaged: "),
        (b"[" * 100_000, "its config.json is damaged: "),
        ([1, 2], "its config.json is damaged: it holds no JSON object"),
        ({**PLAIN, "auto_map": {"AutoModel": "modeling.Own"}}, "asks for code of its own ('auto_map'), which is never"),
        ({**PLAIN, "text_config": {"auto_map": {"AutoConfig": "x.Y"}}}, "asks for code of its own ('auto_map')"),
        ({**PLAIN, "parts": [{"trust_remote_code": True}]}, "asks for code of its own ('trust_remote_code')"),
        ({**PLAIN, "num_hidden_layers": 10**9}, "asks for 1,000,000,000 layers ('num_hidden_layers')"),
        ({**PLAIN, "vision_config": {"depths": [2, 10**9]}}, "asks for 1,000,000,002 layers ('depths')"),
        ({**PLAIN, "vision_config": {"depths": [-(10**9), 10**9]}}, "asks for 1,000,000,000 layers ('depths')"),
        ({**PLAIN, "num_labels": 10**9}, "asks for 1,000,000,000 labels; at most 1,000,000"),
        ({**PLAIN, "quantization_config": {"quant_method": "gptq"}}, "its weights are quantised"),
        (PLAIN, "it holds no weights: there is no .safetensors file"),
    ],
)
def test_a_configuration_that_cannot_be_used_is_refused(tmp_path: Path, config: object, said: str) -> None:
    refused(written(tmp_path / "net", config), said)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.pth", "last.ckpt"])
def test_pickles_are_not_read(tmp_path: Path, name: str) -> None:
    folder = written(tmp_path / "net", PLAIN)
    torch.save({"weight": torch.zeros(50, 50)}, folder / name)
    torch.save({}, folder / "optimizer.pt")
    refused(folder, f"its weights are a pickle ({name}), which is never read", "convert them to .safetensors")


def test_what_is_no_hugging_face_folder_is_refused(tmp_path: Path) -> None:
    refused(tmp_path / "absent", "there is no such folder")
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file", "it is not a folder")
    refused(tmp_path, "it has no config.json")


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ({}, "is damaged: it has no 'weight_map'"),
        ({"weight_map": {}}, "is damaged: it has no 'weight_map'"),
        ({"weight_map": {"a": 3}}, "is damaged: it has no 'weight_map'"),
        ({"weight_map": ["a"]}, "is damaged: it has no 'weight_map'"),
        ({"weight_map": {"a": "model-00001-of-00002.safetensors"}}, "model-00001-of-00002.safetensors', which is not"),
        ({"weight_map": {"a": "../other.safetensors"}}, "'../other.safetensors', which is not a .safetensors file of"),
        ({"weight_map": {"a": "pytorch_model.bin"}}, "'pytorch_model.bin', which is not a .safetensors file of"),
    ],
)
def test_a_damaged_index_is_refused(tmp_path: Path, index: dict[str, Any], said: str) -> None:
    save_file({"a": torch.zeros(1)}, tmp_path / "other.safetensors")
    folder = written(tmp_path / "net", PLAIN)
    (folder / INDEX).write_text(json.dumps(index))
    refused(folder, f"its {INDEX} ", said)


def test_without_the_package_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    folder = written(tmp_path / "net", PLAIN)
    save_file({"a": torch.zeros(1)}, folder / WEIGHTS)
    with pytest.raises(MissingExtraError, match=r'a Hugging Face folder needs .* pip install "topiarist\[hub\]"'):
        load_folder(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
def test_a_pipe_in_the_place_of_weights_is_not_read(tmp_path: Path) -> None:
    folder = written(tmp_path / "m", PLAIN)
    os.mkfifo(folder / WEIGHTS)
    refused(folder, "it holds no weights: there is no .safetensors file")
