"""The reference is the better of two trainings, chosen without what is judged; a table has a better teacher."""

from dataclasses import replace
from typing import Any

import numpy
import pytest
import torch
from torch import nn

from tests.rightsizing.tasks import blobs, planned, small_network
from topiarist.data import Data, Part
from topiarist.errors import SettingsError
from topiarist.models import mlp
from topiarist.randomness import child_seed
from topiarist.rightsizing.baseline import fold_with
from topiarist.rightsizing.folds import FewSamplesError, stopping_apart
from topiarist.rightsizing.lessons import MOST_SAMPLES, samples_to_learn
from topiarist.rightsizing.teaching import (
    DISTILLED,
    PLAIN,
    REPEATED,
    fitted,
    teacher_for,
    with_references,
    with_teachers,
)
from topiarist.training import History, TrainConfig, train
from topiarist.training.inference import part_logits, predict_logits
from topiarist.training.preparation import stack_key
from topiarist.training.tables.boosting import BOOSTING
from topiarist.training.tables.config import TeacherName
from topiarist.training.tables.forests import FOREST
from topiarist.training.tables.teachers import BlendedAnswers
from topiarist.training.tables.teaching import fit_teacher

NO_HISTORY = History(epochs=(), kept_epoch=0, stopped="")


def accuracy(network: torch.nn.Module, part: Part) -> float:
    outputs, y = part_logits(network, part)
    return float((outputs.argmax(dim=1) == y).double().mean())


def trained_members(data: Data, epochs: int) -> list[nn.Sequential]:
    members = [mlp([4, 16, 3], generator=torch.Generator().manual_seed(seed)) for seed in range(2)]
    for number, member in enumerate(members if epochs else ()):
        train(member, data, TrainConfig(epochs=epochs, learning_rate=0.01, seed=number))
    return members


@pytest.mark.parametrize("better", [DISTILLED, PLAIN])
def test_the_better_training_is_the_reference(better: str) -> None:
    data = blobs(300)
    members = trained_members(data, 60 if better == PLAIN else 0)
    if better == PLAIN:  # teachers learn from other targets
        assert isinstance(data.train, Part)
        data = replace(data, train=replace(data.train, y=2 - data.train.y))
    (fold,) = with_teachers([fold_with(data, members, members[0], seed=0)], "ensemble", 0)
    (chosen,), _ = with_references([fold], NO_HISTORY, planned(30, trainings=3), seed=0)
    assert list(chosen.rivals) == [PLAIN, DISTILLED] and len(chosen.rivals[DISTILLED]) == len(members)
    if better == DISTILLED:  # untrained networks lose against those that were taught
        assert chosen.members is chosen.rivals[DISTILLED] and chosen.whole in chosen.members
        assert accuracy(chosen.whole, data.test) > accuracy(members[0], data.test) + 0.2  # type: ignore[arg-type]
    else:
        assert list(chosen.members) == members and chosen.whole is members[0]


def test_what_is_judged_takes_no_part_in_the_choice() -> None:
    data = blobs(200)
    assert isinstance(data.test, Part)
    other = replace(data, test=replace(data.test, y=2 - data.test.y))
    kept = []
    for each in (data, other):
        members = [small_network(seed) for seed in range(2)]
        folds = with_teachers([fold_with(each, members, members[0], seed=0)], "ensemble", 0)
        (chosen,), _ = with_references(folds, NO_HISTORY, planned(10, trainings=2), seed=0)
        kept.append(predict_logits(chosen.whole, data.train.x))  # type: ignore[union-attr]
    assert torch.equal(*kept)


def test_a_lesson_is_the_rows_and_mixed_ones_with_the_answers_of_its_teacher() -> None:
    data = blobs(200)
    members = [small_network()]
    folds = [fold_with(data, members, members[0], seed=0)]
    (fold,) = with_teachers(folds, "boosting", 0)
    lesson, rows = fold.lesson, data.train
    assert lesson is not None and isinstance(rows, Part) and isinstance(lesson.data.train, Part)
    assert torch.equal(lesson.data.train.x[: len(rows)], rows.x) and len(lesson.data.train) == MOST_SAMPLES
    teacher = fitted(folds[0], "boosting", child_seed(0, "teacher", 0) % 2**32, REPEATED)
    assert torch.equal(lesson.answers, part_logits(teacher, lesson.data.train)[0])
    assert fold.answered is not None and fold.answered.test is not None
    assert torch.equal(fold.answered.validation, part_logits(teacher, data.validation)[0])
    assert torch.equal(fold.teacher_judged().outputs[0], part_logits(teacher, data.test)[0])
    assert lesson.data.validation is data.validation
    wide = Data.from_arrays(numpy.eye(40, 2_000), [0, 1] * 20, scaling="none")
    assert len(samples_to_learn(wide, 0)) == 1_000  # 2,000,000 numbers
    assert lesson.training(90, 0).epochs * MOST_SAMPLES == 198_000 and lesson.training(1, 0).epochs == 1


def test_baselines_of_all_seeds_teach_by_their_mean_answer_to_rows_and_mixed_ones() -> None:
    data = blobs(200)
    members = [small_network(seed) for seed in range(2)]
    folds = [fold_with(each, members, members[0], seed=0) for each in (data, replace(data, test=data.validation))]
    one, two = with_teachers(folds, "baselines", 0)
    assert one.lesson is not None and one.lesson is two.lesson and one.teacher is folds[0].teacher
    mean = torch.stack([predict_logits(member, one.lesson.data.train.x).softmax(dim=1) for member in members]).mean(0)  # type: ignore[union-attr]
    torch.testing.assert_close(one.lesson.answers.softmax(dim=1), mean)


def test_validated_samples_that_are_no_better_speak_for_no_plain_baseline() -> None:
    """They stopped its training: the plain one must be clearly better there, or the distilled one is the reference."""
    data = blobs(300)
    members = trained_members(data, 60)
    (fold,) = with_teachers([fold_with(data, members, members[0], seed=0)], "ensemble", 0)
    (chosen,), _ = with_references([fold], NO_HISTORY, planned(0, trainings=2), seed=0)  # no epoch: they are copies
    assert list(chosen.members) == chosen.rivals[DISTILLED]


@pytest.mark.parametrize(("apart", "forest_rows"), [(1.5, 0), (30.0, 0), (1.5, 400)])
def test_baselines_have_half_of_what_networks_are_given_beside_trees(apart: float, forest_rows: int) -> None:
    data = blobs(300, apart=apart)
    members = trained_members(data, 10)
    fold = fold_with(data, members, members[0], seed=0)
    config = REPEATED.model_copy(update={"teacher": "both", "seed": 0, "forest_rows": forest_rows})
    found = fit_teacher(data, config).teacher
    assert (FOREST in found.shares) == bool(forest_rows)
    teacher = fitted(fold, "both", 0, config)
    assert isinstance(teacher.answer, BlendedAnswers)
    networks = 1 - found.shares.get(BOOSTING, 0.0) - found.shares.get(FOREST, 0.0)
    assert teacher.answer.share == pytest.approx(networks / 2)
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(0))
    shares = [(found.outputs(x), 1 - networks / 2), (predict_logits(fold.teacher, x), networks / 2)]
    expected = sum(share * outputs.double().softmax(dim=1) for outputs, share in shares)
    torch.testing.assert_close(teacher(x).double().softmax(dim=1), expected, atol=1e-5, rtol=1e-4)


def test_few_rows_are_taught_by_the_baselines_unless_the_user_names_another() -> None:
    settings: dict[str, Any] = {"given": False, "trained": False, "few": True}
    assert teacher_for(None, blobs(), **settings) == "baselines"
    assert teacher_for("both", blobs(), **settings) == "both"
    assert teacher_for(None, blobs(), **{**settings, "given": True}) is None
    images = Data.from_arrays(numpy.zeros((40, 1, 4, 4)), [0, 1] * 20, scaling="none")
    assert teacher_for("baselines", images, given=False, trained=False) is None
    with pytest.raises(SettingsError, match="baselines teach networks for a table, with 10 rows or more"):
        teacher_for("baselines", Data.from_arrays(numpy.eye(12, 3), numpy.arange(12) / 7), given=False, trained=False)


def test_early_stopping_sees_no_sample_that_is_judged() -> None:
    x = numpy.stack([numpy.arange(120.0), numpy.arange(120) % 7], axis=1)
    data = Data.from_arrays(x, numpy.arange(120) % 3, groups=numpy.arange(120) // 3, scaling="none")
    apart = stopping_apart(data, seed=1)
    rows = [
        set(part.x[:, 0].tolist()) for part in (apart.train, apart.validation, data.train) if isinstance(part, Part)
    ]
    assert rows[0] | rows[1] == rows[2] and not rows[0] & rows[1] and 0.1 < len(rows[1]) / len(rows[2]) < 0.2
    groups = [{int(row) // 3 for row in part} for part in rows]
    assert not groups[0] & groups[1]
    few = replace(data, train=data.train.take(torch.tensor([0])))  # type: ignore[union-attr]
    with pytest.raises(FewSamplesError, match="leave none to stop training by"):
        stopping_apart(few, seed=1)


@pytest.mark.parametrize(
    "asked, given, expected",
    [
        (None, False, "both"),
        (None, True, None),
        ("ensemble", False, "ensemble"),
        ("ensemble", True, None),
        ("boosting", True, "boosting"),
        ("both", False, "both"),
    ],
)
def test_a_table_is_taught_by_more_than_itself(
    asked: TeacherName | None, given: bool, expected: TeacherName | None
) -> None:
    assert teacher_for(asked, blobs(), given=given, trained=False) == expected


def test_teachers_that_cannot_teach_are_refused() -> None:
    images = Data.from_arrays(numpy.zeros((40, 1, 4, 4)), [0, 1] * 20, scaling="none")
    assert teacher_for(None, images, given=False, trained=False) is None
    with pytest.raises(SettingsError, match=r"teaches networks for a table, .*; found 26 samples of shape \(1, 4, 4\)"):
        teacher_for("boosting", images, given=False, trained=False)
    with pytest.raises(SettingsError, match="a trained network teaches the smaller ones itself"):
        teacher_for("both", blobs(), given=True, trained=True)
    with pytest.raises(
        SettingsError, match="teacher must be one of baselines, ensemble, boosting, both; found 'forest'"
    ):
        teacher_for("forest", blobs(), given=False, trained=False)  # type: ignore[arg-type]


def test_folds_with_other_numbers_of_rows_learn_as_one_stack() -> None:
    members, data = [small_network()], blobs(4_000)
    assert isinstance(data.train, Part)
    few, many = (replace(data, train=data.train.take(torch.arange(count))) for count in (2_250, 2_330))
    folds = with_teachers([fold_with(each, members, members[0], seed=0) for each in (few, many)], "baselines", 0)
    lessons = [fold.lesson for fold in folds if fold.lesson is not None]
    assert [each.size.epoch for each in lessons] == [2_330, 2_330]  # by its own rows, the first would make fewer passes
    keys = {stack_key(members[0], each.data, each.training(90, 0), padded=True) for each in lessons}
    assert len(keys) == 1 and None not in keys
