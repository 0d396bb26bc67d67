"""Trains networks that differ in their widths alone as one computation."""

from collections.abc import Hashable, Sequence

from torch import nn

from topiarist.data import Data
from topiarist.models import attach, card_of
from topiarist.models.padded import padded, structure, take_back
from topiarist.training.config import TrainConfig
from topiarist.training.history import History
from topiarist.training.tasks import common_key
from topiarist.training.train import check_apart, train_many


def train_padded(
    models: Sequence[nn.Module],
    datas: Sequence[Data],
    configs: Sequence[TrainConfig],
    *,
    teachers: Sequence[nn.Module] | None = None,
) -> list[History]:
    """Train networks in place as `train_many` does; those that differ in their widths alone as one stack.

    The numbers differ from those of single trainings by rounding alone.
    """
    check_apart(models)
    stand_ins: list[nn.Module] = list(models)
    for group in alike(models, datas, configs):
        for number, copy in zip(group, padded([models[number] for number in group]), strict=True):
            stand_ins[number] = copy
    standing = {id(model): stand_in for model, stand_in in zip(models, stand_ins, strict=True)}
    taught_by = None if teachers is None else [standing.get(id(teacher), teacher) for teacher in teachers]
    histories = train_many(stand_ins, datas, configs, teachers=taught_by)
    for model, stand_in in zip(models, stand_ins, strict=True):
        if stand_in is not model:
            take_back(model, stand_in)
            attach(model, card_of(stand_in))
            model.eval()
    return histories


def alike(models: Sequence[nn.Module], datas: Sequence[Data], configs: Sequence[TrainConfig]) -> list[list[int]]:
    """Give the numbers of those, two or more, that padding lets train as one.

    Others are left as they are: pruning would count the padding as weights that are zero.
    """
    groups: dict[Hashable, list[int]] = {}
    for number, (model, data, config) in enumerate(zip(models, datas, configs, strict=False)):
        same, common = structure(model), common_key(data, config)
        if same is not None and common is not None:
            groups.setdefault((same, common), []).append(number)
    return [group for group in groups.values() if len(group) > 1]
