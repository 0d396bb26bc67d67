"""Makes the record of a rightsizing: measures all networks, and writes down what was found and decided."""

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from importlib.metadata import PackageNotFoundError, version

import numpy
import torch
from torch import Tensor, nn

from topiarist.data import Data
from topiarist.evolution import non_dominated
from topiarist.measurement import Budget, Measurement, measure
from topiarist.measurement.latency import in_turn, time_sample
from topiarist.methods.outcome import Outcome
from topiarist.rightsizing.choice import Choice
from topiarist.rightsizing.descent import Descent, SizeResult
from topiarist.rightsizing.folds import Answers
from topiarist.rightsizing.record import (
    BASELINE,
    BudgetRecord,
    ConfirmationRecord,
    ConfusionRecord,
    DataRecord,
    DecisionRecord,
    EpochRecord,
    GainsRecord,
    LayerRecord,
    NearestRecord,
    NetworkRecord,
    PlanRecord,
    QualityRecord,
    RightsizingRecord,
    RungRecord,
    SettingsRecord,
    VerdictRecord,
    VersionsRecord,
)
from topiarist.rightsizing.wording import sentence
from topiarist.statistics import compare_answers
from topiarist.training import History
from topiarist.training.inference import first_sample, part_logits
from topiarist.training.metrics import accuracy, log_loss, macro_accuracy

NEAREST = 3
REPEATS = 100  # of a sample, in each of several rounds
PACKAGES = ("topiarist", "torch", "numpy", "scipy", "onnxruntime")


@dataclass(frozen=True)
class NamedNetwork:
    """A network that could be kept: who made it, and the answers of those made like it in each fold."""

    outcome: Outcome
    answers: Sequence[Answers | None]
    ratio: float | None = None
    method: str | None = None
    finalist: bool = False

    @property
    def fold_accuracies(self) -> tuple[float | None, ...]:
        """The accuracy in each fold; None where the method was not asked any more."""
        return tuple(None if answers is None else float(answers.mean()) for answers in self.answers)

    @property
    def accuracy(self) -> float | None:
        """The accuracy over all folds; None where the method was not asked in all."""
        known = [answers for answers in self.answers if answers is not None]
        return float(numpy.concatenate(known).mean()) if len(known) == len(self.answers) else None


@dataclass(frozen=True, kw_only=True)
class Findings:
    """All that is known when the work is done."""

    data: Data
    descent: Descent
    choice: Choice | None
    baseline_history: History | None
    budget: Budget
    settings: SettingsRecord

    @cached_property
    def named(self) -> dict[str, NamedNetwork]:
        """The baseline, then the networks of each size and their finalist, by name."""
        folds = self.descent.folds
        histories = () if self.baseline_history is None else (self.baseline_history,)
        baseline = Outcome(job=folds[-1].job, model=folds[-1].whole, histories=histories)
        found = {BASELINE: NamedNetwork(baseline, [fold.baseline_answers for fold in folds[:-1]])}
        for size in self.descent.sizes:
            found |= _named_of(size)
        return found

    @property
    def networks(self) -> dict[str, nn.Module]:
        """All networks that could be kept, by name."""
        return {name: known.outcome.model for name, known in self.named.items()}

    @property
    def chosen(self) -> str:
        """The name of the network that was chosen; that of the baseline where none was."""
        return BASELINE if self.choice is None or self.choice.size is None else self.choice.size.name

    @cached_property
    def tested(self) -> dict[str, tuple[Tensor, Tensor]]:
        """What the baseline and the network that was chosen answer to the test part: logits and class numbers."""
        sides = {"before": self.networks[BASELINE], "after": self.networks[self.chosen]}
        return {side: part_logits(network, self.data.test) for side, network in sides.items()}

    def record(self, *, threads: int) -> RightsizingRecord:
        """Measure all networks, and write everything down; the seconds are added by the caller."""
        measured = self._measurements()
        networks, test, plan = self._network_records(measured), self._test_record(), self.descent.plan
        record = RightsizingRecord(
            verdict=self._verdict(test),
            gains=_gains(measured[BASELINE], measured[self.chosen], test),
            data=_data_record(self.data),
            settings=self.settings,
            plan=PlanRecord(
                **{**asdict(plan), "ratios": self.descent.ratios, "notes": (*plan.notes, *self.descent.notes)}
            ),
            networks=networks,
            decision=DecisionRecord(
                test="Tango's score test on paired right answers, one-sided",
                order="from the largest size to the smallest, each at the full level, until one fails",
                rungs=tuple(map(_rung_record, self.descent.sizes)),
            ),
            test=test,
            confusion=self._confusions(),
            nearest=self._nearest(networks, measured) if self.choice is None else (),
            seconds={},
            versions=_versions(threads),
        )
        return with_sentence(record)

    def _measurements(self) -> dict[str, Measurement]:
        """Measure all networks on the validation part, and time them in turn."""
        sample = first_sample(self.data.validation)
        timers = {name: partial(time_sample, model, sample, repeats=REPEATS) for name, model in self.networks.items()}
        timed = in_turn(timers)
        return {
            name: replace(
                measure(model, self.data, part="validation", latency=False),
                latency_ms=timed[name].median_ms,
                latency_spread_ms=timed[name].spread_ms,
            )
            for name, model in self.networks.items()
        }

    def _network_records(self, measured: Mapping[str, Measurement]) -> tuple[NetworkRecord, ...]:
        known = {name: each.accuracy for name, each in self.named.items()}
        costs = {name: (-value, measured[name].parameters) for name, value in known.items() if value is not None}
        front = dict(zip(costs, non_dominated(list(costs.values())).tolist(), strict=True))
        return tuple(
            NetworkRecord(
                id=name,
                name=name,
                method=each.method,
                ratio=each.ratio,
                parameters=measured[name].parameters,
                nonzero=measured[name].nonzero,
                file_kb=measured[name].file_kb,
                memory_kb=measured[name].memory_kb,
                macs=measured[name].macs,
                latency_ms=measured[name].latency_ms,
                judged_accuracy=each.accuracy,
                fold_accuracies=each.fold_accuracies,
                validation_accuracy=measured[name].accuracy,
                validation_loss=_finite(measured[name].log_loss),
                winner=each.finalist,
                front=front.get(name, False),
                fits=self.budget.excess(measured[name]) is None,
                curve=_curve(each.outcome.histories),
                layers=tuple(
                    LayerRecord(name=space, before=before, after=after)
                    for space, (before, after) in each.outcome.units.items()
                ),
                reasons=each.outcome.reasons,
                lineage=each.outcome.lineage,
            )
            for name, each in self.named.items()
        )

    def _verdict(self, test: ConfirmationRecord | None) -> VerdictRecord:
        """Return what was decided; its sentence is written last."""
        size = None if self.choice is None else self.choice.size
        return VerdictRecord(
            status="unreachable" if self.choice is None else self.choice.status,
            sentence="",
            confirmed=None if test is None else test.difference >= -self.settings.max_drop,
            chosen=self.chosen,
            why=() if self.choice is None else self.choice.why,
            power=None if size is None else size.evidence.power,
            samples=None if size is None else size.evidence.samples,
            samples_needed=None if size is None else size.evidence.samples_needed,
        )

    def _test_record(self) -> ConfirmationRecord | None:
        if len(self.data.test) < 2:
            return None
        quality = {
            side: QualityRecord(
                accuracy=accuracy(logits, labels),
                macro_accuracy=macro_accuracy(logits, labels),
                log_loss=_finite(log_loss(logits, labels)),
            )
            for side, (logits, labels) in self.tested.items()
        }
        right = {side: (logits.argmax(dim=1) == labels).double() for side, (logits, labels) in self.tested.items()}
        margin, alpha = self.settings.max_drop, self.settings.alpha
        found = compare_answers(right["after"].numpy(), right["before"].numpy(), margin=margin, alpha=alpha)
        figures = {name: value for name, value in asdict(found).items() if "accuracy" not in name}
        return ConfirmationRecord(**quality, **figures)

    def _confusions(self) -> ConfusionRecord:
        if not len(self.data.test):
            return ConfusionRecord()
        classes = len(self.data.classes)
        counts = {
            side: torch.bincount(labels * classes + logits.argmax(dim=1), minlength=classes**2)
            for side, (logits, labels) in self.tested.items()
        }
        return ConfusionRecord(**{side: found.reshape(classes, classes).tolist() for side, found in counts.items()})

    def _nearest(
        self, networks: Sequence[NetworkRecord], measured: Mapping[str, Measurement]
    ) -> tuple[NearestRecord, ...]:
        """Return the networks that come nearest to fitting and to being good enough."""
        allowed, baseline = self.settings.max_drop, networks[0].judged_accuracy
        found = []
        for network in networks[1:]:
            excess = self.budget.excess(measured[network.id])
            known = network.judged_accuracy
            lost = None if known is None or baseline is None else baseline - known
            text = f"fits with {network.file_kb:.1f} KB" if excess is None else str(excess)
            if lost is not None:
                loss = f"{100 * lost:.1f} points, {100 * allowed:g} are allowed" if lost > 0 else "no accuracy"
                text += f"; it loses {loss}"
            distance = (1.0 if excess is None else excess.ratio) + (
                1.0 if lost is None else max(0.0, lost / allowed - 1)
            )
            found.append((distance, NearestRecord(id=network.id, text=text, lost=lost)))
        return tuple(record for _, record in sorted(found, key=lambda pair: pair[0])[:NEAREST])


def with_sentence(record: RightsizingRecord) -> RightsizingRecord:
    """Return the record with the sentence that follows from it."""
    verdict = record.verdict.model_copy(update={"sentence": sentence(record)})
    return record.model_copy(update={"verdict": verdict})


def _named_of(size: SizeResult) -> dict[str, NamedNetwork]:
    """Return the networks of one size, then its finalist, by name."""
    found = {}
    for method, candidate in size.folds[-1].items():
        answers = [fold[method].answers if method in fold else None for fold in size.folds[:-1]]
        found[f"{method}-{size.ratio:.4g}"] = NamedNetwork(candidate.outcome, answers, size.ratio, method)
    finals = [finalist.answers for finalist in size.finalists[:-1]]
    found[size.name] = NamedNetwork(size.kept, finals, size.ratio, size.winners[-1], finalist=True)
    return found


def _rung_record(size: SizeResult) -> RungRecord:
    found = size.evidence
    return RungRecord(
        **{
            **asdict(found),
            "discordant": (found.won + found.lost) / found.samples,
            "ratio": size.ratio,
            "network": size.name,
            "proven": size.proven,
            "tested": size.tested,
            "chosen_by_fold": tuple(size.winners[:-1]),
        }
    )


def _curve(histories: Sequence[History]) -> tuple[EpochRecord, ...]:
    """Return the epochs of trainings, one after the other, numbered through."""
    epochs = [epoch for history in histories for epoch in history.epochs]
    return tuple(
        EpochRecord(
            epoch=number,
            training_loss=_finite(epoch.train_loss),
            validation_loss=_finite(epoch.validation_loss),
            validation_accuracy=epoch.validation_accuracy,
        )
        for number, epoch in enumerate(epochs, start=1)
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _gains(before: Measurement, after: Measurement, test: ConfirmationRecord | None) -> GainsRecord:
    return GainsRecord(
        size=ratio(before.file_kb, after.file_kb),
        parameters=ratio(before.parameters, after.parameters),
        macs=ratio(before.macs, after.macs),
        nonzero=ratio(before.nonzero, after.nonzero),
        memory=ratio(before.memory_kb, after.memory_kb),
        latency=ratio(before.latency_ms, after.latency_ms),
        accuracy=None if test is None else test.difference,
    )


def ratio(one: float | None, other: float | None) -> float | None:
    """Return a ratio of two figures that are known."""
    return None if not one or not other else one / other


def _data_record(data: Data) -> DataRecord:
    return DataRecord(
        name=data.name,
        classes=data.classes,
        input_shape=data.input_shape,
        training=len(data.train),
        validation=len(data.validation),
        test=len(data.test),
        notes=data.notes,
    )


def budget_record(budget: Budget) -> BudgetRecord:
    """Return the limits of a budget."""
    return BudgetRecord(**budget.model_dump(exclude={"max_drop"}))


def _versions(threads: int) -> VersionsRecord:
    known: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            known[name] = version(name)
        except PackageNotFoundError:
            known[name] = None
    python, system = platform.python_version(), platform.platform()
    return VersionsRecord(**known, python=python, platform=system, threads=threads)
