"""Samples to try an export on: real ones where there are any.

The test part is compared and the training part calibrates, so that nothing is decided by the test part.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy
import pandas
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from topiarist.data import Data, Part
from topiarist.data.columns import Column
from topiarist.data.source import Features
from topiarist.errors import DataError, ModelError
from topiarist.models import Card
from topiarist.models.ensemble import facts
from topiarist.randomness import array_generator
from topiarist.training.inference import part_batches

MOST_COMPARED, MOST_CALIBRATING, RANDOM = 1000, 512, 100
PARTS: tuple[Literal["test", "validation", "train"], ...] = ("test", "validation", "train")
Samples = ArrayLike | pandas.DataFrame | Tensor


@dataclass(frozen=True, kw_only=True)
class ExportSamples:
    """Samples to compare answers on, with their labels, and samples to learn ranges from; None where not known.

    They are raw, or as the network reads them where it has no preprocessing. `origin` says where the first are from.
    """

    compared: Features
    labels: Tensor | None = None
    calibrating: Features | None = None
    origin: str


def find_samples(model: nn.Module, card: Card, data: Data | None, given: Samples | None) -> ExportSamples:
    """Take the samples given, those of the data's test part, or random numbers."""
    task = data if data is not None and has_samples(data) else None
    calibrating = None if task is None else drawn(task, "train", MOST_CALIBRATING)[0]
    if given is not None:
        features = as_features(given)
        own = features if calibrating is None else calibrating
        return ExportSamples(compared=features, calibrating=own, origin="samples given")
    if task is not None:
        name = next(name for name in PARTS if len(getattr(task, name)))
        features, labels = drawn(task, name, MOST_COMPARED)
        return ExportSamples(compared=features, labels=labels, calibrating=calibrating, origin=f"{name} part")
    return ExportSamples(compared=random_features(model, card), origin="random numbers")


def has_samples(data: Data) -> bool:
    """Say whether the data hold samples that an export would read: raw ones where there is preprocessing."""
    return data.preprocessing is None or (data.source is not None and data.split is not None)


def drawn(data: Data, name: Literal["test", "validation", "train"], most: int) -> tuple[Features, Tensor]:
    """Give some samples of a part, evenly spread over it, and their labels; the first ones of a stream."""
    part = getattr(data, name)
    if data.source is None or data.split is None or not isinstance(part, Part):
        x, y = next(part_batches(part, most))
        return x.numpy(), y
    chosen = numpy.linspace(0, len(part) - 1, min(len(part), most)).astype(numpy.intp)
    rows, features = getattr(data.split, name)[chosen], data.source.features
    return features.iloc[rows] if isinstance(features, pandas.DataFrame) else features[rows], part.y[chosen]


def as_features(samples: Samples) -> Features:
    """Give samples as a table or an array of at least one."""
    if isinstance(samples, Tensor):
        samples = samples.detach().cpu().numpy()
    features = samples if isinstance(samples, pandas.DataFrame) else numpy.asarray(samples)
    if features.ndim < 2 or not len(features):
        raise DataError(f"samples to compare an export on are (n_samples, …), 1 or more; found {features.shape}")
    return features


def random_features(model: nn.Module, card: Card) -> Features:
    """Draw samples from a standard normal distribution, moved to where the training samples were scaled from."""
    random, known = array_generator(0, "samples to compare an export on"), card.preprocessing
    if known is None:
        return random.standard_normal((RANDOM, *input_shape(model, card)), dtype=numpy.float32)
    shape = (sum(block.columns for block in known.projection),) if known.projection else known.input_shape
    values = random.standard_normal((RANDOM, *shape))
    if known.shift and not known.projection:
        per_channel = (-1, *[1] * (len(shape) - 1))
        shift, scale = (numpy.array(numbers).reshape(per_channel) for numbers in (known.shift, known.scale))
        values = values / numpy.where(scale == 0, 1, scale) + shift
    return as_table(values.reshape(RANDOM, math.prod(shape)), known.columns) if known.columns else values


def as_table(values: NDArray[Any], columns: tuple[Column, ...]) -> pandas.DataFrame:
    """Give a table of values (n_samples, width), each text the category of which the value is largest."""
    pieces = numpy.split(values, numpy.cumsum([column.width for column in columns])[:-1], axis=1)
    return pandas.DataFrame(
        {
            column.name: piece[:, 0]
            if column.kind == "number"
            else [column.categories[place] for place in piece.argmax(axis=1)]
            for column, piece in zip(columns, pieces, strict=True)
            if column.width
        },
        columns=[column.name for column in columns],
    )


def input_shape(model: nn.Module, card: Card) -> tuple[int, ...]:
    """Give the shape of a sample as far as the card tells."""
    known = facts(model)
    shape = card.input_shape or known.input_shape
    if shape:
        return shape
    if known.number_of_inputs is None:
        raise ModelError("the network does not say what it reads: give data or samples to export it with")
    return (known.number_of_inputs,)
