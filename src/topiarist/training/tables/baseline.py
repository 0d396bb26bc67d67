"""`train_tabular`: from a table to a strong small network, and what is known of it and its teachers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from topiarist.data import Data, Part
from topiarist.models.ensemble import Ensemble
from topiarist.tasks import Task
from topiarist.training.inference import predict_logits
from topiarist.training.tables.config import TabularConfig
from topiarist.training.tables.distilling import distil
from topiarist.training.tables.folds import training_part
from topiarist.training.tables.members import MemberSetting
from topiarist.training.tables.teachers import CrossFitted, TableTeacher
from topiarist.training.tables.teaching import fit_teacher


@dataclass(frozen=True, kw_only=True)
class TabularBaseline:
    """A network for a table, and those it learned from.

    Parameters
    ----------
    network : the distilled network, in eval mode, with the data's card
    ensemble : the members of the best setting, one per fold; None where boosting alone teaches
    teacher : who taught the network: `teacher.outputs(x)` answers to any samples
    setting : the learning rate, dropout and weight decay of the best members
    cross_validated : the task's score of each model, larger is better, on training rows that it had not seen, by name;
        `teacher` is that of the blend
    validated : the score of `network` and `teacher` on the validation part; empty without one
    """

    network: nn.Module
    ensemble: Ensemble | None
    teacher: TableTeacher
    setting: MemberSetting | None
    cross_validated: Mapping[str, float]
    validated: Mapping[str, float]

    @property
    def answers(self) -> Tensor:
        """What the teacher answers to each training sample without having seen it (n_samples, n_outputs)."""
        return self.teacher.out_of_fold


def train_tabular(data: Data, config: TabularConfig | None = None) -> TabularBaseline:
    """Train a strong small network for a table.

    Networks of several learning rates, dropouts and weight decays are trained as stacks, and gradient boosting is
    fitted, on folds of the training part; randomised trees too where several classes have few rows. Those whose blend
    has the smallest loss on rows that they have not seen teach one network, by what they answer to the rows and to
    mixed ones. Validation and test part take no part in any choice.

    Parameters
    ----------
    data : rows of a table in memory; classes, numbers or labels, with or without sample weights and groups
    config : how; `TabularConfig()` unless given

    Returns
    -------
    TabularBaseline : the network, its teachers, their scores, and what was chosen

    Raises
    ------
    DataError : where samples are no rows in memory, or are too few for folds
    SettingsError : where the task has a loss of the user's own, which a teacher cannot answer for

    Examples
    --------
    >>> from topiarist import load_data
    >>> quick = TabularConfig(rates=(0.01,), dropouts=(0,), weight_decays=(0.3,), epochs=5, teacher="ensemble")
    >>> found = train_tabular(load_data("iris"), quick)
    >>> found.network.hidden0, found.setting.learning_rate
    (Linear(in_features=4, out_features=64, bias=True), 0.01)
    """
    settings = TabularConfig() if config is None else config
    part = training_part(data)
    found = fit_teacher(data, settings)
    teacher, members = found.teacher, found.members
    network = distil(data, teacher, settings)
    return TabularBaseline(
        network=network,
        ensemble=Ensemble(members[0].networks) if members else None,
        teacher=teacher,
        setting=members[0].setting if members else None,
        cross_validated=_cross_validated(found.candidates, teacher, part, data.task),
        validated=_validated(network, teacher, data),
    )


def _cross_validated(
    candidates: Sequence[CrossFitted], teacher: TableTeacher, part: Part, task: Task
) -> Mapping[str, float]:
    answers = {each.name: each.out_of_fold for each in candidates} | {"teacher": teacher.out_of_fold}
    return {name: task.score(outputs, part.y, part.weights) for name, outputs in answers.items()}


def _validated(network: nn.Module, teacher: TableTeacher, data: Data) -> Mapping[str, float]:
    part = data.validation
    if not isinstance(part, Part) or not len(part):
        return {}
    answers = {"network": predict_logits(network, part.x), "teacher": teacher.outputs(part.x)}
    return {name: data.task.score(outputs, part.y, part.weights) for name, outputs in answers.items()}
