"""Log-mel spectrograms: how loud a sound is at each time, in bands as wide as the ear's.

The power |STFT|² under a periodic Hann window, half of it shared by neighbours and nothing padded; triangular bands on
Slaney's mel scale from 0 Hz to half the sample rate, each of area 1; the natural logarithm, of 1e-10 for all below.
That is librosa's `melspectrogram` with `center=False`. Slaney, "Auditory toolbox", 1998.
"""

from functools import cache
from math import log
from typing import Any, Self

import numpy
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from topiarist.data.sound_form import SoundForm
from topiarist.errors import DataError
from topiarist.settings import Settings
from topiarist.threads import torch_threads

FLOOR = 1e-10
_SAMPLES_AT_ONCE = 2**17  # of all frames together: they and their spectra stay in the processor's cache
_GROUPS = 4
_LINEAR_HERTZ = 200 / 3  # a mel, up to the break
_BREAK_HERTZ = 1000.0
_BREAK_MEL = _BREAK_HERTZ / _LINEAR_HERTZ
_LOG_STEP = log(6.4) / 27  # a mel, beyond the break


class LogMel(Settings):
    """How sound is described; `rate` and `seconds` say what clips are brought to before that.

    None leaves the clips at their own sample rate, which must then be one for all, or brings them to their most common
    length. Longer clips are cut at the end, shorter ones filled with zeros.
    """

    bands: int = Field(default=48, ge=1, le=1024)
    window: int = Field(default=2048, ge=2, le=2**20, multiple_of=2)
    rate: int | None = Field(default=None, ge=1, le=1_000_000)
    seconds: float | None = Field(default=None, gt=0, le=86_400)

    @classmethod
    def like(cls, form: SoundForm) -> Self:
        """Return the settings by which sounds are described as others were."""
        return cls(bands=form.bands, window=form.window, rate=form.rate, seconds=form.seconds)

    @property
    def hop(self) -> int:
        """The samples from the start of a frame to that of the next."""
        return self.window // 2

    def frames(self, length: int) -> int:
        """Return how many whole frames `length` samples hold."""
        return max(0, (length - self.window) // self.hop + 1)


def log_mel(waves: NDArray[Any], rate: int, settings: LogMel) -> NDArray[numpy.float32]:
    """Describe waveforms (..., n_samples) of a sample rate by (..., bands, frames)."""
    length = waves.shape[-1]
    frames = settings.frames(length)
    if not frames:
        raise DataError(f"sound of {length} samples is shorter than the window of {settings.window}")
    flat = numpy.require(waves, numpy.float32, ["C", "W"]).reshape(-1, length)
    described = torch.empty(len(flat), settings.bands, frames)
    with torch_threads(1), torch.no_grad():
        taper = torch.hann_window(settings.window, periodic=True, dtype=torch.float64)
        groups = _filters(rate, settings.window, settings.bands)
        step = max(1, _SAMPLES_AT_ONCE // settings.window)
        for wave, place in zip(torch.from_numpy(flat), described, strict=True):
            for start in range(0, frames, step):
                some = slice(start, start + step)
                heard = _squares(wave.unfold(0, settings.window, settings.hop)[some] * taper)
                for bands, part, weights in groups:
                    place[bands, some] = weights @ heard[:, part].T
        described.clamp_min_(FLOOR).log_()
    return described.numpy().reshape(*waves.shape[:-1], settings.bands, frames)


def _squares(frames: Tensor) -> Tensor:
    """Return the squared real and imaginary parts of the spectra of frames (n, window), in turn: (n, window + 2).

    The frames are of double precision: else the rounding of what is loud would drown what is faint.
    """
    parts = torch.view_as_real(torch.fft.rfft(frames)).flatten(1)
    return parts.mul_(parts).float()


@cache
def _filters(rate: int, window: int, bands: int) -> tuple[tuple[slice, slice, Tensor], ...]:
    """Return neighbouring bands in a few groups, each with the part of `_squares` that it hears and its weights.

    Most of the weights between low bands and high frequencies are 0, and are left out.
    """
    # Each weight stands there twice, for the real and the imaginary part: that saves adding them up.
    weights = torch.from_numpy(mel_weights(rate, window, bands)).float().repeat_interleave(2, dim=1)
    step = -(-bands // _GROUPS)
    groups = []
    for start in range(0, bands, step):
        some = slice(start, start + step)
        heard = weights[some].sum(dim=0).nonzero().flatten().tolist() or [0]
        part = slice(heard[0], heard[-1] + 1)
        groups.append((some, part, weights[some, part].contiguous()))
    return tuple(groups)


def mel_weights(rate: int, window: int, bands: int) -> NDArray[numpy.float64]:
    """Return triangular bands of area 1, equally far apart in mel, over the frequencies of a spectrum."""
    corners = _hertz(numpy.linspace(0, _mel(rate / 2), bands + 2))
    frequencies = numpy.arange(window // 2 + 1) * (rate / window)
    lower, middle, upper = (corners[start : start + bands, numpy.newaxis] for start in range(3))
    rising, falling = (frequencies - lower) / (middle - lower), (upper - frequencies) / (upper - middle)
    weights: NDArray[numpy.float64] = numpy.maximum(0, numpy.minimum(rising, falling)) * (2 / (upper - lower))
    return weights


def empty_bands(rate: int, settings: LogMel) -> int:
    """Count the bands that lie between two frequencies of the spectrum and are always silent."""
    return int((mel_weights(rate, settings.window, settings.bands).max(axis=1) <= 0).sum())


def _mel(frequency: float) -> float:
    """Return a frequency in Hz on Slaney's scale: linear up to 1,000 Hz, logarithmic beyond."""
    if frequency < _BREAK_HERTZ:
        return frequency / _LINEAR_HERTZ
    return _BREAK_MEL + log(frequency / _BREAK_HERTZ) / _LOG_STEP


def _hertz(mels: NDArray[numpy.float64]) -> NDArray[numpy.float64]:
    """Return the frequencies of mels, the inverse of `_mel`."""
    beyond = _BREAK_HERTZ * numpy.exp(_LOG_STEP * (mels - _BREAK_MEL))
    return numpy.where(mels < _BREAK_MEL, mels * _LINEAR_HERTZ, beyond)
