"""A projection is saved with its network: files and commands read raw samples."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from topiarist import Data, TrainConfig, load, measure, models, save, train
from topiarist.cli import main
from topiarist.errors import ModelError
from topiarist.models import card_of
from topiarist.storage.header import KEY
from topiarist.storage.reading import read_card

SIZES = ((300, 4), (200, 2))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an archive of 120 samples of 500 columns, which few directions tell apart."""
    random = numpy.random.default_rng(0)
    y = numpy.arange(120) % 3
    x = 3 * random.normal(size=(3, 500))[y] + random.normal(size=(120, 500))
    path = tmp_path_factory.mktemp("arrays") / "wide.npz"
    numpy.savez(path, x=x, y=y)
    return path


def arrays_in(archive: Path) -> dict[str, Any]:
    with numpy.load(archive) as arrays:
        return dict(arrays)


def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: object) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["topiarist", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code, *capsys.readouterr()


def test_a_network_is_loaded_with_its_projection(tmp_path: Path, archive: Path) -> None:
    arrays = arrays_in(archive)
    data = Data.from_arrays(arrays["x"], arrays["y"], projection=SIZES, scaling="zscore")
    model = models.mlp([6, 8, 3])
    train(model, data, TrainConfig(epochs=3))
    again = load(save(model, tmp_path / "a.safetensors", data=data))
    prepared = card_of(again).preprocessing
    assert prepared == data.preprocessing == read_card(tmp_path / "a.safetensors").preprocessing
    assert prepared is not None and data.preprocessing is not None
    assert prepared(arrays["x"]).equal(data.preprocessing(arrays["x"]))
    assert measure(again, data, latency=False).accuracy == measure(model, data, latency=False).accuracy


def test_a_large_projection_fits_into_the_header(tmp_path: Path) -> None:
    x = numpy.random.default_rng(0).normal(size=(60, 9552))
    data = Data.from_arrays(x, numpy.arange(60) % 3, projection=((4096, 5), (5456, 5)), scaling="zscore")
    path = save(models.mlp([10, 4, 3]), tmp_path / "a.safetensors", data=data)
    assert data.input_shape == (10,) and path.stat().st_size < 270_000
    assert card_of(load(path)).preprocessing == data.preprocessing


@pytest.mark.parametrize(
    "change", [{"axes": "AAAA"}, {"axes": "?"}, {"columns": 299}, {"offset": [1.0]}, {"offset": 3}]
)
def test_a_damaged_projection_is_one_line(tmp_path: Path, archive: Path, change: dict[str, Any]) -> None:
    arrays = arrays_in(archive)
    path = save(
        models.mlp([6, 3]),
        tmp_path / "a.safetensors",
        data=Data.from_arrays(**arrays, projection=SIZES, scaling="zscore"),
    )
    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()[KEY])
    header["preprocessing"]["projection"][0].update(change)
    save_file(load_file(path), path, metadata={KEY: json.dumps(header)})
    for reader in (load, read_card):
        with pytest.raises(ModelError, match="damaged") as caught:
            reader(path)
        assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_commands(
    tmp_path: Path, archive: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "a.safetensors"
    words = ("--projection", "300:4,200:2", "--hidden", 8, "--epochs", 60, "--lr", 0.01)
    code, said, _ = run(capsys, monkeypatch, "train", archive, *words, "--folds", 3, "--out", out, "--json")
    trained = json.loads(said.splitlines()[-1])
    assert code == 0 and trained["mean_accuracy"] > 0.9
    assert card_of(load(out)).input_shape == (6,)
    code, said, _ = run(capsys, monkeypatch, "measure", out, archive, "--json")
    assert code == 0 and json.loads(said.splitlines()[-1])["accuracy"] == trained["accuracy"]
    code, said, _ = run(capsys, monkeypatch, "predict", out, archive, "--json")
    assert code == 0 and len(json.loads(said.splitlines()[-1])["predictions"]) == 120


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("300", "--projection is written COLUMNS:COMPONENTS"),
        ("300:4,", "--projection is written"),
        ("300:4,200:0", "found '300:4,200:0'"),
        ("a:b", "found 'a:b'"),
        ("", "--projection is written"),
        ("300:4,100:2", "must hold all 500 columns; found 300 + 100"),
    ],
)
def test_a_projection_that_cannot_be_is_one_line(
    archive: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, text: str, expected: str
) -> None:
    code, _, said = run(capsys, monkeypatch, "train", archive, "--projection", text, "--epochs", 1)
    assert code != 0 and expected in said and said.count("\n") == 1
