"""Small whole files of every kind that is read, by the name of their reader."""

import gzip
import io
import json
import struct
import tarfile
from pathlib import Path
from typing import cast

import numpy
import pandas

from benchmarks.fuzzing.folders import packed
from benchmarks.fuzzing.hub import hub_folders
from benchmarks.fuzzing.kept import caches, study_folder
from benchmarks.fuzzing.predicting import image, images_by_class, new_samples, sound, sounds_by_class
from benchmarks.fuzzing.resuming import RESUMED, checkpoint_of, work_folder
from benchmarks.fuzzing.table import TABLE
from tests.report.rightsizing_record import record
from topiarist import Data, load_data, save
from topiarist.models import mlp, vgg
from topiarist.storage import Packing
from topiarist.study.study import Study
from topiarist.surgery import plan_of, remove

READERS = (
    *("table", "large table", "arrays", "large arrays", "idx", "cifar", "matlab", "image", "sound", "annotations"),
    *("folder", "spreadsheet", "prediction", "model", "hub", "plan", "record", "study", "ledger", "study folder"),
    *("checkpoint", "work folder", "cache"),
)
LATE = TABLE + "long,red,2024-01-01,no\n"  # a column of numbers that ends with text
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
        "large table": {"large.csv": TABLE.encode(), "wide.csv": TABLE.encode("utf-16"), "late.csv": LATE.encode()},
        "large arrays": {"large.npz": _arrays(numpy.savez), "idx.folder": _idx_folder()},
        "folder": {
            "images.folder": packed(images_by_class()),
            "sounds.folder": packed(sounds_by_class()),
            "setup.folder": _challenge(),
        },
        "spreadsheet": {"faces.xlsx": _spreadsheet()},
        "prediction": {f"new-{name}": content for name, content in new_samples().items()},
        "hub": hub_folders(),
        "study folder": {"study.folder": study_folder()},
        "checkpoint": {f"run{ending}": checkpoint_of(ending) for ending in RESUMED},
        "work folder": {"work.folder": work_folder()},
        "cache": {f"kept-{name}": content for name, content in caches().items()},
        "image": {f"i.{form}": image(form) for form in ("png", "jpeg", "gif", "tiff", "bmp", "webp", "ppm")},
        "sound": {"s.wav": sound()},
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


def _idx_folder() -> bytes:
    labels = struct.pack(">HBBI", 0, 8, 1, 10) + bytes(i % 2 for i in range(10))
    names = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")
    return packed(dict(zip(names, (_idx(), labels) * 2, strict=True)))


def _challenge() -> bytes:
    """Return a folder as challenges have it: a table of labels, and which files are to be trained on."""
    rows = [f"audio/{i}.wav\t{'ab'[i % 2]}\tcity{i % 3}\n" for i in range(8)]
    head = "filename\tscene_label\tidentifier\n"
    tables = {
        "meta.csv": head + "".join(rows),
        "evaluation_setup/fold1_train.csv": head + "".join(rows[:4]),
        "evaluation_setup/fold1_evaluate.csv": head + "".join(rows[4:]),
    }
    sounds = {f"audio/{i}.wav": sound(1 + i) for i in range(8)}
    return packed({name: text.encode() for name, text in tables.items()} | sounds)


def _spreadsheet() -> bytes:
    """Return the spreadsheet of the faces: a name, a label, five components of each of two descriptors."""
    titles = ["LPQ", "", "", "", "", "PHOG", "", "", "", ""]
    rows = [[f"{i}.png", 1 + i % 7, *(0.1 * (i % 5) for _ in titles)] for i in range(14)]
    stream = io.BytesIO()
    pandas.DataFrame([["image", "label", *titles], *rows]).to_excel(stream, index=False, header=False)
    return stream.getvalue()
