"""The good practices of training, each against its alternatives, as one study.

After Huang, Training Deep Neural Networks (2024), which recommends them without figures; the networks, rates and epochs
are ours, chosen such that there is something to gain from each practice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy

from topiarist.data import Data, number_labels
from topiarist.data.split import original_rows
from topiarist.errors import SettingsError
from topiarist.reproductions.claims import Chance
from topiarist.reproductions.findings import Overrides, name_variants
from topiarist.study.study import Study

SAMPLES, QUICK_SAMPLES = 10_000, 2_000  # to train on, at most, unless another number is asked for
# As many runs in a first look as otherwise: with 5 seeds, the least p of the exact rank-sum test is 0.0079, which
# Holm's correction over the 7 activations makes 0.056, so that nothing could be shown. With 10 it is 0.00008.
RUNS = 10
DEEP = 8


@dataclass(frozen=True)
class PracticeAdvice:
    """What the paper says of some alternatives of a practice, against its first: that they are better, or worse.

    Where it ranks them, `each` of them must be so; where it leaves the choice, one is enough.
    """

    recommends: str
    alternatives: tuple[str, ...]
    says: Literal["better", "worse"] = "better"
    each: bool = False


@dataclass(frozen=True, kw_only=True)
class Practice:
    """A question, the alternatives that answer it, and what the paper advises.

    The alternatives are compared with the first, by each metric. A practice without any is not run on these data.
    """

    name: str
    question: str
    alternatives: Mapping[str, Overrides]
    advice: tuple[PracticeAdvice, ...]
    metrics: tuple[str, ...] = ("accuracy",)


def practices(classes: Sequence[str], *, samples: int, quick: bool) -> list[Practice]:
    """Return all practices, in the paper's order; overfitting is studied on a fifth of the samples."""
    few = max(samples // 5, 10 * len(classes))
    return [
        _schedules(),
        *(_activations(depth) for depth in (2, DEEP)),
        _batch_norm(),
        _clipping(),
        _early_stopping(few, epochs=100 if quick else 200),
        _dropout(few),
        _monte_carlo_dropout(few),
        _transfer(classes, samples=samples, epochs=50 if quick else 100),
    ]


def _schedules() -> Practice:
    """Schedules for a rate that is too high to stay so."""
    names = ("constant", "power", "exponential", "performance", "cosine", "one-cycle")
    schedules: dict[str, Overrides] = {name: {"name": name} for name in names}
    schedules["cosine with warm-up"] = {"name": "cosine", "warmup": 100}
    advice = "Change the learning rate by a schedule: power, exponential or performance."
    return Practice(
        name="Learning-rate schedules",
        question="Does a schedule help a network that starts at a high rate?",
        alternatives={
            name: {"training": {"learning_rate": 0.02, "schedule": schedule}} for name, schedule in schedules.items()
        },
        advice=(PracticeAdvice(advice, ("power", "exponential", "performance")),),
        metrics=("log_loss",),
    )


def _activations(depth: int) -> Practice:
    names = ("relu", "selu", "elu", "leaky_relu", "gelu", "silu", "tanh", "sigmoid")
    hidden = [50] * depth
    first = "SELU, then ELU, then leaky ReLU come before ReLU, unless run time has priority."
    return Practice(
        name=f"Activations with {depth} hidden layers",
        question=f"Which activation lets a network of {depth} hidden layers learn?",
        alternatives={
            name: {"model": {"hidden": hidden} | ({} if name == "relu" else {"activation": name})} for name in names
        },
        advice=(
            PracticeAdvice(first, ("selu", "elu", "leaky_relu"), each=True),
            PracticeAdvice("Tanh comes after ReLU.", ("tanh",), says="worse"),
            PracticeAdvice("Sigmoid comes after ReLU.", ("sigmoid",), says="worse"),
        ),
    )


def _batch_norm() -> Practice:
    """Batch norm in a deep network whose gradients vanish."""
    deep: Overrides = {"hidden": [50] * DEEP, "activation": "sigmoid"}
    sides = {f"{side} the activation": {"model": {**deep, "batch_norm": side}} for side in ("before", "after")}
    advice = "Batch norm, before or after the activation, against vanishing gradients."
    return Practice(
        name="Batch normalisation",
        question=f"Does batch norm let {DEEP} hidden layers of sigmoids learn, and on which side of the activation?",
        alternatives={"none": {"model": deep}, **sides},
        advice=(PracticeAdvice(advice, tuple(sides)),),
    )


def _clipping() -> Practice:
    """Gradients that are too large for plain SGD at a high rate."""
    steep: Overrides = {"optimizer": "sgd", "learning_rate": 0.1, "momentum": 0.9}
    clips: dict[str, Overrides] = {
        "none": {},
        "by value, 1": {"clip_value": 1.0},
        "by norm over all, 1": {"clip_norm": 1.0},
        "by norm of each tensor, 1": {"clip_norm": 1.0, "clip_norm_over": "tensor"},
    }
    advice = "Clip gradients by value or by norm against exploding gradients, and try both."
    return Practice(
        name="Gradient clipping",
        question=f"Does clipping save a network of {DEEP} hidden layers from a rate that is too high?",
        alternatives={
            name: {"model": {"hidden": [50] * DEEP}, "training": steep | clip} for name, clip in clips.items()
        },
        advice=(PracticeAdvice(advice, tuple(clips)[1:]),),
    )


def _early_stopping(few: int, *, epochs: int) -> Practice:
    """A network that is trained for too long on too little."""
    rules: dict[str, Overrides] = {
        f"none, {epochs} epochs": {},
        "patience 5": {"early_stopping": 5},
        "patience 20": {"early_stopping": 20},
        "patience 20, by accuracy": {"early_stopping": 20, "monitor": "accuracy"},
    }
    advice = "Stop when a validation metric, loss or accuracy, no longer improves."
    return Practice(
        name="Early stopping",
        question=f"With {few} samples: does it help to stop when the validation loss no longer falls, and to go back?",
        alternatives={
            name: {"data": {"samples": few}, "training": {"epochs": epochs, **rule}} for name, rule in rules.items()
        },
        advice=(PracticeAdvice(advice, tuple(rules)[1:]),),
        metrics=("log_loss", "accuracy"),
    )


def _dropout(few: int) -> Practice:
    rates: dict[str, Overrides] = {"none": {}} | {f"{rate:g}": {"dropout": rate} for rate in (0.1, 0.2, 0.3, 0.5)}
    rates["0.2, and 0.1 of the inputs"] = {"dropout": 0.2, "input_dropout": 0.1}
    advice = "Drop 10 to 50 % of the units of the last one to three hidden layers."
    return Practice(
        name="Dropout",
        question=f"With {few} samples: does dropout help a network that is too wide, and at which rate?",
        alternatives={name: _wide_network(few, rate) for name, rate in rates.items()},
        advice=(PracticeAdvice(advice, ("0.1", "0.2", "0.3", "0.5")),),
        metrics=("log_loss",),
    )


def _monte_carlo_dropout(few: int) -> Practice:
    """The same trained networks, predicting once or many times."""
    once = _wide_network(few, {"dropout": 0.2})
    means = {f"mean of {count}": {**once, "prediction": {"monte_carlo": count}} for count in (10, 100)}
    advice = "Average many predictions with dropout switched on (named as further reading)."
    return Practice(
        name="Monte-Carlo dropout",
        question="Is the mean of many predictions with dropout switched on better than one without?",
        alternatives={"one prediction": once, **means},
        advice=(PracticeAdvice(advice, tuple(means)),),
        metrics=("log_loss",),
    )


def _wide_network(few: int, dropout: Overrides) -> Overrides:
    """Return a network with far more weights than samples."""
    return {"data": {"samples": few}, "model": {"hidden": [200, 200], **dropout}}


def _transfer(classes: Sequence[str], *, samples: int, epochs: int) -> Practice:
    """Few samples of every second class, after many of the others; as many epochs for all.

    Neighbours in a list of classes are often alike (four animals in a row in CIFAR-10), and its halves are not: every
    second class makes two tasks of one kind, which is what transfer asks for. Fewer than 4 classes make no two tasks.
    """
    known, new = list(classes[::2]), list(classes[1::2])
    task = {"classes": new, "samples": 10 * len(new)}
    base = {"classes": known, "epochs": 20, "samples": samples}
    head: Overrides = {"train_top": 1, "learning_rate": 0.01}
    phases: dict[str, list[Overrides]] = {
        "base frozen, new head": [{**head, "epochs": epochs}],
        "new head, then all": [{**head, "epochs": epochs // 2}, {"epochs": epochs // 2, "learning_rate": 5e-4}],
        "new head and all at once": [{"epochs": epochs}],
    }
    alternatives: dict[str, Overrides] = {
        "from scratch": {"data": task, "training": {"epochs": epochs, "batch_size": 16}}
    }
    for name, each in phases.items():
        alternatives[name] = {"data": task, "base": base, "training": {"phases": each, "batch_size": 16}}
    advice = "Reuse the lower layers of a trained network: frozen first, then unfrozen at a lower rate."
    return Practice(
        name="Transfer",
        question=f"With {10 * len(new)} samples of every second class ({len(new)} of them): do layers help that learned"
        f" the {len(known)} others?",
        alternatives=alternatives if len(classes) >= 4 else {},
        advice=(PracticeAdvice(advice, ("base frozen, new head", "new head, then all")),),
    )


@dataclass(frozen=True)
class PracticesPlan:
    """The study to run, its practices, the label under which each alternative is found, and chance in each practice."""

    study: Study
    practices: tuple[Practice, ...]
    labels: Mapping[tuple[str, str], str]
    chances: Mapping[str, Chance]


def plan_practices(
    data: Data, *, location: str, target: str | None, samples: int | None, quick: bool, seed: int
) -> PracticesPlan:
    """Declare one study for all practices; alternatives that are the same thing are run once.

    Data with a test part of their own are run with several seeds, others in folds.
    """
    if data.source is None:
        raise SettingsError("the practices are compared on samples in memory")
    limit = (QUICK_SAMPLES if quick else SAMPLES) if samples is None else samples
    chosen = practices(data.classes, samples=min(limit, len(data.train)), quick=quick)
    variants, labels = name_variants(
        ((practice.name, name), f"{practice.name}: {name}", overrides)
        for practice in chosen
        for name, overrides in practice.alternatives.items()
    )
    own_test = data.source.parts is not None
    settings: Overrides = {"location": location, "validation_fraction": 0.15, "seed": seed}
    settings |= {} if target is None else {"target": target}
    settings |= {"samples": limit} if limit < len(data.source) else {}
    study = Study(
        name=f"good practices on {data.name}",
        data=settings,
        model={"hidden": [100, 100]},
        training={"epochs": 15 if quick else 40, "learning_rate": 0.002},
        variants=variants,
        seeds=[seed + number for number in range(RUNS)] if own_test else [seed],
        folds=None if own_test else RUNS,
        models=False,
    )
    chances = {practice.name: _chance(practice, data) for practice in chosen if practice.alternatives}
    return PracticesPlan(study, tuple(chosen), labels, chances)


def _chance(practice: Practice, data: Data) -> Chance:
    """Return chance on the samples that judge a practice: those of the test part, or of all folds."""
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
