"""Members of the ensemble for a table: networks of several learning rates, dropouts and decays, one for each fold."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

from torch import nn

from topiarist.data import Data, draw_rows
from topiarist.models.table_networks import tabular
from topiarist.randomness import child_seed, generator
from topiarist.training.config import TrainConfig
from topiarist.training.fitting import train_many
from topiarist.training.inference import predict_logits
from topiarist.training.tables.config import TabularConfig
from topiarist.training.tables.folds import InnerFold, inner_folds, training_part
from topiarist.training.tables.teachers import CrossFitted, answers_out_of_fold

BATCH_SIZES = {100_000: 512, 20_000: 256, 3_000: 64, 400: 32, 0: 16}  # from so many rows on, about 100 steps per pass
STACKED_ROWS = 20_000  # up to which all folds are trained as one stack: of more, copies would take too much memory


@dataclass(frozen=True)
class MemberSetting:
    """How a member is trained."""

    learning_rate: float
    dropout: float
    weight_decay: float

    def __str__(self) -> str:
        return f"rate {self.learning_rate:g}, dropout {self.dropout:g}, weight decay {self.weight_decay:g}"


@dataclass(frozen=True)
class Members:
    """The networks of one setting, one per fold, how they answer as one, and their loss on rows they have not seen."""

    setting: MemberSetting
    networks: Sequence[nn.Module]
    fitted: CrossFitted
    loss: float


def batch_size_for(rows: int) -> int:
    """Return how many samples make a step, for a table of so many rows."""
    return next(size for fewest, size in BATCH_SIZES.items() if rows >= fewest)


def train_members(data: Data, folds: Sequence[InnerFold], config: TabularConfig) -> list[Members]:
    """Train networks of all settings on all folds, those that differ in the rate alone as one stack.

    The best setting comes first. Of many rows, settings are compared on some of them, and the best alone is then
    trained on all.
    """
    tried = product(config.weight_decays, config.dropouts, config.rates)
    settings = [MemberSetting(rate, dropout, decay) for decay, dropout, rate in tried]
    count = len(training_part(data))
    if count > config.search_rows and len(settings) > 1:
        rows = draw_rows(count, config.search_rows, generator(config.seed, "rows to compare members on"))
        fewer = replace(data, train=training_part(data).take(rows))
        settings = [_trained(fewer, inner_folds(fewer, len(folds), seed=config.seed), settings, config)[0].setting]
    return _trained(data, folds, settings, config)


def _trained(
    data: Data, folds: Sequence[InnerFold], settings: Sequence[MemberSetting], config: TabularConfig
) -> list[Members]:
    part, found = training_part(data), []
    networks = [[_network(data, setting, config, number) for number in range(len(folds))] for setting in settings]
    together = len(folds) if len(part) <= STACKED_ROWS else 1
    for first in range(0, len(folds), together):
        numbers = range(first, min(first + together, len(folds)))
        datas = [folds[number].data() for number in numbers]
        rows = max(len(lent.train) for lent in datas)  # one length for all: what differs is trained apart
        train_many(
            [row[number] for row in networks for number in numbers],
            datas * len(settings),
            [_training(rows, setting, config, number) for setting in settings for number in numbers],
        )
    for setting, row in zip(settings, networks, strict=True):
        models = [partial(predict_logits, network) for network in row]
        answers = answers_out_of_fold(folds, models, data.task)
        loss = data.task.loss_of(answers, part.y, weights=part.weights)
        found.append(Members(setting, row, CrossFitted(str(setting), data.task.kind, models, answers), loss))
    return sorted(found, key=lambda members: members.loss)


def _network(data: Data, setting: MemberSetting, config: TabularConfig, number: int) -> nn.Module:
    inputs, outputs = data.input_shape[0], data.task.outputs
    random = generator(config.seed, "member", number)
    return tabular(inputs, outputs, hidden=config.hidden, dropout=setting.dropout, generator=random)


def _training(rows: int, setting: MemberSetting, config: TabularConfig, number: int) -> TrainConfig:
    epochs = config.epochs_of(rows, config.member_samples)
    return TrainConfig(
        epochs=epochs,
        batch_size=batch_size_for(rows),
        learning_rate=setting.learning_rate,
        schedule="cosine",
        optimizer="adamw",
        weight_decay=setting.weight_decay,
        early_stopping=epochs,  # the best weights are kept; a cosine is not cut short
        threads=1,
        device=config.device,
        seed=child_seed(config.seed, "member", number) % 2**32,
    )
