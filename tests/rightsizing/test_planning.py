"""The plan of a rightsizing: all of it where data and network are small, within its work where they are not."""

from dataclasses import replace
from itertools import pairwise, permutations
from typing import Any

import pytest
from torch import nn

from tests.rightsizing.tasks import blobs, small_network
from topiarist.methods.registry import rightsizing_methods
from topiarist.rightsizing.planning import (
    DEFAULT_EFFORT,
    EFFORTS,
    FEWEST_EPOCHS,
    Effort,
    EffortName,
    NetworkWork,
    WorkPlan,
    full_plan,
    plan_work,
    rows_within,
)
from topiarist.rightsizing.preparation import network_work

METHODS = rightsizing_methods()
SIZES = [10.0**power for power in range(4, 17)]  # multiply-accumulates of an epoch
every_effort = pytest.mark.parametrize("name", EFFORTS)


def planned(effort: Effort, epoch: float, **changes: Any) -> WorkPlan:
    settings: dict[str, Any] = {"design": "refitted", "folds": 100, "trained": False, **changes}
    methods, cut = settings.pop("methods", METHODS), settings.pop("cut", 0.0)
    can_hold_out = settings.pop("can_hold_out", True)
    full = full_plan(effort, methods, **settings)
    return plan_work(full, network(epoch, cut), can_hold_out=can_hold_out)


def network(epoch: float, cut: float = 0.0) -> NetworkWork:
    return NetworkWork(samples=1000, macs=round(epoch / 3000), epoch=epoch, cut=cut)


@every_effort
@pytest.mark.parametrize("trained", [False, True])
def test_small_data_and_networks_leave_the_plan_of_the_level(name: EffortName, trained: bool) -> None:
    effort = EFFORTS[name]
    plan = planned(effort, 1e5, trained=trained)
    assert (plan.methods, plan.ratios, plan.finer, plan.folds) == (METHODS, effort.ratios, effort.finer, effort.folds)
    assert plan.finetuning_epochs == effort.finetuning_epochs
    assert (plan.seeds, plan.epochs) == ((1, 0) if trained else (effort.seeds, effort.epochs))
    assert plan.left_out == plan.notes == ()


@every_effort
@pytest.mark.parametrize("trained", [False, True])
@pytest.mark.parametrize("can_hold_out", [False, True])
@pytest.mark.parametrize("stacked", [False, True])
def test_no_plan_is_above_the_declared_work_unless_rows_are_all_that_is_left(
    name: EffortName, trained: bool, can_hold_out: bool, stacked: bool
) -> None:
    effort, kept = EFFORTS[name], 0
    for epoch in SIZES:
        plan = planned(effort, epoch, trained=trained, can_hold_out=can_hold_out, stacked=stacked, cut=epoch / 50)
        work = plan.work_with(network(epoch, epoch / 50))
        if FEWEST_EPOCHS not in (plan.epochs, plan.finetuning_epochs):
            kept += 1
            assert work <= effort.work
            assert rows_within(plan, network(epoch, epoch / 50), 500) == 1000
        assert len(plan.methods) >= 1 and len(plan.ratios) >= 3 and plan.folds >= 2
        assert plan.design == "refitted" or (can_hold_out and not trained)
    assert kept >= 3
    assert rows_within(plan, network(SIZES[-1]), 500) == 500


@every_effort
def test_the_larger_the_less_is_done(name: EffortName) -> None:
    plans = [planned(EFFORTS[name], epoch) for epoch in SIZES]
    for smaller, larger in pairwise(plans):
        assert larger.baselines <= smaller.baselines and larger.finer <= smaller.finer
        assert set(larger.methods) <= set(smaller.methods) and set(larger.ratios) <= set(smaller.ratios)
    assert (plans[-1].design, plans[-1].seeds, plans[-1].epochs) == ("held out", 1, FEWEST_EPOCHS)


def test_where_folds_train_alike_only_methods_that_look_at_validation_work_more_than_once() -> None:
    plan = planned(EFFORTS["quick"], 1.0, design="held out", folds=3)
    assert [plan.made([method]) for method in ("distinctiveness", "factorisation", "magnitude")] == [1, 1, 1]
    assert [plan.made([method]) for method in ("genetic-front", "surgeon")] == [4, 4]
    assert plan.made(METHODS) == 4
    assert planned(EFFORTS["quick"], 1.0, folds=3).made(["distinctiveness"]) == 4


@every_effort
def test_networks_trained_one_by_one_come_in_a_few_sizes(name: EffortName) -> None:
    full = full_plan(EFFORTS[name], METHODS, design="refitted", folds=4, trained=False, stacked=False)
    assert 3 <= len(full.ratios) <= 4 and set(full.ratios) <= set(EFFORTS[name].ratios) and full.finer == 1
    assert full.ratios[0] == EFFORTS[name].ratios[0]


@pytest.mark.parametrize("methods", [*permutations(METHODS, 3), METHODS, METHODS[::-1]])
def test_distinctiveness_is_the_last_method_left(methods: tuple[Any, ...]) -> None:
    plan = planned(EFFORTS["normal"], 1e16, methods=methods)
    assert len(plan.methods) == 1 and (plan.methods[0] == "distinctiveness" or "distinctiveness" not in methods)


def test_the_plan_says_what_it_leaves_out() -> None:
    full, plan = planned(EFFORTS["normal"], 1.0), planned(EFFORTS["normal"], 3e11)
    (said,) = plan.left_out
    assert said.startswith(
        "for the work that 1,000 training samples and 100,000,000 multiply-accumulates per sample take"
    )
    words = {"design": "samples judged", "folds": "folds", "seeds": "seeds", "epochs": "epochs", "methods": "methods"}
    words |= {"ratios": "sizes", "finer": "finer sizes", "finetuning_epochs": "epochs of fine-tuning"}
    for field, word in words.items():
        assert (f" {word}: " in said) == (getattr(plan, field) != getattr(full, field))
    assert "methods: distinctiveness instead of " + ", ".join(METHODS) in said


def test_no_more_folds_than_samples_allow_and_quick_by_default() -> None:
    assert planned(EFFORTS["thorough"], 1.0, folds=3).folds == 3
    assert DEFAULT_EFFORT == "quick"


def test_few_rows_take_less_and_the_plan_says_so() -> None:
    effort, settings = EFFORTS["quick"], {"design": "refitted", "folds": 100, "trained": False}
    enough = effort.few_rows
    assert enough is not None and EFFORTS["normal"].few_rows is EFFORTS["thorough"].few_rows is None
    full, plan = (full_plan(effort, METHODS, **settings, few_rows=each) for each in (None, enough))  # type: ignore[arg-type]
    names = ("folds", "seeds", "finetuning_epochs", "trainings", "finer", "methods")
    assert all(getattr(plan, name) == getattr(enough, name) < getattr(full, name) for name in names[:-1])
    assert (plan.methods, plan.ratios, plan.epochs, full.left_out) == (
        ("distinctiveness",),
        (5, 27),
        full.epochs,
        (),
    )
    (said,) = plan.left_out
    assert said.startswith("for fewer than 1,000 training rows, folds: 3 instead of 4; seeds: 2 instead of 4; ")
    assert "methods: distinctiveness instead of " + ", ".join(METHODS) in said
    named = full_plan(effort, ("magnitude", "surgeon"), **settings, few_rows=enough)  # type: ignore[arg-type]
    assert named.methods == ("magnitude", "surgeon")
    smaller = replace(effort, folds=2, seeds=1, finetuning_epochs=8)
    least = full_plan(smaller, METHODS, **settings, few_rows=enough)  # type: ignore[arg-type]
    assert (least.folds, least.seeds, least.finetuning_epochs) == (2, 1, 8)


def test_the_work_follows_from_sizes_alone() -> None:
    data, model = blobs(), small_network()
    found = network_work(model, data)
    assert found == network_work(small_network(7), blobs(apart=9.0))
    assert (found.samples, found.macs) == (len(data.train), 4 * 32 + 32 * 16 + 16 * 3)
    steps, arithmetic = -(-found.samples // 8), 3 * found.macs * found.samples
    assert found.epoch == arithmetic + steps * 6 * 1e5 and found.cut == 0
    assert replace(found.on(2 * found.samples), samples=0) == replace(found, samples=0, epoch=2 * found.epoch)
    alone = network_work(
        nn.Sequential(nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 8, 2), nn.Flatten(), nn.Linear(24, 3)), data
    )
    assert alone.cut > 0
