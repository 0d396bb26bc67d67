"""Synthesised scenes: reproducible clip by clip, made of what they say, neither trivial nor hopeless to tell apart."""

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy
import pytest
from numpy.typing import NDArray
from scipy import signal
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from topiarist.errors import DataError
from topiarist.randomness import array_generator
from topiarist.reproductions.scenes.stand_in import (
    BIRDS,
    CITIES,
    LOWEST,
    NODES,
    SCENES,
    STEPS,
    Sounds,
    SyntheticClips,
    add_sounds,
    coloured,
    humming,
    scene_waves,
)

RATE = 16_000


def log_spectra(clips: SyntheticClips, bands: int = 40) -> NDArray[Any]:
    """Return the mean logarithm of the power in bands, evenly spaced in octaves: (n_clips, n_bands)."""
    _, _, found = signal.stft(clips.waves, RATE, nperseg=1024, boundary=None, padded=False)
    power = abs(found) ** 2
    edges = numpy.unique(numpy.geomspace(2, power.shape[1], bands + 1).round().astype(int))
    banded = numpy.stack([power[:, low:high].mean(axis=1) for low, high in pairwise(edges)], axis=1)
    spectra: NDArray[Any] = numpy.log(banded).mean(axis=-1)
    return spectra


@pytest.fixture(scope="module")
def clips() -> SyntheticClips:
    return scene_waves(clips=360, seconds=1.0, rate=RATE, seed=11)


@pytest.mark.slow
def test_a_clip_follows_from_the_seed_and_its_number_alone(clips: SyntheticClips) -> None:
    some = scene_waves(clips=[245, 3, 120], seconds=1.0, rate=RATE, seed=11)
    for few, all_clips in zip(some, clips, strict=True):
        assert (few == all_clips[[245, 3, 120]]).all()
    other = scene_waves(clips=[3], seconds=1.0, rate=RATE, seed=12)
    assert other.finer[0] == some.finer[1] and other.cities[0] == some.cities[1]
    assert abs(numpy.corrcoef(other.waves[0], some.waves[1])[0, 1]) < 0.1


@pytest.mark.slow
def test_every_fine_class_comes_equally_often_from_every_city(clips: SyntheticClips) -> None:
    assert Counter(zip(clips.finer.tolist(), clips.cities.tolist(), strict=True)) == {
        (name, city): 3 for name in SCENES for city in CITIES
    }
    coarse = dict(zip(clips.finer.tolist(), clips.labels.tolist(), strict=True))
    assert coarse == {name: scene.coarse for name, scene in SCENES.items()}
    assert Counter(coarse.values()) == {"indoor": 3, "outdoor": 4, "transportation": 3}


@pytest.mark.slow
def test_waves_are_sound(clips: SyntheticClips) -> None:
    assert clips.waves.shape == (360, RATE) and clips.waves.dtype == numpy.float32
    assert numpy.isfinite(clips.waves).all() and abs(clips.waves).max() <= 1
    assert clips.waves.std(axis=1).min() > 0.003, "none is silent"
    assert (abs(clips.waves) == 1).mean() < 0.002, "hardly any is cut off"
    assert len({wave.tobytes() for wave in clips.waves}) == 360


@pytest.mark.slow
@pytest.mark.parametrize("seed", [11, 0])
def test_the_coarse_classes_are_told_apart_in_new_cities_but_not_always(seed: int, clips: SyntheticClips) -> None:
    found = clips if seed == 11 else scene_waves(clips=360, seconds=1.0, rate=RATE, seed=seed)
    judge = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500))
    guess = cross_val_predict(judge, log_spectra(found), found.labels, groups=found.cities, cv=GroupKFold(4))
    assert 0.75 < (guess == found.labels).mean() < 0.93
    fine = cross_val_predict(judge, log_spectra(found), found.finer, groups=found.cities, cv=GroupKFold(4))
    assert 0.3 < (fine == found.finer).mean() < 0.8, "ten classes are harder than three"


@pytest.mark.slow
def test_a_city_colours_all_its_classes(clips: SyntheticClips) -> None:
    spectra = log_spectra(clips)
    class_means = {name: spectra[clips.finer == name].mean(axis=0) for name in SCENES}
    rest = spectra - numpy.stack([class_means[str(name)] for name in clips.finer])
    even = numpy.arange(len(rest)) % 2 == 0  # five classes have even numbers, five odd ones

    def colours(half: NDArray[Any]) -> NDArray[Any]:
        return numpy.stack([rest[half & (clips.cities == city)].mean(axis=0) for city in CITIES])

    assert numpy.corrcoef(colours(even).ravel(), colours(~even).ravel())[0, 1] > 0.7


def test_noise_has_the_power_of_its_curve() -> None:
    octaves = numpy.linspace(0, numpy.log2(RATE / 2 / LOWEST), NODES)
    curves = numpy.stack([numpy.zeros(NODES), 6 - 3 * octaves])
    noise = coloured(curves, 20 * RATE, RATE, array_generator(0, "noise"))
    assert noise.shape == (2, 20 * RATE)
    assert abs(noise[0].var() - 1) < 0.02
    power = abs(numpy.fft.rfft(noise[1], norm="ortho")) ** 2
    hertz = numpy.fft.rfftfreq(20 * RATE, 1 / RATE)
    for centre in (100, 400, 1600, 6400):
        inside = (hertz > centre / 1.1) & (hertz < centre * 1.1)
        wanted = 6 - 3 * numpy.log2(centre / LOWEST)
        assert abs(10 * numpy.log10(power[inside].mean()) - wanted) < 1
    assert abs((noise[0] * noise[1]).mean()) < 0.02 * noise[1].std()


def test_a_hum_is_where_it_should_be_and_glides() -> None:
    wave = humming(200.0, 0.0, RATE, RATE, array_generator(0, "hum"))
    spectrum = abs(numpy.fft.rfft(wave)) * 2 / RATE
    assert set(numpy.flatnonzero(spectrum > 0.01).tolist()) == {200, 400, 600, 800, 1000}
    assert numpy.allclose(spectrum[[200, 400, 600, 800, 1000]], 1 / numpy.arange(1, 6), atol=1e-3)
    gliding = humming(200.0, 0.5, 2 * RATE, RATE, array_generator(0, "hum"))
    late = abs(numpy.fft.rfft(gliding[-RATE // 4 :], n=RATE)).argmax()
    assert abs(late - 200 * (1 + 0.5 * numpy.log(2) * 1.875)) < 4


@pytest.mark.slow
@pytest.mark.parametrize("sounds", [STEPS, BIRDS])
def test_short_sounds_come_as_often_and_as_high_as_said(sounds: Sounds) -> None:
    wave = numpy.zeros(200 * RATE, dtype=numpy.float32)
    add_sounds(wave, sounds, RATE, array_generator(0, "sounds"))
    power = abs(numpy.fft.rfft(wave)) ** 2
    hertz = numpy.fft.rfftfreq(len(wave), 1 / RATE)
    low, high = sounds.hertz
    top = min(high, 0.3 * RATE)
    inside = (hertz > low * 0.75) & (hertz < top * (1 + sounds.octaves) * 1.25)
    assert power[inside].sum() > 0.9 * power.sum()
    quiet = numpy.convolve(wave != 0, numpy.ones(5), mode="same") == 0
    stretches = int((numpy.diff(quiet.astype(int)) == -1).sum())
    expected = sounds.rate * 200 * numpy.exp(-sounds.rate * sounds.seconds)  # of a Poisson process, by gaps
    assert abs(stretches - expected) < 4 * expected**0.5


def test_what_makes_no_clip_is_refused_in_one_line() -> None:
    for clips in (0, [], [3, -1]):
        with pytest.raises(DataError, match="numbered from 0"):
            scene_waves(clips=clips, seconds=1.0, rate=RATE, seed=0)
    for seconds, rate in ((0.01, RATE), (1.0, 500)):
        with pytest.raises(DataError, match="seconds or more at 1000 hertz"):
            scene_waves(clips=1, seconds=seconds, rate=rate, seed=0)
