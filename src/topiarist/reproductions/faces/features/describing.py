"""A folder of face images as descriptors: the face is cut out and described by its texture (LPQ) and shape (PHOG).

Both as in Dhall, Asthana, Goecke and Gedeon, "Emotion recognition using PHOG and LPQ features", FG 2011. Here LPQ has
4 × 4 blocks, and PHOG the levels 0 to 4 with 16 bins over 360°. Reducing them (PCA) is left to whoever knows which
rows train.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from numpy.typing import NDArray
from PIL import ImageOps

from topiarist.data.columns.names import listed
from topiarist.data.labels import as_labels
from topiarist.data.limits import check_size
from topiarist.data.readers.folders import (
    IMAGE_ENDINGS,
    LABEL_COLUMNS,
    TABLES,
    file_column,
    find_in_classes,
    first_of,
    ignored,
    located,
    media_in,
)
from topiarist.data.readers.images import DAMAGE, DEEP_MODES, eight_bits, opened
from topiarist.data.readers.table_files import read_delimited
from topiarist.data.readers.target_columns import split_labels
from topiarist.errors import DataError
from topiarist.randomness import array_generator
from topiarist.reproductions.faces.features.augmentation import FaceAugmentation, augment
from topiarist.reproductions.faces.features.descriptors import GreyImages, local_phase_histograms, oriented_gradients
from topiarist.reproductions.faces.features.detection import (
    FACE_SIZE,
    FaceBox,
    GreyImage,
    cut_face,
    find_face,
    load_cascades,
    whole_image,
)
from topiarist.reproductions.faces.options import Missing

OnImage = Callable[[int, int], None]
LabelledFiles = tuple[Sequence[Path], NDArray[Any], tuple[str, ...]]  # paths, a label for each, and notes

BLOCKS = (("LPQ", 4096), ("PHOG", 5456))  # 4² blocks · 256 codes; (1 + 4 + 16 + 64 + 256) cells · 16 bins
WIDTH = sum(width for _, width in BLOCKS)
MARGIN = FACE_SIZE // 2  # room for the shifts and turns of copies


@dataclass(frozen=True, kw_only=True)
class FaceSet:
    """Descriptors (n_rows, 9552) of faces, the columns as in `BLOCKS`, and the `names` of the files behind the rows.

    First come the originals in the order found, then the copies, those of the first original first. `originals`
    (n_rows,) is the row of the original that a row was made from, for originals their own: folds are made of originals
    and their copies go with them. `labels` (n_rows,) are as found; `notes` say what was decided, one line each.
    """

    descriptors: NDArray[numpy.float32]
    labels: NDArray[Any]
    names: tuple[str, ...]
    originals: NDArray[numpy.intp]
    notes: tuple[str, ...] = ()


def describe_faces(
    folder: str | Path,
    *,
    align: bool = False,
    missing: Missing = "whole",
    augmentation: FaceAugmentation | None = None,
    target: str | None = None,
    seed: int = 0,
    on_image: OnImage | None = None,
) -> FaceSet:
    """Describe the images of a folder: one folder per class, or a labels.csv or meta.csv with a column `target`.

    `align` turns faces until the eyes are level; an image without a face is used whole or left out, as `missing` says;
    copies are varied by `augmentation` from `seed` and the file's name alone; `on_image` is called with the number of
    images done and of all.
    """
    if missing not in ("whole", "skip"):
        raise DataError(f"missing must be 'whole' or 'skip'; found {missing!r}")
    place = Path(folder)
    paths, labels, notes = _find_labelled(place, target=target)
    names = [path.relative_to(place).as_posix() for path in paths]
    copies = 0 if augmentation is None else augmentation.copies
    check_size(f"{len(names)} images, {1 + copies} row(s) each,", len(names) * (1 + copies) * WIDTH * 4)
    descriptors = numpy.empty((len(names), 1 + copies, WIDTH), dtype=numpy.float32)
    found = numpy.zeros(len(names), dtype=bool)
    cascades = load_cascades()
    for number, (path, name) in enumerate(zip(paths, names, strict=True)):
        image = _read_grey(path)
        box = find_face(image, cascades, align=align)
        found[number] = box is not None
        if box is not None or missing == "whole":
            faces = _face_and_copies(image, box, augmentation, array_generator(seed, "augmentation", name))
            descriptors[number] = describe(faces)
        if on_image is not None:
            on_image(number + 1, len(names))
    kept = numpy.flatnonzero(found | (missing == "whole"))
    if not len(kept):
        raise DataError(f"no face found in any of the {len(names)} images of {place}: nothing is left to describe")
    ordered, originals = _originals_first(descriptors, kept)
    fate = "the whole image is used" if missing == "whole" else "left out"
    absent = f"no face found in {(~found).sum()} of {len(found)} images: {fate}"
    return FaceSet(
        descriptors=ordered,
        labels=labels[kept[originals]],
        names=tuple(names[number] for number in kept[originals]),
        originals=originals,
        notes=notes if found.all() else (*notes, absent),
    )


def _originals_first(
    descriptors: NDArray[numpy.float32], kept: NDArray[numpy.intp]
) -> tuple[NDArray[numpy.float32], NDArray[numpy.intp]]:
    """Put the rows (n_images, 1 + copies, n_columns) of the images kept in order; return them, and their originals."""
    rows = descriptors if len(kept) == len(descriptors) else descriptors[kept]  # no copy of what may be large
    own, copies = numpy.arange(len(kept)), rows.shape[1] - 1
    ordered = numpy.concatenate([rows[:, 0], rows[:, 1:].reshape(-1, WIDTH)]) if copies else rows[:, 0]
    return ordered, numpy.concatenate([own, numpy.repeat(own, copies)])


def _face_and_copies(
    image: GreyImage, box: FaceBox | None, augmentation: FaceAugmentation | None, generator: numpy.random.Generator
) -> GreyImages:
    """Return the face in a box, or the whole image, and its varied copies: (1 + copies, size, size)."""
    wide = cut_face(image, whole_image(image) if box is None else box, margin=MARGIN)
    face = wide[numpy.newaxis, MARGIN:-MARGIN, MARGIN:-MARGIN]
    if augmentation is None:
        return face
    return numpy.concatenate([face, augment(wide, augmentation, generator=generator, margin=MARGIN)])


def describe(images: GreyImages) -> NDArray[numpy.float32]:
    """Describe grey images (n, height, width) by LPQ and PHOG side by side (n, 9552)."""
    return numpy.concatenate([local_phase_histograms(images), oriented_gradients(images)], axis=1)


def _find_labelled(folder: Path, *, target: str | None) -> LabelledFiles:
    """Find the images below a folder, by its labels.csv or meta.csv or else by its class folders."""
    if not folder.is_dir():
        found = "it is not a folder" if folder.exists() else "there is no such folder"
        raise DataError(f"cannot read {folder}: {found}; give a folder of images")
    try:
        table = next((folder / name for name in TABLES if (folder / name).is_file()), None)
        if table is None and target is not None:
            raise DataError(f"{folder} has no labels.csv or meta.csv to choose a column from: leave out {target}")
        files = _find_in_folders(folder) if table is None else _find_in_table(folder, table, target=target)
    except OSError as error:
        raise DataError(f"cannot read {folder}: {error.strerror or error}") from error
    other = next((path for path in files[0] if path.suffix.lower() not in IMAGE_ENDINGS), None)
    if other is not None:
        raise DataError(f"{other} is not an image: only images are described")
    return files


def _find_in_table(folder: Path, table: Path, *, target: str | None) -> LabelledFiles:
    """Find the images that a table names; rows without a label are left out."""
    frame, notes, *_ = read_delimited(table)
    if frame.empty:
        raise DataError(f"{table} has a header and no rows")
    files, base = file_column(folder, table, frame)
    target = first_of(frame, LABEL_COLUMNS, other_than=files) if target is None else target
    if target is None:
        raise DataError(f"{table}: name the column that holds the label with --target: {listed(list(frame.columns))}")
    frame, labels, dropped = split_labels(str(table), frame, target)
    return [located(folder, table, base, name) for name in frame[files]], labels, (*notes, *dropped)


def _find_in_folders(folder: Path) -> LabelledFiles:
    """Find the images in class folders; train, validation and test folders above them are taken together."""
    found = find_in_classes(folder)
    if not found.paths:
        loose = len(media_in(folder))
        instead = f"{loose} file(s) without labels" if loose else "none"
        raise DataError(f"no labelled images in {folder}, found {instead}: give one folder per class or a labels.csv")
    parts = sorted({path.parents[1].name for path in found.paths if path.parents[1] != folder})
    joined = (f"{', '.join(parts)} taken together",) if parts else ()
    assert found.labels is not None, "class folders name a label for every file"
    labels = as_labels(str(folder), found.labels, training=True)
    return found.paths, labels, (*joined, *ignored(folder, len(found.paths)))


def _read_grey(path: Path) -> GreyImage:
    """Decode one image to grey (height, width), as upright as its metadata says; transparency is left out."""
    with opened(path) as image:
        if image.mode in DEEP_MODES:
            raise DataError(f"{path} has 32 bits per channel; save it with 8 or 16")
        plain = eight_bits(image)
        plain.load()
        with suppress(*DAMAGE):  # damaged metadata is not used
            plain = ImageOps.exif_transpose(plain)
        return numpy.asarray(plain.convert("L"))
