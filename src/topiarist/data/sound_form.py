"""How sounds were described, so that new ones are described alike: kept with samples and with the networks of them."""

from dataclasses import astuple, dataclass
from typing import Self

import numpy
from numpy.typing import NDArray

MOST = 2**40  # of any of the numbers: samples of a clip of days


@dataclass(frozen=True, kw_only=True)
class SoundForm:
    """Log-mel spectrograms of so many bands, by windows of so many samples, of clips at a rate and of one length.

    `rate` is in samples per second, `samples` the length of a clip.
    """

    bands: int
    window: int
    rate: int
    samples: int

    def __post_init__(self) -> None:
        if not all(type(number) is int and 0 < number <= MOST for number in astuple(self)):
            raise ValueError(f"no sound is described by {astuple(self)}")

    @property
    def seconds(self) -> float:
        """How long a clip is."""
        return self.samples / self.rate

    def __str__(self) -> str:
        return (
            f"log-mel spectrograms of {self.bands} bands, window {self.window},"
            f" of clips of {self.seconds:g} s at {self.rate:,} Hz"
        )

    def to_array(self) -> NDArray[numpy.int64]:
        """Return it as numbers, for an archive of NumPy's."""
        return numpy.array(astuple(self), dtype=numpy.int64)

    @classmethod
    def from_array(cls, numbers: NDArray[numpy.generic]) -> Self:
        """Return what `to_array` wrote down; ValueError for anything else."""
        if numbers.shape != (4,) or numbers.dtype.kind not in "iu":
            raise ValueError("a form of sound is four whole numbers: bands, window, rate and samples")
        bands, window, rate, samples = (int(number) for number in numbers)
        return cls(bands=bands, window=window, rate=rate, samples=samples)
