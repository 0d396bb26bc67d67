"""Sizes are tested in a fixed order; the smallest that is proven and fits is chosen, and what is missing is said."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from torch import nn

from topiarist.measurement.footprint import Footprint
from topiarist.methods import Outcome
from topiarist.rightsizing import making
from topiarist.rightsizing.candidates import Candidate, nearest, promising, still_asked
from topiarist.rightsizing.choice import Choice, choose
from topiarist.rightsizing.clock import Clock, Deadline
from topiarist.rightsizing.descent import Descent
from topiarist.rightsizing.folds import Fold
from topiarist.rightsizing.judging import JudgedAnswers
from topiarist.rightsizing.making import Workshop
from topiarist.rightsizing.planning import EFFORTS, full_plan
from topiarist.rightsizing.running import Runner
from topiarist.tasks import Classification, Task

SIDES = Classification(("wrong", "right"))
MARGIN, SAMPLES = 0.05, 400
BASELINE = nn.Identity()


@dataclass(frozen=True)
class PlannedFold:
    """A fold of so many samples; networks know themselves how many they answer wrongly; a guess answers half.

    To the validation part, a network of so many weights as `failing` says answers 60 samples wrongly, others none.
    All are as far from their teacher as `distant` says.
    """

    samples: int
    guess_wrong: int = 200
    failing: int = 0
    distant: float = 0.0
    whole: nn.Module = BASELINE
    members: Sequence[nn.Module] = (BASELINE,)
    seed: int = 0
    training_key: tuple[int, int] = (0, 0)
    job: Any = None
    lesson: None = None
    task: Task = SIDES

    @property
    def baseline_answers(self) -> JudgedAnswers:
        return self._with_wrong(0)

    @property
    def guess_answers(self) -> JudgedAnswers:
        return self._with_wrong(min(self.guess_wrong, self.samples // 2))

    @property
    def data(self) -> SimpleNamespace:
        return SimpleNamespace(validation=range(self.samples))

    def validated(self, networks: Sequence[nn.Module]) -> JudgedAnswers:
        weights = sum(weight.numel() for weight in networks[0].parameters())
        return self._with_wrong(60 if weights and weights == self.failing else 0)

    def judged(self, network: nn.Module) -> JudgedAnswers:
        return self._with_wrong(int(network.get_buffer("wrong")))

    def _with_wrong(self, wrong: int) -> JudgedAnswers:
        outputs = torch.tensor([0.0, 1.0]).repeat(1, self.samples, 1)
        outputs[0, :wrong] = torch.tensor([1.0, 0.0])
        return JudgedAnswers(self.task, outputs, torch.ones(self.samples, dtype=torch.int64))

    def distance(self, network: nn.Module) -> float:
        return self.distant

    def calibrate(self, network: nn.Module) -> None:
        pass


@dataclass(frozen=True, kw_only=True)
class PlannedWorkshop(Workshop):
    """Makes networks that have 1000 / ratio weights and answer so many samples wrongly, by their ratio."""

    wrong: Mapping[float, int]

    def make(self, method: str, fold: Fold, ratio: float) -> Outcome:
        network = nn.Linear(round(1000 / ratio), 1, bias=False)
        network.register_buffer("wrong", torch.tensor(self.wrong[ratio]))
        return Outcome(job=cast(Any, None), model=network)


@pytest.fixture(autouse=True)
def _no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "finetune", lambda outcomes, folds, epochs, seeds, on_epoch: list(outcomes))


def descended(
    *wrong: int,
    samples: int = SAMPLES,
    weights: int = 1000,
    guess_wrong: int = 200,
    failing: int = 0,
    all_fail: bool = False,
    distances: tuple[float, float] = (0.0, 0.0),
    between: Mapping[float, int] = {},
) -> Descent:
    """Go down sizes of which each is half of the one before; what has more weights does not keep the budget.

    `between` are networks that finer sizes have, `distances` those of the fold that is judged and of the one
    to keep.
    """
    coarse = {2.0 ** (place + 1): count for place, count in enumerate(wrong)}
    plan = full_plan(EFFORTS["quick"], ("distinctiveness",), design="held out", folds=2, trained=True)
    shop = PlannedWorkshop(
        folds=cast(
            Any,
            [
                PlannedFold(samples, guess_wrong, each, distance)
                for each, distance in zip((failing if all_fail else 0, failing), distances, strict=True)
            ],
        ),
        plan=replace(plan, ratios=tuple(map(int, coarse)), finer=len(between)),
        whole=Footprint(parameters=1000, nonzero=1000, memory_kb=4.0, file_kb=4.0, macs=1000),
        wrong={**coarse, **between},
    )
    descent = Descent(
        shop=shop,
        runner=Runner(shop, []),
        clock=Clock(),
        ratios=list(coarse),
        fits=lambda model: sum(weight.numel() for weight in model.parameters()) <= weights,
        margin=MARGIN,
        alpha=0.05,
    )
    descent.go()
    return descent


def chosen(descent: Descent, *, baseline_fits: bool = True) -> Choice | None:
    return choose(descent, baseline_fits=baseline_fits)


def ratio_of(choice: Choice | None) -> float | None:
    return None if choice is None or choice.size is None else choice.size.ratio


def test_nothing_is_proven_after_the_first_failure() -> None:
    found = descended(0, 2, 60, 0, 0, weights=0).sizes
    assert [each.proven for each in found] == [True, True, False, False, False]
    assert [each.tested for each in found] == [True, True, True, False, False]
    assert found[3].evidence.proven  # by itself it would be


def test_what_is_no_better_than_a_guess_is_not_proven() -> None:
    found = descended(0, 6, 0, guess_wrong=8).sizes  # a guess is as good as may be lost, and 6 of 8 are no proof
    assert [each.evidence.proven for each in found] == [True, True]
    assert [each.proven for each in found] == [True, False]
    assert found[1].guess.difference == 2 / SAMPLES and not found[1].beats_guess


def test_a_size_whose_network_to_keep_failed_is_not_proven() -> None:
    found = descended(0, 0, 0, failing=250).sizes
    assert [each.proven for each in found] == [True, False]
    assert found[1].evidence.p > 0.8 and "the network to keep" in found[1].evidence.notes[-1]


def test_what_the_validation_parts_of_all_folds_say_of_a_size_is_no_failure_of_the_network_to_keep() -> None:
    """The baselines were stopped by those parts: their networks look worse there than where they are judged."""
    found = descended(0, 0, 0, failing=250, all_fail=True).sizes
    assert all(each.proven and not each.evidence.notes for each in found)


def test_a_network_to_keep_that_is_farther_from_its_teacher_is_taken_to_lose_more() -> None:
    """Of a margin of 20 samples, 4 are lost: twice as many leave a proof, four times as many none."""
    near, as_far, twice, far = (descended(4, distances=(0.2, kept)).sizes[0] for kept in (0.1, 0.2, 0.4, 0.8))
    assert [each.times_as_far for each in (near, as_far, twice, far)] == pytest.approx([1, 1, 2, 4])
    assert [each.proven for each in (near, as_far, twice, far)] == [True, True, True, False]
    assert near.evidence == as_far.evidence and not near.evidence.notes
    assert near.evidence.p < twice.evidence.p < 0.01 < far.evidence.p
    beyond = descended(4, distances=(0.2, 1.2)).sizes[0].evidence
    assert (beyond.p, beyond.proven) == (1, False)
    assert "farther from its teacher" in far.evidence.notes[-1]
    assert far.evidence.difference == near.evidence.difference  # what was seen stays what it is


def test_where_nothing_is_lost_a_distance_says_nothing_unless_it_is_infinite() -> None:
    lost_nothing = [descended(0, distances=(0.2, kept)).sizes[0] for kept in (0.8, math.inf)]
    assert [each.proven for each in lost_nothing] == [True, False]


def test_the_evidence_is_that_of_the_samples_judged() -> None:
    found = descended(8).sizes[0].evidence
    assert (found.samples, found.lost, found.won, found.difference) == (SAMPLES, 8, 0, -8 / SAMPLES)


def test_it_ends_at_the_first_size_that_is_not_good_enough_and_fits() -> None:
    assert len(descended(0, 60, 0).sizes) == 2
    assert len(descended(0, 60, 0, weights=125).sizes) == 3


def test_the_smallest_that_is_proven_is_chosen() -> None:
    choice = chosen(descended(0, 2, 60))
    assert choice is not None and (choice.status, ratio_of(choice)) == ("proven", 4)
    assert choice.offered == ()  # what lost more than is allowed is rejected


def test_what_is_neither_proven_nor_rejected_is_offered() -> None:
    choice = chosen(descended(0, 16, 0))  # −4 of 5 points
    assert choice is not None and (choice.status, ratio_of(choice)) == ("proven", 2)
    assert [size.ratio for size in choice.offered] == [4]
    unproven = chosen(descended(16))
    assert unproven is not None and (unproven.status, ratio_of(unproven)) == ("unproven", 2)


def test_a_baseline_that_is_no_better_than_a_guess_is_called_so() -> None:
    choice = chosen(descended(0, guess_wrong=0))
    assert choice is not None and (choice.status, choice.size) == ("no better than guessing", None)


def test_too_few_samples_leave_the_smallest_that_lost_little_unproven() -> None:
    choice = chosen(descended(0, 0, 5, samples=20))
    assert choice is not None and (choice.status, ratio_of(choice)) == ("unproven", 4)


def test_the_baseline_stays_where_all_else_is_worse() -> None:
    choice = chosen(descended(60, 80))
    assert choice is not None and (choice.status, choice.size) == ("unchanged", None)
    nothing = chosen(descended())
    assert nothing is not None and (nothing.status, nothing.size) == ("unchanged", None)


def test_nothing_is_chosen_where_the_baseline_does_not_fit_and_all_else_is_worse() -> None:
    assert chosen(descended(60, 80), baseline_fits=False) is None
    assert chosen(descended(), baseline_fits=False) is None


@pytest.mark.parametrize(("weights", "ratio"), [(1000, 8), (250, 8), (125, 8), (61, None)])
def test_what_is_chosen_keeps_the_budget(weights: int, ratio: float | None) -> None:
    choice = chosen(descended(0, 0, 0, 60, weights=weights), baseline_fits=False)
    assert ratio_of(choice) == ratio
    assert choice is None or choice.status == "proven"


def test_a_size_that_fits_but_was_not_proven_in_its_turn_is_unproven() -> None:
    choice = chosen(descended(60, 0, weights=250), baseline_fits=False)
    assert choice is not None and (choice.status, ratio_of(choice)) == ("unproven", 4)


def test_smaller_sizes_are_tried_as_long_as_nothing_speaks_against_it() -> None:
    for descent in (descended(0, 2), descended(0, samples=20)):
        assert promising(descent.sizes, MARGIN)
    for descent in (descended(0, 60), descended(60)):
        assert not promising(descent.sizes, MARGIN)


def test_finer_sizes_are_tested_from_large_to_small_between_proven_and_failed() -> None:
    found = descended(0, 60, between={2.38: 2, 2.83: 30, 3.36: 0})
    assert [size.ratio for size in found.sizes] == [2, 2.38, 2.83, 4]
    assert [size.proven for size in found.sizes] == [True, True, False, False]
    assert [size.level for size in found.sizes] == pytest.approx([0.01, 0.04, 0.04, 0.01])
    assert ratio_of(chosen(found)) == 2.38


def test_what_just_failed_the_coarse_level_is_tested_again_at_the_fine_one() -> None:
    found = descended(0, 12, between={2.83: 2})
    assert 0.01 < found.sizes[-1].evidence.p <= 0.04
    assert [(size.ratio, size.proven) for size in found.sizes] == [(2, True), (2.83, True), (4, True)]
    assert ratio_of(chosen(found)) == 4


def test_nothing_finer_is_tried_where_the_samples_are_too_few_for_any_proof() -> None:
    assert len(descended(0, 0, samples=20, between={1.41: 0}).sizes) == 2


def test_at_the_deadline_what_is_tested_counts() -> None:
    found = descended(0, 2, 60)
    late = replace(found, clock=Clock(30), sizes=found.sizes[:2])
    late.shop = replace(found.shop, deadline=Deadline(0.0))
    late.runner = Runner(late.shop, [])
    late.go()
    assert len(late.sizes) == 2 and ratio_of(chosen(late)) == 4
    assert late.cut_short == "the time limit of 30 s ended the work after 2 of at most 3 sizes"


def candidate(distance: float) -> Candidate:
    return Candidate(Outcome(job=cast(Any, None), model=nn.Identity()), None, distance)


def test_the_network_nearest_to_the_teacher_wins_the_first_of_equals() -> None:
    one = candidate(1.0)
    assert nearest({"genetic-front": replace(one, distance=2.0), "surgeon": one}) == "surgeon"
    assert nearest({"magnitude": one, "surgeon": one}) == "magnitude"
    assert nearest({"factorisation": one, "magnitude": replace(one, distance=1.4)}) == "magnitude"
    assert nearest({"factorisation": one, "magnitude": replace(one, distance=1.6)}) == "factorisation"


def test_methods_that_fell_far_behind_are_asked_no_more() -> None:
    fold = {"distinctiveness": candidate(0.1), "magnitude": candidate(0.15), "surgeon": candidate(0.2)}
    assert still_asked(fold) == ["distinctiveness", "magnitude"]
    near = {"distinctiveness": candidate(0.0), "magnitude": candidate(0.002), "surgeon": candidate(0.01)}
    assert still_asked(near) == ["distinctiveness", "magnitude"]
