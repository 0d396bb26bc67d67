"""Makes the record of a rightsizing: measures all networks, and writes down what was found and decided."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version

from torch import nn

from topiarist.data import Data
from topiarist.errors import TopiaristError
from topiarist.measurement import Budget, Measurement
from topiarist.models import card_of
from topiarist.rightsizing.candidates import SizeResult
from topiarist.rightsizing.choice import Choice, judged_as
from topiarist.rightsizing.confirmation import (
    Tested,
    calibration_record,
    confirm,
    confusions,
    metric_record,
    metrics_shown,
)
from topiarist.rightsizing.descent import Descent
from topiarist.rightsizing.judging import JudgedAnswers, clearly_better, each_evidence, lost_of
from topiarist.rightsizing.ladder import Ladder
from topiarist.rightsizing.networks import (
    NamedNetwork,
    as_budgeted,
    measurements,
    named_networks,
    network_records,
    validation_losses,
)
from topiarist.rightsizing.record import (
    BASELINE,
    BudgetRecord,
    ColumnRecord,
    ConfirmationRecord,
    ConfusionRecord,
    DataRecord,
    DecisionRecord,
    EachProofRecord,
    GainsRecord,
    GuessRecord,
    NearestRecord,
    NetworkRecord,
    OfferRecord,
    ReferenceRecord,
    RightsizingRecord,
    RungRecord,
    SettingsRecord,
    TaskRecord,
    VerdictRecord,
    VersionsRecord,
    WorkPlanRecord,
    agreement_of,
    finite,
)
from topiarist.rightsizing.references import LINEAR, LinearNetwork
from topiarist.rightsizing.teaching import PLAIN
from topiarist.rightsizing.wording import margin_words, sentence, speed_words, why_of
from topiarist.statistics.answers import POWER
from topiarist.statistics.proofs import describe_test
from topiarist.tasks import Task, TaskKind
from topiarist.training import History
from topiarist.training.inference import part_logits, weights_of

NEAREST = 3
GUESSES: Mapping[TaskKind, str] = {
    "classes": "always answering the most frequent class",
    "numbers": "always answering the same number",
    "labels": "always answering how frequent each label is",
}
THREADS = 1  # of torch in every training, so that results do not depend on the machine
PACKAGES = ("topiarist", "torch", "numpy", "scipy", "onnxruntime")


@dataclass(frozen=True, kw_only=True)
class Findings:
    """All that is known when the work is done."""

    data: Data
    descent: Descent
    choice: Choice | None
    baseline_history: History | None
    budget: Budget
    settings: SettingsRecord
    references: tuple[ReferenceRecord, ...] = ()
    linear: LinearNetwork | None = None
    relearned: Mapping[str, nn.Module] = field(default_factory=dict)

    @cached_property
    def named(self) -> dict[str, NamedNetwork]:
        """The baseline, the networks of each size and their finalist, and that without hidden units, by name."""
        found = named_networks(self.descent.folds, self.descent.sizes, self.baseline_history)
        linear = {} if self.linear is None else {LINEAR: NamedNetwork(self.linear.outcome, self.linear.answers)}
        return found | linear

    @property
    def networks(self) -> dict[str, nn.Module]:
        """All networks that could be kept, by name, those that learned once more as they are after it."""
        return {name: self.relearned.get(name, network) for name, network in self._decided.items()}

    @property
    def _decided(self) -> dict[str, nn.Module]:
        """All networks as they were when it was decided among them."""
        return {name: known.outcome.model for name, known in self.named.items()}

    @property
    def handed_out(self) -> tuple[str, ...]:
        """The names of the networks that are handed out: the baseline unless it was trained on targets, what was chosen
        and what is offered, and the network without hidden units.
        """
        sizes = () if self.choice is None else (self.choice.size, *self.choice.offered)
        kept = self.descent.folds[-1]
        taught = [] if kept.members is kept.rivals.get(PLAIN) else [BASELINE]
        linear = [] if self.linear is None else [LINEAR]
        return (*taught, *(size.name for size in sizes if size is not None), *linear)

    @property
    def chosen(self) -> str:
        """The name of the network that was chosen; that of the baseline where none was."""
        return BASELINE if self.choice is None or self.choice.size is None else self.choice.size.name

    def record(self, *, timed: bool = True) -> RightsizingRecord:
        """Measure all networks, perhaps with their times, and write everything down; the caller adds the seconds."""
        measured, plan = self._measured(timed=timed), self.descent.plan
        budgeted = as_budgeted(self.networks, measured, self.data, self.budget)
        losses, metric = validation_losses(self._decided, self.data), self.descent.metric
        records = network_records(self.named, measured, budgeted, losses, self.budget, metric)
        networks = tuple(each.model_copy(update={"relearned": each.id in self.relearned}) for each in records)
        tested = self._tested()
        test = None if tested is None else confirm(tested, margin=self.settings.max_drop, alpha=self.settings.alpha)
        record = RightsizingRecord(
            verdict=self._verdict(test),
            task=_task_record(self.data.task),
            gains=_gains(measured[BASELINE], measured[self.chosen], test),
            data=_data_record(self.data),
            settings=self.settings,
            plan=WorkPlanRecord(
                **{**asdict(plan), "ratios": self.descent.ratios, "notes": (*plan.notes, *self.descent.notes)},
                seconds=self.descent.clock.estimate,
                cut_short=self.descent.cut_short,
            ),
            networks=networks,
            decision=DecisionRecord(
                test=describe_test(metric),
                order=order_words(self.descent.ladder),
                wanted_power=POWER,
                guess=self._guess(),
                rungs=tuple(_rung_record(size, self.descent, each=self.settings.each) for size in self.descent.sizes),
            ),
            references=self.references,
            test=test,
            confusion=ConfusionRecord() if tested is None else confusions(tested),
            calibration=None if tested is None else calibration_record(tested["after"], len(self.data.validation)),
            nearest=self._nearest(networks, budgeted) if self.choice is None else (),
            seconds={},
            versions=_versions(),
        )
        return with_sentence(record)

    def _measured(self, *, timed: bool) -> dict[str, Measurement]:
        """Measure all networks; what they are worth on the validation part is that of before they learned from it."""
        found = measurements(self.networks, self.data, timed=timed)
        before = measurements({name: self._decided[name] for name in self.relearned}, self.data, timed=False)
        return found | {name: replace(found[name], quality=each.quality) for name, each in before.items()}

    def _tested(self) -> Tested | None:
        """Return what the baseline and the chosen network answer to the test part; None where there is none."""
        if not len(self.data.test):
            return None
        before, after = (self._answered(self.networks[name]) for name in (BASELINE, self.chosen))
        return {"before": before, "after": after}

    def _answered(self, network: nn.Module) -> JudgedAnswers:
        """Return what a network answers to the test part, at the temperature of its card."""
        outputs, y = part_logits(network, self.data.test)
        task = self.data.task.answering_like(card_of(network).task)
        return JudgedAnswers(task, outputs[None], y, weights_of(self.data.test))

    def _guess(self) -> GuessRecord:
        """Return how the baseline compares with the best constant answer."""
        found = self.descent.baseline_guess
        return GuessRecord(
            answer=GUESSES[self.data.task.kind],
            score=finite(found.baseline_score),
            baseline_score=finite(found.score),
            difference=found.difference,
            low=found.low,
            samples=found.samples,
            beaten=clearly_better(found, self.settings.alpha),
        )

    def _verdict(self, test: ConfirmationRecord | None) -> VerdictRecord:
        """Return what was decided; its sentence is written last."""
        size = None if self.choice is None else self.choice.size
        return VerdictRecord(
            status="unreachable" if self.choice is None else self.choice.status,
            sentence="",
            agreement=None if self.chosen == BASELINE else agreement_of(test, self.settings.max_drop),
            chosen=self.chosen,
            offered=tuple(
                OfferRecord(network=size.name, file=f"{size.name}.safetensors")
                for size in (() if self.choice is None else self.choice.offered)
            ),
            why=(),
            power=None if size is None else size.evidence.power,
            samples=None if size is None else size.evidence.samples,
            samples_needed=None if size is None else size.evidence.samples_needed,
        )

    def _nearest(
        self, networks: Sequence[NetworkRecord], measured: Mapping[str, Measurement]
    ) -> tuple[NearestRecord, ...]:
        """Return the networks that come nearest to fitting and to being good enough."""
        allowed, baseline, metric = self.settings.max_drop, networks[0].judged_score, self.descent.metric
        found = []
        for network in networks[1:]:
            excess = self.budget.excess(measured[network.id])
            known = network.judged_score
            lost = None if known is None or baseline is None else lost_of(metric, known, baseline)
            text = f"fits with {network.file_kb:.1f} KB" if excess is None else str(excess)
            if lost is not None:
                loss = f"{margin_words(metric, lost, digits=2)}" if lost > 0 else "nothing"
                text += f"; it loses {loss}, {margin_words(metric, allowed)} may be lost"
            distance = (1.0 if excess is None else excess.ratio) + (
                1.0 if lost is None else max(0.0, lost / allowed - 1)
            )
            found.append((distance, NearestRecord(id=network.id, text=text, lost=lost)))
        return tuple(record for _, record in sorted(found, key=lambda pair: pair[0])[:NEAREST])


def with_sentence(record: RightsizingRecord) -> RightsizingRecord:
    """Return the record with the words that follow from it: the sentence, what it rests on, and the speed."""
    verdict = record.verdict.model_copy(update={"sentence": sentence(record), "why": why_of(record)})
    gains = record.gains.model_copy(update={"speed": speed_words(record)})
    return record.model_copy(update={"verdict": verdict, "gains": gains})


def _rung_record(size: SizeResult, descent: Descent, *, each: bool) -> RungRecord:
    found = size.evidence
    one_by_one, notes = _one_by_one(size, descent) if each else ((), ())
    differing = None if found.won is None or found.lost is None else (found.won + found.lost) / found.samples
    return RungRecord(
        ratio=size.ratio,
        network=size.name,
        verdict=judged_as(size, descent),
        inferior=found.high < -descent.margin,
        tested=size.tested,
        level=size.level,
        score=found.score,
        baseline_score=found.baseline_score,
        difference=found.difference,
        low=found.low,
        high=found.high,
        p=found.p,
        won=found.won,
        lost=found.lost,
        discordant=differing,
        r2_difference=found.r2_difference,
        samples=found.samples,
        power=found.power,
        samples_needed=found.samples_needed,
        times_as_far=finite(size.times_as_far),
        guess_difference=size.guess.difference,
        guess_low=size.guess.low,
        beats_guess=size.beats_guess,
        chosen_by_fold=tuple(size.winners[:-1]),
        each=one_by_one,
        notes=(*found.notes, *notes),
    )


def _one_by_one(size: SizeResult, descent: Descent) -> tuple[tuple[EachProofRecord, ...], tuple[str, ...]]:
    """Return the tests of all targets or labels by themselves, or why there are none."""
    answers = [finalist.answers for finalist in size.finalists if finalist.answers is not None]
    try:
        found = each_evidence(answers, descent.baseline, margin=descent.margin, alpha=size.level)
    except TopiaristError as error:
        return (), (f"not tested one by one: {error}",)
    kept = ("difference", "low", "p", "proven")
    return tuple(EachProofRecord(**{name: getattr(test, name) for name in kept}) for test in found), ()


def order_words(ladder: Ladder) -> str:
    """Return in which order sizes are tested, and at which level."""
    order = "from the largest size to the smallest, each at level {}, until one fails"
    if not ladder.finer:
        return order.format(f"{ladder.alpha:g}")
    return (
        f"coarse sizes {order.format(f'{ladder.coarse_level:g}')}; then those between the last that was proven and the"
        f" one that failed {order.format(f'{ladder.fine_level:g}')}"
    )


def _task_record(task: Task) -> TaskRecord:
    return TaskRecord(
        kind=task.kind, summary=str(task), names=task.names, metrics=tuple(map(metric_record, metrics_shown(task)))
    )


def _gains(before: Measurement, after: Measurement, test: ConfirmationRecord | None) -> GainsRecord:
    return GainsRecord(
        size=ratio(before.file_kb, after.file_kb),
        parameters=ratio(before.parameters, after.parameters),
        macs=ratio(before.macs, after.macs),
        nonzero=ratio(before.nonzero, after.nonzero),
        memory=ratio(before.memory_kb, after.memory_kb),
        latency=ratio(before.latency_ms, after.latency_ms),
        score=None if test is None else test.difference,
    )


def ratio(one: float | None, other: float | None) -> float | None:
    """Return a ratio of two figures that are known."""
    return None if not one or not other else one / other


def _data_record(data: Data) -> DataRecord:
    return DataRecord(
        name=data.name,
        input_shape=data.input_shape,
        training=len(data.train),
        validation=len(data.validation),
        test=len(data.test),
        notes=data.notes,
        columns=_column_records(data),
    )


def _column_records(data: Data) -> tuple[ColumnRecord, ...]:
    """Return what was decided for each column of a table; nothing for other data."""
    fitted = () if data.preprocessing is None else data.preprocessing.columns
    widths = {column.name: column.width for column in fitted}
    return tuple(
        ColumnRecord(
            name=decision.name,
            read_as=decision.read_as,
            different=decision.distinct,
            missing=decision.missing,
            gaps=decision.shown_gaps,
            inputs=widths.get(decision.name, 0),
            remarks=tuple(decision.said),
        )
        for decision in (() if data.source is None else data.source.columns)
    )


def budget_record(budget: Budget) -> BudgetRecord:
    """Return the limits of a budget."""
    return BudgetRecord(**budget.model_dump(exclude={"max_drop"}))


def _versions() -> VersionsRecord:
    known: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            known[name] = version(name)
        except PackageNotFoundError:
            known[name] = None
    python, system = platform.python_version(), platform.platform()
    return VersionsRecord(**known, python=python, platform=system, threads=THREADS)
