"""Makes the mixtures of wave forms that the studies of the scenes train on, each set once and kept in a file."""

import hashlib
import json
from collections.abc import Iterator
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
from topiarist.data.readers.sound import Wave
from topiarist.data.source import Rows
from topiarist.features.log_mel import FLOOR, LogMel
from topiarist.reproductions.scenes.data import OnClip, Scenes
from topiarist.reproductions.scenes.scope import sound_name
from topiarist.reproductions.scenes.study import Plan
from topiarist.reproductions.scenes.wave_mixing import describe_mixtures, mixed_wave
from topiarist.study.declaration import Cell
from topiarist.reproductions.surgeon.runs import Samples
from topiarist.study.samples import source_key

FORM = "mixtures 1"  # another where the same settings give other numbers


@dataclass(frozen=True, kw_only=True)
class Example:
    """A mixture to look at: its wave form and spectrogram, where pieces begin, and what they are pieces of."""

    wave: Wave
    spectrogram: Wave
    rate: int
    seams: tuple[int, ...]
    label: str
    clips: int
    groups: int | None


def with_wave_mixtures(scenes: Scenes, plan: Plan, folder: Path, *, on_clip: OnClip | None = None) -> Scenes:
    """Return the scenes with a file for every set of mixtures of wave forms that the plan needs, made where missing."""
    name = sound_name(plan.scope.sound)
    source, sound = scenes.sources[name], plan.scope.sound
    content = content_of(source, sound, rate=scenes.waves.rate, length=scenes.waves.length)
    files: dict[str, Path] = {}
    for cell, mixing in mixed_cells(plan):
        drawn, rows = drawing_of(scenes, cell, mixing)
        seed = cell.settings.data.seed
        key = mixture_key(mixing, rows, clips=len(source), seed=seed)
        if key in files:
            continue
        files[key] = folder / f"{key}-{content}.safetensors"
        if open_mixtures(files[key]) is None:
            features = describe_mixtures(scenes.waves, rows, drawn, sound, on_clip=on_clip)
            write_mixtures(files[key], features, drawn.samples)
    return replace(scenes, sources={**scenes.sources, name: replace(source, mixtures=files)})


def mixed_cells(plan: Plan) -> Iterator[tuple[Cell, BlockMixing]]:
    """Yield one cell of each fold and each way of mixing wave forms."""
    seen = set()
    for study in plan.studies.values():
        for cell in study.cells:
            mixing = cell.settings.data.mixing
            if mixing is not None and mixing.on == "waveform" and (mixing, cell.fold) not in seen:
                seen.add((mixing, cell.fold))
                yield cell, mixing


def drawing_of(scenes: Scenes, cell: Cell, mixing: BlockMixing) -> tuple[MixtureDraw, Rows]:
    """Return what the mixtures of a cell are made of, and the clips of its training samples."""
    data = cell.settings.data.model_copy(update={"mixing": None})
    plain = replace(cell, settings=cell.settings.model_copy(update={"data": data}))
    unmixed = Samples({source_key(data): scenes.sources[data.location]}).of(plain)
    drawn = draw_for(unmixed, mixing, length=scenes.waves.length, seed=data.seed)
    return drawn, parts_to_mix(unmixed)[2].train


def example_of(scenes: Scenes, plan: Plan) -> Example | None:
    """Return the first mixture that networks are trained on; None where no wave forms are mixed."""
    cell, mixing = next(mixed_cells(plan), (None, None))
    if cell is None or mixing is None:
        return None
    drawn, rows = drawing_of(scenes, cell, mixing)
    source = scenes.sources[cell.settings.data.location]
    clips = rows[drawn.samples[0]]
    wave = mixed_wave(scenes.waves, rows, drawn, 0)
    first = replace(drawn, samples=drawn.samples[:1], starts=drawn.starts[:1])
    assert source.labels is not None
    return Example(
        wave=wave,
        spectrogram=describe_mixtures(scenes.waves, rows, first, plan.scope.sound)[0, 0],
        rate=scenes.waves.rate,
        seams=tuple(numpy.cumsum(drawn.lengths)[:-1].tolist()),
        label=str(source.labels[clips[0]]),
        clips=len(set(clips.tolist())),
        groups=None if source.groups is None else len(set(source.groups[clips].tolist())),
    )


def content_of(source: Source, sound: LogMel, *, rate: int, length: int) -> str:
    """Name the clips by what they sound like, and the form in which they are described."""
    form = json.dumps([FORM, FLOOR, sound.bands, sound.window, rate, length])
    features = numpy.ascontiguousarray(source.features, dtype=numpy.float32)
    return hashlib.sha256(form.encode() + hashlib.sha256(features.tobytes()).digest()).hexdigest()[:16]
