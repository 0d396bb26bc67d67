from pathlib import Path
from typing import Any

import numpy
import pytest
from numpy.typing import NDArray
from PIL import Image

from topiarist.data import limits
from topiarist.errors import DataError
from topiarist.reproductions.faces.features.augmentation import FaceAugmentation
from topiarist.reproductions.faces.features.describing import BLOCKS, describe, describe_faces
from topiarist.reproductions.faces.features.detection import cut_face, find_face, load_cascades

pytest.importorskip("cv2")
data = pytest.importorskip("skimage.data")


def portrait(*, left: int = 130) -> NDArray[numpy.uint8]:
    cut: NDArray[numpy.uint8] = data.astronaut()[20:220, left : left + 190]
    return cut


def scenery(height: int = 60, width: int = 80, *, seed: int = 0) -> NDArray[numpy.uint8]:
    return numpy.random.default_rng(seed).integers(0, 256, size=(height, width), dtype=numpy.uint8)


def save(path: Path, values: NDArray[Any], **options: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path, **options)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save(tmp_path / "b.png", portrait())
    save(tmp_path / "c.png", scenery())
    save(tmp_path / "a.png", portrait(left=120))
    (tmp_path / "labels.csv").write_text("image,emotion\nb.png,happy\nc.png,sad\na.png,sad\n")
    return tmp_path


@pytest.mark.slow
def test_a_table_of_pictures(folder: Path) -> None:
    heard: list[tuple[int, int]] = []
    faces = describe_faces(folder, on_image=lambda done, total: heard.append((done, total)))
    assert faces.descriptors.shape == (3, 9552)
    assert faces.descriptors.dtype == numpy.float32
    assert BLOCKS == (("LPQ", 4096), ("PHOG", 5456))
    assert faces.names == ("b.png", "c.png", "a.png")
    assert faces.labels.tolist() == ["happy", "sad", "sad"]
    assert faces.originals.tolist() == [0, 1, 2]
    assert faces.notes == ("no face found in 1 of 3 images: the whole image is used",)
    assert heard == [(1, 3), (2, 3), (3, 3)]
    numpy.testing.assert_allclose(faces.descriptors[:, :4096].sum(axis=1), 16, atol=1e-4)
    numpy.testing.assert_allclose(faces.descriptors[:, 4096:].sum(axis=1), 1, atol=1e-4)


@pytest.mark.slow
def test_pictures_without_a_face_are_left_out_on_demand(folder: Path) -> None:
    faces = describe_faces(folder, missing="skip", augmentation=FaceAugmentation(copies=2))
    assert faces.names == ("b.png", "a.png", "b.png", "b.png", "a.png", "a.png")
    assert faces.labels.tolist() == ["happy", "sad", "happy", "happy", "sad", "sad"]
    assert faces.originals.tolist() == [0, 1, 0, 0, 1, 1]
    assert faces.notes == ("no face found in 1 of 3 images: left out",)
    whole = describe_faces(folder)
    numpy.testing.assert_array_equal(faces.descriptors[:2], whole.descriptors[[0, 2]])


@pytest.mark.slow
def test_copies_follow_from_the_seed_and_the_name(folder: Path) -> None:
    augmentation = FaceAugmentation(copies=2)
    faces = describe_faces(folder, augmentation=augmentation, seed=3)
    assert faces.originals.tolist() == [0, 1, 2, 0, 0, 1, 1, 2, 2]
    assert len(numpy.unique(faces.descriptors, axis=0)) == 9
    (folder / "labels.csv").write_text("image,emotion\na.png,sad\nb.png,happy\n")
    other_order = describe_faces(folder, augmentation=augmentation, seed=3)
    numpy.testing.assert_array_equal(other_order.descriptors, faces.descriptors[[2, 0, 7, 8, 3, 4]])
    other_seed = describe_faces(folder, augmentation=augmentation, seed=4)
    numpy.testing.assert_array_equal(other_seed.descriptors[:2], other_order.descriptors[:2])
    assert (other_seed.descriptors[2:] != other_order.descriptors[2:]).any(axis=1).all()


def test_copies_without_any_range_equal_their_originals(folder: Path) -> None:
    nothing = FaceAugmentation(copies=1, flip=False, max_shift=0, max_degrees=0, brightness=0, contrast=0)
    faces = describe_faces(folder, augmentation=nothing)
    numpy.testing.assert_array_equal(faces.descriptors[3:], faces.descriptors[:3])


@pytest.mark.slow
@pytest.mark.parametrize("align", [False, True])
def test_the_face_is_what_is_described(folder: Path, align: bool) -> None:
    picture = numpy.asarray(Image.open(folder / "b.png").convert("L"))
    face = find_face(picture, load_cascades(), align=align)
    assert face is not None
    expected = describe(cut_face(picture, face)[numpy.newaxis])
    found = describe_faces(folder, align=align).descriptors[:1]
    assert numpy.abs(found - expected).sum() < 0.01 * numpy.abs(expected).sum()


def test_alignment_changes_a_tilted_face(folder: Path) -> None:
    plain, aligned = describe_faces(folder), describe_faces(folder, align=True)
    assert (plain.descriptors[1] == aligned.descriptors[1]).all()
    assert (plain.descriptors[0] != aligned.descriptors[0]).any()


@pytest.mark.parametrize("parts", [("",), ("train", "test")])
def test_one_folder_a_class(tmp_path: Path, parts: tuple[str, ...]) -> None:
    for part in parts:
        save(tmp_path / part / "happy" / f"x{part}.png", scenery(30, 20))
        save(tmp_path / part / "sad" / f"y{part}.png", scenery(5, 5))
    (tmp_path / "notes.txt").write_text("mine")
    faces = describe_faces(tmp_path)
    assert sorted(set(faces.names)) == sorted(
        str(Path(part) / name) for part in parts for name in (f"happy/x{part}.png", f"sad/y{part}.png")
    )
    assert faces.labels.tolist() == ["happy", "sad"] * len(parts)
    assert ("test, train taken together" in faces.notes) == (len(parts) == 2)
    assert "1 file(s) that are no samples left out" in faces.notes


def test_the_column_of_labels_can_be_named(folder: Path) -> None:
    (folder / "labels.csv").write_text("file,emotion,age\nb.png,happy,3\nc.png,sad,4\na.png,,4\n")
    assert describe_faces(folder, target="age").labels.tolist() == [3, 4, 4]
    faces = describe_faces(folder)
    assert faces.labels.tolist() == ["happy", "sad"]
    assert "1 row(s) without a label in emotion left out" in faces.notes
    with pytest.raises(DataError, match=r"agee is not a column.*did you mean age"):
        describe_faces(folder, target="agee")
    (folder / "labels.csv").write_text("file,mood\nb.png,happy\nc.png,sad\n")
    with pytest.raises(DataError, match="holds the label with --target: file, mood"):
        describe_faces(folder)


def described(tmp_path: Path, name: str) -> NDArray[numpy.float32]:
    save(tmp_path / "other.png", scenery(9, 9))
    (tmp_path / "meta.csv").write_text(f"image,label\n{name},1\nother.png,2\n")
    row: NDArray[numpy.float32] = describe_faces(tmp_path).descriptors[0]
    return row


@pytest.mark.slow
def test_every_kind_of_picture(tmp_path: Path) -> None:
    grey = numpy.asarray(Image.fromarray(portrait()).convert("L"))
    save(tmp_path / "grey.png", grey)
    save(tmp_path / "rgb.png", numpy.stack([grey] * 3, axis=2))
    save(tmp_path / "rgba.png", numpy.stack([grey] * 3 + [grey // 2 + 100], axis=2))
    save(tmp_path / "deep.png", grey.astype(numpy.uint16) * 256 + 3)
    Image.fromarray(grey).convert("RGB").convert("CMYK").save(tmp_path / "cmyk.tif")
    expected = described(tmp_path, "grey.png")
    for name in ("rgb.png", "rgba.png", "deep.png", "cmyk.tif"):
        numpy.testing.assert_array_equal(described(tmp_path, name), expected)


@pytest.mark.slow
def test_a_picture_lying_on_its_side_is_set_upright(tmp_path: Path) -> None:
    grey = numpy.asarray(Image.fromarray(portrait()).convert("L"))
    save(tmp_path / "grey.png", grey)
    exif = Image.Exif()
    exif[0x0112] = 6
    save(tmp_path / "side.png", numpy.rot90(grey).copy(), exif=exif)
    numpy.testing.assert_array_equal(described(tmp_path, "side.png"), described(tmp_path, "grey.png"))
    save(tmp_path / "damaged.png", grey, exif=b"Exif\0\0MM\0*\xff\xff\xff")
    numpy.testing.assert_array_equal(described(tmp_path, "damaged.png"), described(tmp_path, "grey.png"))


@pytest.mark.parametrize("size", [(1, 1), (5, 5), (3, 400), (400, 3)])
def test_tiny_and_narrow_pictures(tmp_path: Path, size: tuple[int, int]) -> None:
    save(tmp_path / "x.png", scenery(*size))
    row = described(tmp_path, "x.png")
    assert numpy.isfinite(row).all()
    assert row[:4096].sum() == pytest.approx(16, abs=1e-3)


def test_a_picture_of_32_bits_is_refused(tmp_path: Path) -> None:
    save(tmp_path / "x.tif", scenery().astype(numpy.int32))
    with pytest.raises(DataError, match=r"x\.tif has 32 bits per channel"):
        described(tmp_path, "x.tif")


def test_folders_that_cannot_be_described(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such folder"):
        describe_faces(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="it is not a folder"):
        describe_faces(tmp_path / "file")
    with pytest.raises(DataError, match=r"no labelled images in .*, found none"):
        describe_faces(tmp_path)
    save(tmp_path / "a.png", scenery())
    with pytest.raises(DataError, match=r"found 1 file\(s\) without labels"):
        describe_faces(tmp_path)
    with pytest.raises(DataError, match="leave out mood"):
        describe_faces(tmp_path, target="mood")


def test_tables_that_cannot_be_described(folder: Path) -> None:
    table = folder / "labels.csv"
    table.write_text("image,emotion\nx.png,happy\ny.png,sad\n")
    with pytest.raises(DataError, match="no column names images"):
        describe_faces(folder)
    table.write_text("image,emotion\n")
    with pytest.raises(DataError, match="a header and no rows"):
        describe_faces(folder)
    table.write_text("image,emotion\na.png,happy\n../b.png,sad\n")
    with pytest.raises(DataError, match=r"names \.\./b\.png"):
        describe_faces(folder)
    (folder / "s.wav").write_bytes(b"")
    table.write_text("image,emotion\na.png,happy\ns.wav,sad\n")
    with pytest.raises(DataError, match=r"s\.wav is not an image"):
        describe_faces(folder)
    (folder / "a.png").write_bytes(b"no picture")
    table.write_text("image,emotion\na.png,happy\nb.png,sad\n")
    with pytest.raises(DataError, match=r"a\.png cannot be decoded"):
        describe_faces(folder)


def test_a_picture_cut_short_is_refused(folder: Path) -> None:
    whole = (folder / "b.png").read_bytes()
    (folder / "b.png").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"b\.png cannot be decoded"):
        describe_faces(folder)


def test_nothing_left(tmp_path: Path) -> None:
    save(tmp_path / "happy" / "a.png", scenery())
    save(tmp_path / "sad" / "b.png", scenery(seed=1))
    with pytest.raises(DataError, match="no face found in any of the 2 images"):
        describe_faces(tmp_path, missing="skip")


def test_bounds(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="missing must be 'whole' or 'skip'; found 'drop'"):
        describe_faces(folder, missing="drop")  # type: ignore[arg-type]
    monkeypatch.setattr(limits, "LARGEST_BYTES", 100_000)
    with pytest.raises(DataError, match=r"3 images, 1 row\(s\) each, takes 114,624 bytes"):
        describe_faces(folder)
