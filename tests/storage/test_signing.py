"""A signature is what only who has the key can make; a digest, everyone can make anew."""

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from topiarist import load, save
from topiarist.errors import ModelError
from topiarist.models import mlp
from topiarist.storage import Packing
from topiarist.storage.header import KEY, SIGNATURE, parse_header, sign

SECRET, OTHER = b"0123456789abcdef", b"fedcba9876543210"


@pytest.mark.parametrize("packing", [None, Packing(bits=8)])
def test_a_signed_file_is_read_with_its_key_and_without_any(tmp_path: Path, packing: Packing | None) -> None:
    place = save(mlp([4, 5, 3]), tmp_path / "m.safetensors", packing=packing, key=SECRET)
    plain = save(mlp([4, 5, 3]), tmp_path / "p.safetensors", packing=packing)
    x = torch.rand(2, 4)
    assert torch.equal(load(place, key=SECRET)(x), load(plain)(x))
    assert torch.equal(load(place)(x), load(plain)(x))
    for path, key in ((place, OTHER), (plain, SECRET)):
        with pytest.raises(ModelError, match="was not signed with this key, or was changed since"):
            load(path, key=key)


def test_weights_with_a_digest_made_anew_are_noticed(tmp_path: Path) -> None:
    place = save(mlp([4, 5, 3]), tmp_path / "m.safetensors", key=SECRET)
    with safe_open(place, framework="pt") as file:
        said, tensors = file.metadata(), {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118
    tensors["output.bias"] += 1
    save_file(tensors, place, metadata={**said, KEY: sign(parse_header(said[KEY]), tensors).to_text()})
    assert load(place) is not None  # the digest is right
    with pytest.raises(ModelError, match="or was changed since"):
        load(place, key=SECRET)


@pytest.mark.parametrize("signature", ["", "0" * 64, "ü"])
def test_a_made_up_signature_is_refused(tmp_path: Path, signature: str) -> None:
    place = save(mlp([4, 5, 3]), tmp_path / "m.safetensors")
    content = place.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header["__metadata__"][SIGNATURE] = signature
    text = json.dumps(header).encode()
    place.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + length :])
    with pytest.raises(ModelError, match="was not signed with this key"):
        load(place, key=SECRET)


def test_a_short_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="at least 16 bytes; found 3"):
        save(mlp([4, 5, 3]), tmp_path / "m.safetensors", key=b"abc")
    save_file({"weight": torch.zeros(2, 2)}, tmp_path / "f.safetensors")
    with pytest.raises(ModelError, match="was not signed with this key"):
        load(tmp_path / "f.safetensors", into=torch.nn.Linear(2, 2, bias=False), key=SECRET)
