"""What `predict` reads beside a model: new rows, arrays, folders of images and of sounds; and networks for them."""

import io
import os
import wave
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy
import pandas
from PIL import Image
from torch import nn

from benchmarks.fuzzing.folders import ENDING, packed, unpacked
from benchmarks.fuzzing.table import TABLE
from topiarist import Data, models
from topiarist.cli.loading import features_for, files_of
from topiarist.cli.predict import prediction_table
from topiarist.features.described import load_described
from topiarist.models import attach
from topiarist.models.card import card_for

RATE, SAMPLES = 8000, 4096
ROWS = TABLE.replace(",kind\n", "\n").replace(",yes\n", "\n").replace(",no\n", "\n")  # without the column to predict


def image(form: str, shade: int = 0) -> bytes:
    """Return an image of 8 by 8 pixels."""
    stream = io.BytesIO()
    pixels = (numpy.arange(192) + shade).astype(numpy.uint8).reshape(8, 8, 3)
    Image.fromarray(pixels).save(stream, form)
    return stream.getvalue()


def sound(pitch: int = 1) -> bytes:
    """Return half a second of sound."""
    stream = io.BytesIO()
    with wave.open(stream, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        out.writeframes((pitch * numpy.arange(SAMPLES)).astype(numpy.int16).tobytes())
    return stream.getvalue()


def images_by_class() -> dict[str, bytes]:
    """Return the members of a folder of images, one folder per class."""
    return {f"{kind}/{number}.png": image("png", number) for kind in ("a", "b") for number in range(6)}


def sounds_by_class() -> dict[str, bytes]:
    """Return the members of a folder of sounds, one folder per class."""
    return {f"{kind}/{number}.wav": sound(1 + number) for kind in ("a", "b") for number in range(6)}


def new_samples() -> dict[str, bytes]:
    """Return files to predict, by name."""
    frame, parquet, workbook, arrays = pandas.read_csv(io.StringIO(ROWS)), io.BytesIO(), io.BytesIO(), io.BytesIO()
    frame.to_parquet(parquet, index=False)
    frame.to_excel(workbook, index=False)
    numpy.savez(arrays, x=numpy.arange(80.0).reshape(40, 2) % 7)
    return {
        "rows.csv": ROWS.encode(),
        "rows.parquet": parquet.getvalue(),
        "rows.xlsx": workbook.getvalue(),
        "rows.npz": arrays.getvalue(),
        f"images{ENDING}": packed({f"{number}.{form}": image(form) for number, form in enumerate(("png", "jpeg"))}),
        f"sounds{ENDING}": packed({f"{number}.wav": sound(1 + number) for number in range(3)}),
    }


def predict(file: Path) -> None:
    """Predict new samples as the command does."""
    if file.suffix != ENDING:
        return _predict(NETWORKS["arrays" if file.suffix == ".npz" else "table"](), file)
    with unpacked(file) as folder, own_cache():
        _predict(NETWORKS[file.stem.rpartition("-")[2]](), folder)


def _predict(network: nn.Module, place: Path) -> None:
    samples = features_for(network, str(place), target=None)
    prediction_table(network, samples, probabilities=True, passes=None, seed=0)
    files_of(str(place), target=None)


@contextmanager
def own_cache() -> Iterator[None]:
    """Keep what is described of sounds in a folder that goes."""
    before = os.environ.get("TOPIARIST_CACHE")
    with TemporaryDirectory() as folder:
        os.environ["TOPIARIST_CACHE"] = folder
        try:
            yield
        finally:
            os.environ.pop("TOPIARIST_CACHE")
            if before is not None:
                os.environ["TOPIARIST_CACHE"] = before


def _learned(network: nn.Module, data: Data) -> nn.Module:
    attach(network, card_for(network, data))
    return network.eval()


@cache
def _of_table() -> nn.Module:
    with TemporaryDirectory() as folder:
        (Path(folder) / "t.csv").write_text(TABLE)
        data = load_described(f"{folder}/t.csv", target="kind")
    return _learned(models.mlp([data.input_shape[0], 4, 2]), data)


@cache
def _of_arrays() -> nn.Module:
    x = numpy.arange(120.0).reshape(60, 2) % 7
    return _learned(models.mlp([2, 4, 2]), Data.from_arrays(x, ["no", "yes"] * 30, scaling="auto"))


def _of_folder(members: dict[str, bytes]) -> nn.Module:
    with TemporaryDirectory() as place, own_cache():
        file = Path(place) / f"all{ENDING}"
        file.write_bytes(packed(members))
        with unpacked(file) as folder:
            data = load_described(folder)
    return _learned(models.vgg(0, 0, 0, 1, input_shape=data.input_shape, classes=2), data)


NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "table": _of_table,
    "arrays": _of_arrays,
    "images": cache(lambda: _of_folder(images_by_class())),
    "sounds": cache(lambda: _of_folder(sounds_by_class())),
}
