"""The samples of the faces: a spreadsheet of descriptors, a folder of images, or a stand-in."""

import io
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy

from topiarist.data import Source
from topiarist.errors import DataError
from topiarist.files import write_atomically
from topiarist.reproductions.faces import paper
from topiarist.reproductions.faces.features.augmentation import Augmentation
from topiarist.reproductions.faces.features.describing import FaceSet, describe_faces
from topiarist.reproductions.faces.spreadsheet import read_expressions
from topiarist.reproductions.faces.stand_in import face_stand_in

COMPONENTS = 5
FEATURES = "features.npz"
Form = Literal["stand-in", "spreadsheet", "folder of images"]
OnImage = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Pictures:
    """What is done with pictures before they are described."""

    align: bool = False
    missing: Literal["whole", "skip"] = "whole"
    copies: int = 0


@dataclass(frozen=True)
class Faces:
    """Samples, the projection that they need, and the form in which they came."""

    source: Source
    projection: tuple[tuple[int, int], ...] | None
    form: Form

    @property
    def stand_in(self) -> bool:
        """Whether the samples are made up."""
        return self.form == "stand-in"

    @property
    def class_sizes(self) -> dict[str, int]:
        """How many samples each class has."""
        names, counts = numpy.unique(numpy.asarray(self.source.labels).astype(str), return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    @property
    def papers_data(self) -> bool:
        """Whether these are the paper's data: the spreadsheet of descriptors, with its classes and their sizes."""
        return self.form == "spreadsheet" and self.class_sizes == paper.CLASS_SIZES

    @property
    def record(self) -> dict[str, Any]:
        """What the samples are, and what follows from it for the paper's numbers."""
        wanted = f"the spreadsheet of descriptors with {sum(paper.CLASS_SIZES.values())} usable samples in 7 classes"
        found = f"{self.form} with {len(self.source)} samples in {len(self.class_sizes)} classes"
        return {
            "name": self.source.name,
            "form": self.form,
            "samples": len(self.source),
            "class_sizes": self.class_sizes,
            "papers_data": self.papers_data,
            "why": f"the paper's data are {wanted}, 75 of disgust, 99 of fear, 100 of each other; found: {found}",
        }


def read_faces(
    location: Path | None,
    out: Path,
    *,
    target: str | None,
    pictures: Pictures,
    seed: int,
    on_image: OnImage | None = None,
) -> Faces:
    """Read what the user points at; descriptors of pictures are kept in the folder `out`."""
    if location is None:
        return Faces(face_stand_in(), None, form="stand-in")
    if not location.exists():
        raise DataError(f"there is no file or folder {location}")
    if location.is_dir():
        return described(location, out / FEATURES, target=target, pictures=pictures, seed=seed, on_image=on_image)
    if location.suffix.lower() != ".xlsx":
        raise DataError(f"the faces are a folder of pictures or an .xlsx file of descriptors; found {location.name}")
    return Faces(read_expressions(location), None, form="spreadsheet")


def described(
    folder: Path, kept: Path, *, target: str | None, pictures: Pictures, seed: int, on_image: OnImage | None
) -> Faces:
    """Describe the pictures of a folder, and keep the descriptors for whoever wants to train on them."""
    found = describe_faces(
        folder,
        align=pictures.align,
        missing=pictures.missing,
        augmentation=Augmentation(copies=pictures.copies) if pictures.copies else None,
        target=target,
        seed=seed,
        on_image=on_image,
    )
    content = io.BytesIO()
    numpy.savez(content, x=found.descriptors, y=found.labels.astype(str), original=found.originals)
    kept.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(kept, content.getvalue())
    return Faces(
        source_of(folder, found), tuple((width, COMPONENTS) for _, width in found.blocks), form="folder of images"
    )


def source_of(folder: Path, found: FaceSet) -> Source:
    """Give descriptors as samples."""
    return Source(
        name=folder.resolve().name,
        features=found.descriptors,
        labels=found.labels,
        originals=found.originals,
        scaling="unit",
        notes=found.notes,
    )
