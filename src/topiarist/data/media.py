"""Files of pictures or of sound, told apart by their endings."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from topiarist.data.images import IMAGE_ENDINGS, read_images
from topiarist.data.sound import SOUND_ENDINGS, read_sounds
from topiarist.data.source import Scaling
from topiarist.errors import DataError

MEDIA_ENDINGS = (*IMAGE_ENDINGS, *SOUND_ENDINGS)


@dataclass(frozen=True, kw_only=True)
class Media:
    """Decoded samples and what suits them."""

    features: NDArray[Any]
    scaling: Scaling
    notes: tuple[str, ...]


def is_media(path: Path) -> bool:
    """Tell whether a file has the ending of a picture or of sound; hidden files are none."""
    return path.suffix.lower() in MEDIA_ENDINGS and not path.name.startswith(".")


def read_media(place: Path, paths: Sequence[Path]) -> Media:
    """Decode all files, which must be of one kind."""
    pictures = sum(path.suffix.lower() in IMAGE_ENDINGS for path in paths)
    if 0 < pictures < len(paths):
        raise DataError(f"{place} mixes {pictures} pictures with {len(paths) - pictures} sounds; give one kind")
    if pictures:
        images, notes = read_images(paths)
        return Media(features=images, scaling="pixels", notes=notes)
    waves, notes = read_sounds(paths)
    return Media(features=waves, scaling="none", notes=notes)
