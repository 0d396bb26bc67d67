"""Small whole files of every kind that is read, by the name of their reader."""

import gzip
import io
import json
import struct
import tarfile
import wave
from pathlib import Path
from typing import cast

import numpy
import pandas
from PIL import Image

from benchmarks.fuzzing.table import TABLE
from tests.report.rightsizing_record import record
from topiarist import Data, load_data, save
from topiarist.models import mlp, vgg
from topiarist.storage import Packing
from topiarist.study.study import Study
from topiarist.surgery import plan_of, remove

READERS = (
    *("table", "arrays", "idx", "cifar", "matlab", "image", "sound", "annotations"),
    *("model", "plan", "record", "study", "ledger"),
)
TOML = """
name = "small"
data = "iris"
folds = 2
seeds = [0, 1]
[model]
hidden = [8, 4]
[training]
epochs = 1
[grid]
"training.learning_rate" = [0.1, 0.01]
[[methods]]
name = "distinctiveness"
"""


def write_corpus(folder: Path) -> dict[str, list[Path]]:
    """Write the files and return them by reader."""
    folder.mkdir(parents=True)
    contents = {
        "table": {
            "t.csv": TABLE.encode(),
            "u.csv": TABLE.encode("utf-16"),
            "t.parquet": _parquet(),
            "t.xlsx": _excel(),
        },
        "arrays": {"a.npz": _arrays(numpy.savez), "b.npz": _arrays(numpy.savez_compressed)},
        "idx": {"images": _idx(), "images.gz": gzip.compress(_idx(), mtime=0)},
        "cifar": {"c.bin": _cifar(), "c.tar.gz": _tar({"c/data_batch_1.bin": _cifar(), "c/test_batch.bin": _cifar()})},
        "matlab": {"a.mat": _matlab()},
        "annotations": {"meta.csv": "".join(["filename,label\n", *(f"{i}.png,{i % 2}\n" for i in range(8))]).encode()},
        "image": {f"i.{form}": _image(form) for form in ("png", "jpeg", "gif", "tiff", "bmp", "webp", "ppm")},
        "sound": {"s.wav": _sound()},
        "record": {"r.json": json.dumps(record().to_json()).encode()},
        "study": {"s.toml": TOML.encode()},
    }
    made = {reader: [folder / name for name in files] for reader, files in contents.items()}
    for files in contents.values():
        for name, content in files.items():
            (folder / name).write_bytes(content)
    return made | _networks(folder) | {"ledger": [_ledger(folder)]}


def _networks(folder: Path) -> dict[str, list[Path]]:
    x = numpy.arange(120.0).reshape(60, 2) % 7
    data = Data.from_arrays(x, ["no", "yes"] * 30, scaling="auto")
    whole = mlp([2, 6, 4, 2])
    cut = remove(whole, data.train.x[:2], units={"hidden0": [1, 3]})  # type: ignore[union-attr]  # in memory
    images = vgg(1, 1, 1, 1, input_shape=(1, 8, 8), classes=3)
    table = load_data(folder / "t.csv", target="kind")
    files = [
        save(mlp([table.input_shape[0], 4, 2]), folder / "table.safetensors", data=table),
        save(whole, folder / "dense.safetensors", data=data),
        save(cut, folder / "cut.safetensors", data=data),
        save(images, folder / "vgg.safetensors"),
        *(save(cut, folder / f"packed{bits}.safetensors", packing=Packing(bits=bits)) for bits in (32, 16, 8)),
    ]
    (folder / "plan.json").write_text(json.dumps(plan_of(cut).to_record()))
    return {"model": files, "plan": [folder / "plan.json"]}


def _ledger(folder: Path) -> Path:
    Study(data="iris", training={"epochs": 1}).run(folder / "study")
    return folder / "study" / "ledger.sqlite"


def _parquet() -> bytes:
    return pandas.read_csv(io.StringIO(TABLE)).to_parquet(index=False)


def _excel() -> bytes:
    stream = io.BytesIO()
    pandas.read_csv(io.StringIO(TABLE)).to_excel(stream, index=False)
    return stream.getvalue()


def _arrays(write: object) -> bytes:
    stream = io.BytesIO()
    assert callable(write)
    write(stream, x=numpy.arange(80.0).reshape(40, 2), y=numpy.arange(40) % 2)
    return stream.getvalue()


def _idx() -> bytes:
    return struct.pack(">HBBIII", 0, 8, 3, 10, 4, 4) + bytes(range(160))


def _cifar() -> bytes:
    return b"".join(bytes([i % 2]) + bytes([i]) * 3072 for i in range(6))


def _tar(members: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def _matlab() -> bytes:
    from scipy.io import savemat  # only here

    stream = io.BytesIO()
    savemat(cast("str", stream), {"X": numpy.zeros((4, 4, 3, 6), numpy.uint8), "y": numpy.arange(6)[:, None] % 2 + 1})
    return stream.getvalue()


def _image(form: str) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(numpy.arange(192, dtype=numpy.uint8).reshape(8, 8, 3)).save(stream, form)
    return stream.getvalue()


def _sound() -> bytes:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(8000)
        out.writeframes(numpy.arange(800, dtype=numpy.int16).tobytes())
    return stream.getvalue()
