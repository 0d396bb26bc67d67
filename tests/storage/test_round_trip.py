from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from topiarist.data import Data, Preprocessing
from topiarist.errors import ModelError, TopiaristError, TopiaristWarning
from topiarist.models import ACTIVATIONS, Card, attach, card_of, mlp
from topiarist.randomness import generator
from topiarist.storage import load, read_card, save, serialise
from topiarist.tasks import Classification

DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


@st.composite
def networks(draw: st.DrawFn) -> nn.Sequential:
    model = mlp(
        draw(st.lists(st.integers(1, 9), min_size=2, max_size=5)),
        draw(st.sampled_from(sorted(ACTIVATIONS))),
        draw(st.sampled_from([False, True, "before", "after"])),
        draw(st.sampled_from([0.0, 0.25])),
        dropout_layers=draw(st.integers(0, 3)),
        input_dropout=draw(st.sampled_from([0.0, 0.1])),
        batch_norm_epsilon=draw(st.sampled_from([1e-5, 0.01])),
        batch_norm_momentum=draw(st.sampled_from([0.1, 1.0])),
        leaky_slope=draw(st.sampled_from([0.01, 0.0, 0.3])),
        generator=generator(draw(st.integers(0, 2**32)), "test"),
    )
    return model.to(draw(st.sampled_from(DTYPES)))


numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def cards(draw: st.DrawFn) -> dict[str, Any]:
    shape = tuple(draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    length = draw(st.sampled_from([0, 1, shape[0]]))
    shift, scale = (tuple(draw(st.lists(numbers, min_size=length, max_size=length))) for _ in range(2))
    preprocessing = Preprocessing(scaling="zscore", input_shape=shape, shift=shift, scale=scale)
    classes = st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=4).map(tuple)
    return {"task": Classification(draw(classes)), "input_shape": shape, "preprocessing": preprocessing}


def bits(model: nn.Module) -> dict[str, tuple[torch.dtype, tuple[int, ...], bytes]]:
    return {name: (t.dtype, tuple(t.shape), raw(t)) for name, t in model.state_dict().items()}


def raw(tensor: Tensor) -> bytes:
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(model=networks(), known=cards(), training=st.booleans())
def test_a_network_comes_back_bit_for_bit(model: nn.Sequential, known: dict[str, Any], training: bool) -> None:
    model.train(training)
    attach(model, Card(spec=card_of(model).spec, **known))
    before = bits(model)
    with TemporaryDirectory() as folder:
        path = save(model, Path(folder) / "m.safetensors")
        loaded, card = load(path), read_card(path)
        content = path.read_bytes()
    assert bits(loaded) == before == bits(model)
    assert repr(loaded) == repr(model)
    assert card_of(loaded) == card_of(model) == card
    assert not loaded.training and model.training == training
    assert all(parameter.requires_grad for parameter in loaded.parameters())
    assert content == serialise(loaded) == serialise(model)


def test_what_is_known_of_the_data_is_written(tmp_path: Path) -> None:
    rows = numpy.arange(120.0).reshape(40, 3)
    data = Data.from_arrays(rows, numpy.arange(40) % 2, scaling="zscore")
    model = mlp([3, 4, 2])
    card = read_card(save(model, tmp_path / "m.safetensors", data=data))
    assert card == Card(
        spec=card_of(model).spec,
        task=data.task,
        input_shape=data.input_shape,
        preprocessing=data.preprocessing,
        rule=data.rule,
    )
    assert card_of(model).classes is None
    assert card.preprocessing is not None and data.preprocessing is not None
    assert torch.equal(card.preprocessing(rows), data.preprocessing(rows))


def test_a_file_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "m.safetensors"
    save(mlp([2, 3, 2]), path)
    save(mlp([4, 2]), str(path))
    assert read_card(path).spec == card_of(mlp([4, 2])).spec
    assert list(tmp_path.iterdir()) == [path]


def test_the_loaded_weights_do_not_hang_on_the_file(tmp_path: Path) -> None:
    path = save(mlp([2, 3, 2]), tmp_path / "m.safetensors")
    loaded = load(path)
    path.write_bytes(b"\xff" * path.stat().st_size)
    assert bits(loaded) == bits(mlp([2, 3, 2]))


def test_a_network_that_left_its_spec_needs_its_module(tmp_path: Path) -> None:
    model = mlp([3, 4, 2], "relu")
    model.activation0 = nn.Tanh()
    with pytest.warns(TopiaristWarning, match="no longer what its spec describes"):
        path = save(model, tmp_path / "m.safetensors")
    assert read_card(path).spec is None
    with pytest.raises(ModelError, match="into=model"):
        load(path)
    fresh = mlp([3, 4, 2], "relu", generator=generator(5, "test"))
    fresh.activation0 = nn.Tanh()
    assert bits(load(path, into=fresh)) == bits(model)


@pytest.mark.parametrize("name", ["m.pt", "m", "m.safetensors.gz"])
def test_the_ending_is_asked_for(tmp_path: Path, name: str) -> None:
    with pytest.raises(ModelError, match=r"must end in \.safetensors"):
        save(mlp([2, 2]), tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "folder.safetensors").mkdir()
    for place in [tmp_path / "absent" / "m.safetensors", tmp_path / "folder.safetensors"]:
        with pytest.raises(TopiaristError, match="cannot write"):
            save(mlp([2, 2]), place)
