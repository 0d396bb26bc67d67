"""The samples of the faces: a spreadsheet of descriptors, a folder of images, or a stand-in."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy

from topiarist.data import Source
from topiarist.errors import DataError
from topiarist.files import write_atomically
from topiarist.reproductions.faces import paper
from topiarist.reproductions.faces.expressions import COMPONENTS, face_stand_in, read_expressions
from topiarist.reproductions.faces.features.augmentation import FaceAugmentation
from topiarist.reproductions.faces.features.describing import BLOCKS, OnImage, describe_faces
from topiarist.reproductions.faces.options import FaceImageOptions

FEATURES = "features.npz"


@dataclass(frozen=True)
class FaceSamples:
    """Samples, the projection that they need, and the form in which they came."""

    source: Source
    projection: tuple[tuple[int, int], ...] | None
    form: Literal["stand-in", "spreadsheet", "folder of images"]

    @property
    def stand_in(self) -> bool:
        """Whether the samples are synthetic."""
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
    def why(self) -> str:
        """What the paper's data are, and what these are: from that follows whether its numbers can be compared."""
        return (
            "the paper's data are the spreadsheet of descriptors with"
            f" {sum(paper.CLASS_SIZES.values())} usable samples in 7 classes, 75 of disgust, 99 of fear, 100 of each"
            f" other; found: {self.form} with {len(self.source)} samples in {len(self.class_sizes)} classes"
        )

    def to_json(self) -> dict[str, object]:
        """Return what the samples are, as plain values."""
        return {
            "name": self.source.name,
            "samples": len(self.source),
            **{name: getattr(self, name) for name in ("form", "class_sizes", "papers_data", "why")},
        }


def read_faces(
    location: Path | None,
    out: Path,
    *,
    target: str | None,
    images: FaceImageOptions,
    seed: int,
    on_image: OnImage | None = None,
) -> FaceSamples:
    """Read what the user points at; descriptors of images are kept in the folder `out`, to train on them again."""
    if location is None:
        return FaceSamples(face_stand_in(), None, "stand-in")
    if not location.exists():
        raise DataError(f"there is no file or folder {location}")
    if not location.is_dir():
        if location.suffix.lower() != ".xlsx":
            raise DataError(f"the faces are a folder of images or an .xlsx file of descriptors; found {location.name}")
        return FaceSamples(read_expressions(location), None, "spreadsheet")
    found = describe_faces(
        location,
        align=images.align,
        missing=images.missing,
        augmentation=FaceAugmentation(copies=images.copies) if images.copies else None,
        target=target,
        seed=seed,
        on_image=on_image,
    )
    content = io.BytesIO()
    numpy.savez(content, x=found.descriptors, y=found.labels.astype(str), original=found.originals)
    out.mkdir(parents=True, exist_ok=True)
    write_atomically(out / FEATURES, content.getvalue())
    source = Source(
        name=location.resolve().name,
        features=found.descriptors,
        labels=found.labels,
        originals=found.originals,
        scaling="unit",
        notes=found.notes,
    )
    return FaceSamples(source, tuple((width, COMPONENTS) for _, width in BLOCKS), "folder of images")
