"""What an exported file reads, and samples in that form.

Text is not arithmetic: a table with columns of text is read with these as zeros and ones, one input a category.
"""

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy
import pandas
import torch
from numpy.typing import NDArray

from topiarist.data import Preprocessing
from topiarist.data.columns import Column, encode
from topiarist.data.preprocessing import as_array
from topiarist.data.source import Features
from topiarist.models.evaluation import placed
from topiarist.storage.deployable import fill_of

Inputs = NDArray[Any]
FLOAT32_ROUNDING = 2.0**-24
MOST_ROUNDING = 1e-5  # of what the network reads


@dataclass(frozen=True, kw_only=True)
class InputForm:
    """What the input of a file is.

    `raw` samples are as they come: numbers, with NaN where one is missing in a table. `encoded` ones have a 1 where a
    column of text equals a category, and 0 elsewhere. `preprocessed` ones are what the network itself reads. `columns`
    gives for each input of a table its column and, of text, the category; None where training never showed it, and the
    input is always 0. `preprocessing` names the steps that the file takes.
    """

    kind: Literal["raw", "encoded", "preprocessed"]
    shape: tuple[int, ...]
    type: str
    columns: tuple[dict[str, str | None], ...] = ()
    preprocessing: tuple[str, ...] = ()


def form_of(inputs: Inputs, preprocessing: Preprocessing | None) -> InputForm:
    """Describe the input of a file that reads samples like these."""
    columns = () if preprocessing is None else preprocessing.columns
    has_text = any(column.kind == "text" for column in columns)
    return InputForm(
        kind="preprocessed" if preprocessing is None else "encoded" if has_text else "raw",
        shape=inputs.shape[1:],
        type=inputs.dtype.name,
        columns=tuple(described for column in columns for described in describe(column)),
        preprocessing=() if preprocessing is None else steps_of(preprocessing),
    )


def steps_of(preprocessing: Preprocessing) -> tuple[str, ...]:
    """Name what preprocessing does to numbers, in order."""
    steps = {
        "fill": fill_of(preprocessing),
        "projection": preprocessing.projection,
        preprocessing.scaling: preprocessing.scaling != "none",
    }
    return tuple(name for name, taken in steps.items() if taken)


def describe(column: Column) -> list[dict[str, str | None]]:
    """Name the inputs that a column takes."""
    if column.kind == "number":
        return [{"column": column.name}]
    return [{"column": column.name, "equals": text if text in column.known else None} for text in column.categories]


def as_inputs(samples: Features, preprocessing: Preprocessing | None) -> Inputs:
    """Give samples as a file reads them; what is missing in a table stays so."""
    if preprocessing is None:
        given: Inputs = placed(torch.from_numpy(as_array(samples)), torch.empty(0)).numpy()
        return given
    if preprocessing.columns and isinstance(samples, pandas.DataFrame):
        numbers = encode(samples, tuple(replace(column, fill=math.nan) for column in preprocessing.columns))
    else:
        numbers = as_array(samples)
    return numbers.astype(input_type(preprocessing))


def input_type(preprocessing: Preprocessing) -> type[numpy.floating[Any]]:
    """Give float32, or float64 where numbers so far from zero, beside their spread, would lose what matters."""
    scale = numpy.array(preprocessing.scale or (1.0,))
    origin = numpy.array(preprocessing.shift or (0.0,))
    if preprocessing.projection:
        origin = origin + numpy.concatenate([block.offset for block in preprocessing.projection])
    rounding = FLOAT32_ROUNDING * numpy.abs(origin * scale).max()
    return numpy.float64 if rounding > MOST_ROUNDING else numpy.float32
