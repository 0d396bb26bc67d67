"""What judges is never what trains or what is chosen by; scaling is off, so that a sample is known by its number."""

from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from numpy.typing import NDArray
from pandas import DataFrame
from torch import Tensor

from topiarist.data import AnyPart, Data, LazySamples, Part
from topiarist.data.file_arrays import FileArray
from topiarist.data.joined import JoinedArrays
from topiarist.data.source import Source
from topiarist.methods.job import make_job
from topiarist.models import mlp
from topiarist.randomness import generator
from topiarist.rightsizing import FewSamplesError
from topiarist.rightsizing.baseline import folds_with
from topiarist.rightsizing.folds import FEW_ROWS, folds_of, in_memory, judged_in_memory, most_folds, parts_set_aside
from topiarist.rightsizing.planning import Design

DESIGNS: list[Design] = ["refitted", "held out"]
SAMPLES = 96
both_designs = pytest.mark.parametrize("design", DESIGNS)


def numbered(groups: NDArray[Any] | None = None, **options: Any) -> Data:
    """Return samples that are their own numbers."""
    numbers = numpy.arange(SAMPLES)
    x = numpy.stack([numbers, numbers % 7], axis=1)
    return Data.from_arrays(x, numbers % 3, groups=groups, scaling="none", **options)


def numbers_of(*parts: AnyPart) -> list[int]:
    assert all(isinstance(part, Part) for part in parts)
    return [int(number) for part in parts for number in part.x[:, 0]]  # type: ignore[union-attr]


@pytest.mark.parametrize("table", [True, False])
def test_of_few_rows_less_is_set_aside(table: bool) -> None:
    def source(rows: int, **how: Any) -> Source:
        x = numpy.arange(float(rows))[:, None]
        features = DataFrame(x, columns=["number"]) if table else x
        return Source(**{"name": "rows", "features": features, "labels": numpy.arange(rows) % 2, **how})

    few = source(FEW_ROWS - 100)
    data = Data.from_source(few, **parts_set_aside(few))
    assert [len(part) for part in (data.train, data.validation, data.test)] == [7920, 990, 990]
    parts = numpy.array(["train", "test"] * 50)
    assert parts_set_aside(source(FEW_ROWS)) == parts_set_aside(source(100, parts=parts)) == {}
    assert parts_set_aside(source(100, features=numpy.zeros((100, 1, 4, 4)))) == {}


def test_rows_of_a_file_that_are_judged_are_held_as_they_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("topiarist.data.samples.MOST_BYTES", 0)
    pixels = numpy.arange(SAMPLES * 4, dtype=numpy.uint8).reshape(SAMPLES, 4)
    (tmp_path / "pixels").write_bytes(pixels.tobytes())
    features = JoinedArrays([FileArray(tmp_path / "pixels", 0, pixels.shape)])
    data = Data.from_source(
        Source(name="pixels", features=features, labels=numpy.arange(SAMPLES) % 3, scaling="pixels")
    )
    held = judged_in_memory(data)
    for name in ("validation", "test"):
        wanted, part = getattr(data, name), getattr(held, name)
        assert isinstance(part.samples, LazySamples) and isinstance(part.samples.features, numpy.ndarray)
        assert part.samples.features.dtype == numpy.uint8 and len(part.samples.features) == len(part)
        assert torch.equal(part.x, wanted.x) and torch.equal(part.y, wanted.y)
    assert held.train is data.train and judged_in_memory(held).test is held.test


@both_designs
@pytest.mark.parametrize("group_count", [None, 12])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_each_sample_is_judged_once_and_seen_by_no_decision(
    design: Design, group_count: int | None, count: int
) -> None:
    groups = None if group_count is None else numpy.arange(SAMPLES) // 8
    data = numbered(groups, validation_fraction=0.4)
    folds = folds_of(data, design, count, seed=1)
    judged = numbers_of(*(fold.test for fold in folds))
    parts = (data.train, data.validation) if design == "refitted" else (data.validation,)
    assert len(folds) == count and sorted(judged) == sorted(numbers_of(*parts))
    for fold in folds:
        trained, chosen, test = (set(numbers_of(part)) for part in (fold.train, fold.validation, fold.test))
        assert trained and chosen and test
        assert not trained & chosen and not (trained | chosen) & test
        assert not (trained | chosen | test) & set(numbers_of(data.test))
        assert groups is None or not set(groups[sorted(trained | chosen)]) & set(groups[sorted(test)])
    assert numbers_of(*(fold.test for fold in folds_of(data, design, count, seed=1))) == judged
    others = numbers_of(*(fold.test for fold in folds_of(data, design, count, seed=2)))
    assert groups is not None or others != judged  # of few groups, two seeds may deal the same


@both_designs
def test_as_many_folds_can_be_made_as_are_said(design: Design) -> None:
    for groups in (None, numpy.arange(SAMPLES) // 8, numpy.arange(SAMPLES) // 20):
        data = numbered(groups, validation_fraction=0.4)
        most = most_folds(data, design)
        assert most >= 2 and len(folds_of(data, design, most, seed=0)) == most
        assert groups is None or most <= len(set(groups))


def test_two_groups_are_too_few_to_judge_train_and_choose_by() -> None:
    data = numbered(numpy.arange(SAMPLES) // 3 % 3)  # one is the test part
    assert (most_folds(data, "refitted"), most_folds(data, "held out")) == (1, 1)


def test_copies_are_no_samples_of_their_own() -> None:
    originals = numpy.repeat(numpy.arange(0, 60, 5), 5)
    labels = numpy.repeat(numpy.arange(12) % 2, 5)
    data = Data.from_arrays(numpy.arange(60.0)[:, None], labels, originals=originals, scaling="none")
    most = most_folds(data, "refitted")
    judged = numbers_of(*(fold.test for fold in folds_of(data, "refitted", most, seed=0)))
    assert 2 <= most <= 6 and all(number % 5 == 0 for number in judged)


def test_folds_train_on_no_more_samples_than_the_network_to_keep() -> None:
    data = numbered(samples=15)
    folds = folds_of(data, "refitted", 3, seed=0)
    assert [len(fold.train) for fold in folds] == [15, 15, 15]
    assert sum(len(fold.test) for fold in folds) == SAMPLES - len(data.test)


@pytest.mark.filterwarnings("ignore::topiarist.TopiaristWarning")
def test_too_few_samples_to_choose_by_are_refused_in_one_line() -> None:
    with pytest.raises(FewSamplesError, match="samples in 2 folds leave none to choose by"):
        folds_of(Data.from_arrays(numpy.eye(6), [0, 1] * 3, test_fraction=0, scaling="zscore"), "refitted", 2, seed=0)
    with pytest.raises(FewSamplesError, match="has no samples to choose by"):
        in_memory(numbered(validation_fraction=0))


def test_folds_that_train_on_the_same_samples_share_what_units_are_looked_at_with() -> None:
    data = numbered(validation_fraction=0.4)
    network = mlp([2, 4, 3], generator=generator(0, "initial weights"))
    datas = [*folds_of(data, "held out", 2, seed=1), data]
    folds = folds_with(datas, [network], network, seed=5)
    assert len({id(fold.job.calibration) for fold in folds}) == 1
    alone = make_job(network, data, seed=5).calibration
    assert isinstance(alone, Tensor) and torch.equal(alone, folds[0].job.calibration)  # type: ignore[arg-type]
