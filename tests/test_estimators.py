"""The estimators keep the promises of scikit-learn.

The plans are smaller than those of any effort, so that the tests are fast: in scikit-learn's many checks nothing is cut
at all, in the others there is one size and one method.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy
import pandas
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimators_pickle, check_fit_idempotent, parametrize_with_checks
from torch import nn

from tests.rightsizing.tasks import use_small_teachers
from topiarist import Budget, RightSizedClassifier, RightSizedRegressor, TopiaristWarning
from topiarist.measurement import BudgetError
from topiarist.models.evaluation import count_parameters
from topiarist.randomness import isolated
from topiarist.report.rightsizing.page import rightsizing_page
from topiarist.rightsizing import EFFORTS, preparation

LUCK = dict.fromkeys(
    ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"),
    "which samples validate is drawn: a sample that counts twice is not two samples",
)
NOTHING_CUT = replace(EFFORTS["quick"], folds=2, seeds=1, epochs=10, finetuning_epochs=8, ratios=(), finer=0)
CUT = replace(NOTHING_CUT, ratios=(8,))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "quick", CUT)
    monkeypatch.setattr(preparation, "PROBE_SECONDS", 0.001)
    use_small_teachers(monkeypatch)


@pytest.fixture
def nothing_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EFFORTS, "quick", NOTHING_CUT)


def classifier(**settings: Any) -> RightSizedClassifier:
    return RightSizedClassifier(**{"methods": ("distinctiveness",), **settings})


def regressor(**settings: Any) -> RightSizedRegressor:
    return RightSizedRegressor(**{"methods": ("distinctiveness",), **settings})


def hills(samples: int = 150) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return numbers that follow from the samples, in large units."""
    x = numpy.random.default_rng(0).normal(size=(samples, 4))
    return x, 5e4 + 1e4 * x[:, 0] - 4e3 * x[:, 1] ** 2


def blobs(samples: int = 150) -> tuple[NDArray[Any], NDArray[Any]]:
    x, y = make_blobs(n_samples=samples, centers=2, n_features=4, random_state=0)
    return x, y


def people() -> tuple[pandas.DataFrame, NDArray[Any]]:
    """A table whose answer lies in its text, with gaps in all columns."""
    town = numpy.tile(numpy.array(["rome", "oslo", "bern"], dtype=object), 30)
    colour = pandas.Categorical(numpy.tile(["red", "blue"], 45))
    table = pandas.DataFrame({"age": numpy.arange(90) % 7 + 0.5, "town": town, "colour": colour})
    table.loc[[3, 20], "age"] = numpy.nan
    table.loc[80, ["town", "colour"]] = None
    return table, numpy.where(town == "rome", "south", "north")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::topiarist.TopiaristWarning")
@pytest.mark.usefixtures("nothing_cut")
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [classifier(), regressor()], expected_failed_checks=lambda estimator: LUCK
)
def test_scikit_learn_is_content(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_estimators_pickle, check_fit_idempotent])
def test_scikit_learn_is_content_with_a_network_that_is_cut(check: Callable[[str, Any], None]) -> None:
    check("RightSizedClassifier", classifier())


@pytest.mark.slow
def test_the_network_is_plain_and_smaller_than_the_baseline() -> None:
    x, y = blobs()
    found = classifier().fit(x, y)
    assert found.status_ in ("proven", "unproven")
    assert isinstance(found.model_, nn.Sequential)
    assert count_parameters(found.model_) <= count_parameters(found.baseline_) / 8
    assert found.report_ is not None and found.report_.test is None
    assert found.report_.data.training + found.report_.data.validation == len(x)
    assert found.sentence_ == found.report_.verdict.sentence
    assert found.score(x, y) > 0.9


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_cut")
def test_the_same_random_state_gives_the_same_answers() -> None:
    x, y = blobs(60)
    one, same = (classifier(random_state=numpy.random.RandomState(3)).fit(x, y) for _ in range(2))
    numpy.testing.assert_array_equal(one.predict_proba(x), same.predict_proba(x))
    other = classifier(random_state=4).fit(x, y)
    assert (one.predict_proba(x) != other.predict_proba(x)).any()


@pytest.mark.slow
def test_a_table_with_text_and_gaps() -> None:
    table, labels = people()
    found = classifier().fit(table, labels)
    assert found.score(table, labels) > 0.95
    assert found.feature_names_in_.tolist() == ["age", "town", "colour"] and found.n_features_in_ == 3
    assert found.classes_.tolist() == ["north", "south"]
    unseen = pandas.DataFrame({"age": [None, 3.0], "town": ["rome", "atlantis"], "colour": ["green", None]})
    assert found.predict(unseen)[0] == "south"
    with pytest.warns(UserWarning, match="feature names"):
        assert found.predict(numpy.array([[2.5, "oslo", "red"]], dtype=object)).tolist() == ["north"]
    with pytest.raises(ValueError, match="feature names"):
        found.predict(table[["town", "age", "colour"]])


@pytest.mark.usefixtures("nothing_cut")
@pytest.mark.parametrize("labels", [["yes", "no"], [True, False], [7, -2], [2.0, 1.0]], ids=str)
def test_labels_come_back_in_their_own_type(labels: list[Any]) -> None:
    x, numbers = blobs(60)
    y = numpy.array(labels)[numbers]
    found = classifier().fit(x, y)
    assert found.predict(x).dtype == y.dtype
    assert found.classes_.tolist() == sorted(labels)
    assert found.score(x, y) > 0.8


@pytest.mark.usefixtures("nothing_cut")
def test_numbers_may_be_missing_later_though_none_was_in_training() -> None:
    x, y = blobs(60)
    found = classifier().fit(x, y)
    gaps = numpy.where(numpy.arange(4) == 1, numpy.nan, x[:1])
    filled = numpy.where(numpy.arange(4) == 1, numpy.median(x, axis=0), x[:1])
    numpy.testing.assert_array_equal(found.predict_proba(gaps), found.predict_proba(filled))


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_cut")
def test_a_pipeline_in_a_grid_search_is_cloned_and_scored() -> None:
    x, y = blobs(60)
    pipeline = make_pipeline(StandardScaler(), classifier())
    search = GridSearchCV(pipeline, {"rightsizedclassifier__max_drop": [0.01, 0.05]}, cv=2).fit(x, y)
    assert search.best_estimator_[-1].report_.settings.max_drop in (0.01, 0.05)
    assert search.best_score_ > 0.8
    assert cross_val_score(clone(pipeline), x, y, cv=2).mean() > 0.8


def test_a_class_with_one_sample_leaves_the_baseline_and_a_warning() -> None:
    x, y = blobs(40)
    y[0] = 5
    with pytest.warns(TopiaristWarning) as said:
        found = classifier().fit(x, y)
    assert any("baseline stays" in str(warning.message) for warning in said)
    assert (found.status_, found.report_) == ("unchanged", None)
    assert found.model_ is found.baseline_ and "to judge by" in found.sentence_
    assert found.classes_.tolist() == [0, 1, 5] and found.score(x, y) > 0.8
    with pytest.raises(BudgetError, match="too few samples"), pytest.warns(TopiaristWarning):
        classifier(budget=Budget(parameters=100)).fit(x, y)


def test_two_samples_are_enough_for_a_baseline() -> None:
    x = numpy.array([[0.0], [1.0]])
    with pytest.warns(TopiaristWarning):
        assert classifier().fit(x, ["a", "b"]).predict(x).tolist() == ["a", "b"]


@pytest.mark.slow
def test_a_network_of_the_users_own_and_a_budget() -> None:
    x, y = blobs()
    with isolated(0):
        network = nn.Sequential(nn.Linear(4, 24), nn.ReLU(), nn.Linear(24, 2))
    found = classifier(model=network, budget=Budget(parameters=60)).fit(x, y)
    assert count_parameters(found.model_) <= 60 < count_parameters(found.baseline_) == count_parameters(network)


@pytest.mark.slow
def test_few_rows_take_a_small_plan_and_the_page_says_so() -> None:
    x, y = hills()
    found = regressor(random_state=0, methods=None).fit(x, y).report_
    assert found is not None and found.settings.teacher == "baselines" and found.plan.methods == ("distinctiveness",)
    assert found.references == () and all(network.latency_ms is None for network in found.networks)
    assert found.gains.speed == "" and found.plan.seconds is None and "faster" not in found.verdict.sentence
    page, said = rightsizing_page(found), [note for note in found.notes if note.startswith("for fewer than 1,000")]
    assert len(said) == 2 and "the baseline is mlp 4-64-32-1" in "; ".join(said)
    assert all(note.partition("; methods")[0] in page for note in said) and "accuracy" not in page
    assert "None" not in page


def test_no_validation_part_is_refused() -> None:
    with pytest.raises(ValueError, match="validation_fraction"):
        classifier(validation_fraction=0).fit(*blobs())


@pytest.mark.parametrize("kind", [RightSizedClassifier, RightSizedRegressor])
def test_columns_of_one_name_are_one_line(kind: type[RightSizedClassifier | RightSizedRegressor]) -> None:
    table = pandas.DataFrame(numpy.zeros((4, 3)), columns=["a", "b", "a"])
    said = "^X has several columns called 'a': rename them, or leave all but one out$"
    for x in (table, table.astype(str)):
        with pytest.raises(ValueError, match=said):
            kind().fit(x, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="y has several columns called 'a'"):
        kind().fit(table.iloc[:, :2], table)


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
def test_numbers_come_back_in_their_units_and_shape(several: bool) -> None:
    x, y = hills()
    targets = numpy.stack([y, x[:, 2]], axis=1) if several else y
    found = regressor(random_state=0).fit(x, targets)
    assert found.predict(x).shape == targets.shape and found.score(x, targets) > 0.7
    assert found.report_ is not None and found.report_.metric.name == "rmse"
    assert found.report_.settings.max_drop == 0.02 and "accuracy" not in found.sentence_
    assert count_parameters(found.model_) <= count_parameters(found.baseline_) / 4 or found.status_ == "unchanged"


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_cut")
def test_samples_and_classes_count_as_much_as_they_weigh() -> None:
    x, y = hills(80)
    odd = numpy.arange(80) % 2 == 1
    moved = numpy.where(odd, y + 1e5, y)
    found = regressor(random_state=0).fit(x, moved, sample_weight=numpy.where(odd, 0.0, 1.0))
    assert abs(found.predict(x) - y).mean() < 2e4
    points, labels = make_blobs(n_samples=[110, 12], centers=[[0, 0], [1.5, 0]], random_state=0)
    plain, balanced = (
        classifier(random_state=0, class_weight=weight).fit(points, labels) for weight in (None, "balanced")
    )
    assert (balanced.predict(points) == 1).sum() > (plain.predict(points) == 1).sum()
    with pytest.raises(ValueError, match="Negative values in data passed to `sample_weight`"):
        regressor().fit(x, y, sample_weight=-numpy.ones(80))


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_cut")
def test_a_regressor_in_a_pipeline_with_pandas_and_threads() -> None:
    x, y = hills(80)
    frame = pandas.DataFrame(x, columns=list("abcd"))
    pipeline = make_pipeline(StandardScaler(), regressor(random_state=0, n_jobs=1)).set_output(transform="pandas")
    assert pipeline.fit(frame, y).score(frame, y) > 0.5
    assert pipeline[-1].feature_names_in_.tolist() == list("abcd")
    assert cross_val_score(pipeline, frame, y, cv=2, scoring="r2").mean() > 0.3
    for wrong in (0, 1.5):
        with pytest.raises(ValueError, match=f"n_jobs must be None or a whole number other than 0; found {wrong}"):
            regressor(n_jobs=wrong).fit(x, y)


def labelled(samples: int = 150) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return samples with three labels that follow from them."""
    x = numpy.random.default_rng(0).normal(size=(samples, 4))
    return x, numpy.stack([x[:, 0] > 0, x[:, 1] > 0.5, x[:, 0] + x[:, 2] > 0], axis=1).astype(int)


@pytest.mark.slow
def test_several_labels_are_a_matrix_as_for_the_perceptron_of_scikit_learn() -> None:
    x, y = labelled()
    frame, labels = pandas.DataFrame(x, columns=list("abcd")), pandas.DataFrame(y, columns=["red", "round", "ripe"])
    pipeline = make_pipeline(StandardScaler(), classifier(random_state=0, n_jobs=1)).set_output(transform="pandas")
    odd = numpy.arange(150) % 2 == 1
    found = pipeline.fit(frame, labels, rightsizedclassifier__sample_weight=numpy.where(odd, 0.0, 1.0))
    assert found[-1].report_ is not None and found[-1].report_.metric.name == "roc_auc"
    assert found[-1].report_.task.names == ("red", "round", "ripe")
    theirs = MLPClassifier(random_state=0, max_iter=2000).fit(x, y)
    assert found.classes_.tolist() == theirs.classes_.tolist() == [0, 1, 2]
    for ours, their in zip(
        (found.predict(frame), found.predict_proba(frame)), (y, theirs.predict_proba(x)), strict=True
    ):
        assert ours.shape == their.shape and ours.dtype == their.dtype
    assert (found.predict(frame) == y).mean() > 0.85 and 0.6 < found.score(frame, labels) <= 1
    with pytest.raises(ValueError, match="class_weight should be a list of dicts, or the string"):
        classifier(class_weight={0: 1, 1: 2}).fit(x, y)


@pytest.mark.usefixtures("nothing_cut")
def test_labels_that_are_none_are_refused_and_a_single_column_is_one_target() -> None:
    x, y = labelled(60)
    with pytest.raises(ValueError, match="y must be one class for each sample, or 0 and 1 for each of several labels"):
        classifier().fit(x, y * 2 + numpy.arange(60)[:, None] % 3)
    with pytest.raises(ValueError, match="each label is always the same: there is nothing to learn"):
        classifier().fit(x, numpy.ones_like(y))
    forms: list[Any] = [csr_array(y), y]
    sparse, dense = (classifier(random_state=0).fit(x, each).predict_proba(x) for each in forms)
    assert (sparse == dense).all()
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed"):
        assert classifier(random_state=0).fit(x, y[:, :1]).predict(x).shape == (60,)


def test_a_target_that_is_always_the_same_is_refused() -> None:
    with pytest.raises(ValueError, match="the target y is always 3: there is nothing to learn"):
        regressor().fit(hills()[0], numpy.full(150, 3.0))
