"""Cuts networks in every way that a setting names, and writes down what is left."""

from collections.abc import Callable, Iterator

from benchmarks.compensating.experiments import Setting
from benchmarks.compensating.methods import METHODS, Cut
from benchmarks.compensating.problem import Problem
from benchmarks.compensating.records import Outcome

Report = Callable[[Outcome], None]
Settings = Callable[[Problem], Iterator[Setting]]


def measure_problem(problem: Problem, settings: Settings, report: Report, *, labels: bool = True) -> None:
    """Measure all settings of one network; without labels, nothing is trained with them."""
    dense, forward = problem.accuracy(problem.model), problem.forward_seconds()
    for setting in settings(problem):
        for method in setting.methods:
            with_labels = labels and method in setting.labelled
            report(measure(problem, setting, method, dense, forward, labels=with_labels))


def measure(
    problem: Problem, setting: Setting, method: str, dense: float, forward: float, *, labels: bool = False
) -> Outcome:
    """Cut a network in one way; an error becomes the reason why there is no result."""
    outcome = Outcome(
        experiment=problem.name,
        setting=setting.name,
        method=method,
        seed=problem.seed,
        parameters=problem.costs.parameters(setting.widths),
        macs=problem.costs.macs(setting.widths),
        widths=dict(setting.widths),
        dense=dense,
        forward_seconds=forward,
        allotting_seconds=setting.seconds,
    )
    try:
        cut = METHODS[method](problem, setting.widths)
        found = accuracies(problem, cut, labels=labels, taught=method == "ours")
        return outcome.model_copy(update=found)
    except Exception as error:  # whatever a way raises, the others are still measured
        return outcome.model_copy(update={"reason": f"{type(error).__name__}: {error}".splitlines()[0]})


def accuracies(problem: Problem, cut: Cut, *, labels: bool, taught: bool) -> dict[str, float | None]:
    """Return the accuracy of each stage, and the seconds of each."""
    stages = {"cut": cut.cut, "refitted": cut.refitted, "settled": cut.settled}
    found = {name: None if stage is None else problem.accuracy(stage) for name, stage in stages.items()}
    if labels and problem.tune is not None:
        found["labelled"] = problem.accuracy(problem.tune(cut.best, taught))
    return {**found, "cut_seconds": cut.seconds, "settling_seconds": cut.settling_seconds}
