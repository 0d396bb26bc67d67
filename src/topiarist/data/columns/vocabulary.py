"""Which texts of a column have a place of their own among a network's inputs, and where the others go.

A text that stands in one row alone teaches nothing about itself: such texts share a place, which is also where a text
goes that training never saw. Where a column has more texts than there is room for, the rarer ones share several places,
by a hash of the text.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

FEW_TEXTS = 50  # a column with no more keeps them all, however rare
MOST_OWN = 1000  # places of one column
MOST_PLACES = 4000  # of all columns of a table together
MOST_EFFECTS = 20_000  # texts of one column with an effect of their own: about 500 KB in a file
_MOST_CELLS = 2**27  # rows times places: one-hot inputs take 1 GiB while they are made
_LEAST_ROWS = 2  # in which a text stands that has a place of its own
HASHED = 64  # places that rarer texts share where there are too many


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """Texts with a place of their own, in order, and the number of places that all other texts share."""

    own: tuple[str, ...]
    shared: int = 0


def choose_vocabulary(counts: Mapping[str, int], most: int) -> Vocabulary:
    """Return the texts that have a place of their own, `most` at most, by the number of rows of each text."""
    if len(counts) <= min(FEW_TEXTS, most):
        return Vocabulary(own=tuple(sorted(counts)))
    frequent = sorted((text for text in counts if counts[text] >= _LEAST_ROWS), key=lambda text: (-counts[text], text))
    own = frequent[:most]
    return Vocabulary(own=tuple(sorted(own)), shared=HASHED if len(frequent) > most else int(len(own) < len(counts)))


def room(distinct: Mapping[str, int], rows: int) -> int:
    """Return how many texts of one column may have a place of their own, so that all columns together keep in bounds.

    With 4000 places, columns of 3000, 3000 and 100 texts get 1000, 1000 and 100.
    """
    places = max(FEW_TEXTS, min(MOST_PLACES, _MOST_CELLS // max(rows, 1)))
    left, columns = places, sorted(distinct.values())
    for number, count in enumerate(columns):
        share = left // (len(columns) - number)
        if count > share:
            return max(1, min(MOST_OWN, share))
        left -= count
    return MOST_OWN


def shared_place(text: str, shared: int) -> int:
    """Return which of the shared places a text has: the same on every machine."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest()) % shared
