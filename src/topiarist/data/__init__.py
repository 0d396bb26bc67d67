"""`Data` and what it is made of: readers, splits and folds, labels, preprocessing.

Names are loaded when they are first used: to read, split and describe data needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from topiarist.data.dataset import AnyPart, Data, Part, Stream, draw_rows, make_part
    from topiarist.data.labels import number_labels
    from topiarist.data.load import find_source, load_data
    from topiarist.data.preprocessing import Preprocessing
    from topiarist.data.samples import LazySamples, Samples
    from topiarist.data.source import Scaling, Source
    from topiarist.data.split import SplitRule, split_source

__all__ = [
    "AnyPart",
    "Data",
    "LazySamples",
    "Part",
    "Preprocessing",
    "Samples",
    "Scaling",
    "Source",
    "SplitRule",
    "Stream",
    "draw_rows",
    "find_source",
    "load_data",
    "make_part",
    "number_labels",
    "split_source",
]

_HOMES = {
    "labels": ("number_labels",),
    "load": ("find_source", "load_data"),
    "preprocessing": ("Preprocessing",),
    "samples": ("LazySamples", "Samples"),
    "source": ("Scaling", "Source"),
    "split": ("SplitRule", "split_source"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'topiarist.data' has no attribute {name!r}")
    home = next((module for module, names in _HOMES.items() if name in names), "dataset")
    return getattr(import_module(f"topiarist.data.{home}"), name)
