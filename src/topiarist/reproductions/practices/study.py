"""The good practices of training, each against its alternatives, as one study.

After Huang, Training Deep Neural Networks (2024), which recommends them without figures; the networks, rates and epochs
are ours, chosen such that there is something to gain from each practice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy
from scipy.stats import binom

from topiarist.data import Data, number_labels
from topiarist.data.split import original_rows
from topiarist.errors import SettingsError
from topiarist.study.study import Study

Overrides = Mapping[str, Any]

SAMPLES, QUICK_SAMPLES = 10_000, 2_000
# As many runs in a first look as otherwise: with 5 seeds, the least p of the exact rank-sum test is 0.0079, which
# Holm's correction over the 7 activations makes 0.056, so that nothing could be shown. With 10 it is 0.00008.
RUNS = 10
DEEP = 8


@dataclass(frozen=True, kw_only=True)
class Practice:
    """A question and the alternatives that answer it; the others are compared with the first, by each metric."""

    name: str
    question: str
    alternatives: Mapping[str, Overrides]
    metrics: tuple[str, ...] = ("accuracy",)


@dataclass(frozen=True)
class Chance:
    """What always naming the largest class achieves: its share of the test samples, and the most that is luck.

    `highest` is the upper end of the central 95 % of the binomial distribution with this share and as many samples:
    a mean accuracy up to there is at chance.
    """

    share: float
    samples: int

    @property
    def highest(self) -> float:
        """The largest accuracy that is still at chance."""
        return float(binom.ppf(0.975, self.samples, self.share)) / self.samples


def practices(classes: Sequence[str], *, samples: int, quick: bool) -> list[Practice]:
    """Give all practices; overfitting is studied on a fifth of the samples, transfer needs classes enough to part."""
    few = max(samples // 5, 10 * len(classes))
    found = [
        schedules(),
        *(activations(depth) for depth in (2, DEEP)),
        batch_norm(),
        clipping(),
        early_stopping(few, quick=quick),
        dropout(few),
        monte_carlo_dropout(few),
    ]
    return [*found, transfer(classes, samples=samples, quick=quick)] if len(classes) >= 4 else found


def schedules() -> Practice:
    """A rate that is too high to stay so."""
    names = ("constant", "power", "exponential", "performance", "cosine", "one-cycle")
    declared = {name: {"training": {"learning_rate": 0.02, "schedule": {"name": name}}} for name in names}
    warm = {"training": {"learning_rate": 0.02, "schedule": {"name": "cosine", "warmup": 100}}}
    return Practice(
        name="Learning-rate schedules",
        question="Does a schedule help a network that starts at a high rate?",
        alternatives={**declared, "cosine with warm-up": warm},
        metrics=("log_loss",),
    )


def activations(depth: int) -> Practice:
    """Which activation, in a shallow and in a deep network."""
    names = ("selu", "elu", "leaky_relu", "gelu", "silu", "tanh", "sigmoid")
    hidden = {"hidden": [50] * depth}
    return Practice(
        name=f"Activations with {depth} hidden layers",
        question=f"Which activation lets a network of {depth} hidden layers learn?",
        alternatives={
            "relu": {"model": hidden},
            **{name: {"model": {**hidden, "activation": name}} for name in names},
        },
    )


def batch_norm() -> Practice:
    """Batch norm in a deep network whose gradients vanish."""
    deep: Overrides = {"hidden": [50] * DEEP, "activation": "sigmoid"}
    sides = {"before the activation": "before", "after the activation": "after"}
    return Practice(
        name="Batch normalisation",
        question=f"Does batch norm let {DEEP} hidden layers of sigmoids learn, and on which side of the activation?",
        alternatives={
            "none": {"model": deep},
            **{name: {"model": {**deep, "batch_norm": side}} for name, side in sides.items()},
        },
    )


def clipping() -> Practice:
    """Gradients that are too large for plain SGD at a high rate."""
    steep = {"optimizer": "sgd", "learning_rate": 0.1, "momentum": 0.9}
    declared: dict[str, Overrides] = {
        "none": {},
        "by value, 1": {"clip_value": 1.0},
        "by norm over all, 1": {"clip_norm": 1.0},
        "by norm of each tensor, 1": {"clip_norm": 1.0, "clip_norm_over": "tensor"},
    }
    return Practice(
        name="Gradient clipping",
        question=f"Does clipping save a network of {DEEP} hidden layers from a rate that is too high?",
        alternatives={
            name: {"model": {"hidden": [50] * DEEP}, "training": {**steep, **extra}} for name, extra in declared.items()
        },
    )


def early_stopping(few: int, *, quick: bool) -> Practice:
    """A network that is trained for too long on too little."""
    epochs = 100 if quick else 200
    declared: dict[str, Overrides] = {
        f"none, {epochs} epochs": {},
        "patience 5": {"early_stopping": 5},
        "patience 20": {"early_stopping": 20},
        "patience 20, by accuracy": {"early_stopping": 20, "monitor": "accuracy"},
    }
    data = {"samples": few}
    return Practice(
        name="Early stopping",
        question=f"With {few} samples: does it help to stop when the validation loss no longer falls, and to go back?",
        alternatives={name: {"data": data, "training": {"epochs": epochs, **more}} for name, more in declared.items()},
        metrics=("log_loss", "accuracy"),
    )


def dropout(few: int) -> Practice:
    """A network that is larger than the task."""
    rates: dict[str, Overrides] = {"none": {}} | {f"{rate:g}": {"dropout": rate} for rate in (0.1, 0.2, 0.3, 0.5)}
    rates["0.2, and 0.1 of the inputs"] = {"dropout": 0.2, "input_dropout": 0.1}
    return Practice(
        name="Dropout",
        question=f"With {few} samples: does dropout help a network that is too wide, and at which rate?",
        alternatives={name: wide_network(few, rate) for name, rate in rates.items()},
        metrics=("log_loss",),
    )


def monte_carlo_dropout(few: int) -> Practice:
    """The same trained networks, predicting once or many times."""
    once = wide_network(few, {"dropout": 0.2})
    return Practice(
        name="Monte-Carlo dropout",
        question="Is the mean of many predictions with dropout switched on better than one without?",
        alternatives={
            "one prediction": once,
            "mean of 10": {**once, "prediction": {"monte_carlo": 10}},
            "mean of 100": {**once, "prediction": {"monte_carlo": 100}},
        },
        metrics=("log_loss",),
    )


def wide_network(few: int, dropout: Overrides) -> Overrides:
    """A network with far more weights than samples."""
    return {"data": {"samples": few}, "model": {"hidden": [200, 200], **dropout}}


def transfer(classes: Sequence[str], *, samples: int, quick: bool) -> Practice:
    """Declare few samples of every second class, after many of the others; as many epochs for all.

    Neighbours in a list of classes are often alike (four animals in a row in CIFAR-10), and its halves are not: every
    second class makes two tasks of one kind, which is what transfer asks for.
    """
    epochs = 50 if quick else 100
    known, new = list(classes[::2]), list(classes[1::2])
    task = {"classes": new, "samples": 10 * len(new)}
    base = {"classes": known, "epochs": 20, "samples": samples}
    head = {"train_top": 1, "learning_rate": 0.01}
    ways: dict[str, list[Overrides]] = {
        "base frozen, new head": [{**head, "epochs": epochs}],
        "new head, then all": [{**head, "epochs": epochs // 2}, {"epochs": epochs // 2, "learning_rate": 5e-4}],
        "new head and all at once": [{"epochs": epochs}],
    }
    return Practice(
        name="Transfer",
        question=f"With {10 * len(new)} samples of every second class ({len(new)} of them): do layers help that learned"
        f" the {len(known)} others?",
        alternatives={
            "from scratch": {"data": task, "training": {"epochs": epochs, "batch_size": 16}},
            **{
                name: {"data": task, "base": base, "training": {"phases": phases, "batch_size": 16}}
                for name, phases in ways.items()
            },
        },
    )


@dataclass(frozen=True)
class Plan:
    """The study to run, its practices, the label under which each alternative is found, and chance in each practice."""

    study: Study
    practices: tuple[Practice, ...]
    labels: Mapping[tuple[str, str], str]
    chances: Mapping[str, Chance]


def plan_practices(
    data: Data, *, location: str, target: str | None, samples: int | None, quick: bool, seed: int
) -> Plan:
    """Declare one study for all practices; alternatives that are the same thing are run once.

    Data with a test part of their own are run with several seeds, others in folds.
    """
    if data.source is None:
        raise SettingsError("the practices are compared on samples in memory")
    limit = (QUICK_SAMPLES if quick else SAMPLES) if samples is None else samples
    chosen = practices(data.classes, samples=min(limit, len(data.train)), quick=quick)
    variants: dict[str, dict[str, Any]] = {}
    labels: dict[tuple[str, str], str] = {}
    for practice in chosen:
        for name, overrides in practice.alternatives.items():
            known = next((label for label, variant in variants.items() if variant == overrides), None)
            label = known if known is not None else f"{practice.name}: {name}"
            variants[label] = dict(overrides)
            labels[practice.name, name] = label
    own_test = data.source.parts is not None
    settings: dict[str, Any] = {"location": location, "validation_fraction": 0.15, "seed": seed}
    settings |= {} if target is None else {"target": target}
    settings |= {"samples": limit} if limit < len(data.source) else {}
    study = Study(
        name=f"good practices on {data.name}",
        data=settings,
        model={"hidden": [100, 100]},
        training={"epochs": 15 if quick else 40, "learning_rate": 0.002},
        variants=[{"name": label, **overrides} for label, overrides in variants.items()],
        seeds=[seed + number for number in range(RUNS)] if own_test else [seed],
        folds=None if own_test else RUNS,
        models=False,
    )
    return Plan(study, tuple(chosen), labels, {practice.name: chance_in(practice, data) for practice in chosen})


def chance_in(practice: Practice, data: Data) -> Chance:
    """Return what naming the largest class achieves on the samples that judge a practice: a test part, or all folds."""
    assert data.source is not None
    numbers, classes = number_labels(data.source)
    rows = original_rows(data.source)
    if data.source.parts is not None:
        rows = rows[data.source.parts[rows] == "test"]
    first = next(iter(practice.alternatives.values()))
    wanted = first.get("data", {}).get("classes", classes)
    counts = numpy.bincount(numbers[rows], minlength=len(classes))
    kept = [int(count) for name, count in zip(classes, counts, strict=True) if name in wanted]
    return Chance(share=max(kept) / sum(kept), samples=sum(kept))
