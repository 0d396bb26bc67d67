"""Teachers and references: what smaller networks learn from, and the better of two ways to train the baseline.

A baseline that is weaker than its own distilled copies is an easy reference. So networks of the baseline's size are
trained as the smaller ones are, on the answers of the teacher, and in each fold the better kind is the baseline: by the
loss on the validation part, never by samples that are judged.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import get_args

import torch
from torch import Tensor, nn

from topiarist.data import Data, Part
from topiarist.errors import SettingsError
from topiarist.randomness import child_seed
from topiarist.rightsizing.folds import Fold, to_train_on
from topiarist.rightsizing.lessons import LessonSize, TableLesson, TeacherAnswers, samples_to_learn
from topiarist.rightsizing.making import Made, MadeNetwork, TaughtFolds, TrainingTask, one_by_one, train_taught
from topiarist.rightsizing.planning import WorkPlan
from topiarist.rightsizing.running import Crew
from topiarist.training import History, TabularConfig
from topiarist.training.inference import part_logits, predict_logits, weights_of
from topiarist.training.tables.boosting import BOOSTING
from topiarist.training.tables.config import TableTeacherName
from topiarist.training.tables.forests import FOREST
from topiarist.training.tables.teachers import BlendedAnswers, TeacherNetwork
from topiarist.training.tables.teaching import fit_teacher

PLAIN, DISTILLED = "plain", "distilled"
WORDS = {"baselines": "baselines teach", "ensemble": "an ensemble teaches"}
WORDS |= dict.fromkeys(("boosting", "both"), "gradient boosting teaches")
FEWEST_ROWS = 10  # two for each of the folds of a teacher
# Cross-fitting is repeated in every fold: one setting instead of eight, and boosting, which takes longest, on all folds
# only where it counts in the blend of the first. benchmarks/README.md: what that costs, and which setting.
REPEATED = TabularConfig(rates=(0.02,), dropouts=(0.0,), weight_decays=(0.3,), least_boosting=0.25, forest_rows=0)

TEACHER = "teacher"  # stage
LESSON, VALIDATION, TEST = "lesson", "validation ", "test "  # answers by what was asked, and the number of the fold

# Of the baselines beside cross-fitted networks, where both networks and boosting teach. No validation part chooses it:
# that stopped the training of the baselines, and flatters them. benchmarks/README.md: what that was worth.
BASELINES_SHARE = 0.5
PLAINER = 2.0  # standard errors by which plain baselines must be better to be the reference: they were stopped by it


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


@dataclass(frozen=True)
class TeacherTask:
    """A teacher to be fitted to what some folds train on, and asked about all that they need its answers to.

    `asked` are the numbers of samples of its answers, by name.
    """

    number: int
    teacher: TableTeacherName
    seed: int
    folds: tuple[int, ...]
    samples: Part
    config: TabularConfig
    asked: Mapping[str, int]
    stage: str = TEACHER

    @property
    def name(self) -> str:
        """What its result is kept as."""
        return f"{self.stage}-{self.number}"

    def fold_of(self, place: int) -> int:
        """Return the fold of a network by its place in the result, in which there are none."""
        return place

    def check(self, made: Made) -> None:
        """Raise ValueError where answers are missing, or are those to other samples."""
        outputs = {answers.shape[1:] for answers in made.tensors.values()}
        if {name: len(answers) for name, answers in made.tensors.items()} != self.asked or len(outputs) != 1:
            raise ValueError("the answers are not those that were asked for")


def with_teachers(
    folds: Sequence[Fold],
    teacher: TableTeacherName,
    seed: int,
    crew: Crew | None = None,
    *,
    stage: str = TEACHER,
    config: TabularConfig | None = None,
) -> list[Fold]:
    """Return folds of a table with the lesson of a teacher, one for folds that train on the same rows.

    It is cross-fitted as `config` says, unless the baselines teach; beside "both" the baselines teach too.
    """
    config = REPEATED if config is None else config
    alike: dict[int, list[int]] = {}
    for number, fold in enumerate(folds):
        alike.setdefault(id(fold.data.train), []).append(number)
    tasks = []
    for number, places in enumerate(alike.values()):
        own = child_seed(seed, "teacher", number) % 2**32
        samples = samples_to_learn(folds[places[0]].data, own)
        asked = {LESSON: len(samples), **_asked_of(folds, places)}
        tasks.append(TeacherTask(number, teacher, own, tuple(places), samples, config, asked, stage))
    size = LessonSize.of([fold.data for fold in folds], [task.samples for task in tasks])
    if teacher == "baselines":
        answers = [predict_logits(folds[task.folds[0]].teacher, task.samples.samples) for task in tasks]
        taught = [_with_lesson(folds, task, each, size) for task, each in zip(tasks, answers, strict=True)]
    else:
        lean = [replace(fold, data=replace(fold.data, source=None)) for fold in folds]
        made = (crew or Crew()).run(teach, tasks, TaughtFolds(folds=lean))
        taught = [_with_answers(folds, task, each, size) for task, each in zip(tasks, made, strict=True)]
    found = {place: fold for each in taught for place, fold in each.items()}
    return [found[place] for place in range(len(folds))]


def _asked_of(folds: Sequence[Fold], places: Sequence[int]) -> dict[str, int]:
    """Return the numbers of samples of the other parts of some folds, by the names of a teacher's answers to them."""
    parts = {f"{VALIDATION}{place}": folds[place].data.validation for place in places}
    parts |= {f"{TEST}{place}": folds[place].data.test for place in places if len(folds[place].data.test)}
    return {name: len(part) for name, part in parts.items()}


def _with_lesson(folds: Sequence[Fold], task: TeacherTask, answers: Tensor, size: LessonSize) -> dict[int, Fold]:
    """Return the folds of a teacher with what it answered to their samples."""
    lesson = TableLesson(to_train_on(folds[task.folds[0]].data), task.samples, answers, size)
    return {place: replace(folds[place], lesson=lesson) for place in task.folds}


def _with_answers(folds: Sequence[Fold], task: TeacherTask, made: Made, size: LessonSize) -> dict[int, Fold]:
    """Return the folds of a teacher with all that it answered."""
    known = made.tensors
    return {
        place: replace(fold, answered=TeacherAnswers(known[f"{VALIDATION}{place}"], known.get(f"{TEST}{place}")))
        for place, fold in _with_lesson(folds, task, known[LESSON], size).items()
    }


def teach(task: TeacherTask, taught: TaughtFolds) -> Made:
    """Fit a teacher and return its answers to the samples to learn, and to the other parts of each fold."""
    folds = {place: taught.folds[place] for place in task.folds}
    network = fitted(taught.folds[task.folds[0]], task.teacher, task.seed, task.config)
    answers = {LESSON: network.answer(task.samples.samples)}
    for place, fold in folds.items():
        answers[f"{VALIDATION}{place}"] = part_logits(network, fold.data.validation)[0]
        if len(fold.data.test):
            answers[f"{TEST}{place}"] = part_logits(network, fold.data.test)[0]
    return Made(tensors=answers)


def fitted(fold: Fold, teacher: TableTeacherName, seed: int, config: TabularConfig) -> TeacherNetwork:
    """Return the cross-fitted teacher of a fold, of "both" blended with its baselines.

    Cross-fitted models saw four fifths of the rows each: on some tables the baselines are far better. They share what
    answers out of fold leave to networks; what these give to trees stays with them.
    """
    found = fit_teacher(fold.data, config.model_copy(update={"teacher": teacher, "seed": seed})).teacher
    if teacher != "both":
        return TeacherNetwork(found.outputs)
    trees = sum(found.shares.get(name, 0.0) for name in (BOOSTING, FOREST))
    share = BASELINES_SHARE * (1 - trees)
    baselines = partial(predict_logits, fold.teacher)
    return TeacherNetwork(BlendedAnswers(found.outputs, baselines, share, fold.task.kind))


def with_references(
    folds: Sequence[Fold], history: History, plan: WorkPlan, seed: int, crew: Crew | None = None
) -> tuple[list[Fold], History]:
    """Return folds whose baselines are the better of the plain ones and of as large ones that learn from the teacher.

    Of both kinds there are as many in each fold. Also return the history of the network to keep.
    """
    trainings = min(plan.trainings, len(folds[0].members))
    distinct = {id(fold.data.train): number for number, fold in enumerate(folds)}
    starts = [(place, folds[place].members[number]) for place in distinct.values() for number in range(trainings)]
    whole = TrainingTask(
        stage="references",
        epochs=plan.finetuning_epochs,
        folds=tuple(place for place, _ in starts),
        seeds=tuple(child_seed(seed, "reference", number % trainings) % 2**32 for number in range(len(starts))),
        networks=tuple(MadeNetwork(start, (), (), None) for _, start in starts),
    )
    tasks = [whole] if plan.stacked else one_by_one(whole, folds)
    shared = TaughtFolds(folds=folds)
    results = (crew or Crew()).run(train_taught, tasks, shared.lean, [fold.whole for fold in folds])
    tuned = [made.networks[place] for made in results for place in range(len(made.networks))]
    made = {key: tuned[number * trainings : (number + 1) * trainings] for number, key in enumerate(distinct)}
    chosen = [_better(fold, [network.model for network in made[id(fold.data.train)]]) for fold in folds]
    kept = {id(network.model): network.histories[-1] for network in tuned}
    return chosen, kept.get(id(chosen[-1].whole), history)


def _better(fold: Fold, distilled: Sequence[nn.Module]) -> Fold:
    """Return a fold with the plain baselines if they are clearly better on its validation part, else with the others.

    These samples stopped the plain ones' training: on them they look better than they are, and by chance besides. So
    their mean loss, calibrated by the same samples, must be smaller by more than two standard errors.
    """
    rivals = {PLAIN: fold.members[: len(distilled)], DISTILLED: distilled}
    losses = {name: torch.stack([_losses(each, fold.data) for each in kind]) for name, kind in rivals.items()}
    gained = losses[DISTILLED].mean(dim=0) - losses[PLAIN].mean(dim=0)
    error = float(gained.std(correction=0)) / math.sqrt(len(gained))
    if not float(gained.mean()) <= PLAINER * error:  # also where a distilled one has no finite answer
        return replace(fold, members=rivals[PLAIN], rivals=rivals)
    best = distilled[int(losses[DISTILLED].mean(dim=1).argmin())]
    return replace(fold, members=distilled, whole=best, rivals=rivals)


def _losses(network: nn.Module, data: Data) -> Tensor:
    """Return the calibrated loss of each validation sample, by its weight."""
    weights = weights_of(data.validation)
    outputs, y = part_logits(network, data.validation)
    if not bool(outputs.isfinite().all()):
        return torch.full((len(y),), math.inf, dtype=torch.float64)
    scaled = data.task.calibrated(outputs, y, weights).scaled(outputs)
    losses = data.task.each_loss(scaled, y)
    return losses if weights is None else losses * weights
