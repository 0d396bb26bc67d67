import json
from collections.abc import Iterator
from typing import Any

import numpy
import pandas
import pytest
import torch
from torch.utils.data import IterableDataset, TensorDataset

from topiarist.data import Data, Part, Source, SplitRule, Stream, draw_rows
from topiarist.errors import DataError, TopiaristWarning
from topiarist.randomness import generator


def samples(count: int = 90, **options: Any) -> Data:
    x = numpy.random.default_rng(0).normal(size=(count, 4))
    return Data.from_arrays(x, numpy.arange(count) % 3, **{"scaling": "zscore", **options})


def part(found: Part | Stream) -> Part:
    assert isinstance(found, Part)
    return found


def three(data: Data) -> list[Part]:
    return [part(data.train), part(data.validation), part(data.test)]


def test_parts_hold_the_samples_that_the_split_names() -> None:
    x, y = numpy.random.default_rng(0).normal(size=(90, 4)), numpy.arange(90) % 3
    data = Data.from_arrays(x, y, scaling="none")
    assert data.split is not None
    for found, rows in zip(three(data), (data.split.train, data.split.validation, data.split.test), strict=True):
        numpy.testing.assert_array_equal(found.x.numpy(), x[rows].astype("float32"))
        assert found.y.tolist() == y[rows].tolist()
    assert (data.classes, data.input_shape, data.rule) == (("0", "1", "2"), (4,), SplitRule())
    assert [len(found) for found in three(data)] == [58, 14, 18]


def test_the_seed_decides_the_split() -> None:
    first, again, other = samples(seed=1), samples(seed=1), samples(seed=2)
    for one, two, three_ in zip(three(first), three(again), three(other), strict=True):
        assert one.x.equal(two.x) and one.y.equal(two.y)
        assert not one.x.equal(three_.x)


def test_changing_test_rows_changes_nothing_in_training() -> None:
    x, y = numpy.random.default_rng(0).normal(size=(90, 4)), numpy.arange(90) % 3
    data = Data.from_arrays(x, y, scaling="zscore")
    assert data.split is not None
    x[data.split.test] *= 1000
    changed = Data.from_arrays(x, y, scaling="zscore")
    assert changed.preprocessing == data.preprocessing
    assert part(changed.train).x.equal(part(data.train).x)
    assert not part(changed.test).x.equal(part(data.test).x)


def test_a_class_with_a_single_member_is_noted() -> None:
    x = numpy.random.default_rng(0).normal(size=(61, 2))
    with pytest.warns(TopiaristWarning, match="class 'rare' has 1 sample: none in validation and test"):
        data = Data.from_arrays(x, ["often", "common"] * 30 + ["rare"], scaling="zscore")
    assert data.notes == ("class 'rare' has 1 sample: none in validation and test",)
    assert (part(data.train).y == 2).sum() == 1


def test_groups_go_with_their_samples() -> None:
    groups = numpy.arange(90) // 6
    data = samples(groups=groups)
    found = [set(numpy.asarray(one.groups).tolist()) for one in three(data)]
    assert sum(map(len, found)) == 15 and set().union(*found) == set(range(15))
    for fold in data.folds(3):
        assert not {*numpy.asarray(part(fold.train).groups)} & {*numpy.asarray(part(fold.test).groups)}


@pytest.mark.parametrize(
    ("x", "y", "groups", "message"),
    [
        (numpy.ones(4), [0, 1, 0, 1], None, r"x must be \(n_samples, n_features\) or more; found shape \(4,\)"),
        (5.0, [0], None, r"found shape \(\)"),
        ([["a"], ["b"]], [0, 1], None, "x must hold real numbers, or be a table; found type <U1"),
        (numpy.ones((2, 2), dtype=complex), [0, 1], None, "found type complex128"),
        (numpy.array([[1], ["b"]], dtype=object), [0, 1], None, "found type object"),
        (numpy.ones((4, 2)), [0, 1], None, r"y must hold one value for each of 4 samples; found \(2,\)"),
        (
            numpy.ones((2, 2)),
            [[[0, 1]], [[1, 0]]],
            None,
            r"y must hold one value for each of 2 samples; found \(2, 1, 2\)",
        ),
        (numpy.ones((2, 2)), [0, 1], [1], r"groups must hold one value for each of 2 samples; found \(1,\)"),
        (numpy.ones((4, 2)), [0, 0, 0, 0], None, "one class only"),
        (numpy.ones((4, 2)), [0.1, 0.1, 0.1, 0.1], None, "the target y is always 0.1"),
        (numpy.ones((4, 2)), [0, 1, numpy.nan, 1], None, "1 of 4 labels are missing"),
        (numpy.full((40, 2), numpy.inf), [0, 1] * 20, None, "infinite"),
        (numpy.full((40, 2, 2), numpy.nan), [0, 1] * 20, None, "missing"),
        (numpy.ones((0, 2)), [], None, "no samples"),
    ],
)
def test_arrays_that_cannot_be_used_are_one_line(x: Any, y: Any, groups: Any, message: str) -> None:
    with pytest.raises(DataError, match=message) as caught:
        Data.from_arrays(x, y, groups=groups)
    assert "\n" not in str(caught.value)


def test_tables_are_taken_as_they_are() -> None:
    table = pandas.DataFrame({"n": numpy.arange(60.0), "t": ["a", "b", "c"] * 20}, index=numpy.arange(60)[::-1])
    data = Data.from_arrays(table, ["x", "y"] * 30, scaling="minmax")
    assert data.input_shape == (4,)
    assert data.split is not None
    hot = part(data.test).x[:, 1:].argmax(dim=1)
    assert hot.tolist() == (data.split.test % 3).tolist()


def test_folds_test_every_sample_once() -> None:
    x, y = numpy.arange(90.0)[:, None], numpy.arange(90) % 3
    data = Data.from_arrays(x, y, scaling="none")
    folds = data.folds(5, seed=3, validation_fraction=0.2)
    assert sorted(torch.cat([part(fold.test).x[:, 0] for fold in folds]).tolist()) == list(range(90))
    for fold in folds:
        assert sorted(torch.cat([one.x[:, 0] for one in three(fold)]).tolist()) == list(range(90))
        assert [len(one) for one in three(fold)] == [58, 14, 18]
        assert fold.classes == data.classes and fold.input_shape == data.input_shape


def test_folds_of_development_leave_the_test_part_out() -> None:
    data = Data.from_arrays(numpy.arange(90.0)[:, None], numpy.arange(90) % 3, scaling="none")
    folds = data.folds(4, of="development")
    seen = sorted(torch.cat([part(fold.test).x[:, 0] for fold in folds]).tolist())
    assert not set(seen) & set(part(data.test).x[:, 0].tolist())
    assert len(seen) == 72 and not any(len(fold.validation) for fold in folds)


def test_folds_respect_a_test_part_of_the_source() -> None:
    parts = numpy.where(numpy.arange(90) < 30, "test", "train")
    x, y = numpy.arange(90.0)[:, None], numpy.arange(90) % 3
    data = Data.from_source(Source(name="made", features=x, labels=y, parts=parts, scaling="none"))
    assert part(data.test).x[:, 0].tolist() == list(range(30))
    for fold in data.folds(3):
        assert part(fold.test).x.min() >= 30 and part(fold.train).x.min() >= 30


def test_preprocessing_is_fitted_on_the_training_rows_of_each_fold() -> None:
    for fold in samples().folds(3):
        torch.testing.assert_close(part(fold.train).x.mean(dim=0), torch.zeros(4), atol=1e-6, rtol=0)
        torch.testing.assert_close(part(fold.train).x.std(dim=0, correction=0), torch.ones(4))


def test_text_seen_in_one_fold_only_gives_every_fold_the_same_shape() -> None:
    table = pandas.DataFrame({"n": numpy.arange(60.0), "t": ["a"] * 59 + ["b"]})
    folds = Data.from_arrays(table, ["x", "y"] * 30, scaling="zscore").folds(5)
    assert {fold.input_shape for fold in folds} == {(3,)}
    unseen = [fold for fold in folds if fold.split is not None and 59 in fold.split.test]
    assert part(unseen[0].test).x[-1, 1:].tolist() == [0.0, 0.0]


def test_the_seed_decides_the_folds() -> None:
    data = samples()
    first, again, other = ([part(fold.test).x for fold in data.folds(3, seed=seed)] for seed in (1, 1, 2))
    assert all(one.equal(two) for one, two in zip(first, again, strict=True))
    assert not all(one.equal(two) for one, two in zip(first, other, strict=True))


def test_impossible_folds_are_refused() -> None:
    with pytest.raises(DataError, match="31 stratified folds: the smallest class has 30 samples"):
        samples().folds(31)


def test_datasets_are_read_batch_by_batch() -> None:
    dataset = TensorDataset(torch.zeros(5, 1, 8, 8), torch.arange(5))
    data = Data.from_datasets(train=dataset, validation=dataset, test=dataset, classes=("a", "b", "c", "d", "e"))
    assert isinstance(data.train, Stream) and len(data.train) == 5
    assert data.input_shape == (1, 8, 8) and data.preprocessing is None
    with pytest.raises(DataError, match="folds need samples in memory"):
        data.folds(2)


class Endless(IterableDataset[Any]):
    def __iter__(self) -> Iterator[Any]:
        yield from ()


def test_datasets_without_a_length_are_refused() -> None:
    known = TensorDataset(torch.zeros(5, 2), torch.arange(5))
    with pytest.raises(DataError, match="iterable datasets are not supported"):
        Data.from_datasets(train=Endless(), validation=known, test=known, classes=("a", "b"))


def test_preprocessing_of_data_survives_json() -> None:
    prepared = samples().preprocessing
    assert prepared is not None
    assert type(prepared).from_json(json.loads(json.dumps(prepared.to_json()))) == prepared


def test_arrays_are_never_scaled_unless_that_is_asked_for() -> None:
    x = numpy.random.default_rng(0).normal(5, 3, size=(90, 4)).astype(numpy.float32)
    y = numpy.arange(90) % 3
    data = Data.from_arrays(x, y)
    assert data.preprocessing is not None and data.preprocessing.scaling == "none" and data.split is not None
    numpy.testing.assert_array_equal(part(data.train).x.numpy(), x[data.split.train])
    pixels = numpy.random.default_rng(0).integers(0, 256, (90, 1, 4, 4), dtype=numpy.uint8)
    for values, suits in ((x, "zscore"), (pixels, "pixels"), (pandas.DataFrame(x, columns=list("abcd")), "zscore")):
        found = Data.from_arrays(values, y, scaling="auto").preprocessing
        assert found is not None and found.scaling == suits


def test_drawn_rows_are_those_of_a_permutation_in_order() -> None:
    for seed in range(3):
        drawn = draw_rows(50, 7, generator(seed, "some"))
        assert drawn.tolist() == sorted(torch.randperm(50, generator=generator(seed, "some"))[:7].tolist())
    assert draw_rows(5, None, generator(0, "some")).tolist() == draw_rows(5, 9, generator(0)).tolist() == list(range(5))


def test_parts_and_streams_draw_the_same_samples() -> None:
    data = samples(groups=numpy.arange(90) // 3)
    whole = part(data.train)
    rows = draw_rows(len(whole), 10, generator(0, "some"))
    fewer = whole.draw(10, generator(0, "some"))
    assert fewer.x.equal(whole.x[rows]) and fewer.y.equal(whole.y[rows])
    assert whole.groups is not None and numpy.array_equal(numpy.asarray(fewer.groups), whole.groups[rows.numpy()])
    assert whole.draw(None, generator(0)) is whole and whole.draw(len(whole), generator(0)) is whole
    stream = Stream(TensorDataset(whole.x, whole.y), workers=2)
    drawn = stream.draw(10, generator(0, "some"))
    assert len(drawn) == 10 and drawn.workers == 2 and stream.draw(1000, generator(0)) is stream
    assert torch.stack([drawn.dataset[place][0] for place in range(10)]).equal(fewer.x)
