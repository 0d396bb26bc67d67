"""Columns that name rows rather than describe them: ids, row numbers, and text of many words."""

import re

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.texts import Texts

TEXT_REASON = "text of many words"
FEW_ROWS = 20  # in fewer rows, values alone do not tell an id from a measurement
_IDS = frozenset(
    {"id", "ids", "uid", "uuid", "guid", "pk", "key", "index", "idx", "row", "rowid", "identifier", "serial"}
)
_OWNERS = frozenset(
    {"account", "customer", "client", "user", "member", "patient", "person", "subject", "employee", "order", "invoice"}
    | {"ticket", "record", "case", "sample", "row", "line", "passenger", "student", "loan", "transaction", "phone"}
)
_COUNTERS = frozenset({"no", "nr", "num", "number", "nummer", "code", "id"})
_YEARS = frozenset({"year", "years", "yr", "jahr", "annee", "année", "año", "anno"})
_WORDS = re.compile(r"[A-Z]?[a-zäöüßéèñ]+|[A-Z]+(?![a-z])|\d+")
_EXPECTED_REPEATS = 14.0  # e⁻¹⁴ is about one in a million
_CONSECUTIVE = 2.0  # the range of a counter, in rows: half of them may have been removed
_LONGEST_EXACT = 2.0**53  # larger whole numbers are not exact as float64: nobody measures so
_MANY_WORDS = 5
_MANY_TEXTS = 20  # different ones: a category with long names has fewer
_SHARE_OF_REPEATS = 0.1  # of the rows, at least, in which a text stands that another row has too


def number_identifies(name: str, values: NDArray[numpy.float64], *, by_name: bool = False) -> str | None:
    """Return why a column of numbers identifies rows; None where it may be a measurement.

    It is all different whole numbers, and one of: its name says so; the numbers are consecutive; or they lie so densely
    that measurements would repeat. Of n independent numbers in a range of R, n²/2R pairs are equal on average, and
    with e^(−n²/2R) none is: 1,000 different ones between 1 and 5,000 do not happen by chance, between 1 and a million
    they do. With `by_name`, only the name counts.
    """
    known = values[~numpy.isnan(values)]
    if len(known) < 2 or not (known == numpy.floor(known)).all() or len(numpy.unique(known)) < len(known):
        return None
    rows, span = len(known), float(known.max() - known.min()) + 1
    if _called_year(name) and known.min() >= 1500 and known.max() <= 2200:
        return None
    if _called_id(name):
        return "its name and its numbers, all different, are those of an id"
    if rows < FEW_ROWS or by_name:
        return None
    if numpy.abs(known).max() >= _LONGEST_EXACT:
        return "all different, of more than 15 digits"
    steps = numpy.diff(known)
    if span <= _CONSECUTIVE * rows and ((steps > 0).all() or (steps < 0).all()):
        return "row numbers: all different and in order"
    if rows * rows / (2 * span) > _EXPECTED_REPEATS:
        return f"all different, though {rows:,} measurements from {known.min():,.0f} to {known.max():,.0f} would repeat"
    return None


def might_identify(values: NDArray[numpy.float64]) -> bool:
    """Return whether all numbers are whole and different, though they may be a measurement."""
    known = values[~numpy.isnan(values)]
    whole = len(known) >= FEW_ROWS and bool((known == numpy.floor(known)).all())
    return whole and len(numpy.unique(known)) == len(known)


def text_identifies(texts: Texts, rows: int) -> str | None:
    """Return why a column of text cannot be a category; None where it can."""
    words = int(numpy.median([len(word.split()) for word in texts.words])) if len(texts.words) else 0
    if words >= _MANY_WORDS and len(texts.words) > _MANY_TEXTS:
        return TEXT_REASON
    if texts.filled == rows > 1 and len(texts.words) == rows:
        return "different in every row"
    repeated = int(texts.counts[texts.counts > 1].sum())
    if texts.filled >= FEW_ROWS and repeated < _SHARE_OF_REPEATS * texts.filled:
        return "different in nearly every row"
    return None


def _words_of(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def _called_id(name: str) -> bool:
    words = _words_of(name)
    if not words:
        return False
    if words[0] == "unnamed":  # as pandas calls the row numbers that it wrote
        return True
    named = words[-1] in _IDS or "id" in words or words[0] in ("uuid", "guid", "index")
    counted = words[-1] in _COUNTERS and bool(_OWNERS.intersection(words))
    joined = len(words) == 1 and any(words[0] == owner + end for owner in _OWNERS for end in _COUNTERS)
    return named or counted or joined or (len(words) == 1 and words[0] in ("rownumber", "nr", "no", "lfd"))


def _called_year(name: str) -> bool:
    return bool(_YEARS.intersection(_words_of(name)))
