"""The plan of a rightsizing: all of it where epochs are fast, within its time where they are slow, said in words."""

from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any

import pytest

from topiarist.methods.registry import rightsizing_methods
from topiarist.rightsizing.planning import (
    DEFAULT_EFFORT,
    EFFORTS,
    FEWEST_EPOCHS,
    TOO_LONG,
    Effort,
    EffortName,
    Speed,
    WorkPlan,
    full_plan,
    plan_again,
    plan_work,
)

METHODS = rightsizing_methods()
SPEEDS = [2.0**power for power in range(-16, 14)]
every_effort = pytest.mark.parametrize("name", EFFORTS)


def planned(effort: Effort, epoch_seconds: float, **changes: Any) -> WorkPlan:
    settings: dict[str, Any] = {"design": "refitted", "folds": 100, "trained": False, **changes}
    methods, cut_seconds = settings.pop("methods", METHODS), settings.pop("cut_seconds", 0.0)
    can_hold_out = settings.pop("can_hold_out", True)
    full = full_plan(effort, methods, **settings)
    return plan_work(full, Speed(epoch_seconds, cut_seconds), can_hold_out=can_hold_out)


def estimate(plan: WorkPlan, epoch_seconds: float) -> float:
    return plan.baselines * plan.epochs * epoch_seconds + plan.seconds_of_candidates(epoch_seconds)


@every_effort
@pytest.mark.parametrize("trained", [False, True])
def test_fast_epochs_leave_the_plan_of_the_level(name: EffortName, trained: bool) -> None:
    effort = EFFORTS[name]
    plan = planned(effort, 1e-5, trained=trained)
    assert (plan.methods, plan.ratios, plan.folds) == (METHODS, effort.ratios, effort.folds)
    assert plan.finetuning_epochs == effort.finetuning_epochs
    assert (plan.seeds, plan.epochs) == ((1, 0) if trained else (effort.seeds, effort.epochs))
    assert plan.notes == ()


@every_effort
@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("can_hold_out", [False, True])
def test_slow_epochs_keep_to_the_time(name: EffortName, trained: bool, can_hold_out: bool) -> None:
    effort = EFFORTS[name]
    full = planned(effort, 1e-9, trained=trained)
    kept = 0
    for seconds in SPEEDS:
        plan = planned(effort, seconds, trained=trained, can_hold_out=can_hold_out)
        lasts = estimate(plan, seconds)
        if FEWEST_EPOCHS in (plan.epochs, plan.finetuning_epochs):
            assert lasts > estimate(replace(plan, finetuning_epochs=1), seconds)  # it cannot be less
        elif plan.finetuning_epochs < full.finetuning_epochs and (trained or plan.baselines < full.baselines):
            kept += 1
            assert lasts <= plan.seconds
        else:
            assert lasts <= TOO_LONG * plan.seconds
        assert len(plan.methods) >= 1 and len(plan.ratios) >= 1 and plan.folds >= 2
        assert plan.design == "refitted" or (can_hold_out and not trained)
    assert kept >= 3


@every_effort
def test_the_slower_the_less_is_done(name: EffortName) -> None:
    plans = [planned(EFFORTS[name], seconds) for seconds in SPEEDS]
    for faster, slower in pairwise(plans):
        assert slower.baselines <= faster.baselines
        assert set(slower.methods) <= set(faster.methods) and set(slower.ratios) <= set(faster.ratios)
    assert (plans[-1].design, plans[-1].seeds, plans[-1].epochs) == ("held out", 1, FEWEST_EPOCHS)


def test_where_folds_train_alike_only_methods_that_look_at_validation_work_more_than_once() -> None:
    plan = planned(EFFORTS["quick"], 1e-9, design="held out", folds=3)
    assert [plan.made([method]) for method in ("distinctiveness", "factorisation", "magnitude")] == [1, 1, 1]
    assert [plan.made([method]) for method in ("genetic-front", "surgeon")] == [4, 4]
    assert plan.made(METHODS) == 4
    assert planned(EFFORTS["quick"], 1e-9, folds=3).made(["distinctiveness"]) == 4


@every_effort
def test_a_baseline_that_was_faster_than_it_seemed_leaves_time_for_more(name: EffortName) -> None:
    full = full_plan(EFFORTS[name], METHODS, design="refitted", folds=100, trained=False, stacked=False)
    slow, fast = Speed(full.seconds / 30, 1.0), Speed(full.seconds / 3000, 0.01)
    plan = plan_work(full, slow)
    again = plan_again(full, plan, fast, 0.6 * full.seconds)
    same = ("design", "folds", "seeds", "epochs", "trainings")
    assert [getattr(again, name) for name in same] == [getattr(plan, name) for name in same]
    assert again.finetuning_epochs > plan.finetuning_epochs and set(again.methods) >= set(plan.methods)
    assert slow.at(fast.epoch).cut == pytest.approx(0.01)


@every_effort
def test_networks_trained_one_by_one_come_in_a_few_sizes(name: EffortName) -> None:
    full = full_plan(EFFORTS[name], METHODS, design="refitted", folds=4, trained=False, stacked=False)
    assert 3 <= len(full.ratios) <= 4 and set(full.ratios) <= set(EFFORTS[name].ratios)
    assert full.ratios[0] == EFFORTS[name].ratios[0]


@every_effort
def test_slow_cuts_keep_to_the_time(name: EffortName) -> None:
    effort, speed = EFFORTS[name], {"design": "held out", "trained": True, "stacked": False}
    for seconds in (0.001, 0.01, 0.1):
        plan = planned(effort, seconds, cut_seconds=effort.seconds / 20, **speed)
        lasts = plan.seconds_of_candidates(seconds) + plan.seconds_of_cuts(effort.seconds / 20)
        assert plan.finetuning_epochs == FEWEST_EPOCHS or lasts <= effort.seconds
        assert set(plan.methods) <= set(planned(effort, seconds, **speed).methods)


@pytest.mark.parametrize("methods", [*permutations(METHODS, 3), METHODS, METHODS[::-1]])
def test_distinctiveness_is_the_last_method_left(methods: tuple[Any, ...]) -> None:
    plan = planned(EFFORTS["normal"], 1e6, methods=methods)
    assert len(plan.methods) == 1 and (plan.methods[0] == "distinctiveness" or "distinctiveness" not in methods)


def test_the_plan_says_what_it_leaves_out() -> None:
    full, plan = planned(EFFORTS["normal"], 1e-9), planned(EFFORTS["normal"], 2.0)
    (note,) = plan.notes
    assert note.startswith("an epoch takes 2 s, so that the time of 600 s leaves ")
    words = {"design": "samples judged", "folds": "folds", "seeds": "seeds", "epochs": "epochs", "methods": "methods"}
    for field, word in {**words, "ratios": "sizes", "finetuning_epochs": "epochs of fine-tuning"}.items():
        assert (f" {word}: " in note) == (getattr(plan, field) != getattr(full, field))
    assert "methods: distinctiveness instead of " + ", ".join(METHODS) in note


def test_no_more_folds_than_samples_allow() -> None:
    assert planned(EFFORTS["thorough"], 1e-9, folds=3).folds == 3


def test_an_effort_states_its_duration() -> None:
    found = {name: effort.duration for name, effort in EFFORTS.items()}
    assert found == {"quick": "1 minute", "normal": "10 minutes", "thorough": "1 hour"}
    assert DEFAULT_EFFORT == "quick"
