"""Teachers and references: what smaller networks learn from, and the better of two ways to train the baseline.

A baseline that is weaker than its own distilled copies is an easy reference. So networks of the baseline's size are
trained as the smaller ones are, on the answers of the teacher, and in each fold the better kind is the baseline: by the
loss on the validation part, never by samples that are judged.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import get_args

from torch import nn

from topiarist.data import Data, Part
from topiarist.errors import SettingsError
from topiarist.methods.outcome import Outcome
from topiarist.randomness import child_seed
from topiarist.rightsizing.finetuning import finetune
from topiarist.rightsizing.folds import Fold
from topiarist.rightsizing.lessons import TableLesson
from topiarist.training import History, TabularConfig
from topiarist.training.inference import part_logits, predict_logits, weights_of
from topiarist.training.tables.config import TableTeacherName
from topiarist.training.tables.teachers import BlendedAnswers, TeacherNetwork
from topiarist.training.tables.teaching import fit_teacher

PLAIN, DISTILLED = "plain", "distilled"
WORDS = {"baselines": "baselines teach", "ensemble": "an ensemble teaches"}
WORDS |= dict.fromkeys(("boosting", "both"), "gradient boosting teaches")
FEWEST_ROWS = 10  # two for each of the folds of a teacher
# Cross-fitting is repeated in every fold: one setting instead of eight, and boosting, which takes longest, on all folds
# only where it counts in the blend of the first. benchmarks/README.md: what that costs, and which setting.
MEMBERS = TabularConfig(rates=(0.02,), dropouts=(0.0,), weight_decays=(0.3,), least_boosting=0.25, forest_rows=0)

# Of the baselines in what teaches, where both networks and boosting do. Few samples to validate by tell no more apart.
SHARES = (0.0, 0.5, 1.0)


def teacher_for(
    asked: TableTeacherName | None, data: Data, *, given: bool, trained: bool, few: bool = False
) -> TableTeacherName | None:
    """Return who teaches the networks of a table; None where networks learn from the baselines, on the rows alone.

    By default networks and boosting teach where the user gives no network, and the baselines of all seeds where rows
    are `few`; a user's own learns from its own seeds.
    """
    part = data.train
    rows = isinstance(part, Part) and len(data.input_shape) == 1 and data.task.own_loss is None
    if asked is None:
        usual: TableTeacherName = "baselines" if few else "both"
        return usual if rows and not given and len(part) >= FEWEST_ROWS else None
    if asked not in get_args(TableTeacherName):
        known = ", ".join(get_args(TableTeacherName))
        raise SettingsError(f"teacher must be one of {known}; found '{asked}'", setting="teacher")
    if trained:
        raise SettingsError(
            "a trained network teaches the smaller ones itself: leave out the teacher", setting="teacher"
        )
    if not rows and asked == "baselines":
        return None  # as they do for what is no table
    if asked == "ensemble" and (given or not rows):
        return None  # the baselines of all seeds are an ensemble
    if not rows or len(part) < FEWEST_ROWS:
        raise SettingsError(
            f"{WORDS[asked]} networks for a table, with {FEWEST_ROWS} rows or more and a loss by name;"
            f" found {len(part)} samples of shape {data.input_shape}",
            setting="teacher",
        )
    return asked


def with_teachers(folds: Sequence[Fold], teacher: TableTeacherName, seed: int) -> list[Fold]:
    """Return folds of a table with a teacher and its lesson, one for folds that train on the same rows.

    It is cross-fitted, unless the baselines teach; of "both" the baselines are a part where that validates best.
    """
    if teacher == "baselines":
        return _with_baselines_lessons(folds, seed)
    found: dict[int, tuple[TeacherNetwork, TableLesson]] = {}
    for fold in folds:
        key = id(fold.data.train)
        if key not in found:
            number = child_seed(seed, "teacher", len(found)) % 2**32
            fitted = fit_teacher(fold.data, MEMBERS.model_copy(update={"teacher": teacher, "seed": number}))
            taught = TeacherNetwork(fitted.teacher.outputs)
            if teacher == "both":
                alone = sum(each.data.train is fold.data.train for each in folds) == 1
                taught = _with_baselines(fold, taught, SHARES if alone else (0.5,))
            found[key] = taught, TableLesson(fold.data, taught.answer, number)
    pairs = [(fold, *found[id(fold.data.train)]) for fold in folds]
    return [replace(fold, teacher=network, lesson=lesson) for fold, network, lesson in pairs]


def _with_baselines(fold: Fold, cross_fitted: TeacherNetwork, shares: Sequence[float]) -> TeacherNetwork:
    """Return the blend of cross-fitted models and the baselines of all seeds that has the smallest validation loss.

    Cross-fitted models saw four fifths of the rows each, at one setting: on some tables the baselines are far better.
    Of folds that train on the same rows, what one is validated on another is judged by: there is no choice for them.
    """
    baselines = partial(predict_logits, fold.teacher)
    blends = [BlendedAnswers(cross_fitted.answer, baselines, share, fold.task.kind) for share in shares]
    return min(map(TeacherNetwork, blends), key=lambda teacher: _loss(teacher, fold.data))


def _with_baselines_lessons(folds: Sequence[Fold], seed: int) -> list[Fold]:
    """Return folds with what the baselines of all seeds answer to rows and mixed ones."""
    found: dict[int, TableLesson] = {}
    for fold in folds:
        number = child_seed(seed, "teacher", len(found)) % 2**32
        found.setdefault(id(fold.data.train), TableLesson(fold.data, partial(predict_logits, fold.teacher), number))
    return [replace(fold, lesson=found[id(fold.data.train)]) for fold in folds]


def with_references(
    folds: Sequence[Fold], history: History, *, epochs: int, trainings: int, seed: int
) -> tuple[list[Fold], History]:
    """Return folds whose baselines are the better of the plain ones and of as large ones that learn from the teacher.

    Of both kinds there are as many in each fold. Also return the history of the network to keep.
    """
    trainings = min(trainings, len(folds[0].members))
    distinct = {id(fold.data.train): fold for fold in folds}
    places = [fold for fold in distinct.values() for _ in range(trainings)]
    starts = [fold.members[number] for fold in distinct.values() for number in range(trainings)]
    outcomes = [Outcome(job=fold.job, model=start) for fold, start in zip(places, starts, strict=True)]
    seeds = [child_seed(seed, "reference", number % trainings) % 2**32 for number in range(len(places))]
    tuned = finetune(outcomes, places, epochs, seeds)
    made = {key: tuned[number * trainings : (number + 1) * trainings] for number, key in enumerate(distinct)}
    chosen = [_better(fold, [outcome.model for outcome in made[id(fold.data.train)]]) for fold in folds]
    kept = {id(outcome.model): outcome.histories[-1] for outcome in tuned}
    return chosen, kept.get(id(chosen[-1].whole), history)


def _better(fold: Fold, distilled: Sequence[nn.Module]) -> Fold:
    """Return a fold with the kind of baseline that has the smaller mean loss on its validation part, calibrated by it.

    So the plain one, whose training was stopped by these samples, does not win because it is less sure of itself.
    """
    rivals = {PLAIN: fold.members[: len(distilled)], DISTILLED: distilled}
    losses = {name: [_loss(network, fold.data) for network in networks] for name, networks in rivals.items()}
    name = min(losses, key=lambda kind: sum(losses[kind]) / len(losses[kind]))
    if name == PLAIN:
        return replace(fold, members=rivals[PLAIN], rivals=rivals)
    best = min(range(len(distilled)), key=losses[DISTILLED].__getitem__)
    return replace(fold, members=distilled, whole=distilled[best], rivals=rivals)


def _loss(network: nn.Module, data: Data) -> float:
    weights = weights_of(data.validation)
    outputs, y = part_logits(network, data.validation)
    if not bool(outputs.isfinite().all()):
        return math.inf
    scaled = data.task.calibrated(outputs, y, weights).scaled(outputs)
    return data.task.loss_of(scaled, y, weights=weights)
