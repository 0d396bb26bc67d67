"""How long a log-mel spectrogram takes, on one thread: ours beside librosa's, on the same clip.

10 s at 48 kHz, mono, in memory: noise below 12 kHz at 16 bits, so that the upper bands are faint. Bands {32, 48, 64} ×
windows {1024, 2048, 4096}. Both are called once before the clock starts, then they take turns; times are the best of
all rounds. The largest difference between the two is printed beside them.
"""

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import librosa
import numpy
from numpy.typing import NDArray
from scipy.signal import butter, sosfilt
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from topiarist.features.log_mel import FLOOR, LogMel, log_mel
from topiarist.randomness import array_generator

RATE, SECONDS = 48_000, 10


def faint_above(hertz: float) -> NDArray[numpy.float32]:
    """Make a clip of noise that has little above a frequency."""
    noise = array_generator(0, "noise").normal(size=RATE * SECONDS)
    wave = 0.1 * sosfilt(butter(8, hertz, fs=RATE, output="sos"), noise)
    rounded: NDArray[numpy.float32] = (numpy.rint(wave * 2**15) / 2**15).astype(numpy.float32)
    return rounded


def by_librosa(wave: NDArray[numpy.float32], settings: LogMel) -> NDArray[Any]:
    """Describe a clip as librosa's documentation does."""
    power = librosa.feature.melspectrogram(
        y=wave,
        sr=RATE,
        n_fft=settings.window,
        hop_length=settings.hop,
        center=False,
        power=2.0,
        n_mels=settings.bands,
    )
    described: NDArray[Any] = numpy.log(numpy.maximum(power, FLOOR))
    return described


def compare(wave: NDArray[numpy.float32], settings: LogMel, rounds: int) -> None:
    """Time the two in turn and print a line."""
    jobs: tuple[Callable[[], NDArray[Any]], ...] = (
        lambda: by_librosa(wave, settings),
        lambda: log_mel(wave, RATE, settings),
    )
    difference = numpy.abs(jobs[0]() - jobs[1]()).max()
    times: list[list[float]] = [[], []]
    for _ in range(rounds):
        for job, found in zip(jobs, times, strict=True):
            start = time.perf_counter()
            job()
            found.append(1000 * (time.perf_counter() - start))
    theirs, ours = min(times[0]), min(times[1])
    print(f"{settings.bands:5} {settings.window:6} {theirs:11.2f} {ours:8.2f} {theirs / ours:5.2f}  {difference:.1e}")


def main() -> None:
    """Compare the two for all settings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore")  # librosa's
    wave = faint_above(12_000)
    print("bands window librosa, ms ours, ms ratio  largest difference")
    with threadpool_limits(1):
        for bands in (32, 48, 64):
            for window in (1024, 2048, 4096):
                compare(wave, LogMel(bands=bands, window=window), rounds)


if __name__ == "__main__":
    main()
