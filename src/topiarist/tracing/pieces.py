"""How long the pieces of an axis are that `chunk`, `split` and `tensor_split` cut it into, as expressions."""

from collections.abc import Callable

from topiarist.tracing.integers import Computed, Expression

Lengths = Callable[[int, int], list[int]]


def _chunked(size: int, count: int) -> list[int]:
    """Return the pieces of `chunk`: 10 in 4 are 3 3 3 1."""
    return _split(size, -(-size // count))


def _split(size: int, length: int) -> list[int]:
    """Return the pieces of `split`: 10 by 4 are 4 4 2."""
    return [min(length, size - start) for start in range(0, size, length)]


def _evenly(size: int, count: int) -> list[int]:
    """Return the pieces of `tensor_split`: 10 in 4 are 3 3 2 2."""
    return [size // count + (number < size % count) for number in range(count)]


LENGTHS: dict[str, Lengths] = {"chunk": _chunked, "split": _split, "tensor_split": _evenly}


def piece_lengths(name: str, whole: Expression, asked: Expression, count: int) -> list[Expression]:
    """Return the lengths of the pieces of an axis.

    Parameters
    ----------
    name : {"chunk", "split", "tensor_split"}
        What cuts it.
    whole, asked : Expression
        The length of the axis, and the number that the function is given.
    count : int
        How many pieces there are now; with another number of them, their lengths are -1.
    """
    return [Computed(_length_of(name, number, count), whole, asked) for number in range(count)]


def _length_of(name: str, number: int, count: int) -> Callable[[int, int], int]:
    def length(size: int, asked: int) -> int:
        found = LENGTHS[name](size, asked) if asked > 0 else []
        return found[number] if len(found) == count else -1

    length.__name__ = "cut by"
    return length
