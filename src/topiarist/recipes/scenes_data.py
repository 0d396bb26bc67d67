"""The samples of the scenes: a folder of recordings described as log-mel spectrograms, or synthesised ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy
from numpy.typing import NDArray

from topiarist.data import Source
from topiarist.features.log_mel import LogMel, log_mel
from topiarist.features.scene_stand_in import CITIES, scene_waves
from topiarist.features.sounds import describe_sounds

OnClip = Callable[[int, int], None]
STAND_IN_CLIPS, STAND_IN_SECONDS, STAND_IN_RATE = 360, 2.0, 16_000
TEST_CITIES = CITIES[-4:]  # a third of the clips, as in the challenge about 30 %


@dataclass(frozen=True)
class Scenes:
    """Samples by the name of their description, and whether they stand in for recordings."""

    sources: Mapping[str, Source]
    stand_in: bool

    @property
    def know_finer(self) -> bool:
        """Say whether the samples have finer classes."""
        return all(source.finer is not None for source in self.sources.values())


def read_scenes(
    location: Path | None,
    sounds: Mapping[str, LogMel],
    *,
    target: str | None = None,
    cache: Path | None = None,
    seed: int = 0,
    on_clip: OnClip | None = None,
) -> Scenes:
    """Read what the user points at, described in every way that is asked for; without it, scenes are synthesised."""
    if location is None:
        return Scenes(synthesised(sounds, seed), stand_in=True)
    sources = {}
    for name, sound in sounds.items():
        found = describe_sounds(location, sound, target=target, cache=cache, on_clip=on_clip)
        sources[name] = Source(
            name=name,
            features=found.features,
            labels=found.labels,
            finer=found.finer,
            groups=found.groups,
            parts=found.parts,
            notes=found.notes,
        )
    return Scenes(sources, stand_in=False)


def synthesised(sounds: Mapping[str, LogMel], seed: int) -> dict[str, Source]:
    """Give made-up scenes; those of some cities are the test part."""
    clips = scene_waves(clips=STAND_IN_CLIPS, seconds=STAND_IN_SECONDS, rate=STAND_IN_RATE, seed=seed)
    parts: NDArray[numpy.str_] = numpy.where(numpy.isin(clips.cities, TEST_CITIES), "test", "train")
    return {
        name: Source(
            name=name,
            features=log_mel(clips.waves[:, numpy.newaxis], STAND_IN_RATE, sound),
            labels=clips.labels,
            finer=clips.finer,
            groups=clips.cities,
            parts=parts,
        )
        for name, sound in sounds.items()
    }
