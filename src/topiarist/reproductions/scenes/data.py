"""The samples of the scenes: a folder of recordings described as log-mel spectrograms, or synthesised ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy

from topiarist.data import Source
from topiarist.features.log_mel import LogMel, log_mel
from topiarist.features.sound_files import open_clips
from topiarist.features.sound_labels import find_sounds
from topiarist.features.sounds import describe_sounds
from topiarist.features.waves import Waves, WavesInMemory, WavesOfFiles
from topiarist.reproductions.scenes.stand_in import CITIES, SCENES, scene_waves

OnClip = Callable[[int, int], None]
STAND_IN_CLIPS, STAND_IN_SECONDS, STAND_IN_RATE = 360, 2.0, 16_000
TEST_CITIES = CITIES[-4:]  # a third of the clips, as in the challenge about 30 %
PAPER_RATE, PAPER_SECONDS = 48_000, 10  # the paper, section 2


@dataclass(frozen=True)
class Scenes:
    """Samples by the name of their description, whether they stand in for recordings, and the wave forms of the first.

    Clip k of `waves` is row k of every source.
    """

    sources: Mapping[str, Source]
    stand_in: bool
    waves: Waves

    @property
    def first(self) -> Source:
        """The samples that the ensembles see."""
        return next(iter(self.sources.values()))

    @property
    def like_the_paper(self) -> bool:
        """Whether the clips have the form of the paper's recordings: classes, parts, sample rate and length."""
        source = self.first
        form = self.waves.rate == PAPER_RATE and self.waves.length == PAPER_RATE * PAPER_SECONDS
        if self.stand_in or not form or source.labels is None or source.finer is None or source.parts is None:
            return False
        coarse = {scene.coarse for scene in SCENES.values()}
        return set(map(str, source.labels)) == coarse and set(map(str, source.finer)) == set(SCENES)


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
        return _synthesised(sounds, seed)
    sources = {}
    for name, sound in sounds.items():
        found = describe_sounds(location, sound, target=target, cache=cache, on_clip=on_clip)
        same = {field: getattr(found, field) for field in ("features", "labels", "finer", "groups", "parts", "notes")}
        sources[name] = Source(name=name, **same)
    paths = find_sounds(location, target=target, finer=None, group=None).paths
    return Scenes(sources, stand_in=False, waves=WavesOfFiles(open_clips(paths, next(iter(sounds.values())))))


def _synthesised(sounds: Mapping[str, LogMel], seed: int) -> Scenes:
    """Return synthesised scenes; those of some cities are the test part."""
    clips = scene_waves(clips=STAND_IN_CLIPS, seconds=STAND_IN_SECONDS, rate=STAND_IN_RATE, seed=seed)
    sources = {
        name: Source(
            name=name,
            features=log_mel(clips.waves[:, numpy.newaxis], STAND_IN_RATE, sound),
            labels=clips.labels,
            finer=clips.finer,
            groups=clips.cities,
            parts=numpy.where(numpy.isin(clips.cities, TEST_CITIES), "test", "train"),
        )
        for name, sound in sounds.items()
    }
    return Scenes(sources, stand_in=True, waves=WavesInMemory(clips.waves, STAND_IN_RATE))
