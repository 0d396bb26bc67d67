"""Simple models stand beside the networks: made without what they are judged on, with the scores of scikit-learn."""

import numpy
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from tests.rightsizing.tasks import blobs, planned, shrunk, small_network
from topiarist.data import Data, Part
from topiarist.models.evaluation import count_parameters
from topiarist.randomness import array_generator
from topiarist.rightsizing.baseline import fold_with
from topiarist.rightsizing.folds import Fold, folds_of
from topiarist.rightsizing.judging import with_suited_metric
from topiarist.rightsizing.preparation import scale_notes
from topiarist.rightsizing.record import ReferenceRecord
from topiarist.rightsizing.references import LINEAR, better_notes, linear_network, missing_notes, reference_records
from topiarist.rightsizing.teaching import DISTILLED, PLAIN
from topiarist.statistics import find_metric
from topiarist.tasks import TaskKind
from topiarist.training import TrainConfig, train


def folds_with(data: Data) -> list[Fold]:
    network = small_network(classes=data.task.outputs)
    return [fold_with(each, [network], network, seed=0) for each in (*folds_of(data, "refitted", 2, seed=0), data)]


def linear_numbers() -> Data:
    random = array_generator(2, "numbers")
    x = random.normal(size=(160, 4))
    return Data.from_arrays(
        x, x @ [1.0, -2.0, 0.5, 0.0] + 0.1 * random.normal(size=160), task="numbers", scaling="zscore"
    )


@pytest.mark.parametrize("data", [blobs(120), linear_numbers()], ids=["classes", "numbers"])
def test_references_are_what_scikit_learn_says_of_the_same_parts(data: Data) -> None:
    folds = folds_with(data)
    guess, linear, boosting = reference_records(folds, seed=0)
    classes = data.task.kind == "classes"
    right, count, errors = 0, 0, []
    for fold in folds[:-1]:
        train, test = fold.data.train, fold.data.test
        assert isinstance(train, Part) and isinstance(test, Part)
        model = LogisticRegression(max_iter=2_000) if classes else Ridge()
        found = model.fit(train.x.numpy(), train.y.numpy()).predict(test.x.numpy())
        if classes:
            right, count = right + int((found == test.y.numpy()).sum()), count + len(test)
        else:
            truth = fold.task.answers(test.y).numpy()
            errors.append(fold.task.answers(test.y.new_tensor(found.reshape(len(test), -1))).numpy() - truth)
    expected = right / count if classes else float(numpy.sqrt(numpy.square(numpy.concatenate(errors)).mean()))
    assert linear.score == pytest.approx(expected, rel=1e-5)
    direction = 1 if classes else -1
    assert guess.score is not None
    for each in (linear, boosting):
        assert each.score is not None and direction * each.score > direction * guess.score
    assert linear.parameters == 5 * data.task.outputs and linear.file_kb == pytest.approx(linear.parameters / 256)
    assert boosting.parameters is None and boosting.file_kb is not None and boosting.file_kb > 10
    assert guess.test_score is not None and boosting.seconds is not None and boosting.seconds > 0


def test_of_samples_prepared_batch_by_batch_no_linear_model_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    folds = folds_with(blobs(120))
    guess, _, boosting = reference_records(folds, seed=0)
    assert missing_notes(folds) == ()
    monkeypatch.setattr("topiarist.data.samples.MOST_BYTES", 0)
    monkeypatch.setattr("topiarist.data.samples.FEW_BYTES", 0)
    lazily = folds_with(blobs(120))
    found = reference_records(lazily, seed=0)
    assert [each.model_copy(update={"seconds": 0.0}) for each in found] == [
        each.model_copy(update={"seconds": 0.0}) for each in (guess, boosting)
    ]
    (note,) = missing_notes(lazily)
    count = len(lazily[-1].data.train)
    assert note == (
        f"no logistic regression beside the networks: it would need all {count} training samples at once, 0 MB;"
        " the network without hidden units is as simple"
    )


def test_the_network_without_hidden_units_is_as_good_where_the_task_is_linear() -> None:
    data = blobs(240, apart=6.0)
    teacher = small_network()
    train(teacher, data, TrainConfig(epochs=15, learning_rate=0.01))
    folds = [fold_with(fold.data, [teacher], teacher, seed=0) for fold in folds_with(data)]
    found = linear_network(folds, planned(30, trainings=2), margin=0.05, alpha=0.05)
    assert found is not None and found.parameters == 15 == count_parameters(found.outcome.model)
    assert len(found.answers) == 2 and found.evidence.score > 0.95 and found.beats_guess
    assert not found.replaces(found.outcome.model)  # it must be smaller
    images = Data.from_arrays(numpy.zeros((40, 1, 2, 2)), [0, 1] * 20, scaling="none")
    network = small_network(classes=2)
    seen = [fold_with(images, [network], network, seed=0)]
    assert linear_network(seen, planned(1, trainings=1), margin=0.01, alpha=0.05) is None


@pytest.mark.parametrize(
    "rare, asked, expected", [(6, None, "macro_accuracy"), (6, "accuracy", "accuracy"), (30, None, None)]
)
def test_rare_classes_count_as_much_as_others(rare: int, asked: str | None, expected: str | None) -> None:
    labels = ["often"] * (100 - rare) + ["rare"] * rare
    data, notes = with_suited_metric(Data.from_arrays(numpy.eye(100), labels, scaling="none").with_metric(asked))
    assert data.task.metric == expected
    assert len(notes) == (expected == "macro_accuracy")
    if notes:
        assert notes[0].startswith("class 'rare' has 6.") and "balanced accuracy" in notes[0]


def test_ten_even_classes_have_no_rare_one() -> None:
    data, notes = with_suited_metric(
        Data.from_arrays(numpy.eye(205), [str(n % 10) for n in range(205)], scaling="none")
    )
    assert data.task.metric is None and not notes


@pytest.mark.slow
@pytest.mark.usefixtures("small_plan")
def test_a_record_of_a_table_has_references_the_teacher_and_both_kinds_of_baseline() -> None:
    found = shrunk(blobs(), None, teacher="boosting")
    assert found.record.settings.teacher == "boosting"
    whole, other = found.record.networks[:2]
    assert other.id in (PLAIN, DISTILLED) and other.parameters == whole.parameters
    assert other.judged_score is not None and not other.winner
    assert "by the loss on the validation part" in whole.reasons[0]
    names = [reference.name for reference in found.record.references]
    assert names == ["majority", "logistic regression", "gradient boosting", "teacher"]
    assert found.record.network(LINEAR).parameters == count_parameters(found.networks[LINEAR]) == 15


@pytest.mark.parametrize(
    "metric, scores, ahead",
    [
        ("accuracy", {"logistic regression": 0.95, "gradient boosting": 0.92}, ["logistic regression"]),
        ("accuracy", {"logistic regression": 0.80, "gradient boosting": 0.90}, []),
        ("rmse", {"ridge regression": 4.0, "gradient boosting": 3.0}, ["ridge regression", "gradient boosting"]),
        ("rmse", {"ridge regression": 6.0, "gradient boosting": 4.95}, []),
    ],
)
def test_simple_models_that_are_ahead_by_more_than_may_be_lost_are_named(
    metric: str, scores: dict[str, float], ahead: list[str]
) -> None:
    found = [ReferenceRecord(name=name, score=score, file_kb=1.0) for name, score in scores.items()]
    found.append(ReferenceRecord(name="teacher", score=1.0 if metric == "accuracy" else 0.0))
    kind: TaskKind = "classes" if metric == "accuracy" else "numbers"
    notes = better_notes(found, 0.9 if metric == "accuracy" else 5.0, find_metric(kind, metric), 0.02)
    assert len(notes) == bool(ahead) and all(name in notes[0] for name in ahead) and "teacher" not in str(notes)
    assert better_notes(found, None, find_metric(kind, metric), 0.02) == ()


def test_a_baseline_that_a_line_beats_is_said_to_be_one() -> None:
    """Nothing scales these inputs and targets: the network learns badly, and ridge regression is far ahead."""
    random = array_generator(2, "large numbers")
    x = 1_000.0 * random.normal(size=(200, 4))
    data = Data.from_arrays(x, x @ [1.0, -2.0, 0.5, 0.0] + random.normal(size=200), task="numbers")
    notes = shrunk(data, None).record.plan.notes
    assert any("ridge regression has" in note and "what is proven is said of the baseline" in note for note in notes)
    assert any("nothing scales inputs of about" in note and "targets of about" in note for note in notes)
    scaled = Data.from_arrays(x, x @ [1.0, -2.0, 0.5, 0.0], task="numbers", scaling="auto")
    assert scale_notes(scaled) == () == scale_notes(blobs())
