"""Block mixing on the wave form, as published: pieces of sound are joined, and the result is described.

Ooi, Peksi and Gan, Ensemble of pruned low-complexity models for acoustic scene classification (2020), section 2.2.
"""

from collections.abc import Callable

import numpy

from topiarist.data.block_mixing import MixtureDraw
from topiarist.data.readers.sound import Wave, Waves
from topiarist.data.source import Rows
from topiarist.features.log_mel import LogMel, log_mel

Report = Callable[[int, int], None]


def mixed_wave(waves: Waves, rows: Rows, drawn: MixtureDraw, number: int) -> Wave:
    """Return a mixture as a wave form (length,); sample k of the drawing is clip `rows[k]`."""
    pieces = zip(rows[drawn.samples[number]].tolist(), drawn.starts[number].tolist(), drawn.lengths, strict=True)
    return numpy.concatenate([waves.stretch(clip, start, int(length)) for clip, start, length in pieces])


def describe_mixtures(
    waves: Waves, rows: Rows, drawn: MixtureDraw, settings: LogMel, *, on_clip: Report | None = None
) -> Wave:
    """Describe all mixtures (n_mixtures, 1, bands, frames), one after the other: their wave forms are not held."""
    count = len(drawn.samples)
    features = numpy.empty((count, 1, settings.bands, settings.frames(waves.length)), dtype=numpy.float32)
    for number in range(count):
        features[number, 0] = log_mel(mixed_wave(waves, rows, drawn, number), waves.rate, settings)
        if on_clip is not None:
            on_clip(number + 1, count)
    return features
