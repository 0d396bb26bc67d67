"""Texts that are too many for an input each, by their effect on the target."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy
import pandas
import pytest
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import TargetEncoder

from topiarist.data import Data, Part, Preprocessing
from topiarist.data.columns.deciding import read_source_columns
from topiarist.data.columns.effects import EffectTargets, crossed_effects, effects_of, fit_effects
from topiarist.data.source import Source
from topiarist.data.targets import targets_of
from topiarist.randomness import array_generator
from topiarist.rightsizing.folds import stopping_apart
from topiarist.training.tables.folds import inner_folds

pytestmark = pytest.mark.filterwarnings("ignore::topiarist.TopiaristWarning")  # of what was decided for columns


def table(rows: int, texts: int, *, classes: Sequence[str] = ("no", "yes")) -> Source:
    """Return a table in which each text has an effect of its own."""
    random = array_generator(texts, "effects")
    codes, x = random.integers(0, texts, rows), random.normal(size=rows)
    score = 2.5 * random.normal(size=texts)[codes] + x
    ranks = numpy.digitize(score, numpy.quantile(score, numpy.linspace(0, 1, len(classes) + 1)[1:-1]))
    frame = pandas.DataFrame({"code": [f"c{code}" for code in codes], "x": x})
    return read_source_columns(Source(name="t", features=frame, labels=numpy.array(classes)[ranks]))


def test_effects_are_those_of_scikit_learn() -> None:
    random = array_generator(0, "oracle")
    places, y = random.integers(0, 30, 400), random.normal(size=(400, 1))
    encoder = TargetEncoder(smooth=5.0, target_type="continuous").fit(places[:, None], y[:, 0])
    own = EffectTargets(numbers=y - y.mean())
    found = effects_of(places, own, 31, 5.0)[:, 0]
    assert found[encoder.categories_[0]] + y.mean() == pytest.approx(encoder.encodings_[0])
    assert found[30] == 0


def test_a_training_row_does_not_know_its_own_target() -> None:
    random = array_generator(1, "noise")
    places, noise = random.integers(0, 200, 400), random.normal(size=(400, 1))
    targets = EffectTargets(numbers=noise - noise.mean())
    effects, shrinking = fit_effects("c", places, targets, 200)
    crossed = crossed_effects("c", places, targets, 200, shrinking)
    assert shrinking == 100  # nothing to learn
    assert abs(numpy.corrcoef(crossed[:, 0], noise[:, 0])[0, 1]) < 0.15 < 0.5
    assert numpy.corrcoef(effects[places, 0], noise[:, 0])[0, 1] > 0.5
    changed = targets.numbers.copy()
    changed[7] += 100
    again = crossed_effects("c", places, EffectTargets(numbers=changed), 200, shrinking)
    assert again[7] == crossed[7]


def test_rows_of_a_group_are_in_one_fold_and_weights_count() -> None:
    places, numbers = numpy.zeros(10, dtype=int), numpy.arange(10.0)[:, None] - 4.5
    groups = numpy.array(list("aaaaabbbbb"), dtype=object)
    crossed = crossed_effects("c", places, EffectTargets(numbers=numbers, groups=groups), 1, 1.0)
    assert len(numpy.unique(crossed[:5])) == len(numpy.unique(crossed[5:])) == 1
    weights = numpy.array([1.0] * 5 + [3.0] * 5)
    repeated = EffectTargets(numbers=numpy.concatenate([numbers, numbers[5:], numbers[5:]]))
    weighed = effects_of(places, EffectTargets(numbers=numbers, weights=weights), 1, 0.0)
    assert weighed == pytest.approx(effects_of(numpy.zeros(20, dtype=int), repeated, 1, 0.0))


@pytest.mark.parametrize("classes", [("no", "yes"), ("a", "b", "c")])
def test_thousands_of_texts_are_as_good_as_an_input_each(classes: tuple[str, ...]) -> None:
    source = table(9_000, 1_500, classes=classes)
    data = Data.from_source(source, seed=0)
    assert data.preprocessing is not None and isinstance(data.train, Part) and isinstance(data.test, Part)
    assert data.split is not None and data.source is not None
    column = data.preprocessing.columns[0]
    outputs = 1 if len(classes) == 2 else len(classes)
    frame: pandas.DataFrame = data.source.features  # type: ignore[assignment]  # a table
    repeated = int((frame["code"].value_counts() > 1).sum())
    assert (column.encoding, column.width, column.places) == ("effect", outputs + 1, 2 + repeated + 1)
    assert any(f"{repeated:,} texts are read by their effect on the target" in note for note in data.notes)

    def hot(rows: NDArray[numpy.intp]) -> NDArray[numpy.float64]:
        codes = pandas.Index(column.categories).get_indexer(pandas.Index(frame["code"].to_numpy()[rows]))
        return numpy.column_stack([numpy.eye(len(column.categories) + 1)[codes], frame["x"].to_numpy()[rows]])

    expected = LogisticRegression(max_iter=300).fit(hot(data.split.train), data.train.y.numpy())
    reached = LogisticRegression().fit(data.train.x.numpy(), data.train.y.numpy())
    least = expected.score(hot(data.split.test), data.test.y.numpy()) - 0.01
    assert reached.score(data.test.x.numpy(), data.test.y.numpy()) > least


def test_folds_files_and_unseen_texts() -> None:
    data = Data.from_source(table(9_000, 1_500), seed=0)
    assert {fold.input_shape for fold in data.folds(3)} == {data.input_shape} == {(3,)}
    assert data.preprocessing is not None and data.source is not None
    written = json.loads(json.dumps(data.preprocessing.to_json()))
    again = Preprocessing.from_json(written)
    assert again == data.preprocessing
    frequent = pandas.DataFrame(data.source.features)["code"].mode()[0]  # type: ignore[arg-type]  # a table
    new = pandas.DataFrame({"code": [frequent, "never seen", None], "x": [0.0, 0.0, 0.0]})
    inputs = again(new)
    assert inputs[1, 1] < inputs[0, 1] and inputs[2, 1] < inputs[0, 1]  # by frequency: rare ones share a place
    written["columns"][0]["effects"].pop()
    with pytest.raises(ValueError, match="column code has effects that do not fit its texts"):
        Preprocessing.from_json(written)


def numbers(rows: int = 4_500, texts: int = 1_200) -> Source:
    """Return a table whose target is a number that has nothing to do with its texts."""
    random = array_generator(texts, "noise to predict")
    frame = pandas.DataFrame({"code": [f"c{code}" for code in random.integers(0, texts, rows)]})
    frame["x"] = random.normal(size=rows)
    return read_source_columns(Source(name="t", features=frame, labels=random.normal(size=rows)))


def permuted(source: Source, rows: NDArray[numpy.intp]) -> Source:
    """Return a source whose targets of some rows are exchanged, within tenths of the range: all parts stay the same."""
    strata, labels = targets_of(source).strata, numpy.array(source.labels)
    for stratum in numpy.unique(strata):
        own = rows[strata[rows] == stratum]
        labels[own] = array_generator(0, "exchanged").permutation(labels[own])
    return replace(source, labels=labels)


@pytest.mark.parametrize("of", ["all", "development"])
def test_a_fold_reads_nothing_of_the_targets_that_it_judges(of: Literal["all", "development"]) -> None:
    source, options = numbers(), {"seed": 2, "validation_fraction": 0.15}
    data = Data.from_source(source)
    fold = data.folds(3, of=of, **options)[1]  # type: ignore[arg-type]  # both are settings of folds
    assert fold.split is not None and fold.preprocessing is not None
    judged = numpy.concatenate([fold.split.test, fold.split.validation])
    other = Data.from_source(permuted(source, judged)).folds(3, of=of, **options)[1]  # type: ignore[arg-type]
    assert other.split is not None and (other.split.train == fold.split.train).all()
    assert other.preprocessing == fold.preprocessing and fold.preprocessing.columns[0].encoding == "effect"
    for name in ("train", "validation", "test"):
        assert torch.equal(getattr(fold, name).x, getattr(other, name).x)
    assert not torch.equal(fold.test.y, other.test.y)  # type: ignore[union-attr]  # in memory
    learned = Data.from_source(permuted(source, fold.split.train)).folds(3, of=of, **options)[1]  # type: ignore[arg-type]
    assert learned.preprocessing != fold.preprocessing  # it would have told


def divisions(data: Data) -> list[tuple[Part, Part]]:
    """Return rows to learn from and rows that they are judged by, of all ways in which a training part is divided."""
    apart = stopping_apart(data, seed=1)
    assert isinstance(apart.train, Part) and isinstance(apart.validation, Part)
    folds = inner_folds(data, 3, seed=0)
    drawn = data.train.draw(2_000, torch.Generator().manual_seed(0))
    few = inner_folds(replace(data, train=drawn), 2, seed=0)[0]
    return [(apart.train, apart.validation), *((fold.learned(), fold.left_out()) for fold in (*folds, few))]


def test_a_training_part_is_divided_without_the_targets_of_those_that_are_left_out() -> None:
    source = numbers()
    data = Data.from_source(source, validation_fraction=0.0)
    part, split, preprocessing = data.train, data.split, data.preprocessing
    assert isinstance(part, Part) and split is not None and preprocessing is not None
    rows = inner_folds(data, 3, seed=0)[0].rows
    rest = torch.tensor(sorted({*range(len(part))} - {*rows.tolist()}))

    def again(changed: NDArray[numpy.intp]) -> tuple[Part, Part]:
        other = Data.of_parts(permuted(source, changed), split, preprocessing, task=data.task).train
        assert isinstance(other, Part)
        return other.divided(rest, rows)

    learned, judged = part.divided(rest, rows)
    exchanged = again(split.train[rows.numpy()])
    assert torch.equal(exchanged[0].x, learned.x) and torch.equal(exchanged[1].x, judged.x)
    assert not torch.equal(exchanged[1].y, judged.y)
    assert not torch.equal(again(split.train[rest.numpy()])[0].x, learned.x)
    assert not torch.equal(part.x[rest], learned.x) and torch.equal(part.x[rest, 1:], learned.x[:, 1:])


def test_noise_in_thousands_of_texts_predicts_nothing_of_rows_left_out() -> None:
    for learned, judged in divisions(Data.from_source(numbers())):
        for part in (learned, judged):
            effect, y = part.x[:, 0].numpy(), part.y[:, 0].numpy()
            assert abs(numpy.corrcoef(effect, y)[0, 1]) < 4 / numpy.sqrt(len(y))


def test_divided_rows_are_read_as_texts_that_say_something() -> None:
    source = table(9_000, 1_500)
    for learned, judged in divisions(Data.from_source(source)):
        spread = [float(part.x[:, 0].std()) for part in (learned, judged)]
        correlation = [float(numpy.corrcoef(part.x[:, 0].numpy(), part.y.numpy())[0, 1]) for part in (learned, judged)]
        assert min(spread) > 0.6 and min(correlation) > 0.3
        assert correlation[0] == pytest.approx(correlation[1], abs=0.08)  # what is learned holds for the others


def test_a_copy_does_not_tell_the_target_of_its_original() -> None:
    source = numbers()
    rows = numpy.repeat(numpy.arange(len(source)), 2)  # each row and its copy
    assert isinstance(source.features, pandas.DataFrame) and source.labels is not None
    copied = replace(
        source,
        features=source.features.iloc[rows].reset_index(drop=True),
        labels=source.labels[rows],
        originals=2 * rows,
    )
    part = Data.from_source(copied).train
    assert isinstance(part, Part)
    assert abs(numpy.corrcoef(part.x[:, 0].numpy(), part.y[:, 0].numpy())[0, 1]) < 0.1
