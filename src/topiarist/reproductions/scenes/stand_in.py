"""Synthesised acoustic scenes, for where no recordings may be passed on: they stand in for them and prove nothing.

They have the form of the challenge behind the scenes paper: ten fine classes in three coarse ones, from twelve cities.
A scene is coloured noise, voices (noise that comes and goes), a hum that may glide, and short sounds such as steps,
rattle, birds and signals. A city has a colour and a level of its own, in every class, so that what was learned in some
cities is not all true in others; a clip varies in the same manner, which is what makes the classes overlap. No number
here was taken from a recording: only comparisons under equal terms mean anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy
from numpy.typing import NDArray
from scipy import fft

from topiarist.errors import DataError
from topiarist.randomness import array_generator

Array = NDArray[numpy.floating]

CITIES = (
    *("amsterdam", "barcelona", "helsinki", "lisbon", "london", "lyon"),
    *("madrid", "milan", "paris", "prague", "stockholm", "vienna"),
)
NODES = 9  # of a curve over frequency, evenly spaced in octaves from LOWEST to half the sample rate
LOWEST = 25.0
# With these spreads, logistic regression tells 75 to 93 % of the clips of new cities apart (test_stand_in.py).
CITY_DECIBELS = 3.2  # standard deviation, of the colour at a node and of the level
CLIP_DECIBELS = 2.6
PART_DECIBELS = 3.0  # of the level of voices, hum and short sounds, from clip to clip
LOUDNESS = 0.03  # root mean square of white noise at 0 decibels
VOICE, VOICE_SWING, VOICE_RATE = 700.0, 8.0, 4.0  # hertz, decibels and syllables per second
HARMONICS = 5
STEP = 32  # samples between two amplitudes of what comes and goes
CURVE_STEPS = 512  # of a curve over frequency, of about a sixtieth of an octave


@dataclass(frozen=True, kw_only=True)
class Sounds:
    """Short sounds: how many per second and how loud, how long, from which frequencies, and how far each one glides."""

    rate: float
    decibels: float
    seconds: float
    hertz: tuple[float, float]
    octaves: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a fine class sounds like.

    The noise changes by `slope` decibels per octave, with a `bump` (hertz, decibels) two octaves wide on it, and comes
    and goes by `swing` decibels; `hum` is (lowest hertz, highest hertz, decibels), `glide` its octaves per second.
    """

    coarse: str
    slope: float
    bump: tuple[float, float]
    voices: float
    swing: float = 0.0
    hum: tuple[float, float, float] | None = None
    glide: float = 0.0
    sounds: tuple[Sounds, ...] = ()


STEPS = Sounds(rate=2.5, decibels=2, seconds=0.06, hertz=(90, 260))
SIGNAL = Sounds(rate=0.4, decibels=0, seconds=0.35, hertz=(700, 1300))
BIRDS = Sounds(rate=3.0, decibels=0, seconds=0.12, hertz=(2800, 6000), octaves=0.4)
RATTLE = Sounds(rate=5.0, decibels=3, seconds=0.04, hertz=(400, 1800))
SCREECH = Sounds(rate=0.4, decibels=-2, seconds=0.6, hertz=(1800, 3200), octaves=-0.2)

SCENES = {
    "airport": Scene(coarse="indoor", slope=-4.6, bump=(250, 4), voices=-7, sounds=(STEPS, SIGNAL)),
    "shopping_mall": Scene(coarse="indoor", slope=-4.4, bump=(350, 5), voices=-3, sounds=(STEPS, SIGNAL)),
    "metro_station": Scene(coarse="indoor", slope=-5.2, bump=(110, 6), voices=-6, sounds=(STEPS, SCREECH)),
    "park": Scene(coarse="outdoor", slope=-2.4, bump=(4000, 3), voices=-14, sounds=(BIRDS,)),
    "public_square": Scene(coarse="outdoor", slope=-2.8, bump=(1000, 3), voices=-4, sounds=(STEPS, BIRDS)),
    "street_pedestrian": Scene(coarse="outdoor", slope=-3.0, bump=(700, 4), voices=-3, sounds=(STEPS,)),
    "street_traffic": Scene(coarse="outdoor", slope=-3.8, bump=(1200, 7), voices=-14, swing=6, hum=(60, 110, -6)),
    "bus": Scene(coarse="transportation", slope=-6.2, bump=(70, 6), voices=-8, hum=(30, 55, 2), sounds=(SIGNAL,)),
    "metro": Scene(
        coarse="transportation", slope=-5.8, bump=(220, 7), voices=-9, hum=(250, 600, -3), glide=0.1, sounds=(RATTLE,)
    ),
    "tram": Scene(
        coarse="transportation",
        slope=-6.0,
        bump=(140, 6),
        voices=-8,
        hum=(120, 260, -2),
        glide=0.05,
        sounds=(RATTLE, SIGNAL),
    ),
}


class SyntheticClips(NamedTuple):
    """Wave forms (n_clips, length) with the coarse class, the fine class and the city of each."""

    waves: NDArray[numpy.float32]
    labels: NDArray[numpy.str_]
    finer: NDArray[numpy.str_]
    cities: NDArray[numpy.str_]


def scene_waves(*, clips: int | Sequence[int], seconds: float, rate: int, seed: int) -> SyntheticClips:
    """Synthesise the first so many clips, or those of the numbers given; each follows from the seed and its number.

    Every class comes once before any comes again, and every city once in a class: 120 clips hold each pair once.
    """
    numbers = range(clips) if isinstance(clips, int) else clips
    length = round(seconds * rate)
    if not len(numbers) or min(numbers) < 0:
        raise DataError(f"clips are one or more, numbered from 0; asked for {clips}")
    if rate < 1000 or length < rate // 10:
        raise DataError(f"a clip needs 0.1 seconds or more at 1000 hertz or more; asked for {seconds} s at {rate} Hz")
    names = list(SCENES)
    finer = [names[number % len(names)] for number in numbers]
    cities = [CITIES[number // len(names) % len(CITIES)] for number in numbers]
    waves = numpy.empty((len(numbers), length), dtype=numpy.float32)
    for wave, number, name, city in zip(waves, numbers, finer, cities, strict=True):
        wave[:] = _one_wave(SCENES[name], city, number, length=length, rate=rate, seed=seed)
    labels = [SCENES[name].coarse for name in finer]
    return SyntheticClips(waves, numpy.array(labels), numpy.array(finer), numpy.array(cities))


def _one_wave(scene: Scene, city: str, number: int, *, length: int, rate: int, seed: int) -> Array:
    random, local = array_generator(seed, "scene", number), array_generator(seed, "city", city)
    colour = local.normal(scale=CITY_DECIBELS, size=NODES) + random.normal(scale=CLIP_DECIBELS, size=NODES)
    level = local.normal(scale=CITY_DECIBELS) + random.normal(scale=CLIP_DECIBELS)
    octaves = numpy.linspace(0, numpy.log2(rate / 2 / LOWEST), NODES)
    hertz, height = scene.bump
    noise = scene.slope * (octaves - numpy.log2(VOICE / LOWEST)) + height * numpy.exp(
        -((octaves - numpy.log2(hertz / LOWEST)) ** 2)
    )
    talk = _varied(scene.voices, random) - 6 * abs(octaves - numpy.log2(VOICE / LOWEST))
    wave, voices = coloured(numpy.stack([noise, talk]) + colour, length, rate, random)
    wave *= _swinging(scene.swing, 0.5, length, rate, random)
    wave += voices * _swinging(VOICE_SWING, VOICE_RATE, length, rate, random)
    if scene.hum is not None:
        low, high, loudness = scene.hum
        start, glide = low * (high / low) ** random.random(), random.normal(scale=scene.glide)
        wave += _gain(_varied(loudness, random)) * humming(start, glide, length, rate, random)
    for sounds in scene.sounds:
        add_sounds(wave, sounds, rate, random)
    clip: Array = (LOUDNESS * _gain(level) * wave).clip(-1, 1)
    return clip


def _gain(decibels: float) -> float:
    return float(10 ** (decibels / 20))


def _varied(decibels: float, random: numpy.random.Generator) -> float:
    return decibels + random.normal(scale=PART_DECIBELS)


@lru_cache(maxsize=4)
def _spectrum_places(length: int, rate: int) -> NDArray[numpy.intp]:
    """Return the step of a finely stepped curve for each bin of a spectrum; cached, so read only."""
    octaves = numpy.log2(numpy.maximum(fft.rfftfreq(length, 1 / rate), LOWEST) / LOWEST)
    places: NDArray[numpy.intp] = (octaves / octaves[-1] * (CURVE_STEPS - 1)).round().astype(numpy.intp)
    return places


def coloured(decibels: Array, length: int, rate: int, random: numpy.random.Generator) -> Array:
    """Return two noises (2, length) of the power that curves (2, n_nodes) say; 0 decibels everywhere: a variance of 1.

    The second takes the random numbers of the first from the other end of the spectrum.
    """
    steps, nodes = numpy.linspace(0, 1, CURVE_STEPS), numpy.linspace(0, 1, NODES)
    curves = numpy.stack([numpy.interp(steps, nodes, curve) for curve in decibels])
    amplitudes = (10 ** (curves / 20) / 2**0.5).astype(numpy.float32)
    drawn = random.standard_normal((length // 2 + 1, 2), dtype=numpy.float32).view(numpy.complex64)[:, 0]
    spectra = numpy.take(amplitudes, _spectrum_places(length, rate), axis=1) * numpy.stack([drawn, drawn[::-1]])
    noises: Array = fft.irfft(spectra, n=length, norm="ortho")
    return noises


def _swinging(decibels: float, hertz: float, length: int, rate: int, random: numpy.random.Generator) -> Array | float:
    """Return amplitudes (length,) that come and go so often per second, by a standard deviation of so many decibels."""
    if not decibels:
        return 1.0
    nodes, steps = 2 + int(2 * hertz * length / rate), -(-length // STEP)
    levels = 10 ** (random.normal(scale=decibels, size=nodes) / 20)
    stepped = numpy.interp(numpy.linspace(0, nodes - 1, steps), numpy.arange(nodes), levels)
    return numpy.repeat(stepped.astype(numpy.float32), STEP)[:length]


def humming(start: float, glide: float, length: int, rate: int, random: numpy.random.Generator) -> Array:
    """Return a tone (length,) with harmonics that fall off, its frequency gliding so many octaves per second."""
    seconds = numpy.arange(length) / rate
    turns = start * seconds * (1 + glide * numpy.log(2) / 2 * seconds) + random.random()
    weights = numpy.array([0, *(1 / numpy.arange(1, HARMONICS + 1))], dtype=numpy.float32)
    wave: Array = numpy.polynomial.chebyshev.chebval(_cosine(turns), weights)  # T_k(cos φ) = cos kφ
    return wave


def _cosine(turns: Array) -> Array:
    """Return the cosine of whole turns, in single precision after the whole ones are left out."""
    return numpy.cos(((turns - numpy.floor(turns)) * (2 * numpy.pi)).astype(numpy.float32))


def add_sounds(wave: Array, sounds: Sounds, rate: int, random: numpy.random.Generator) -> None:
    """Add short sounds that begin at random moments; those near the end are cut off."""
    count, length = random.poisson(sounds.rate * len(wave) / rate), round(sounds.seconds * rate)
    starts = random.integers(0, len(wave), size=count)
    low, high = numpy.log(numpy.minimum(sounds.hertz, 0.3 * rate))
    hertz = numpy.exp(random.uniform(low, high, size=(count, 1)))
    seconds = numpy.arange(length) / rate
    turns = hertz * seconds * (1 + sounds.octaves * numpy.log(2) / 2 * seconds / sounds.seconds)
    loudness = 10 ** (random.normal(sounds.decibels, PART_DECIBELS, size=(count, 1)) / 20)
    tones = loudness * _cosine(turns + random.random((count, 1))) * numpy.exp(-4 * seconds / sounds.seconds)
    padded = numpy.zeros(len(wave) + length, dtype=numpy.float32)
    numpy.add.at(padded, starts[:, None] + numpy.arange(length), tones.astype(numpy.float32))
    wave += padded[: len(wave)]
