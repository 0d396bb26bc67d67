"""A method of one's own, once registered, goes through `resize`, `rightsize` and a `Study`."""

from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from pydantic import Field
from torch import nn

from tests.methods.tasks import data_for, perceptron, widths_of
from tests.rightsizing.tasks import blobs, shrunk, use_small_plan
from topiarist.errors import SettingsError
from topiarist.measurement import Budget
from topiarist.methods import FineTuning, Method, Outcome, Proposal, Request, Traits, register, registered, resize
from topiarist.methods.job import Job
from topiarist.methods.method import Resizing, TrainingMethod
from topiarist.methods.registry import _METHODS
from topiarist.models.copying import copied
from topiarist.study.study import Study
from topiarist.surgery import RemoveUnits
from topiarist.surgery.choice.allotment import LimitError


class LastUnits(Method):
    """Removes the last units of each space: a share of them, or as many as the limits ask for."""

    name: ClassVar[str] = "last-units"
    traits: ClassVar[Traits] = Traits(summary="Remove the last units of each space.", marker="plus")

    share: float | None = Field(default=None, ge=0, lt=1, description="Share of the units that goes.")

    @property
    def has_own_target(self) -> bool:
        """Whether a share is given."""
        return self.share is not None

    def propose(self, request: Request) -> Proposal:
        """Remove the smallest share of the units that keeps the limits."""
        spaces = request.cuttable(None).spaces
        shares = [step / 20 for step in range(20)] if self.share is None else [self.share]
        for share in shares:
            kept = {name: max(1, round((1 - share) * space.size)) for name, space in spaces.items()}
            found = {measure: getattr(request.costs, measure)(kept) for measure in request.limits}
            if all(found[measure] <= limit for measure, limit in request.limits.items()):
                gone = {name: tuple(range(kept[name], space.size)) for name, space in spaces.items()}
                units = {name: some for name, some in gone.items() if some}
                edits = (RemoveUnits(units=units, refit=True),) if units else ()
                return Proposal(edits, (f"the last {share:.0%} of the units",))
        measure, limit = next(each for each in request.limits.items() if found[each[0]] > each[1])
        raise LimitError(measure, limit, found[measure])


class Idle(TrainingMethod):
    """Trains nothing and changes nothing."""

    name: ClassVar[str] = "idle"
    traits: ClassVar[Traits] = Traits(summary="Do nothing.", in_rightsizing=False, own_training=True)

    def run(self, job: Job, resizing: Resizing) -> Outcome:
        """Return a copy."""
        resizing.on_progress(0.5)
        return Outcome(job=job, model=copied(job.whole), reasons=("nothing is to be done",))


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    register(LastUnits)
    register(Idle)
    yield
    for name in ("last-units", "idle"):
        _METHODS.pop(name)


@pytest.fixture
def model() -> nn.Module:
    return perceptron(6, 20, 12, 3)


def test_resize_takes_it_by_its_name_and_as_an_object(model: nn.Module) -> None:
    data = data_for(model, 6)
    outcome = resize(model, data, LastUnits(share=0.5), latency=False)
    assert outcome.units == {"hidden0": (20, 10), "hidden1": (12, 6)}
    assert outcome.reasons == ("the last 50% of the units",)
    assert resize(model, data, "last-units", latency=False).plan.edits == ()


@pytest.mark.parametrize("budget", [Budget(parameters=150), Budget(file_kb=2.2), Budget(memory_kb=0.6, macs=130)])
def test_budgets_are_kept_for_it(model: nn.Module, budget: Budget) -> None:
    outcome = resize(model, data_for(model, 6), "last-units", budget=budget, latency=False)
    assert budget.excess(outcome.after) is None and 0 < outcome.after.parameters < outcome.before.parameters


@pytest.mark.slow
def test_losses_retraining_and_refusals_are_those_of_all_methods(model: nn.Module) -> None:
    data = data_for(model, 6)
    outcome = resize(model, data, "last-units", budget=Budget(max_drop=0.2), retraining=FineTuning(epochs=1))
    assert outcome.score[1] >= outcome.score[0] - 0.2 and len(outcome.histories) == 1
    with pytest.raises(SettingsError, match="both decide where to stop"):
        resize(model, data, LastUnits(share=0.5), budget=Budget(parameters=150))
    with pytest.raises(SettingsError, match="last-units writes no checkpoint"):
        resize(model, data, "last-units", checkpoint="somewhere")
    with pytest.raises(SettingsError, match="share must be less than 1; found 2"):
        LastUnits(share=2)


def test_a_method_that_trains_does_all_itself(model: nn.Module) -> None:
    shares: list[float] = []
    outcome = resize(model, data_for(model, 6), "idle", latency=False, on_progress=shares.append)
    assert widths_of(outcome.model) == widths_of(model) and outcome.model is not model
    assert shares == [0.0, 0.5, 1.0] and outcome.reasons == ("nothing is to be done",)
    with pytest.raises(SettingsError, match="the idle trains by its own settings"):
        resize(model, data_for(model, 6), "idle", retraining=FineTuning())


@pytest.mark.slow
def test_rightsize_asks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_plan(monkeypatch)
    found = shrunk(blobs(), methods=("last-units",), max_drop=0.9)
    assert found.status == "proven" and found.record.settings.methods == ("last-units",)
    assert {network.method for network in found.record.networks} == {None, "last-units"}
    assert set(found.record.decision.rungs[0].chosen_by_fold) == {"last-units"}


@pytest.mark.slow
def test_rightsize_asks_it_beside_others_unless_methods_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_plan(monkeypatch)
    monkeypatch.setattr("topiarist.methods.registry._METHODS", {name: registered()[name] for name in FEW})
    found = shrunk(blobs(90), methods=None, max_drop=0.9)
    assert found.record.settings.methods == ("distinctiveness", "last-units")
    assert {"distinctiveness-4", "last-units-4"} <= set(found.networks)


FEW = ("distinctiveness", "genetic", "last-units", "idle")


def test_a_study_declares_it(tmp_path: Path) -> None:
    methods = [
        {"name": "none"},
        {"name": "last-units", "share": 0.5},
        {"name": "last-units", "budget": {"parameters": 40}, "retraining": {"kind": "fine-tuning", "epochs": 2}},
    ]
    study = Study(data="iris", training={"epochs": 2}, model={"hidden": [8]}, methods=methods)
    cells = study.run(tmp_path / "study").cells
    assert cells["state"].tolist() == ["done"] * 3
    whole, half, limited = cells["parameters"].tolist()
    assert (whole, half) == (67, 35) and limited <= 40
    assert cells["retraining_epochs"].tolist() == [0, 0, 2]
    assert "last-units share 0.5" in cells["method"].tolist()[1]


def test_a_study_that_names_it_where_it_is_not_registered_is_refused_in_one_line() -> None:
    _METHODS.pop("last-units")
    with pytest.raises(SettingsError, match=r"must be one of none, distinctiveness, .*; found 'last-units'"):
        Study(data="iris", methods=[{"name": "last-units"}])
    register(LastUnits)
