"""A folder of face pictures as descriptors: the face is cut out and described by its texture (LPQ) and shape (PHOG).

Both as in Dhall, Asthana, Goecke and Gedeon, "Emotion recognition using PHOG and LPQ features", FG 2011. Here LPQ has
4 × 4 blocks, and PHOG the levels 0 to 4 with 16 bins over 360°. Reducing them (PCA) is left to whoever knows which
rows train.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy
from numpy.typing import NDArray

from topiarist.data.limits import check_size
from topiarist.errors import DataError
from topiarist.randomness import array_generator
from topiarist.reproductions.faces.features.augmentation import Augmentation, augment
from topiarist.reproductions.faces.features.detection import (
    FACE_SIZE,
    Cascades,
    cut_face,
    find_face,
    load_cascades,
    whole_picture,
)
from topiarist.reproductions.faces.features.grids import Images
from topiarist.reproductions.faces.features.image_files import LabelledFiles, find_labelled, read_grey
from topiarist.reproductions.faces.features.local_phase import local_phase_histograms
from topiarist.reproductions.faces.features.oriented_gradients import oriented_gradients

Missing = Literal["whole", "skip"]
Report = Callable[[int, int], None]

BLOCKS = (("LPQ", 4096), ("PHOG", 5456))
WIDTH = sum(width for _, width in BLOCKS)
MARGIN = FACE_SIZE // 2


@dataclass(frozen=True, kw_only=True)
class FaceSet:
    """Descriptors (n_rows, 9552) of faces: `blocks` names the columns, and `names` the file behind each row.

    First come the originals in the order found, then the copies, those of the first original first. `originals`
    (n_rows,) is the row of the original that a row was made from, for originals their own: folds are made of originals
    and their copies go with them. `labels` (n_rows,) are as found; `notes` say what was decided, one line each.
    """

    descriptors: NDArray[numpy.float32]
    labels: NDArray[Any]
    names: tuple[str, ...]
    originals: NDArray[numpy.intp]
    blocks: tuple[tuple[str, int], ...] = BLOCKS
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.descriptors)


def describe_faces(
    folder: str | Path,
    *,
    align: bool = False,
    missing: Missing = "whole",
    augmentation: Augmentation | None = None,
    target: str | None = None,
    seed: int = 0,
    on_image: Report | None = None,
) -> FaceSet:
    """Describe the pictures of a folder: one folder a class, or a labels.csv or meta.csv with a column `target`.

    `align` turns faces until the eyes are level; a picture without a face is used whole or left out, as `missing`
    says; copies are varied by `augmentation` from `seed` and the file's name alone; `on_image` hears the number of
    pictures done and of all.
    """
    if missing not in ("whole", "skip"):
        raise DataError(f"missing must be 'whole' or 'skip', found {missing!r}")
    place = Path(folder)
    files = find_labelled(place, target=target)
    names = [path.relative_to(place).as_posix() for path in files.paths]
    each = 1 + (0 if augmentation is None else augmentation.copies)
    check_size(f"{len(names)} pictures, {each} row(s) each,", len(names) * each * WIDTH * 4)
    descriptors = numpy.empty((len(names), each, WIDTH), dtype=numpy.float32)
    found = numpy.zeros(len(names), dtype=bool)
    cascades = load_cascades()
    for number, (path, name) in enumerate(zip(files.paths, names, strict=True)):
        faces, found[number] = read_faces(path, name, cascades, align=align, augmentation=augmentation, seed=seed)
        if found[number] or missing == "whole":
            descriptors[number] = describe(faces)
        if on_image is not None:
            on_image(number + 1, len(names))
    kept = found if missing == "skip" else numpy.ones(len(names), dtype=bool)
    if not kept.any():
        raise DataError(f"no face found in any of the {len(names)} pictures of {place}: nothing is left to describe")
    return assemble(descriptors, kept, files, names, notes=missing_notes(found, missing))


def read_faces(
    path: Path, name: str, cascades: Cascades, *, align: bool, augmentation: Augmentation | None, seed: int
) -> tuple[Images, bool]:
    """Give the face of a picture and its varied copies (1 + copies, size, size), and whether a face was found."""
    picture = read_grey(path)
    face = find_face(picture, cascades, align=align)
    wide = cut_face(picture, whole_picture(picture) if face is None else face, margin=MARGIN)
    original = wide[numpy.newaxis, MARGIN:-MARGIN, MARGIN:-MARGIN]
    if augmentation is None:
        return original, face is not None
    generator = array_generator(seed, "augmentation", name)
    copies = augment(wide, augmentation, generator=generator, margin=MARGIN)
    return numpy.concatenate([original, copies]), face is not None


def describe(images: Images) -> NDArray[numpy.float32]:
    """Describe grey images (n, height, width) by LPQ and PHOG side by side (n, 9552)."""
    return numpy.concatenate([local_phase_histograms(images), oriented_gradients(images)], axis=1)


def assemble(
    descriptors: NDArray[numpy.float32],
    kept: NDArray[numpy.bool_],
    files: LabelledFiles,
    names: list[str],
    *,
    notes: tuple[str, ...],
) -> FaceSet:
    """Put the rows (n_pictures, 1 + copies, n_columns) of the pictures kept in order: originals, then copies."""
    rows = descriptors if kept.all() else descriptors[kept]
    n_kept, each, width = rows.shape
    own = numpy.arange(n_kept)
    originals = numpy.concatenate([own, numpy.repeat(own, each - 1)])
    pictures = numpy.flatnonzero(kept)[originals]
    ordered = numpy.concatenate([rows[:, 0], rows[:, 1:].reshape(-1, width)]) if each > 1 else rows[:, 0]
    return FaceSet(
        descriptors=ordered,
        labels=files.labels[pictures],
        names=tuple(names[picture] for picture in pictures),
        originals=originals,
        notes=(*files.notes, *notes),
    )


def missing_notes(found: NDArray[numpy.bool_], missing: Missing) -> tuple[str, ...]:
    """Say in how many pictures no face was found, and what became of them."""
    absent = int((~found).sum())
    fate = "the whole image is used" if missing == "whole" else "left out"
    return (f"no face found in {absent} of {len(found)} images: {fate}",) if absent else ()
