"""Sizes are tested in a fixed order; the smallest that is proven and fits is chosen, and what is missing is said."""

from dataclasses import replace
from typing import Any

import numpy
import pytest
from torch import nn

from topiarist.measurement.budget import Footprint
from topiarist.rightsizing.choosing import Choice, choose
from topiarist.rightsizing.clock import Clock
from topiarist.rightsizing.deciding import Candidate, Judgement, Rung, judge, nearest
from topiarist.rightsizing.descending import Descent, promising
from topiarist.rightsizing.effort import EFFORTS, full_plan
from topiarist.rightsizing.making import Made, Target

MARGIN, SAMPLES = 0.05, 400
BASELINE = numpy.ones(SAMPLES)


def rung(ratio: int, wrong: int, samples: int = SAMPLES) -> Rung:
    """Give a size whose finalists answer so many samples wrongly; its networks have 1000 / ratio weights."""
    answers = numpy.ones(samples)
    answers[:wrong] = 0
    made = Made(model=nn.Linear(1000 // ratio, 1, bias=False), reasons=())
    finalists = [Candidate(made, answers, 0.0), Candidate(made, numpy.zeros(0), 0.0)]
    return Rung(Target(ratio, {}), [{}, {}], ["distinctiveness"] * 2, finalists)


def judged(*wrong: int, samples: int = SAMPLES) -> list[Judgement]:
    rungs = [rung(2 ** (place + 1), count, samples) for place, count in enumerate(wrong)]
    return judge(rungs, BASELINE[:samples], margin=MARGIN, alpha=0.05)


def chosen(found: list[Judgement], *, weights: int = 1000, baseline_fits: bool = True) -> Choice | None:
    plan: Any = full_plan(EFFORTS["quick"], (), design="held out", folds=2, trained=True)
    size = Footprint(parameters=1000, file_kb=4.0, macs=1000, latency_ms=None)

    def fits(model: nn.Module) -> bool:
        return sum(weight.numel() for weight in model.parameters()) <= weights

    descent = Descent(folds=[], plan=plan, clock=Clock(1.0), whole=size, ratios=(), fits=fits)
    return choose(descent, found, margin=MARGIN, baseline_fits=baseline_fits)


def ratio_of(choice: Choice | None) -> float | None:
    return None if choice is None or choice.judgement is None else choice.judgement.rung.target.ratio


def test_nothing_is_proven_after_the_first_failure() -> None:
    found = judged(0, 2, 60, 0, 0)
    assert [each.proven for each in found] == [True, True, False, False, False]
    assert [each.tested for each in found] == [True, True, True, False, False]
    assert found[3].evidence.proven  # by itself it would be


def test_the_evidence_is_that_of_the_samples_judged() -> None:
    found = judged(8)[0].evidence
    assert (found.samples, found.lost, found.won, found.difference) == (SAMPLES, 8, 0, -8 / SAMPLES)


def test_the_smallest_that_is_proven_is_chosen_and_why_the_next_is_not() -> None:
    choice = chosen(judged(0, 2, 60))
    assert choice is not None and (choice.status, ratio_of(choice)) == ("proven", 4)
    assert choice.why[0].startswith("4 × smaller is proven not to be worse by more than 5 points: -0.50 points")
    assert choice.why[1].startswith("8 × smaller is not proven: -15.00 points, p = 1")


def test_too_few_samples_leave_the_smallest_that_lost_little_unproven() -> None:
    choice = chosen(judged(0, 0, 5, samples=20))
    assert choice is not None and (choice.status, ratio_of(choice)) == ("unproven", 4)
    assert "over 20 samples, which cannot prove a loss below 5 points: the power was 0%" in choice.why[0]


def test_the_baseline_stays_where_all_else_is_worse() -> None:
    choice = chosen(judged(60, 80))
    assert choice is not None and (choice.status, choice.judgement) == ("unchanged", None)
    assert choice.why == ("already 2 × smaller showed -15.00 points over 400 samples; 5 points may be lost",)
    nothing = chosen([])
    assert nothing is not None and nothing.why == ("no smaller network could be made",)


def test_nothing_is_chosen_where_the_baseline_does_not_fit_and_all_else_is_worse() -> None:
    assert chosen(judged(60, 80), baseline_fits=False) is None
    assert chosen([], baseline_fits=False) is None


@pytest.mark.parametrize(("weights", "ratio"), [(1000, 8), (250, 8), (125, 8), (124, None)])
def test_what_is_chosen_keeps_the_budget(weights: int, ratio: float | None) -> None:
    choice = chosen(judged(0, 0, 0, 60), weights=weights, baseline_fits=False)
    assert ratio_of(choice) == ratio
    assert choice is None or choice.status == "proven"


def test_a_size_that_fits_but_was_not_proven_in_its_turn_is_unproven() -> None:
    choice = chosen(judged(60, 0), weights=250, baseline_fits=False)
    assert choice is not None and (choice.status, ratio_of(choice)) == ("unproven", 4)


def test_smaller_sizes_are_tried_as_long_as_nothing_speaks_against_it() -> None:
    assert promising(judged(0, 2), MARGIN) and promising(judged(0, samples=20), MARGIN)
    assert not promising(judged(0, 60), MARGIN) and not promising(judged(60), MARGIN)


def test_the_network_nearest_to_the_teacher_wins_the_first_of_equals() -> None:
    made = Made(model=nn.Identity(), reasons=())
    one = Candidate(made, numpy.zeros(0), 1.0)
    assert nearest({"genetic": replace(one, distance=2.0), "surgeon": one}) == "surgeon"
    assert nearest({"magnitude": one, "surgeon": one}) == "magnitude"
    assert nearest({"factorisation": one, "magnitude": replace(one, distance=1.4)}) == "magnitude"
    assert nearest({"factorisation": one, "magnitude": replace(one, distance=1.6)}) == "factorisation"
