"""Who teaches the network for a table: networks and trees on folds of its training part, and their best blend."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from topiarist.data import Data
from topiarist.training.tables.boosting import BOOSTING, BoostedTrees, cross_fit_boosting, fit_boosting
from topiarist.training.tables.config import TabularConfig
from topiarist.training.tables.folds import InnerFold, inner_folds, training_part
from topiarist.training.tables.forests import can_be_forest, cross_fit_forest
from topiarist.training.tables.members import Members, train_members
from topiarist.training.tables.teachers import CrossFitted, TableTeacher, best_blend


@dataclass(frozen=True)
class FittedTeacher:
    """A teacher, all models that it was chosen from, and the networks among them, the best setting first."""

    teacher: TableTeacher
    candidates: Sequence[CrossFitted]
    members: Sequence[Members]


def fit_teacher(data: Data, config: TabularConfig) -> FittedTeacher:
    """Return those whose blend has the smallest loss on rows of the training part that they have not seen."""
    folds = inner_folds(data, config.folds, seed=config.seed)
    members = [] if config.teacher == "boosting" else train_members(data, folds, config)
    candidates = [each.fitted for each in members]
    if config.teacher != "ensemble":
        candidates += _boosting(data, folds, candidates, config)
    if config.teacher == "both" and can_be_forest(data.task, len(training_part(data)), config.forest_rows):
        candidates.append(cross_fit_forest(folds, data.task, seed=config.seed))
    return FittedTeacher(best_blend(candidates, training_part(data), data.task), candidates, members)


def _boosting(
    data: Data, folds: Sequence[InnerFold], others: Sequence[CrossFitted], config: TabularConfig
) -> list[CrossFitted]:
    """Return boosting of all folds, or none where it counts for too little in the blend of the first fold."""
    first = None
    if others and config.least_boosting:
        first = fit_boosting(folds[0].learned(), data.task, seed=config.seed)
        if _share(first, folds[0], others) < config.least_boosting:
            return []
    return [cross_fit_boosting(folds, data.task, seed=config.seed, first=first)]


def _share(boosted: BoostedTrees, fold: InnerFold, others: Sequence[CrossFitted]) -> float:
    """Return how much boosting counts in the blend with the smallest loss on the rows that a fold left out."""
    left, task = fold.left_out(), fold.whole.task
    rivals = [replace(each, out_of_fold=each.out_of_fold[fold.rows]) for each in others]
    own = CrossFitted(BOOSTING, task.kind, [boosted], boosted(left.samples).float())
    return best_blend([*rivals, own], left, task).shares.get(BOOSTING, 0.0)
