"""`Data` and its loaders, one file a source; folds and preprocessing."""

from topiarist.data.dataset import AnyPart, Data, Part, Stream, make_part, split_source
from topiarist.data.labels import number_labels
from topiarist.data.load import find_source, load_data
from topiarist.data.preprocessing import Preprocessing
from topiarist.data.source import Scaling, Source
from topiarist.data.split import SplitRule

__all__ = [
    "AnyPart",
    "Data",
    "Part",
    "Preprocessing",
    "Scaling",
    "Source",
    "SplitRule",
    "Stream",
    "find_source",
    "load_data",
    "make_part",
    "number_labels",
    "split_source",
]
