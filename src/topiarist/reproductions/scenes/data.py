"""The samples of the scenes: recordings described as log-mel spectrograms, or synthesised ones, and their mixtures.

Block mixing is on the waveform, as published (Ooi, Peksi and Gan, 2020, section 2.2): pieces of sound are joined, and
the result is described. Each set of mixtures that the studies train on is made once and kept in a file.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy

from topiarist.data import Source
from topiarist.data.block_mixing import (
    BlockMixing,
    MixtureDraw,
    draw_for,
    mixture_key,
    open_mixtures,
    parts_to_mix,
    write_mixtures,
)
from topiarist.data.readers.sound import Wave, Waves, WavesInMemory, WavesOfFiles
from topiarist.data.source import Rows
from topiarist.features.log_mel import FLOOR, LogMel, log_mel
from topiarist.features.sound_labels import find_sounds
from topiarist.features.sounds import describe_sounds, open_clips
from topiarist.reproductions.scenes.stand_in import CITIES, SCENES, scene_waves
from topiarist.reproductions.scenes.study import ScenesStudies, sound_name
from topiarist.study.declaration import Cell
from topiarist.study.samples import StudySamples, source_key

OnClip = Callable[[int, int], None]
STAND_IN_CLIPS, STAND_IN_SECONDS, STAND_IN_RATE = 360, 2.0, 16_000
TEST_CITIES = CITIES[-4:]  # a third of the clips, as in the challenge about 30 %
PAPER_RATE, PAPER_SECONDS = 48_000, 10  # the paper, section 2
FORM = "mixtures 1"  # of files of mixtures: another where the same settings give other numbers


@dataclass(frozen=True)
class Scenes:
    """Samples by the name of their description, whether they stand in for recordings, and the waveforms of the first.

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


@dataclass(frozen=True, kw_only=True)
class MixtureExample:
    """A mixture to look at: its waveform and spectrogram, where pieces begin, and what they are pieces of."""

    wave: Wave
    spectrogram: Wave
    rate: int
    seams: tuple[int, ...]
    label: str
    clips: int
    groups: int | None

    def __str__(self) -> str:
        places = "" if self.groups is None else f" from {self.groups} cities or folds"
        return f"{len(self.seams) + 1} pieces of {self.clips} clips{places}, of the class {self.label}."


def with_wave_mixtures(scenes: Scenes, plan: ScenesStudies, folder: Path, *, on_clip: OnClip | None = None) -> Scenes:
    """Return the scenes with a file for every set of mixtures of waveforms that the plan needs, made where missing."""
    name, sound = sound_name(plan.scope.sound), plan.scope.sound
    source, content = scenes.sources[name], _content_of(scenes.sources[name], sound, scenes.waves)
    files: dict[str, Path] = {}
    for cell, mixing in _mixed_cells(plan):
        drawn, rows = _drawing_of(scenes, cell, mixing)
        key = mixture_key(mixing, rows, clips=len(source), seed=cell.settings.data.seed)
        if key not in files:
            files[key] = folder / f"{key}-{content}.safetensors"
            if open_mixtures(files[key]) is None:
                features = describe_mixtures(scenes.waves, rows, drawn, sound, on_clip=on_clip)
                write_mixtures(files[key], features, drawn.samples)
    return replace(scenes, sources={**scenes.sources, name: replace(source, mixtures=files)})


def _mixed_cells(plan: ScenesStudies) -> Iterator[tuple[Cell, BlockMixing]]:
    """Yield one cell of each fold and each way of mixing waveforms."""
    seen = set()
    for cell in (cell for study in plan.studies.values() for cell in study.cells):
        mixing = cell.settings.data.mixing
        if mixing is not None and mixing.on == "waveform" and (mixing, cell.fold) not in seen:
            seen.add((mixing, cell.fold))
            yield cell, mixing


def _drawing_of(scenes: Scenes, cell: Cell, mixing: BlockMixing) -> tuple[MixtureDraw, Rows]:
    """Return what the mixtures of a cell are made of, and the clips of its training samples."""
    data = cell.settings.data.model_copy(update={"mixing": None})
    plain = replace(cell, settings=cell.settings.model_copy(update={"data": data}))
    unmixed = StudySamples({source_key(data): scenes.sources[data.location]}).of(plain)
    drawn = draw_for(unmixed, mixing, length=scenes.waves.length, seed=data.seed)
    return drawn, parts_to_mix(unmixed)[2].train


def _content_of(source: Source, sound: LogMel, waves: Waves) -> str:
    """Name the clips by what they sound like, and the form in which they are described."""
    form = json.dumps([FORM, FLOOR, sound.bands, sound.window, waves.rate, waves.length])
    features = numpy.ascontiguousarray(source.features, dtype=numpy.float32)
    return hashlib.sha256(form.encode() + hashlib.sha256(features.tobytes()).digest()).hexdigest()[:16]


def example_of(scenes: Scenes, plan: ScenesStudies) -> MixtureExample | None:
    """Return the first mixture that networks are trained on; None where no waveforms are mixed."""
    for cell, mixing in _mixed_cells(plan):
        drawn, rows = _drawing_of(scenes, cell, mixing)
        source, clips = scenes.sources[cell.settings.data.location], rows[drawn.samples[0]]
        first = replace(drawn, samples=drawn.samples[:1], starts=drawn.starts[:1])
        assert source.labels is not None
        return MixtureExample(
            wave=mixed_wave(scenes.waves, rows, drawn, 0),
            spectrogram=describe_mixtures(scenes.waves, rows, first, plan.scope.sound)[0, 0],
            rate=scenes.waves.rate,
            seams=tuple(numpy.cumsum(drawn.lengths)[:-1].tolist()),
            label=str(source.labels[clips[0]]),
            clips=len(set(clips.tolist())),
            groups=None if source.groups is None else len(set(source.groups[clips].tolist())),
        )
    return None


def mixed_wave(waves: Waves, rows: Rows, drawn: MixtureDraw, number: int) -> Wave:
    """Return a mixture as a waveform (length,); sample k of the drawing is clip `rows[k]`."""
    pieces = zip(rows[drawn.samples[number]].tolist(), drawn.starts[number].tolist(), drawn.lengths, strict=True)
    return numpy.concatenate([waves.stretch(clip, start, int(length)) for clip, start, length in pieces])


def describe_mixtures(
    waves: Waves, rows: Rows, drawn: MixtureDraw, settings: LogMel, *, on_clip: OnClip | None = None
) -> Wave:
    """Describe all mixtures (n_mixtures, 1, bands, frames), one after the other: their waveforms are not held."""
    count = len(drawn.samples)
    features = numpy.empty((count, 1, settings.bands, settings.frames(waves.length)), dtype=numpy.float32)
    for number in range(count):
        features[number, 0] = log_mel(mixed_wave(waves, rows, drawn, number), waves.rate, settings)
        if on_clip is not None:
            on_clip(number + 1, count)
    return features
