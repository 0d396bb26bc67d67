"""Figure 1: what is loud in the spectrogram is drawn at the time at which it is loud."""

import numpy
import pytest

from topiarist.reproductions.scenes.data import MixtureExample
from topiarist.reproductions.scenes.figures import LEVELS, envelope, mixture_figure, runs_of, shades


@pytest.mark.parametrize("frames", [40, 120, 214, 467])
@pytest.mark.parametrize("share", [0.25, 0.5, 0.8])
def test_a_spectrogram_is_drawn_in_time(frames: int, share: float) -> None:
    spectrogram = numpy.zeros((6, frames), dtype=numpy.float32)
    begin = round(share * frames)
    spectrogram[:, begin:] = 1 + numpy.arange(6)[:, None]
    loudest = numpy.asarray(shades(spectrogram, 10.0)[LEVELS - 2].get_path().vertices, dtype=float)
    column = 10.0 / min(120, frames)
    assert loudest[:, 0].min() == pytest.approx(10 * begin / frames, abs=column)
    assert loudest[:, 0].max() == pytest.approx(10.0)


def test_stretches_and_envelopes() -> None:
    assert runs_of(numpy.array([True, False, True, True])) == [(0, 1), (2, 4)]
    assert runs_of(numpy.zeros(3, dtype=bool)) == []
    wave = numpy.sin(numpy.linspace(0, 99, 5000)).astype(numpy.float32)
    low, high = envelope(wave)
    assert len(low) == len(high) == 600 and (low <= high).all()
    assert (low.min(), high.max()) == (wave.min(), wave.max())


@pytest.mark.slow
def test_every_seam_is_drawn_twice_and_the_pieces_are_said() -> None:
    random = numpy.random.default_rng(0)
    example = MixtureExample(
        wave=random.normal(size=4000).astype(numpy.float32),
        spectrogram=random.normal(size=(8, 30)).astype(numpy.float32),
        rate=1000,
        seams=(1000, 2000, 3000),
        label="tram",
        clips=4,
        groups=3,
    )
    assert str(example) == "4 pieces of 4 clips from 3 cities or folds, of the class tram."
    assert mixture_figure(example).count("stroke-dasharray") == 2 * 3
