"""Truth values in words."""

from typing import Any

import numpy
from numpy.typing import NDArray

_PAIRS = (  # of one kind each: no column says "yes" and "false"
    ("yes", "no"),
    ("y", "n"),
    ("true", "false"),
    ("t", "f"),
    ("on", "off"),
    ("ja", "nein"),
    ("wahr", "falsch"),
    ("oui", "non"),
    ("vrai", "faux"),
    ("sí", "no"),
    ("si", "no"),
    ("sì", "no"),
    ("verdadero", "falso"),
    ("sim", "não"),
    ("ja", "nee"),
    ("ja", "nej"),
    ("tak", "nie"),
    ("j", "n"),
    ("o", "n"),
    ("s", "n"),
    ("ano", "ne"),
    ("igen", "nem"),
    ("да", "нет"),
    ("evet", "hayır"),
    ("verdadeiro", "falso"),
    ("vero", "falso"),
    ("waar", "onwaar"),
    ("sant", "falskt"),
    ("prawda", "fałsz"),
    ("doğru", "yanlış"),
    ("kyllä", "ei"),
    ("jah", "ei"),
    ("áno", "nie"),
    ("da", "nu"),
    ("da", "ne"),
    ("ναι", "όχι"),
    ("так", "ні"),
    ("истина", "ложь"),
    ("是", "否"),
    ("真", "假"),
    ("はい", "いいえ"),
    ("예", "아니오"),
    ("כן", "לא"),
    ("نعم", "لا"),
    ("✓", "✗"),
    ("✔", "✘"),
    ("☑", "☐"),
)
_TRUE = {true for true, _ in _PAIRS}
_FALSE = {false for _, false in _PAIRS}


def are_truths(words: NDArray[Any]) -> bool:
    """Return whether words are the two of a pair such as yes and no, or one of them."""
    lower = {word.lower() for word in words}
    return bool(lower) and any(lower <= set(pair) for pair in _PAIRS)


def read_truths(words: NDArray[Any]) -> NDArray[numpy.float64]:
    """Return 1 and 0 for words such as yes and no, also for numbers 1 and 0; NaN for others."""
    return numpy.array([_read(word.lower()) for word in words], dtype=float)


def truth_words() -> tuple[frozenset[str], frozenset[str]]:
    """Return the words for true and for false, as they are usually written."""
    true, false = ({form for word in words for form in (word, word.upper(), word.title())} for words in (_TRUE, _FALSE))
    return frozenset({*true, "1"}), frozenset({*false, "0"})


def _read(word: str) -> float:
    if word in _TRUE or word == "1":
        return 1.0
    return 0.0 if word in _FALSE or word == "0" else numpy.nan
