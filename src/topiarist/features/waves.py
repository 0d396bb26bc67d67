"""The wave forms of clips, of which any stretch can be had: from memory, or from files without holding all of them."""

from dataclasses import dataclass, field
from typing import Protocol

import numpy
from numpy.typing import NDArray

from topiarist.features.sound_files import Clips, read_clip, read_stretch

BYTES_HELD = 2**30  # of decoded clips; with more, each stretch is read from its file
BYTES_PER_VALUE = 4

Wave = NDArray[numpy.float32]


class Waves(Protocol):
    """Clips of one sample rate and one length in samples."""

    @property
    def rate(self) -> int:
        """Return the sample rate of all clips."""

    @property
    def length(self) -> int:
        """Return the samples of each clip."""

    def stretch(self, clip: int, start: int, length: int) -> Wave:
        """Return `length` samples of a clip from `start` on."""


@dataclass(frozen=True)
class WavesInMemory:
    """Wave forms (n_clips, length) as they are."""

    waves: Wave
    rate: int

    @property
    def length(self) -> int:
        """Return the samples of each clip."""
        return int(self.waves.shape[1])

    def stretch(self, clip: int, start: int, length: int) -> Wave:
        """Return a view of the clip."""
        return self.waves[clip, start : start + length]


@dataclass(frozen=True)
class WavesOfFiles:
    """Wave forms decoded when they are needed; where all of them are small, each file is decoded once."""

    clips: Clips
    held: dict[int, Wave] = field(default_factory=dict, compare=False, repr=False)

    @property
    def rate(self) -> int:
        """Return the sample rate that clips are brought to."""
        return self.clips.rate

    @property
    def length(self) -> int:
        """Return the samples that clips are brought to."""
        return self.clips.length

    def stretch(self, clip: int, start: int, length: int) -> Wave:
        """Return a part of a clip, as `read_clip` has it."""
        if len(self.clips.paths) * self.length * BYTES_PER_VALUE > BYTES_HELD:
            return read_stretch(self.clips, clip, start, length)
        if clip not in self.held:
            self.held[clip] = read_clip(self.clips, clip)
        return self.held[clip][start : start + length]
