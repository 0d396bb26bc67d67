"""No word on a page that its record contradicts: each status, kind of task and design, and records at random."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.report import rightsizing_record as records
from tests.report.claims import agreement_of_figures, untrue, verdict_of_figures
from topiarist.report import rightsizing_page
from topiarist.report.rightsizing import page as module
from topiarist.rightsizing.record import GUESSING, MetricRecord, RightsizingRecord
from topiarist.rightsizing.recording import with_sentence

RMSE = MetricRecord(name="rmse", title="RMSE", higher_is_better=False, share=False, relative=True)
AREA = MetricRecord(name="roc_auc", title="ROC AUC", higher_is_better=True, share=False, relative=False)
NO_FIGURES = module.PageFigures(
    fronts={}, curves=[], lineages=[], bounds=[], small=[{"score": None, "loss": None}] * 99
)


@pytest.fixture(autouse=True)
def _no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out what is drawn: figures take a second, and claim nothing that tables do not."""
    monkeypatch.setattr(module, "_draw_all", lambda record, chosen: NO_FIGURES)


def by_another_metric(metric: MetricRecord, kind: str) -> Callable[[], RightsizingRecord]:
    def made() -> RightsizingRecord:
        whole = records.record()
        task = records.changed(whole.task, kind=kind, metrics=(metric,), names=("one", "two"))
        return records.rewritten(whole, task=task)

    return made


def in_the_design(design: str, *, trained: bool) -> Callable[[], RightsizingRecord]:
    def made() -> RightsizingRecord:
        whole = records.record()
        settings = records.changed(whole.settings, trained_before=trained)
        return records.rewritten(whole, plan=records.changed(whole.plan, design=design), settings=settings)

    return made


CASES: dict[str, Callable[[], RightsizingRecord]] = {
    "proven": records.record,
    "unproven": records.unproven,
    "offering": records.offering,
    "unchanged": records.unchanged,
    "guessing": records.guessing,
    "untested": records.untested,
    "unreachable": records.unreachable,
    "numbers": by_another_metric(RMSE, "numbers"),
    "labels": by_another_metric(AREA, "labels"),
    "given": in_the_design("held out", trained=True),
    "held out": in_the_design("held out", trained=False),
}


def written(record: RightsizingRecord) -> Any:
    return json.loads(json.dumps(record.to_json()))


@pytest.mark.parametrize("case", CASES)
def test_every_claim_follows_from_the_record(case: str) -> None:
    record = CASES[case]()
    assert untrue(written(record), rightsizing_page(record)) == []


CHANGES: dict[str, Any] = {
    "verdict.status": "unproven",
    "verdict.agreement": "confirms",
    "decision.rungs.2.p": 0.2,
    "decision.rungs.2.difference": -0.02,
    "decision.rungs.2.score": 0.96,
    "decision.rungs.2.samples": 1400,
    "decision.rungs.2.beats_guess": False,
    "decision.rungs.2.tested": False,
    "decision.rungs.3.difference": -0.001,
    "decision.rungs.3.high": 0.01,
    "networks.0.latency_ms": 0.001,
    "networks.5.onnx_latency_ms": 0.5,
    "networks.5.file_kb": 9.9,
    "gains.size": 8.4,
    "plan.design": "held out",
    "test.low": -0.001,
    "test.high": -0.02,
    "test.score.after.value": 0.5,
    "test.samples": 6,
}


def with_change(record: Any, path: str, value: Any) -> Any:
    changed = copy.deepcopy(record)
    *way, last = path.split(".")
    place = changed
    for part in way:
        place = place[int(part)] if isinstance(place, list) else place[part]
    place[last] = value
    return changed


def test_a_record_that_says_otherwise_is_noticed() -> None:
    record = records.record()
    page, whole = rightsizing_page(record), written(record)
    unnoticed = [path for path, value in CHANGES.items() if not untrue(with_change(whole, path, value), page)]
    # the two figures of the test part's bounds change its verdict only together with its proof
    assert unnoticed == ["test.low"]
    assert untrue(with_change(with_change(whole, "test.low", -0.001), "test.proven", True), page)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("verdict.status", "unproven", "verdict.status is 'unproven', but the size of 'genetic-8' is not 'not proven'"),
        ("verdict.status", "unchanged", "verdict.status is 'unchanged', but 'genetic-8' was chosen"),
        ("verdict.agreement", "confirms", "verdict.agreement must be 'does not contradict' by the test part"),
        ("decision.rungs.2.p", 0.2, "decision.rungs.2.verdict must be 'not proven' by its figures"),
        ("decision.rungs.3.inferior", False, "decision.rungs.3.inferior does not follow from its upper bound"),
        ("decision.rungs.2.beats_guess", False, "decision.rungs.2.verdict must be 'no better than guessing'"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(path: str, value: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        RightsizingRecord.model_validate(with_change(written(records.record()), path, value))


share = st.floats(0, 1)
times = st.floats(0.001, 5)


@st.composite
def random_records(draw: st.DrawFn) -> RightsizingRecord:
    """Return a record with figures at random, and the words that product code finds for them."""
    whole = written(records.record())
    tested = {rung["network"] for rung in whole["decision"]["rungs"]}
    whole["networks"] = [each for each in whole["networks"] if each["id"] in {"baseline", *tested}]
    margin = whole["settings"]["max_drop"] = draw(st.sampled_from([0.005, 0.01, 0.05]))
    whole["task"]["metrics"][0] = draw(st.sampled_from([whole["task"]["metrics"][0], RMSE.to_json(), AREA.to_json()]))
    whole["decision"]["guess"]["beaten"] = draw(st.booleans())
    still = True
    for rung in whole["decision"]["rungs"]:
        rung["difference"], wide = draw(st.floats(-3 * margin, 2 * margin)), draw(st.floats(0, 3 * margin))
        rung |= {"low": rung["difference"] - wide, "high": rung["difference"] + wide, "p": draw(share)}
        rung |= {"score": draw(share), "baseline_score": draw(share), "power": draw(share)}
        rung |= {"samples": draw(st.integers(2, 10**6)), "samples_needed": draw(st.integers(2, 10**9))}
        rung |= {"beats_guess": draw(st.booleans()), "tested": still, "inferior": rung["high"] < -margin}
        rung["verdict"] = verdict_of_figures(rung, margin)
        still = still and rung["verdict"] == "proven"
    for network in whole["networks"]:
        network |= {"latency_ms": draw(times), "onnx_latency_ms": draw(st.none() | times)}
    test = whole["test"]
    test["difference"], wide = draw(st.floats(-3 * margin, 2 * margin)), draw(st.floats(0, 3 * margin))
    test |= {"low": test["difference"] - wide, "high": test["difference"] + wide}
    test |= {"proven": test["low"] >= -margin and draw(st.booleans()), "samples": draw(st.integers(2, 500))}
    _decide(whole, [(rung["network"], rung["verdict"]) for rung in whole["decision"]["rungs"]])
    whole["verdict"]["agreement"] = agreement_of_figures(whole)
    return with_sentence(RightsizingRecord.model_validate(whole))


def _decide(whole: Any, sizes: list[tuple[str, str]]) -> None:
    """Choose as is documented: the smallest proven, else one that is not rejected, else the baseline."""
    for status, word in (("proven", "proven"), ("unproven", "not proven")):
        names = [name for name, verdict in sizes if verdict == word]
        if names:
            whole["verdict"] |= {"status": status, "chosen": names[-1]}
            return
    stays = "unchanged" if whole["decision"]["guess"]["beaten"] else GUESSING
    whole["verdict"] |= {"status": stays, "chosen": "baseline"}


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(drawn=st.data())
def test_the_words_of_any_record_are_true(drawn: st.DataObject) -> None:
    record = drawn.draw(random_records())
    assert RightsizingRecord.model_validate(record.to_json()) == record
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_draw_all", lambda record, chosen: NO_FIGURES)
        assert untrue(written(record), rightsizing_page(record)) == []
