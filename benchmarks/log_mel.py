"""How long a log-mel spectrogram takes, on one thread: ours beside librosa's, on the same clip.

10 s at 48 kHz, mono, in memory: noise below 12 kHz at 16 bits, so that the upper bands are faint. Bands {32, 48, 64} ×
windows {1024, 2048, 4096}. Both are called once before the clock starts, then they take turns; times are the
processor's. The largest difference between the two is written beside them.
"""

import argparse
import warnings
from functools import partial
from typing import Any

import librosa
import numpy
from numpy.typing import NDArray
from scipy.signal import butter, sosfilt
from threadpoolctl import threadpool_limits

from benchmarks.paging.records import Figure, Role, Sheet
from benchmarks.paging.timing import in_turn, milliseconds
from benchmarks.paging.writing import stamp, write_results
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


def compare(wave: NDArray[numpy.float32], settings: LogMel, rounds: int) -> list[Figure]:
    """Time the two in turn, and compare what they compute."""
    jobs = {"librosa": partial(by_librosa, wave, settings), "ours": partial(log_mel, wave, RATE, settings)}
    difference = float(numpy.abs(jobs["librosa"]() - jobs["ours"]()).max())
    case = f"{settings.bands} bands, window {settings.window}"
    figures = [Figure(table="alike", case=case, contender="ours", measure="difference", values=(difference,))]
    for name, seconds in in_turn(jobs, rounds).items():
        role: Role = "ours" if name == "ours" else "rival"
        figures.append(
            Figure(case=case, contender=name, measure="milliseconds", values=milliseconds(seconds), role=role)
        )
    return figures


def main() -> None:
    """Compare the two for all settings, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=30)
    rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore")  # librosa's
    wave, figures = faint_above(12_000), list[Figure]()
    with threadpool_limits(1):
        for bands in (32, 48, 64):
            for window in (1024, 2048, 4096):
                figures += compare(wave, LogMel(bands=bands, window=window), rounds)
    command = f"python -m benchmarks.log_mel --rounds {rounds}"
    print(write_results("log_mel", Sheet(**stamp(command, ["librosa"]), figures=tuple(figures))))


if __name__ == "__main__":
    main()
