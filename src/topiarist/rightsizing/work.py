"""Carries out a planned rightsizing: baselines, references, the descent, the choice, and the record of it all."""

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

from pydantic import TypeAdapter
from torch import Tensor, nn

from topiarist.data import Data
from topiarist.measurement import Budget
from topiarist.measurement.footprint import Footprint, footprint
from topiarist.memory import return_freed
from topiarist.methods.registry import DEFAULT_METHOD
from topiarist.models import attach, card_for
from topiarist.models.copying import copied
from topiarist.models.evaluation import numbers_of, placed
from topiarist.rightsizing.baseline import folds_with, train_baselines
from topiarist.rightsizing.choice import Choice, choose, go_nearest_below, ratios_for
from topiarist.rightsizing.clock import Clock
from topiarist.rightsizing.descent import BEGUN, ENDED, Descent
from topiarist.rightsizing.finetuning import finetune
from topiarist.rightsizing.folds import Fold, folds_of, stopping_apart
from topiarist.rightsizing.making import Workshop
from topiarist.rightsizing.planning import WorkPlan
from topiarist.rightsizing.preparation import Setup
from topiarist.rightsizing.record import BASELINE, ReferenceRecord, RightsizingRecord, SettingsRecord
from topiarist.rightsizing.recording import Findings
from topiarist.rightsizing.references import (
    better_notes,
    can_be_referred,
    linear_network,
    linear_notes,
    missing_notes,
    reference_records,
)
from topiarist.rightsizing.relearning import can_learn_more, relearned
from topiarist.rightsizing.result import Rightsizing, UnreachableError
from topiarist.rightsizing.running import Crew, KeptFit, Runner
from topiarist.rightsizing.teaching import with_references, with_teachers
from topiarist.threads import one_thread
from topiarist.training import History
from topiarist.training.inference import first_sample

RECORD, SIMPLE_MODELS = "record.json", "simple_models.json"  # of the stages
RECORDS = TypeAdapter(tuple[ReferenceRecord, ...])
LARGE_BYTES, FLOAT32 = 2**24, 4  # 16 MB of samples as networks read them: a twentieth of what torch takes


@dataclass(frozen=True, kw_only=True)
class Work:
    """A planned rightsizing: what is known, what was asked for, who works, and the clock that is told how far it is.

    `brief`: no network is timed for the record, and no simple models are fitted.
    """

    job: Setup
    plan: WorkPlan
    budget: Budget
    settings: SettingsRecord
    crew: Crew
    clock: Clock
    brief: bool

    def carry_out(self) -> Rightsizing:
        """Do all that was planned on one thread: results are the same bits on any number of cores, as on workers."""
        with one_thread():
            return self._carried_out()

    def _carried_out(self) -> Rightsizing:
        """Train the baselines, go down the sizes, choose, and write down how it came about."""
        self.clock.frees = _is_large(self.job.data)
        if self.clock.frees:
            return_freed()  # of what read the data
        folds, history, notes = self._baselines()
        if history is not None:
            with self.clock.stage("baseline"):
                folds, history = self._referred(folds, history)
        folds[-1].calibrate(folds[-1].whole)
        descent, baseline_fits = self._descend(folds, replace(self.plan, notes=(*self.plan.notes, *notes)))
        choice = choose(descent, baseline_fits=baseline_fits)
        findings = Findings(
            data=self.job.data,
            descent=descent,
            choice=choice,
            baseline_history=history,
            budget=self.budget,
            settings=self.settings,
        )
        findings = findings if self.brief else self._with_simple_models(findings)
        return self._result(self._relearned(findings), choice)

    def _baselines(self) -> tuple[list[Fold], History | None, tuple[str, ...]]:
        """Return each fold with its baseline, the last that of the networks to keep; its history; notes."""
        job, plan, seed = self.job, self.plan, self.settings.seed
        datas = [*folds_of(job.data, plan.design, plan.folds, seed), job.data]
        if job.trained:
            given = copied(job.first).eval()
            return folds_with(datas, (given,), given, seed), None, ()

        def tell(epoch: int, records: Sequence[object]) -> None:
            if plan.stacked:
                self.clock.tell(BEGUN * epoch / plan.epochs, f"training {plan.baselines} baselines, epoch {epoch}")

        def tell_done(done: int) -> None:
            if not plan.stacked:
                self.clock.tell(BEGUN * done / plan.baselines, f"{done} of {plan.baselines} baselines are trained")

        fit = KeptFit(self.crew, tell_done)
        with self.clock.stage("baseline"):
            trained_on = datas if plan.design == "refitted" else [stopping_apart(datas[-1], seed)]
            folds, history, notes = train_baselines(
                job.build, trained_on, seeds=plan.seeds, epochs=plan.epochs, seed=seed, on_epoch=tell, fit=fit
            )
        if plan.design == "held out":
            folds = folds_with(datas, folds[0].members, folds[0].whole, seed)
        return folds, history, tuple(notes)

    def _referred(self, folds: Sequence[Fold], history: History) -> tuple[list[Fold], History]:
        """Return folds with their teachers, whose baseline is the better of plain and distilled ones; its history."""
        self.clock.tell(BEGUN, "teaching networks of the same size")
        teacher, seed = self.settings.teacher, self.settings.seed
        taught = folds if teacher is None else with_teachers(folds, teacher, seed, self.crew)
        return with_references(taught, history, self.plan, seed, self.crew)

    def _descend(self, folds: Sequence[Fold], plan: WorkPlan) -> tuple[Descent, bool]:
        """Go down the sizes; return what was found, and whether the baseline itself fits the budget."""
        data, budget, whole = self.job.data, self.budget, folds[-1].whole
        sample: Tensor = placed(first_sample(data.train), numbers_of(whole))

        def weighed(network: nn.Module) -> Footprint:
            timed = budget.latency_ms is not None or self.settings.objective == "latency"
            runtime, threads = budget.runtime, budget.threads
            return footprint(network, sample, data=data, latency=timed, runtime=runtime, threads=threads)

        size = weighed(whole)
        baseline_fits = budget.excess(size) is None
        shop = Workshop(
            folds=folds,
            plan=plan,
            whole=size,
            objective=self.settings.objective,
            runtime=budget.runtime,
            threads=budget.threads,
            deadline=self.clock.deadline,
        )
        descent = Descent(
            shop=shop,
            runner=Runner(shop, [fold.whole for fold in folds], self.crew.stages),
            clock=self.clock,
            ratios=plan.ratios,
            fits=lambda network: not budget.limits_size or budget.excess(weighed(network)) is None,
            margin=self.settings.max_drop,
            alpha=self.settings.alpha,
            from_whole=baseline_fits,
        )

        def file_kb(ratio: float) -> float:
            cut = descent.make(DEFAULT_METHOD, folds[-1], ratio)
            (untrained,) = finetune([cut], folds[-1:], 0, [folds[-1].seed])
            return footprint(untrained.model, sample, data=data).file_kb

        if not baseline_fits:
            descent.ratios = ratios_for(budget, size, plan.ratios, numbers_of(whole).element_size(), file_kb)
        with nullcontext() if self.crew.pool is None else self.crew.pool.sharing(shop.lean) as pool:
            descent.runner = replace(descent.runner, pool=pool)
            descent.go()
            if not descent.sizes and not baseline_fits:
                go_nearest_below(descent)
        return descent, baseline_fits

    def _with_simple_models(self, findings: Findings) -> Findings:
        """Add simple models of a table, and the network without hidden units; note where these will do."""
        descent = findings.descent
        if descent.cut_short or not can_be_referred(descent.folds):
            return findings
        self.clock.tell(ENDED, "simple models")
        with self.clock.stage("references"):
            margin, alpha = self.settings.max_drop, self.settings.alpha
            linear = linear_network(descent.folds, descent.plan, margin=margin, alpha=alpha, crew=self.crew)
            descent.notes.extend(linear_notes(linear, findings.networks[findings.chosen], descent.folds, alpha))
            made = partial(reference_records, descent.folds, self.settings.seed)
            kept = self.crew.stages.text(SIMPLE_MODELS, lambda: RECORDS.dump_json(made()).decode())
            with self.crew.stages.reading(SIMPLE_MODELS):
                references = RECORDS.validate_json(kept)
            descent.notes.extend(missing_notes(descent.folds))
            descent.notes.extend(better_notes(references, findings.named[BASELINE].score, descent.metric, margin))
            return replace(findings, references=references, linear=linear)

    def _relearned(self, findings: Findings) -> Findings:
        """Let the networks that are handed out learn once more, where there is more to learn than decisions left."""
        descent, teacher, seed = findings.descent, self.settings.teacher, self.settings.seed
        fold = descent.folds[-1]
        if descent.cut_short or teacher is None or not can_learn_more(fold, descent.plan, teacher):
            return findings
        self.clock.tell(ENDED, "learning from the validation part")
        handed_out = {name: findings.networks[name] for name in findings.handed_out}
        with self.clock.stage("relearning"):
            return replace(findings, relearned=relearned(handed_out, fold, descent.plan, teacher, seed, self.crew))

    def _result(self, findings: Findings, choice: Choice | None) -> Rightsizing:
        """Return all networks that could be kept, each with its card, and the record; raise where nothing will do."""
        self.clock.tell(ENDED, "measuring")
        # Where the time ran out there may be more of it next time: what was found then is not kept.
        cut_short = findings.descent.cut_short
        kept = (
            self._measured(findings) if cut_short else self.crew.stages.text(RECORD, lambda: self._measured(findings))
        )
        with self.crew.stages.reading(RECORD):
            record = RightsizingRecord.model_validate_json(kept)
        self.clock.tell(1.0, "done")
        if choice is None:
            raise UnreachableError(record)
        networks = findings.networks
        for network in networks.values():
            attach(network, card_for(network, findings.data))
        return Rightsizing(
            model=networks[findings.chosen],
            baseline=networks[BASELINE],
            networks=networks,
            status=choice.status,
            data=findings.data,
            record=record,
            linear_will_do=findings.linear is not None and findings.linear.replaces(networks[findings.chosen]),
        )

    def _measured(self, findings: Findings) -> str:
        """Return the record, with the seconds that it took, as text."""
        with self.clock.stage("measurement"):
            record = findings.record(timed=not self.brief)
        return record.model_copy(
            update={"seconds": {**self.clock.stages, "total": self.clock.elapsed}}
        ).model_dump_json()


def _is_large(data: Data) -> bool:
    """Return whether the samples take so much memory that what copies of them leave behind is worth giving back."""
    counts = sum(map(len, (data.train, data.validation, data.test)))
    return counts * math.prod(data.input_shape) * FLOAT32 > LARGE_BYTES
