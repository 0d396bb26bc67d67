"""The work of an effort, and the plan of a rightsizing: all of that work, or as much of it as the effort declares.

Work is counted in multiply-accumulates. What is left out follows from the sizes of data and network alone: no clock is
asked, so that the same seed gives the same result on a busy machine.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from topiarist.methods.registry import DEFAULT_METHOD, find_method
from topiarist.tasks import TaskKind

EffortName = Literal["quick", "normal", "thorough"]
Design = Literal["refitted", "held out"]

TRAININGS = 3  # of a finalist, where they are one stack
FIRST = 0.1  # of the epochs of fine-tuning that the networks of all methods get
SMALLER = 0.6  # of the work of the baseline's epoch that an epoch of a smaller network takes
SIZES = 4  # coarse sizes at most, where networks are each trained by themselves; with one finer size after them
BASELINE_SHARE, CANDIDATES_SHARE = 0.35, 0.65  # of the work of an effort
ENOUGH = 0.5  # of the epochs of a level, below which something else is left out first
FEWEST_EPOCHS = 4  # with fewer, rows are left out: a network that saw each sample less often is no baseline
FEWEST_SIZES = 3  # two to see which way it goes, and one to fail


@dataclass(frozen=True, kw_only=True)
class FewRows:
    """What is enough for a table of fewer training rows than `rows`: at most so much of what an effort asks for.

    Of the methods those named here make networks, unless the user names others. They learn from the baselines of all
    seeds, unless the user names a teacher. `hidden` are the widths to start from, by kind of task, where fewer do.
    """

    rows: int
    hidden: Mapping[TaskKind, tuple[int, ...]]
    folds: int
    seeds: int
    finetuning_epochs: int
    trainings: int
    ratios: tuple[int, ...]
    finer: int
    methods: tuple[str, ...] = (DEFAULT_METHOD,)


@dataclass(frozen=True, kw_only=True)
class Effort:
    """A level: its work in multiply-accumulates, and what is done where that is enough.

    `ratios` are how many times smaller networks are asked for, from step to step; `finer` is how many sizes are tried
    between the last that is proven and the first that is not. At each, the networks of all methods are fine-tuned for a
    tenth of the epochs, and the best of them for all. `few_rows` is what is left of that for a small table.
    """

    work: float
    folds: int
    seeds: int
    epochs: int
    finetuning_epochs: int
    ratios: tuple[int, ...]
    finer: int
    few_rows: FewRows | None = None


# One core of an AMD EPYC with AVX2 trains with 16 billion multiply-accumulates a second: about 1 minute, 10 minutes and
# 1 hour, where nothing else is to be done.
EFFORTS: dict[EffortName, Effort] = {
    "quick": Effort(
        work=1e12,
        folds=4,
        seeds=4,
        epochs=40,
        finetuning_epochs=90,
        ratios=(3, 9, 27),
        finer=3,
        few_rows=FewRows(
            rows=1_000,
            # Four seeds of the tables of benchmarks/estimator.py, 128-64 → 64-32: R² 0.940 → 0.940 and 0.885 → 0.887,
            # ROC AUC 0.833 → 0.835, in 0.7 of the time; accuracy of five classes 75.8 → 74.9 %.
            hidden={"numbers": (64, 32), "labels": (64, 32)},
            folds=3,
            seeds=2,
            finetuning_epochs=20,
            trainings=2,
            ratios=(5, 27),
            finer=0,
        ),
    ),
    "normal": Effort(
        work=1e13, folds=5, seeds=3, epochs=100, finetuning_epochs=160, ratios=(2, 4, 8, 16, 32, 64), finer=3
    ),
    "thorough": Effort(
        work=6e13, folds=10, seeds=5, epochs=200, finetuning_epochs=300, ratios=(2, 4, 8, 16, 32, 64, 128), finer=5
    ),
}
DEFAULT_EFFORT: EffortName = "quick"  # an answer within about a minute; the others look closer


@dataclass(frozen=True, kw_only=True)
class NetworkWork:
    """The multiply-accumulates of a baseline: of an epoch of its training, and of a cut where that counts.

    `samples` and `macs`, training samples and multiply-accumulates per sample, are what they follow from.
    """

    samples: int
    macs: int
    epoch: float
    cut: float = 0.0

    def on(self, samples: int) -> "NetworkWork":
        """Return the same with other training samples."""
        return replace(self, samples=samples, epoch=self.epoch * samples / self.samples)


@dataclass(frozen=True, kw_only=True)
class WorkPlan:
    """What is done: how samples are judged, how networks are trained, which sizes and methods are tried.

    `work` is what the effort declares; `left_out` says what that leaves out, `notes` what else the user should know.
    """

    work: float
    design: Design
    folds: int
    seeds: int
    epochs: int
    finetuning_epochs: int
    trainings: int
    ratios: tuple[int, ...]
    finer: int
    methods: tuple[str, ...]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def baselines(self) -> int:
        """How many networks are trained as baselines."""
        return self.seeds * (self.folds + 1 if self.design == "refitted" else 1)

    @property
    def references(self) -> int:
        """How many networks of the baseline's size are trained as candidates are."""
        return min(self.trainings, self.seeds) * self.baselines // self.seeds if self.epochs else 0

    @property
    def stacked(self) -> bool:
        """Whether networks are trained as one computation."""
        return self.trainings > 1

    @property
    def first_epochs(self) -> int:
        """For how many epochs the networks of all methods are fine-tuned."""
        return max(1, round(FIRST * self.finetuning_epochs))

    @property
    def sizes(self) -> int:
        """How many sizes are tried at most."""
        return len(self.ratios) + self.finer

    def made(self, methods: Iterable[str]) -> int:
        """Return how many networks of a size these methods make.

        Where all folds train on the same samples, methods that look at no others make the same network in each.
        """
        looking = any(find_method(name).traits.looks_at_validation for name in methods)
        return self.folds + 1 if self.design == "refitted" or looking else 1

    def work_of_cuts(self, cut: float) -> float:
        """Return the work of all cuts, where one takes so much."""
        return cut * self.sizes * sum(self.made([method]) for method in self.methods)

    def work_of_candidates(self, epoch: float) -> float:
        """Return the work of training all candidates, where an epoch of the baseline takes so much."""
        first = FIRST * sum(_cost(method) * self.made([method]) for method in self.methods)
        last = self.trainings * self.made(self.methods)
        return ((first + last) * self.sizes * SMALLER + self.references) * self.finetuning_epochs * epoch

    def work_with(self, network: NetworkWork) -> float:
        """Return the work of all of it, which may end sooner: after the first size that is not good enough."""
        baselines = self.baselines * self.epochs * network.epoch
        return baselines + self.work_of_candidates(network.epoch) + self.work_of_cuts(network.cut)


def _cost(method: str) -> float:
    return find_method(method).traits.relative_cost


def full_plan(
    effort: Effort,
    methods: Sequence[str],
    *,
    design: Design,
    folds: int,
    trained: bool,
    stacked: bool = True,
    few_rows: FewRows | None = None,
) -> WorkPlan:
    """Return all that an effort asks for, or as much of it as is enough for a table of few rows.

    `folds` are as many as the samples allow; `trained`: the baseline is there already; `stacked`: networks are trained
    as one computation. Networks that train one by one try every second, or fourth … of the sizes, and one finer size.
    """
    ratios = effort.ratios
    while not stacked and len(ratios) > SIZES:
        ratios = ratios[::2]
    plan = WorkPlan(
        work=effort.work,
        design=design,
        folds=min(folds, effort.folds),
        seeds=1 if trained else effort.seeds,
        epochs=0 if trained else effort.epochs,
        finetuning_epochs=effort.finetuning_epochs,
        trainings=TRAININGS if stacked else 1,
        ratios=ratios,
        finer=effort.finer if stacked else min(effort.finer, 1),
        methods=tuple(methods),
    )
    return plan if few_rows is None else _for_few_rows(plan, few_rows)


def _for_few_rows(full: WorkPlan, enough: FewRows) -> WorkPlan:
    """Return as much of a plan as is enough for a table of few rows, and say what it leaves out."""
    plan = replace(
        full,
        folds=min(full.folds, enough.folds),
        seeds=min(full.seeds, enough.seeds),
        finetuning_epochs=min(full.finetuning_epochs, enough.finetuning_epochs),
        trainings=min(full.trainings, enough.trainings),
        ratios=enough.ratios,
        finer=min(full.finer, enough.finer),
        methods=tuple(method for method in full.methods if method in enough.methods) or full.methods,
    )
    return _told(full, plan, f"fewer than {enough.rows:,} training rows")


def plan_work(full: WorkPlan, network: NetworkWork, *, can_hold_out: bool = True) -> WorkPlan:
    """Return the largest plan within the work of an effort, and say what it leaves out.

    `can_hold_out`: the validation part alone could be judged.
    """
    plan = _with_baselines(full, network.epoch, can_hold_out) if full.epochs else full
    size = f"{network.samples:,} training samples and {network.macs:,} multiply-accumulates per sample"
    return _told(full, _with_candidates(plan, network), f"the work that {size} take")


def rows_within(plan: WorkPlan, network: NetworkWork, fewest: int) -> int:
    """Return how many training samples a plan leaves room for: all, unless it has nothing else left to leave out."""
    share = plan.work / plan.work_with(network)
    return network.samples if share >= 1 else min(max(int(share * network.samples), fewest), network.samples)


def _with_baselines(full: WorkPlan, epoch: float, can_hold_out: bool) -> WorkPlan:
    """Leave out seeds, then folds, until the baselines can be trained for enough epochs."""
    if full.baselines * full.epochs * epoch <= BASELINE_SHARE * full.work:
        return full
    thinner = [full, replace(full, seeds=1), replace(full, seeds=1, folds=min(full.folds, 3))]
    if can_hold_out:
        thinner.append(replace(full, seeds=1, folds=2, design="held out"))
    for plan in thinner:
        epochs = int(BASELINE_SHARE * full.work / (plan.baselines * epoch))
        if epochs >= ENOUGH * full.epochs:
            break
    return replace(plan, epochs=min(max(epochs, FEWEST_EPOCHS), full.epochs))


def _with_candidates(full: WorkPlan, network: NetworkWork) -> WorkPlan:
    """Shorten fine-tuning, then leave out the slowest methods and some of the sizes, until the work is enough."""
    allowed = CANDIDATES_SHARE * full.work if full.epochs else full.work
    if full.work_of_candidates(network.epoch) + full.work_of_cuts(network.cut) <= allowed:
        return full
    for plan in _narrower(full):
        training = allowed - plan.work_of_cuts(network.cut)
        epochs = int(plan.finetuning_epochs * training / plan.work_of_candidates(network.epoch))
        if epochs >= ENOUGH * full.finetuning_epochs:
            break
    return replace(plan, finetuning_epochs=min(max(epochs, FEWEST_EPOCHS), full.finetuning_epochs))


def _narrower(plan: WorkPlan) -> Iterator[WorkPlan]:
    """Yield plans with fewer and fewer methods, then finer sizes, then sizes; the last has one method, three sizes."""
    yield plan
    while len(plan.methods) > 1:
        slowest = max(plan.methods, key=_cost)
        plan = replace(plan, methods=tuple(method for method in plan.methods if method != slowest))
        yield plan
    while plan.finer > 1:
        plan = replace(plan, finer=plan.finer - 1)
        yield plan
    while len(plan.ratios) > FEWEST_SIZES:
        plan = replace(plan, ratios=plan.ratios[::2] if len(plan.ratios) > FEWEST_SIZES + 2 else plan.ratios[:-1])
        yield plan
    if plan.finer:
        yield replace(plan, finer=0)


def _told(full: WorkPlan, plan: WorkPlan, what: str) -> WorkPlan:
    """Return the plan with a note of what is left out of the full one, and for what."""
    words = {"design": "samples judged", "folds": "folds", "seeds": "seeds", "epochs": "epochs"}
    words |= {"finetuning_epochs": "epochs of fine-tuning", "trainings": "trainings of each network"}
    words |= {"finer": "finer sizes", "ratios": "sizes", "methods": "methods"}
    less = [
        f"{word}: {_listed(getattr(plan, name))} instead of {_listed(getattr(full, name))}"
        for name, word in words.items()
        if getattr(plan, name) != getattr(full, name)
    ]
    return replace(plan, left_out=(*plan.left_out, f"for {what}, {'; '.join(less)}")) if less else plan


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
