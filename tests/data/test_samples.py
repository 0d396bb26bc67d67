"""Samples that are prepared when asked for are those prepared at once, to the last bit, and take less memory."""

import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy
import pytest
import torch
from torch import Tensor, nn

from topiarist import Data, TrainConfig, load_data, models, resize, save, train
from topiarist.cli import main
from topiarist.data import LazySamples, Part
from topiarist.data.joined import JoinedArrays, join_arrays
from topiarist.data.preprocessing import fit_preprocessing
from topiarist.data.readers.arrays import read_arrays
from topiarist.data.source import Scaling
from topiarist.errors import DataError
from topiarist.methods.distinctiveness import Distinctiveness
from topiarist.randomness import isolated
from topiarist.training import train_many
from topiarist.training.checkpoint import fingerprint

RANDOM = numpy.random.default_rng(0)
PIXELS = RANDOM.integers(0, 256, (60, 3, 4, 5), dtype=numpy.uint8)
NUMBERS = RANDOM.normal(3, 2, (60, 7)).astype(numpy.float32)
CONFIG = TrainConfig(epochs=2, batch_size=16, seed=3)


def lazily(monkeypatch: pytest.MonkeyPatch, most: int = 0) -> None:
    monkeypatch.setattr("topiarist.data.samples.MOST_BYTES", most)


def part_of(data: Data, name: str) -> Part:
    found = getattr(data, name)
    assert isinstance(found, Part)
    return found


@pytest.mark.parametrize("x", [PIXELS, NUMBERS, NUMBERS.astype(numpy.float16)], ids=["pixels", "numbers", "half"])
@pytest.mark.parametrize("scaling", ["none", "zscore", "minmax", "unit", "pixels"])
def test_what_is_prepared_later_has_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, x: numpy.ndarray, scaling: Scaling
) -> None:
    now = Data.from_arrays(x, [0, 1] * 30, scaling=scaling)
    lazily(monkeypatch)
    later = Data.from_arrays(x, [0, 1] * 30, scaling=scaling)
    for name in ("train", "validation", "test"):
        wanted, part = part_of(now, name).samples, part_of(later, name)
        assert isinstance(wanted, Tensor) and isinstance(part.samples, LazySamples)
        assert torch.equal(part.x, wanted) and part.x.dtype == wanted.dtype == part.samples.dtype
        assert part.samples.shape == wanted.shape
        rows = torch.tensor([3, 0, 3])
        assert torch.equal(part.samples[rows], wanted[rows]) and torch.equal(part.samples[2:5], wanted[2:5])
        assert torch.equal(part.take(rows).x, wanted[rows])


@pytest.mark.parametrize("own_layer", [False, True])
def test_training_and_resizing_do_not_notice(monkeypatch: pytest.MonkeyPatch, own_layer: bool) -> None:
    def outcome() -> list[Tensor]:
        data = load_data("digits", scaling="minmax", samples=300)
        with isolated(0):
            own = nn.Sequential(nn.Linear(64, 8), Own(), nn.Linear(8, 10))
            model: nn.Module = own if own_layer else models.mlp([64, 8, 10])
        trained = train(model, data, CONFIG)
        small = resize(model, data, Distinctiveness(keep_fraction=0.5), settling=5)
        return [
            *model.state_dict().values(),
            *small.model.state_dict().values(),
            torch.tensor(trained.epochs[-1].train_loss),
        ]

    wanted = outcome()
    lazily(monkeypatch)
    assert all(torch.equal(one, other) for one, other in zip(outcome(), wanted, strict=True))


@pytest.mark.parametrize("words", [[], ["--monte-carlo", "3"]], ids=["once", "with dropout"])
def test_predictions_do_not_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    data = load_data("digits", samples=100)
    model = save(models.mlp([64, 6, 10], dropout=0.5), tmp_path / "m.safetensors", data=data)
    said = []
    for _ in range(2):
        out = tmp_path / "out.csv"
        monkeypatch.setattr(sys, "argv", ["topiarist", "predict", str(model), "digits", "--out", str(out), *words])
        with pytest.raises(SystemExit, match="0"):
            main()
        said.append(out.read_bytes())
        lazily(monkeypatch)
    assert said[0] == said[1] and len(said[0].splitlines()) == 1798


class Own(nn.Module):
    """A layer that no stack knows."""

    def forward(self, x: Tensor) -> Tensor:
        return x.clamp(min=0) * 1.5


def test_folds_trained_as_one_do_not_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    def weights() -> list[Tensor]:
        folds = load_data("digits", samples=200).folds(3, validation_fraction=0.1, samples=100)
        with isolated(0):
            networks = [models.mlp([64, 6, 10]) for _ in folds]
        train_many(networks, folds, [CONFIG] * 3)
        return [value for network in networks for value in network.state_dict().values()]

    wanted = weights()
    lazily(monkeypatch)
    assert all(torch.equal(one, other) for one, other in zip(weights(), wanted, strict=True))


def test_a_training_is_known_by_its_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    lazily(monkeypatch)
    other = PIXELS.copy()
    other[part_rows(), 0, 0, 0] ^= 1
    model = models.mlp([60, 4, 2])

    def name(x: numpy.ndarray, scaling: Scaling = "none") -> str:
        data = Data.from_arrays(x, [0, 1] * 30, scaling=scaling, input_shape=(60,))
        return fingerprint([model], [data], [CONFIG], stacked=True)

    assert name(PIXELS) == name(PIXELS.copy()) and len({name(PIXELS), name(other), name(PIXELS, "unit")}) == 3


def part_rows() -> int:
    split = Data.from_arrays(PIXELS, [0, 1] * 30).split
    assert split is not None
    return int(split.train[0])


@pytest.mark.parametrize("x", [PIXELS, NUMBERS], ids=["pixels", "numbers"])
@pytest.mark.parametrize("scaling", ["none", "zscore", "minmax", "unit", "pixels"])
def test_scaling_learned_in_chunks_is_the_same(
    monkeypatch: pytest.MonkeyPatch, x: numpy.ndarray, scaling: Scaling
) -> None:
    rows = numpy.arange(0, 60, 2)
    at_once = fit_preprocessing(x, rows, scaling=scaling)
    monkeypatch.setattr("topiarist.data.preprocessing.LARGE_BYTES", 1)
    monkeypatch.setattr("topiarist.data.preprocessing.CHUNK_BYTES", 200)
    for features in (x, JoinedArrays([x[:25], x[25:]])):
        some = fit_preprocessing(features, rows, scaling=scaling)
        assert numpy.allclose(some.shift, at_once.shift) and numpy.allclose(some.scale, at_once.scale)
        assert (some.scaling, some.input_shape) == (at_once.scaling, at_once.input_shape)
        assert torch.allclose(some(features), at_once(x), atol=1e-6)


def test_gaps_are_filled_alike_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    holes = NUMBERS.copy()
    holes[RANDOM.random(holes.shape) < 0.2] = numpy.nan
    holes[:, 3] = numpy.nan
    rows = numpy.arange(40)
    at_once = fit_preprocessing(holes, rows, scaling="minmax")
    monkeypatch.setattr("topiarist.data.preprocessing.LARGE_BYTES", 1)
    monkeypatch.setattr("topiarist.data.preprocessing.CHUNK_BYTES", 200)
    assert fit_preprocessing(holes, rows, scaling="minmax") == at_once
    with pytest.raises(DataError, match="every value is missing"):
        fit_preprocessing(numpy.full((4, 2), numpy.nan), numpy.arange(4), scaling="none")


def test_infinite_numbers_are_refused_in_chunks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("topiarist.data.preprocessing.LARGE_BYTES", 1)
    wrong = NUMBERS.copy()
    wrong[3, 2] = numpy.inf
    with pytest.raises(DataError, match="must hold finite numbers; found 1 infinite"):
        fit_preprocessing(wrong, numpy.arange(10), scaling="none")


def test_joined_arrays_are_one() -> None:
    parts = [PIXELS[:7], PIXELS[7:8], PIXELS[8:]]
    joined = JoinedArrays(parts)
    assert (len(joined), joined.shape, joined.ndim, joined.nbytes) == (60, PIXELS.shape, 4, PIXELS.nbytes)
    marks = numpy.arange(60) % 7 == 0
    for rows in (numpy.array([59, 0, 7, 7, -1]), slice(5, 20, 3), slice(None), marks, numpy.array([], dtype=int)):
        assert numpy.array_equal(joined[rows], PIXELS[rows])
    assert numpy.array_equal(numpy.asarray(joined), PIXELS)
    with pytest.raises(IndexError, match="rows are numbered 0 to 59; found 60 to 60"):
        joined[numpy.array([60])]


def test_only_large_arrays_of_one_type_stay_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = [PIXELS[:7], PIXELS[7:]]
    assert join_arrays(pieces[:1]) is pieces[0] and isinstance(join_arrays(pieces), numpy.ndarray)
    monkeypatch.setattr("topiarist.data.joined.LARGE_BYTES", 1)
    assert isinstance(join_arrays(pieces), JoinedArrays)
    assert isinstance(join_arrays([PIXELS, PIXELS.astype(float)]), numpy.ndarray)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_large_archive_is_read_where_it_lies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: str) -> None:
    path, x = tmp_path / "x.npz", numpy.asarray(NUMBERS, order=order)  # type: ignore[call-overload]
    numpy.savez(path, x=x, y=numpy.arange(60) % 2)
    in_memory = read_arrays(path, labelled=True)
    monkeypatch.setattr("topiarist.data.readers.arrays.LARGE_BYTES", 1000)
    mapped = read_arrays(path, labelled=True)
    assert isinstance(mapped.features, numpy.ndarray) and not mapped.features.flags.owndata
    assert numpy.array_equal(mapped.features, in_memory.features) and numpy.array_equal(mapped.features, NUMBERS)
    damage(path)
    with pytest.raises(DataError, match=r"cannot be read as a NumPy archive: Bad CRC-32 for file 'x.npy'"):
        read_arrays(path, labelled=True)


def damage(path: Path) -> None:
    """Change a byte in the middle of the samples."""
    with zipfile.ZipFile(path) as archive:
        place = archive.getinfo("x.npy").header_offset + 1000
    content = bytearray(path.read_bytes())
    content[place] ^= 255
    path.write_bytes(content)


IN_A_PROCESS_OF_ITS_OWN = """
import resource, sys
from topiarist import load_data
from topiarist.training.inference import part_batches
def peak():
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
load_data("digits")
before = peak()
data = load_data(sys.argv[1])
for part in (data.train, data.validation, data.test):
    for x, y in part_batches(part, 4096):
        assert x.is_floating_point()
print(peak() - before)
"""


@pytest.mark.slow
def test_a_large_file_takes_little_more_memory_than_it_has_bytes(tmp_path: Path) -> None:
    count, side = 450_000, 28
    for name, shape in {"images-idx3": (count, side, side), "labels-idx1": (count,)}.items():
        with (tmp_path / f"train-{name}-ubyte").open("wb") as file:
            file.write(struct.pack(f">4B{len(shape)}I", 0, 0, 8, len(shape), *shape))
            if len(shape) == 1:
                file.write(bytes([0, 1, 2, 3]) * (count // 4))
            else:
                file.truncate(16 + count * side * side)  # zeros that take no room on the disk
    command = [sys.executable, "-c", IN_A_PROCESS_OF_ITS_OWN, str(tmp_path)]
    taken = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert taken < 1.5 * count * side * side
