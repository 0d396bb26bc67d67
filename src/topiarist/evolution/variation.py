"""Operations that make new bit strings, on whole populations: random bits, crossover at one point, flips.

Individuals are kept packed, eight bits per byte, (…, n_individuals, n_bytes): that is less to move, and their bytes
identify those that were seen before. Numbers in [0, 1) are drawn by the caller, so that each of several problems has a
generator of its own.
"""

import numpy
from numpy.typing import NDArray

Bits = NDArray[numpy.bool_]
Packed = NDArray[numpy.uint8]
Floats = NDArray[numpy.float64]
Integers = NDArray[numpy.intp]
Density = float | tuple[float, float]


def check_density(density: Density) -> None:
    """Refuse what is neither a probability nor a range of them."""
    low, high = density if isinstance(density, tuple) else (density, density)
    if not 0 <= low <= high <= 1:
        raise ValueError(f"density must be a probability, or two in ascending order; found {density}")


def packed(bits: Bits) -> Packed:
    """Pack bits (…, n_bits) into bytes (…, n_bytes)."""
    return numpy.packbits(bits, axis=-1)


def unpacked(individuals: Packed, n_bits: int) -> Bits:
    """Return the bits (…, n_bits) of packed individuals."""
    return numpy.unpackbits(individuals, axis=-1, count=n_bits).view(numpy.bool_)


def keys_of(individuals: Packed) -> list[bytes]:
    """Return the bytes of each individual (n_individuals, n_bytes), which identify it."""
    rows = numpy.ascontiguousarray(individuals)
    keys: list[bytes] = rows.view(f"V{rows.shape[1]}")[:, 0].tolist()
    return keys


def random_bits(generator: numpy.random.Generator, n_individuals: int, n_bits: int, density: Density) -> Bits:
    """Draw bits (n_individuals, n_bits) that are set with a probability: one for all, or one for each individual."""
    low, high = density if isinstance(density, tuple) else (density, density)
    probabilities = low + (high - low) * generator.random((n_individuals, 1))
    bits: Bits = generator.random((n_individuals, n_bits)) < probabilities
    return bits


def tails(n_bits: int) -> Packed:
    """Return for each place 0 … n_bits the packed bits (n_bits + 1, n_bytes) from there on: 111, 011, 001, 000."""
    places = numpy.arange(n_bits + 1)
    return packed(numpy.arange(n_bits) >= places[:, None])


def cross_neighbours(children: Packed, numbers: Floats, probability: float, tails: Packed) -> None:
    """Exchange, with a probability, all bits of neighbours (0 and 1, 2 and 3, …) from a random place on, in place.

    `numbers` in [0, 1), (…, n_individuals // 2), decide both: those below the probability, divided by it, are again
    evenly distributed. Of an odd number of individuals, the last stays as it is.
    """
    n_bits = len(tails) - 1
    if not probability:
        return
    paired = children.shape[-2] - children.shape[-2] % 2
    first, second = children[..., 0:paired:2, :], children[..., 1:paired:2, :]
    cuts = numpy.minimum(1 + (numbers * ((n_bits - 1) / probability)).astype(numpy.intp), n_bits)
    exchanged = first ^ second
    exchanged &= tails.take(cuts, axis=0)
    first ^= exchanged
    second ^= exchanged
