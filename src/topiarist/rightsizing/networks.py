"""The networks that could be kept: the baseline, those of each size and their finalist, measured and written down."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from torch import nn

from topiarist.data import Data
from topiarist.evolution import non_dominated
from topiarist.measurement import Budget, Measurement, measure
from topiarist.measurement.latency import in_turn, time_sample
from topiarist.measurement.runtimes import network_call, time_together
from topiarist.methods.outcome import Outcome
from topiarist.methods.registry import find_method
from topiarist.models.copying import copied
from topiarist.rightsizing.candidates import SizeResult
from topiarist.rightsizing.folds import Fold
from topiarist.rightsizing.judging import JudgedAnswers, judged_score
from topiarist.rightsizing.record import BASELINE, EpochRecord, LayerRecord, NetworkRecord, finite
from topiarist.statistics import Metric
from topiarist.training import History
from topiarist.training.inference import first_sample, part_logits, weights_of

REPEATS = 100  # of a sample, in each of several rounds


@dataclass(frozen=True)
class NamedNetwork:
    """A network that could be kept: who made it, and the answers of those made like it in each fold."""

    outcome: Outcome
    answers: Sequence[JudgedAnswers | None]
    ratio: float | None = None
    method: str | None = None
    finalist: bool = False

    @property
    def fold_scores(self) -> tuple[float | None, ...]:
        """The primary metric in each fold; None where the method was not asked any more, or it is not defined."""
        return tuple(None if answers is None else finite(judged_score([answers])) for answers in self.answers)

    @cached_property
    def score(self) -> float | None:
        """The primary metric over all folds; None where the method was not asked in all."""
        known = [answers for answers in self.answers if answers is not None]
        return finite(judged_score(known)) if len(known) == len(self.answers) else None


def named_networks(
    folds: Sequence[Fold], sizes: Sequence[SizeResult], baseline_history: History | None
) -> dict[str, NamedNetwork]:
    """Return the baseline, then the networks of each size and their finalist, by name."""
    histories = () if baseline_history is None else (baseline_history,)
    kept = folds[-1]
    baseline = Outcome(job=kept.job, model=kept.whole, histories=histories, reasons=_reasons(folds))
    found = {BASELINE: NamedNetwork(baseline, [fold.baseline_answers for fold in folds[:-1]])}
    for name, networks in kept.rivals.items():
        if networks is not kept.members:
            answers = [fold.judged_together(fold.rivals[name]) for fold in folds[:-1]]
            found[name] = NamedNetwork(Outcome(job=kept.job, model=networks[0]), answers)
    for size in sizes:
        found |= _named_of(size)
    return found


def _reasons(folds: Sequence[Fold]) -> tuple[str, ...]:
    """Return which kind of baseline was the better one, and in how many of the folds."""
    if not folds[-1].rivals:
        return ()
    kinds = [next(name for name, networks in fold.rivals.items() if networks is fold.members) for fold in folds]
    counted = ", ".join(f"{name} in {kinds.count(name)}" for name in dict.fromkeys(kinds))
    return (f"by the loss on the validation part, the better kind of training was: {counted} of {len(folds)} folds",)


def _named_of(size: SizeResult) -> dict[str, NamedNetwork]:
    """Return the networks of one size, then its finalist, by name."""
    found = {}
    for method, candidate in size.folds[-1].items():
        answers = [fold[method].answers if method in fold else None for fold in size.folds[:-1]]
        found[f"{method}-{size.ratio:.4g}"] = NamedNetwork(candidate.outcome, answers, size.ratio, method)
    finals = [finalist.answers for finalist in size.finalists[:-1]]
    found[size.name] = NamedNetwork(size.kept, finals, size.ratio, size.winners[-1], finalist=True)
    return found


def validation_losses(networks: Mapping[str, nn.Module], data: Data) -> dict[str, float]:
    """Return the loss of each network on the validation part."""
    weights = weights_of(data.validation)
    return {
        name: data.task.loss_of(*part_logits(model, data.validation), weights=weights)
        for name, model in networks.items()
    }


def measurements(networks: Mapping[str, nn.Module], data: Data, *, timed: bool = True) -> dict[str, Measurement]:
    """Measure networks on the validation part, and perhaps time them in turn."""
    found = {name: measure(model, data, part="validation", latency=False) for name, model in networks.items()}
    if not timed:
        return found
    sample = first_sample(data.validation)
    times = in_turn({name: partial(time_sample, model, sample, repeats=REPEATS) for name, model in networks.items()})
    return {
        name: replace(each, latency_ms=times[name].median_ms, latency_spread_ms=times[name].spread_ms)
        for name, each in found.items()
    }


def as_budgeted(
    networks: Mapping[str, nn.Module], measured: Mapping[str, Measurement], data: Data, budget: Budget
) -> dict[str, Measurement]:
    """Return measurements with the latency that a budget limits, which may be that of another runtime than torch."""
    runtime, threads = budget.runtime, budget.threads
    if budget.latency_ms is None or (runtime == "torch" and threads == 1):
        return dict(measured)
    sample = first_sample(data.validation)
    calls = [network_call(copied(model), sample, runtime=runtime, threads=threads) for model in networks.values()]
    times = dict(zip(networks, time_together(calls, threads=threads), strict=True))
    return {
        name: replace(found, latency_ms=times[name], latency_spread_ms=None, runtime=runtime, threads=threads)
        for name, found in measured.items()
    }


def network_records(
    named: Mapping[str, NamedNetwork],
    measured: Mapping[str, Measurement],
    budgeted: Mapping[str, Measurement],
    losses: Mapping[str, float],
    budget: Budget,
    metric: Metric,
) -> tuple[NetworkRecord, ...]:
    """Return what is known of each network; those on the front are not beaten in both the metric and parameters."""
    fits = {name: budget.excess(found) is None for name, found in budgeted.items()}
    known = {name: each.score for name, each in named.items()}
    costs = {
        name: (-metric.direction * value, measured[name].parameters)
        for name, value in known.items()
        if value is not None
    }
    front = dict(zip(costs, non_dominated(list(costs.values())).tolist(), strict=True))
    return tuple(
        _network_record(name, each, measured[name], losses[name], front=front.get(name, False), fits=fits[name])
        for name, each in named.items()
    )


def _network_record(
    name: str, known: NamedNetwork, measured: Measurement, loss: float, *, front: bool, fits: bool
) -> NetworkRecord:
    units = known.outcome.units.items()
    return NetworkRecord(
        id=name,
        name=name,
        method=known.method,
        marker=None if known.method is None else find_method(known.method).traits.marker,
        ratio=known.ratio,
        parameters=measured.parameters,
        nonzero=measured.nonzero,
        file_kb=measured.file_kb,
        memory_kb=measured.memory_kb,
        macs=measured.macs,
        latency_ms=measured.latency_ms,
        judged_score=known.score,
        fold_scores=known.fold_scores,
        validation_score=finite(measured.quality[measured.primary]),
        validation_loss=finite(loss),
        winner=known.finalist,
        front=front,
        fits=fits,
        curve=_curve(known.outcome.histories),
        layers=tuple(LayerRecord(name=space, before=before, after=after) for space, (before, after) in units),
        reasons=known.outcome.reasons,
        lineage=known.outcome.lineage,
    )


def _curve(histories: Sequence[History]) -> tuple[EpochRecord, ...]:
    """Return the epochs of trainings, one after the other, numbered through."""
    epochs = [epoch for history in histories for epoch in history.epochs]
    return tuple(
        EpochRecord(
            epoch=number,
            training_loss=finite(epoch.train_loss),
            validation_loss=finite(epoch.validation_loss),
            validation_score=finite(epoch.validation_score),
        )
        for number, epoch in enumerate(epochs, start=1)
    )
