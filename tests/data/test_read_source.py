import gzip
import io
import struct
import zipfile
from pathlib import Path

import numpy
import pandas
import pytest
import scipy.io
from PIL import Image

from topiarist.data.load import read_source
from topiarist.errors import DataError

FRAME = pandas.DataFrame({"a": [1.0, 2.0, 2.0], "y": [0, 1, 0]})
IMAGES = struct.pack(">BBBB3I", 0, 0, 8, 3, 2, 1, 1) + b"ab"
LABELS = struct.pack(">BBBBI", 0, 0, 8, 1, 2) + b"\0\1"


def test_a_bundled_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(read_source("iris")) == 150
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="no such file or folder; understood are"):
        read_source(Path("iris"))


@pytest.mark.parametrize("name", ["t.csv", "T.CSV", "t.tsv", "t.csv.gz", "t.parquet", "t.xlsx", "parquet", "excel"])
def test_tables(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    text = FRAME.to_csv(index=False, sep="\t" if "tsv" in name else ",").encode()
    if "parquet" in name:
        FRAME.to_parquet(path)
    elif name in ("t.xlsx", "excel"):
        FRAME.to_excel(tmp_path / "made.xlsx", index=False)
        (tmp_path / "made.xlsx").rename(path)
    else:
        path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    source = read_source(str(path), target="y")
    assert source.labels is not None
    assert source.labels.tolist() == [0, 1, 0]


@pytest.mark.parametrize("name", ["a.npz", "a"])
def test_numpy_archives(tmp_path: Path, name: str) -> None:
    with (tmp_path / name).open("wb") as stream:
        numpy.savez(stream, x=numpy.eye(2), y=[0, 1])
    assert len(read_source(tmp_path / name)) == 2


def test_files_known_by_their_first_bytes(tmp_path: Path) -> None:
    (tmp_path / "my-images-idx3-ubyte").write_bytes(IMAGES)
    (tmp_path / "my-labels-idx1-ubyte").write_bytes(LABELS)
    assert len(read_source(tmp_path / "my-images-idx3-ubyte")) == 2
    scipy.io.savemat(tmp_path / "s.mat", {"X": numpy.zeros((4, 4, 3, 2), numpy.uint8), "y": [1, 10]})
    (tmp_path / "s.mat").rename(tmp_path / "s")
    assert len(read_source(tmp_path / "s")) == 2


def test_folders(tmp_path: Path) -> None:
    for name in ("idx", "cifar", "svhn", "meta", "classes"):
        (tmp_path / name).mkdir()
    (tmp_path / "idx" / "train-images-idx3-ubyte").write_bytes(IMAGES)
    (tmp_path / "idx" / "train-labels-idx1-ubyte").write_bytes(LABELS)
    (tmp_path / "cifar" / "data_batch_1.bin").write_bytes(bytes(3073) + b"\1" + bytes(3072))
    variables = {"X": numpy.zeros((4, 4, 3, 2), numpy.uint8), "y": [1, 10]}
    scipy.io.savemat(tmp_path / "svhn" / "train_32x32.mat", variables)
    (tmp_path / "meta" / "meta.csv").write_text("file,label\na.png,u\nb.png,v\n")
    for name in ("meta/a.png", "meta/b.png", "classes/u/a.png", "classes/v/a.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("L", (2, 2)).save(tmp_path / name)
    for name in ("idx", "cifar", "svhn", "meta", "classes"):
        source = read_source(tmp_path / name)
        assert (source.name, len(source)) == (name, 2)
        if name != "meta":
            with pytest.raises(DataError, match="has no columns to choose from: leave out --target y and --group g"):
                read_source(tmp_path / name, target="y", group="g")


def test_one_picture_is_for_prediction_only(tmp_path: Path) -> None:
    Image.new("L", (2, 2)).save(tmp_path / "a.png")
    assert read_source(tmp_path / "a.png", labelled=False).features.shape == (1, 1, 2, 2)
    with pytest.raises(DataError, match="single sample without a label"):
        read_source(tmp_path / "a.png")


def zipped(name: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, "")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "found an empty file; understood are .csv"),
        (b"\x80\x04pickle", "begins with 80 04 70 69 63 6b 6c 65; understood"),
        (b"PK\x03\x04 not a zip", "damaged zip"),
        (zipped("a.txt"), "a zip file of 1 members"),
        (gzip.compress(b"hello", mtime=0)[:-9], "truncated|damaged"),
        (gzip.compress(b"hello", mtime=0), "begins with 68 65 6c 6c 6f"),
    ],
)
def test_what_is_not_understood(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.unknown").write_bytes(content)
    with pytest.raises(DataError, match=message):
        read_source(tmp_path / "a.unknown")


def test_what_the_system_refuses(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="File name too long"):
        read_source("x" * 5000)
    with pytest.raises(DataError, match="neither a file nor a folder"):
        read_source("/dev/null")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(DataError, match="cannot read"):
        read_source(tmp_path / "loop")
