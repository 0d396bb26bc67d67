"""The different texts of a column, and which of them are gaps.

A column of a million cells often has a few hundred different texts: each is read once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy
from numpy.typing import NDArray

from topiarist.errors import DataError

if TYPE_CHECKING:
    import pandas

    Cells = pandas.Series[Any]

Kind = Literal["number", "truth", "category", "date"]

_DASHES = frozenset({"-", "--", "---", "–", "—"})
_ALWAYS = frozenset(
    {"", "?", "??", "na", "n/a", "#na", "#n/a", "n.a.", "n. a.", "<na>", "nan", "-nan", "null", "<null>", "(null)"}
    | {"#null!", "#div/0!", "#value!", "#ref!", "#name?", "#num!"}  # of spreadsheets
)
_OF_MEASURES = frozenset(
    {
        ".",
        "..",
        "...",
        "*",
        "none",
        "nil",
        "missing",
        "(missing)",
        "unknown",
        "not available",
        "not known",
        "k.a.",
        "k. a.",
    }
    | {"0000-00-00", "0000-00-00 00:00:00", "00.00.0000", "00/00/0000"}  # dates of databases that have none
    | {"9999-12-31", "9999-12-31 00:00:00", "9999-12-31t00:00:00", "31.12.9999", "31/12/9999", "12/31/9999"}  # or never
)
_NESTED = (list, dict, set, tuple, bytes, numpy.ndarray)


@dataclass(frozen=True, eq=False)
class Texts:
    """The different texts `words` of a column, and which each cell holds: `codes`, −1 for a gap.

    `gaps` counts what the gaps are written as; "" stands for blank cells.
    """

    words: NDArray[Any]
    codes: NDArray[numpy.intp]
    gaps: Mapping[str, int]

    @cached_property
    def counts(self) -> NDArray[numpy.intp]:
        """How many cells hold each word."""
        return numpy.bincount(self.codes[self.codes >= 0], minlength=len(self.words))

    @property
    def filled(self) -> int:
        """How many cells are no gaps."""
        return int((self.codes >= 0).sum())

    def without(self, unwanted: NDArray[numpy.bool_]) -> "Texts":
        """Return the texts with some words taken as gaps."""
        if not unwanted.any():
            return self
        gaps = dict(self.gaps)
        for word, count in zip(self.words[unwanted], self.counts[unwanted].tolist(), strict=True):
            gaps[word] = gaps.get(word, 0) + count
        places = numpy.where(unwanted, -1, numpy.cumsum(~unwanted) - 1)
        codes = numpy.where(self.codes < 0, -1, places[self.codes])
        return replace(self, words=self.words[~unwanted], codes=codes, gaps=gaps)

    def without_gaps_of(self, kind: Kind, *, more: Sequence[str] = (), kept: Sequence[str] = ()) -> "Texts":
        """Return the texts without what means a gap in a column of that kind or is one of `more`, unless `kept`."""
        gaps = [word not in kept and (word in more or is_gap(word, kind)) for word in self.words]
        return self.without(numpy.array(gaps, dtype=bool))

    def spread(self, of_words: NDArray[Any], missing: Any) -> NDArray[Any]:
        """Return for each cell what belongs to its word, and `missing` for gaps."""
        if not len(of_words):
            return numpy.full(len(self.codes), missing, dtype=of_words.dtype)
        found: NDArray[Any] = of_words[self.codes]
        found[self.codes < 0] = missing
        return found


def is_gap(word: str, kind: Kind) -> bool:
    """Return whether a word stands for a missing value in a column of that kind."""
    lower = word.lower()
    return lower in _ALWAYS or lower in _DASHES or (kind != "category" and lower in _OF_MEASURES)


def gap_words(kind: Kind) -> frozenset[str]:
    """Return the words that `is_gap` takes for missing values: in small letters, capitals, and with one of them."""
    words = _ALWAYS | _DASHES | (_OF_MEASURES if kind != "category" else frozenset())
    return frozenset(form for word in words for form in (word, word.upper(), word.capitalize(), word.title()))


def are_words(words: NDArray[Any]) -> bool:
    """Return whether no word has a digit."""
    return not any(character.isdigit() for word in words for character in word)


def opposites(texts: Texts) -> tuple[str, ...]:
    """Return the dashes that are the opposite of a plus, and no gaps."""
    return tuple(word for word in texts.words if word in _DASHES) if "+" in texts.words else ()


def case_remarks(words: Iterable[str]) -> tuple[str, ...]:
    """Return a note of texts that differ in letter case alone: they may be one category, and stay apart.

    Examples
    --------
    >>> case_remarks(["red", "Red", "blue"])
    ("letter case alone tells 2 texts apart, such as 'red' and 'Red'; write them alike if they are the same",)
    """
    found: dict[str, list[str]] = {}
    for word in words:
        found.setdefault(word.casefold(), []).append(word)
    several = [same for same in found.values() if len(same) > 1]
    if not several:
        return ()
    count, (one, other, *_) = sum(map(len, several)), several[0]
    same = "write them alike if they are the same"
    return (f"letter case alone tells {count:,} texts apart, such as '{one}' and '{other}'; {same}",)


def texts_of(values: "Cells") -> Texts:
    """Return cells as text without blanks around it; 12.0 is '12', as in a file that has words beside it."""
    import pandas  # noqa: PLC0415  # see the top of the package

    nested = next((cell for cell in values.head(1000) if isinstance(cell, _NESTED)), None)
    if nested is not None:
        raise DataError(f"column {values.name} holds {type(nested).__name__} values; use numbers or text")
    cells, found = pandas.factorize(values)
    written = numpy.array([_written(cell) for cell in found], dtype=object)
    places, words = pandas.factorize(written)
    codes = numpy.where(cells < 0, -1, places[cells] if len(places) else -1)
    blank = int((cells < 0).sum())
    texts = Texts(numpy.asarray(words, dtype=object), codes.astype(numpy.intp), {"": blank} if blank else {})
    return texts.without(numpy.array([word == "" for word in texts.words], dtype=bool))


def _written(cell: object) -> str:
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell)
