"""Texts that are too many for an input each, by their effect on the target."""

import json
from collections.abc import Sequence

import numpy
import pandas
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import TargetEncoder

from topiarist.data import Data, Part, Preprocessing
from topiarist.data.columns.deciding import read_source_columns
from topiarist.data.columns.effects import EffectTargets, crossed_effects, effects_of, fit_effects
from topiarist.data.source import Source
from topiarist.randomness import array_generator

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
