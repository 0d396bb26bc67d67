"""Mixtures of blocks: what they are made of, how many there are, and that nothing leaks into them."""

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given, strategies
from numpy.typing import NDArray

from topiarist.data import Data, Part, Source, Stream
from topiarist.data.block_mixing import BlockMixing, cut_and_join, draw_mixtures, piece_lengths, with_mixtures
from topiarist.data.labels import of_classes
from topiarist.data.split import original_rows
from topiarist.errors import DataError, SettingsError
from topiarist.randomness import array_generator
from topiarist.study.samples import fingerprint

SEEDS = strategies.integers(0, 10**6)
Array = NDArray[Any]


def telling(samples: int, bands: int, time: int) -> Array:
    """Return samples that say in every value which sample and which time it is of."""
    values = numpy.arange(samples)[:, None, None] * time + numpy.arange(time) + numpy.zeros((1, bands, 1))
    return values.astype(numpy.int64)


def origins(mixture: Array, pieces: int) -> list[int]:
    """Return the sample of each piece of a mixture (bands, time); see that it is one stretch of it."""
    time = mixture.shape[-1]
    assert (mixture == mixture[0]).all(), "bands stay together"
    found = []
    for piece in numpy.split(mixture[0], numpy.cumsum(piece_lengths(time, pieces))[:-1]):
        samples, moments = numpy.divmod(piece, time)
        assert (samples == samples[0]).all() and (numpy.diff(moments) == 1).all()
        found.append(int(samples[0]))
    return found


def mix_blocks(features: Array, labels: Array, **how: Any) -> tuple[Array, Array]:
    """Return mixtures (n_mixtures, …, time) of samples (n_samples, …, time), and their labels."""
    drawn = draw_mixtures(features.shape[-1], labels, **how)
    return cut_and_join(features, drawn), labels[drawn.samples[:, 0]]


def scenes(*, seed: int = 0, samples: int = 120, parts: Array | None = None, **changes: Any) -> Source:
    random = numpy.random.default_rng(seed)
    finer = random.integers(0, 6, size=samples)
    source = Source(
        name="made",
        features=telling(samples, 3, 23).astype(numpy.float64),
        labels=finer // 2,
        groups=numpy.array(["Rome", "Oslo", "Bern", "Nice", "York", "Lviv", "Graz"])[numpy.arange(samples) % 7],
        parts=parts,
        finer=finer,
        scaling="none",
    )
    return replace(source, **changes)


@pytest.mark.slow
@given(
    seed=SEEDS,
    pieces=strategies.integers(1, 17),
    groups=strategies.integers(1, 9),
    samples=strategies.integers(1, 30),
    within=strategies.sampled_from(["coarse", "fine"]),
    copies=strategies.sampled_from([0.3, 1.0, 2.5]),
)
def test_a_mixture_is_of_one_class_and_of_as_many_groups_and_samples_as_possible(
    seed: int, pieces: int, groups: int, samples: int, within: Any, copies: float
) -> None:
    random = numpy.random.default_rng(seed)
    finer = random.integers(0, 4, size=samples)
    labels, cities = finer // 2, random.integers(0, groups, size=samples)
    features = telling(samples, 2, 19)
    x, y = mix_blocks(
        features,
        labels,
        finer=finer,
        groups=cities,
        mixing=BlockMixing(pieces=pieces, within=within, copies=copies),
        generator=array_generator(seed, "mix"),
    )
    assert len(x) == len(y) == round(copies * samples)
    assert x.shape[1:] == features.shape[1:] and x.dtype == features.dtype
    mixed = labels if within == "coarse" else finer
    for mixture, label in zip(x, y, strict=True):
        rows = origins(mixture, pieces)
        assert {int(labels[row]) for row in rows} == {int(label)}
        (own,) = {int(mixed[row]) for row in rows}
        available = Counter(cities[mixed == own].tolist())
        used = Counter(int(cities[row]) for row in rows)
        fewest, most = pieces // len(available), -(-pieces // len(available))
        assert all(fewest <= used[city] <= most for city in available)
        for city, count in used.items():
            times = Counter(row for row in rows if cities[row] == city).values()
            assert max(times) == -(-count // available[city]), "no sample twice before all others"


@pytest.mark.parametrize("within", ["coarse", "fine"])
def test_each_class_has_mixtures_in_proportion(within: Any) -> None:
    finer = numpy.repeat([0, 1, 2, 3], [10, 30, 25, 35])
    x, y = mix_blocks(
        telling(100, 1, 30),
        finer // 2,
        finer=finer,
        groups=None,
        mixing=BlockMixing(pieces=3, within=within, copies=1.5),
        generator=array_generator(0, "mix"),
    )
    assert Counter(y.tolist()) == {0: 60, 1: 90}
    if within == "fine":
        found = Counter(int(finer[origins(mixture, 3)[0]]) for mixture in x)
        assert all(abs(found[number] - count) < 1 for number, count in enumerate([15, 45, 37.5, 52.5]))


@pytest.mark.slow
def test_every_sample_every_group_and_every_place_has_its_share() -> None:
    samples, pieces, time = 60, 10, 467
    cities = numpy.repeat([0, 1, 2, 3], [6, 10, 20, 24])
    x, _ = mix_blocks(
        telling(samples, 1, time),
        numpy.zeros(samples, dtype=int),
        finer=None,
        groups=cities,
        mixing=BlockMixing(pieces=pieces, copies=50.0),
        generator=array_generator(1, "mix"),
    )
    drawn = numpy.array([origins(mixture, pieces) for mixture in x])
    assert drawn.shape == (3000, pieces)
    by_city = numpy.bincount(cities[drawn.ravel()])
    assert (abs(by_city / drawn.size - 0.25) < 0.01).all(), "groups count the same, however large"
    in_order = numpy.stack([(cities[drawn] == city).mean(axis=0) for city in range(4)])
    assert (abs(in_order - 0.25) < 0.04).all(), "in random order: 5 standard deviations"
    for city in range(4):
        uses = numpy.bincount(drawn[cities[drawn] == city], minlength=samples)[cities == city]
        assert uses.min() > 0.8 * uses.mean() and uses.max() < 1.2 * uses.mean()
    first = x[:, 0, 0] % time  # a piece of 47 frames begins at 0 to 420
    assert first.min() < 4 and 416 < first.max() <= 420
    assert abs(first.mean() - 210) < 5 * 421 / 12**0.5 / 3000**0.5


def test_pieces_fill_the_length_and_differ_by_one_at_most() -> None:
    assert piece_lengths(467, 10).tolist() == [47] * 7 + [46] * 3
    assert piece_lengths(480_000, 4).tolist() == [120_000] * 4
    assert piece_lengths(5, 5).tolist() == [1] * 5
    with pytest.raises(DataError, match="length 5 cannot be cut into 6 pieces"):
        piece_lengths(5, 6)


@pytest.mark.parametrize("shape", [(40,), (1, 40), (2, 3, 40)])
def test_one_piece_is_a_sample_whole_and_any_number_of_axes_will_do(shape: tuple[int, ...]) -> None:
    features = numpy.random.default_rng(0).normal(size=(12, *shape)).astype(numpy.float32)
    labels = numpy.arange(12) % 2
    x, y = mix_blocks(
        features, labels, finer=None, groups=None, mixing=BlockMixing(pieces=1), generator=array_generator(0, "mix")
    )
    assert sorted(x.ravel().tolist()) == sorted(features.ravel().tolist()), "each sample once"
    for mixture, label in zip(x, y, strict=True):
        (row,) = [row for row in range(12) if (features[row] == mixture).all()]
        assert labels[row] == label


@pytest.mark.parametrize("within", ["coarse", "fine"])
@pytest.mark.parametrize("folds", [False, True])
def test_data_is_mixed_of_its_own_training_rows_alone(within: Any, folds: bool) -> None:
    source, data = scenes(), Data.from_source(scenes())
    assert source.labels is not None and source.finer is not None and source.groups is not None
    for part in data.folds(3, validation_fraction=0.2) if folds else [data]:
        mixed = with_mixtures(part, BlockMixing(pieces=5, within=within, copies=2), seed=3)
        assert part.split is not None and isinstance(part.train, Part) and isinstance(mixed.train, Part)
        count = len(part.train)
        assert len(mixed.train.x) == len(mixed.train.y) == 3 * count
        assert torch.equal(mixed.train.x[:count], part.train.x) and torch.equal(mixed.train.y[:count], part.train.y)
        assert mixed.validation is part.validation and mixed.test is part.test
        assert mixed.preprocessing is part.preprocessing
        trained = set(part.split.train.tolist())
        for mixture, label in zip(mixed.train.x[count:], mixed.train.y[count:], strict=True):
            rows = origins(mixture.numpy().astype(int), 5)
            assert set(rows) <= trained
            assert {int(source.labels[row]) for row in rows} == {int(label)}
            mixing = source.labels if within == "coarse" else source.finer
            (own,) = {int(mixing[row]) for row in rows}
            cities = {str(source.groups[row]) for row in trained if mixing[row] == own}
            assert len({str(source.groups[row]) for row in rows}) == min(5, len(cities))


def test_the_same_seed_gives_the_same_mixtures_and_another_others() -> None:
    data = Data.from_source(scenes())
    first, again, other = (with_mixtures(data, BlockMixing(), seed=seed).train for seed in (0, 0, 1))
    assert isinstance(first, Part) and isinstance(again, Part) and isinstance(other, Part)
    assert torch.equal(first.x, again.x) and torch.equal(first.y, again.y)
    assert not torch.equal(first.x, other.x)


def test_what_cannot_be_mixed_is_refused_in_one_line() -> None:
    data = Data.from_source(scenes())
    streams = replace(data, train=Stream(torch.utils.data.TensorDataset(torch.zeros(1))))
    with pytest.raises(DataError, match="samples in memory"):
        with_mixtures(streams, BlockMixing(), seed=0)
    with pytest.raises(DataError, match="cannot be cut into 24 pieces"):
        with_mixtures(data, BlockMixing(pieces=24), seed=0)
    with pytest.raises(DataError, match="the source knows none"):
        with_mixtures(Data.from_source(scenes(finer=None)), BlockMixing(within="fine"), seed=0)
    with pytest.raises(DataError, match="mixed already"):
        with_mixtures(with_mixtures(data, BlockMixing(), seed=0), BlockMixing(), seed=0)
    projected = Data.from_arrays(
        numpy.random.default_rng(0).normal(size=(40, 9)), [0, 1] * 20, projection=((9, 2),), scaling="zscore"
    )
    with pytest.raises(DataError, match="time axis"):
        with_mixtures(projected, BlockMixing(), seed=0)
    for wrong in ({"pieces": 0}, {"copies": 0}, {"within": "city"}):
        with pytest.raises(SettingsError):
            BlockMixing(**wrong)


def test_finer_classes_follow_their_rows_and_name_the_samples() -> None:
    source = scenes()
    chosen = of_classes(source, ["0", "2"])
    assert source.finer is not None and chosen.finer is not None and chosen.labels is not None
    assert chosen.finer.tolist() == [value for value in source.finer.tolist() if value // 2 != 1]
    assert (chosen.finer // 2 == chosen.labels).all()
    names = {fingerprint({"a": one}) for one in (source, replace(source, finer=None), scenes(finer=source.finer[::-1]))}
    assert len(names) == 3
    with pytest.raises(DataError, match="finer class of its original"):
        original_rows(replace(source, originals=numpy.zeros(len(source), dtype=int), labels=None, groups=None))
