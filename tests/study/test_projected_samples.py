"""A projection in a study: declared as blocks of columns, fitted in every fold, part of the hash where given."""

from typing import Any

import numpy
import pytest

from topiarist.data import Source
from topiarist.errors import SettingsError
from topiarist.study.declaration import Declaration
from topiarist.study.samples import StudySamples, fingerprint, source_key

BLOCKS = [[30, 3], [20, 2]]


def declared(**data: Any) -> Declaration:
    return Declaration(data={"location": "wide.npz", **data}, folds=3)


def wide(**changes: Any) -> Source:
    x = numpy.random.default_rng(0).normal(size=(60, 50))
    return Source(name="wide", features=x, labels=numpy.arange(60) % 3, **changes)


def test_the_hash_names_a_projection_only_where_there_is_one() -> None:
    without, none, given = (
        [cell.hash for cell in study.cells]
        for study in (declared(), declared(projection=None), declared(projection=BLOCKS))
    )
    assert without == none and not set(without) & set(given)
    assert declared(projection=BLOCKS).cells[0].record["settings"]["data"]["projection"] == BLOCKS


def test_each_fold_has_axes_of_its_own() -> None:
    study = declared(projection=BLOCKS)
    samples = StudySamples({source_key(study.cells[0].settings.data): wide()})
    folds = [samples.of(cell) for cell in study.cells]
    assert [fold.input_shape for fold in folds] == [(5,)] * 3
    assert len({fold.preprocessing for fold in folds}) == 3


@pytest.mark.parametrize(
    "wrong", [[], [30, 3], [[30, 0]], [[30]], [[30, 3, 1]], [[30, 2.5]], "30:3", [[-1, 1]], [["a", 1]]]
)
def test_what_is_no_projection_is_one_line(wrong: Any) -> None:
    with pytest.raises(SettingsError) as caught:
        declared(projection=wrong)
    assert caught.value.setting.startswith("data.projection") and "\n" not in str(caught.value)


def test_projections_can_be_compared() -> None:
    study = Declaration(data="wide.npz", grid={"data.projection": [BLOCKS, [[30, 1], [20, 1]]]})
    assert [configuration.label for configuration in study.configurations] == [
        "projection 30-3-20-2",
        "projection 30-1-20-1",
    ]


def test_copies_are_part_of_the_samples() -> None:
    numbers = numpy.arange(60)
    marked = numpy.where(numbers >= 30, numbers - 30, numbers)
    found = {
        fingerprint({"a": source})
        for source in (wide(), wide(originals=numbers), wide(originals=marked), wide(groups=numbers))
    }
    assert len(found) == 4
