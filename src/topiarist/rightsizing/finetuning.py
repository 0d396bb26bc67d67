"""Fine-tuning of candidates: on the labels, and on the answers of all baselines of their fold together."""

from collections.abc import Sequence
from dataclasses import replace

from torch import nn

from topiarist.methods.outcome import Outcome
from topiarist.models import attach, card_of
from topiarist.models.stacked import stackable
from topiarist.randomness import child_seed
from topiarist.rightsizing.baseline import baseline_training
from topiarist.rightsizing.folds import Fold
from topiarist.surgery.applying import copied_with_plan
from topiarist.training import Distillation, TrainConfig, train_many
from topiarist.training.loop import OnEpoch

RATES = {True: 0.02, False: 0.005}  # of networks that are trained as one stack, or one by one
DISTILLATION = Distillation(weight=0.9, temperature=3.0)


def finetune(
    outcomes: Sequence[Outcome],
    folds: Sequence[Fold],
    epochs: int,
    seeds: Sequence[int],
    *,
    on_epoch: OnEpoch | None = None,
) -> list[Outcome]:
    """Return networks that have learned from the answers of their fold's baselines, those of one shape together.

    What would be the same training in several folds is done once, in the last of them.
    """
    keys = [(id(each), fold.training_key, seed) for each, fold, seed in zip(outcomes, folds, seeds, strict=True)]
    last = {key: number for number, key in enumerate(keys)}
    networks = [copied_with_plan(outcomes[number].model) for number in last.values()]
    places = [folds[number] for number in last.values()]
    configs = [
        _finetuning(network, folds[number], epochs, seeds[number])
        for network, number in zip(networks, last.values(), strict=True)
    ]
    for network, fold in zip(networks, places, strict=True):  # trained again, it is no longer as it was packed
        attach(network, replace(card_of(network), bits=card_of(fold.whole).bits))
    teachers = [fold.taught for fold in places]
    histories = train_many(
        networks, [fold.learned for fold in places], configs, teachers=teachers, padded=True, on_epoch=on_epoch
    )
    found = {
        key: replace(outcomes[number], model=network, histories=(*outcomes[number].histories, history))
        for (key, number), network, history in zip(last.items(), networks, histories, strict=True)
    }
    return [found[key] for key in keys]


def _finetuning(network: nn.Module, fold: Fold, epochs: int, seed: int) -> TrainConfig:
    number = child_seed(seed, "fine-tuning") % 2**32
    if fold.lesson is not None:
        return fold.lesson.training(epochs, number)
    usual = baseline_training(fold.data, epochs, number, network)
    rate = RATES[stackable(network)]
    changes = {"early_stopping": None, "learning_rate": rate, "distillation": DISTILLATION}
    return TrainConfig(**{**dict(usual), **changes})
