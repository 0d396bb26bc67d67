"""Made-up samples that are as hard to tell apart as expressions in film stills."""

import numpy
import pandas
import pytest

from topiarist import TrainConfig, measure, models, train_many
from topiarist.data import Data, Scaling
from topiarist.randomness import generator
from topiarist.reproductions.faces.expressions import EXPRESSIONS, face_stand_in


def test_shape_classes_and_columns() -> None:
    source = face_stand_in(3)
    assert isinstance(source.features, pandas.DataFrame) and source.labels is not None
    assert source.features.shape == (674, 10) and source.classes == EXPRESSIONS
    assert list(source.features.columns[[0, 4, 5, 9]]) == ["LPQ 1", "LPQ 5", "PHOG 1", "PHOG 5"]
    counts = {name: int((source.labels == name).sum()) for name in EXPRESSIONS}
    assert counts == {**dict.fromkeys(EXPRESSIONS, 100), "disgust": 75, "fear": 99}
    spread = source.features.to_numpy().std(axis=0)
    assert (numpy.diff(spread[:5]) < 0).all() and (numpy.diff(spread[5:]) < 0).all() and spread[5] > 2 * spread[0]


def test_the_seed_decides() -> None:
    first, again, other = (face_stand_in(seed).features for seed in (1, 1, 2))
    assert numpy.array_equal(first, again) and not numpy.array_equal(first, other)


@pytest.mark.slow
@pytest.mark.parametrize("scaling", ["zscore", "minmax", "unit"])
def test_a_network_tells_about_a_quarter(scaling: Scaling) -> None:
    folds = Data.from_source(face_stand_in(0), scaling=scaling).folds(10)
    networks = [
        models.mlp([10, 20, 7], activation="sigmoid", generator=generator(0, "weights", fold)) for fold in range(10)
    ]
    train_many(networks, folds, TrainConfig(epochs=300, learning_rate=0.01))
    found = [measure(model, fold, latency=False).accuracy for model, fold in zip(networks, folds, strict=True)]
    assert 0.21 < numpy.mean(found) < 0.28
