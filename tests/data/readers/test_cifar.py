import gzip
import io
import tarfile
from pathlib import Path

import numpy
import pytest

from topiarist.data import limits
from topiarist.data.readers.cifar import holds_cifar, read_cifar_archive, read_cifar_batch, read_cifar_folder
from topiarist.errors import DataError


def batch(first: int, *, label_bytes: int = 1) -> bytes:
    """Return two records with the labels 0 and 1 and pixels that tell the channels apart."""
    records = []
    for label in (0, 1):
        pixels = numpy.full((3, 32, 32), first + label, dtype=numpy.uint8)
        pixels[1] += 100
        pixels[2, 0, 5] = 255
        records.append(bytes([7] * (label_bytes - 1) + [label]) + pixels.tobytes())
    return b"".join(records)


TEN = {
    "data_batch_2.bin": batch(20),
    "data_batch_1.bin": batch(10),
    "data_batch_10.bin": batch(30),
    "test_batch.bin": batch(40),
    "batches.meta.txt": b"cat\ndog\n\n",
    "readme.html": b"<p>",
}
HUNDRED = {
    "train.bin": batch(10, label_bytes=2),
    "test.bin": batch(40, label_bytes=2),
    "fine_label_names.txt": b"apple\nbee\n",
}


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    return folder


def pack(path: Path, files: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"cifar/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.mark.parametrize("packed", [False, True])
def test_ten_in_the_order_of_the_batches(tmp_path: Path, packed: bool) -> None:
    if packed:
        source = read_cifar_archive(pack(tmp_path / "a.tar.gz", TEN), labelled=True)
    else:
        source = read_cifar_folder(write(tmp_path, TEN), labelled=True)
    assert isinstance(source.features, numpy.ndarray)
    assert source.features.shape == (8, 3, 32, 32)
    assert source.features[:, 0, 0, 0].tolist() == [10, 11, 20, 21, 30, 31, 40, 41]
    assert source.features[0, 1, 3, 3] == 110
    assert source.features[0, 2, 0, 5] == 255
    assert source.labels is not None
    assert source.labels.tolist() == ["cat", "dog"] * 4
    assert source.parts is not None
    assert source.parts.tolist() == ["train"] * 6 + ["test"] * 2
    assert source.classes == ("cat", "dog")
    assert source.scaling == "pixels"


def test_hundred_has_fine_labels(tmp_path: Path) -> None:
    source = read_cifar_folder(write(tmp_path, HUNDRED), labelled=True)
    assert source.labels is not None
    assert source.labels.tolist() == ["apple", "bee"] * 2
    assert source.classes == ("apple", "bee")
    assert isinstance(source.features, numpy.ndarray)
    assert source.features[0, 0, 0, 0] == 10


def test_a_folder_with_the_archive_alone(tmp_path: Path) -> None:
    assert not holds_cifar(tmp_path)
    pack(tmp_path / "cifar-10-binary.tar.gz", TEN)
    assert holds_cifar(tmp_path)
    assert len(read_cifar_folder(tmp_path, labelled=True)) == 8


def test_one_batch(tmp_path: Path) -> None:
    source = read_cifar_batch(write(tmp_path, TEN) / "data_batch_2.bin", labelled=True)
    assert len(source) == 2
    assert source.parts is None
    assert source.classes == ("cat", "dog")


def test_labels_stay_numbers_where_names_are_missing(tmp_path: Path) -> None:
    source = read_cifar_folder(write(tmp_path, {"data_batch_1.bin": batch(0)}), labelled=True)
    assert source.labels is not None
    assert source.labels.tolist() == [0, 1]
    assert source.classes is None


def test_a_batch_by_another_name(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not named like a CIFAR batch"):
        read_cifar_batch(write(tmp_path, {"firmware.bin": b"x"}) / "firmware.bin", labelled=True)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"data_batch_1.bin": batch(0)[:-1]}, "truncated"),
        ({"data_batch_1.bin": b""}, "truncated"),
        ({"data_batch_1.bin": batch(0), "batches.meta.txt": b"cat\n"}, "label 1 is beyond the 1 names"),
        ({"data_batch_1.bin": batch(0), "batches.meta.txt": b"\xff\n\xfe\n"}, "not UTF-8"),
        ({"data_batch_1.bin": batch(0), "train.bin": batch(0, label_bytes=2)}, "together"),
    ],
)
def test_damage(tmp_path: Path, files: dict[str, bytes], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_cifar_folder(write(tmp_path, files), labelled=True)


def test_archives_that_cannot_be_read(tmp_path: Path) -> None:
    path = pack(tmp_path / "a.tar.gz", TEN)
    content = path.read_bytes()
    path.write_bytes(content[:-20])
    with pytest.raises(DataError, match=r"truncated|whole tar"):
        read_cifar_archive(path, labelled=True)
    path.write_bytes(gzip.compress(gzip.decompress(content)[:5000]))
    with pytest.raises(DataError, match="whole tar"):
        read_cifar_archive(path, labelled=True)
    path.write_bytes(gzip.compress(b"text" * 1000))
    with pytest.raises(DataError, match="whole tar"):
        read_cifar_archive(path, labelled=True)
    with pytest.raises(DataError, match="holds no batches"):
        read_cifar_archive(pack(path, {"a.txt": b"a"}), labelled=True)


def test_a_bomb_stops_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LARGEST_BYTES", 1_000_000)
    for name in ("data_batch_1.bin", "other"):
        path = pack(tmp_path / "a.tar.gz", {name: bytes(5_000_000)})
        with pytest.raises(DataError, match="at most 1,000,000"):
            read_cifar_archive(path, labelled=True)
