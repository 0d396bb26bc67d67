"""What is known of a network is found once: how often a budgeted `resize` traces and copies it."""

from collections import Counter

import pytest
import torch

from tests.counting import count_costs
from topiarist import Budget, load_data, models, resize
from topiarist.surgery import (
    DeepenNetwork,
    GrowSpace,
    Merge,
    MergeUnits,
    Plan,
    ProjectSpace,
    RemoveUnits,
    WidenSpace,
    apply,
)
from topiarist.tracing import anatomy


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count traces, deep copies of networks, and proofs."""
    return count_costs(monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize("budget", [Budget(parameters=2_000), Budget(macs=2_000), Budget(memory_kb=8)], ids=str)
def test_a_budgeted_resize_traces_and_copies_at_most_twice(budget: Budget, counts: Counter[str]) -> None:
    data, model = load_data("digits"), models.mlp([64, 48, 32, 10])
    outcome = resize(model, data, budget=budget, latency=False)
    assert budget.excess(outcome.after) is None and outcome.before.file_kb > outcome.after.file_kb
    assert outcome.units.keys() == {"hidden0", "hidden1"}
    assert [edit["kind"] for edit in outcome.to_json()["plan"]["edits"]] == ["remove", "settle"]
    assert 1 <= counts["traces"] <= 2 and 1 <= counts["copies"] <= 2
    assert counts["proofs"] == 1


def test_widths_after_a_plan_are_those_of_a_trace() -> None:
    model, example = models.mlp([64, 12, 9, 10]), torch.zeros(2, 64)
    plan = Plan(
        (
            WidenSpace(space="hidden0", by=3, seed=1),
            RemoveUnits(units={"hidden0": (0, 4), "hidden1": (1,)}),
            MergeUnits(space="hidden1", merges=(Merge(unit=2, into=0),)),
            GrowSpace(space="hidden1", by=2, seed=2),
            ProjectSpace(space="hidden0", to=5),
        )
    )
    found = anatomy(apply(plan, model, example), example)
    widths = plan.widths_after({"hidden0": 12, "hidden1": 9})
    assert widths == {name: space.size for name, space in found.free.items()} == {"hidden0": 5, "hidden1": 9}
    assert Plan((*plan.edits, DeepenNetwork(after="hidden0"))).widths_after({"hidden0": 12, "hidden1": 9}) is None
