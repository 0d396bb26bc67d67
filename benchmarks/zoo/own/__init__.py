"""Networks written by hand, in the many ways in which people write them."""

from benchmarks.zoo.own import (
    attention,
    classifiers,
    detection,
    images,
    language,
    operations,
    recurrent,
    sequences,
    sets,
    tables,
)
from benchmarks.zoo.own.collected import CATALOGUE

__all__ = [
    "CATALOGUE",
    "attention",
    "classifiers",
    "detection",
    "images",
    "language",
    "operations",
    "recurrent",
    "sequences",
    "sets",
    "tables",
]
