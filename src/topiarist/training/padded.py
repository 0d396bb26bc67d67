"""Trains networks that differ in their widths alone as one computation."""

from collections.abc import Hashable, Sequence

from torch import nn

from topiarist.data import Data
from topiarist.models import attach, card_of
from topiarist.models.padded import padded, structure, take_back
from topiarist.training.config import TrainConfig
from topiarist.training.history import History
from topiarist.training.train import train_many


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
    groups: dict[Hashable, list[int]] = {}
    for number, model in enumerate(models):
        groups.setdefault(structure(model) or number, []).append(number)
    stand_ins: list[nn.Module] = list(models)
    for group in groups.values():
        if len(group) > 1:
            for number, copy in zip(group, padded([models[number] for number in group]), strict=True):
                stand_ins[number] = copy
    histories = train_many(stand_ins, datas, configs, teachers=teachers)
    for model, stand_in in zip(models, stand_ins, strict=True):
        if stand_in is not model:
            take_back(model, stand_in)
            attach(model, card_of(stand_in))
            model.eval()
    return histories
