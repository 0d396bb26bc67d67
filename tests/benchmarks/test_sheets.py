"""What long benchmarks write for the page: from rows made up, without the hours that they take."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks import honesty, large, latency, surgeon
from benchmarks.page import section_text
from benchmarks.paging import writing
from benchmarks.paging.losses import compare, losses
from benchmarks.paging.records import Figure, Sheet
from benchmarks.paging.sections import SECTIONS
from benchmarks.paging.writing import write_results

BY_NAME = {section.name: section for section in SECTIONS}


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Let benchmarks read and write elsewhere."""
    monkeypatch.setattr(writing, "RESULTS", tmp_path)
    return tmp_path


def data_set(status: str, truth: float, *, margin: float = 0.01, at_margin: bool = False) -> dict[str, Any]:
    return {
        "status": status,
        "chosen": (truth, 0.5),
        "margin": margin,
        "max_drop": None if at_margin else margin,
        "sizes": [{"verdict": status, "truth": (truth, 0.5)}],
    }


def test_a_proof_of_a_network_that_truly_loses_more_is_false() -> None:
    rows = [data_set("proven", 0.0), data_set("proven", -0.02, at_margin=True), data_set("rejected", -0.05)]
    lines = {str(name): str(told) for name, told in honesty.verdict_grid(rows).rows}
    assert lines["false proofs, of all data sets"].startswith("1 of 3, 33.3%")
    assert lines["false proofs, of those at the margin"].startswith("1 of 1, 100.0%")
    assert lines["sizes *proven*"] == "1 of 2 truly within the margin; right: 1 of 2"
    assert lines["sizes *rejected*"] == "0 of 1 truly within the margin; right: 1 of 1"


def test_the_surgeon_beside_plain_training_is_compared_by_the_rule_of_the_page() -> None:
    row = {
        "data": "digits",
        "topology": "10",
        "setting": "ours",
        "baseline": "adam",
        "adam, test": 0.9,
        "adam, test, sd": 0.01,
        "final, test": 0.95,
        "final, test, sd": None,
        "surgeon, test": 0.92,
        "surgeon, test, sd": 0.02,
        "parameters after": 1234.0,
        "work ratio": 2.0,
        "work ratio to final": None,
    }
    found = surgeon.sheet_of([row])
    (lost,) = losses(compare(found))
    assert (lost.rival, lost.theirs, lost.ours) == ("plain, final size", 95.0, 92.0)
    text = section_text(BY_NAME["surgeon"], found)
    assert "| digits, 10, ours | 90.0 ± 1.0 | 95.0 | 92.0 ± 2.0 | 1,234 | 2.00 × | – |" in text


@pytest.mark.usefixtures("results")
def test_latencies_of_other_runtimes_stay_and_what_was_transcribed_goes() -> None:
    def half(runtime: str, milliseconds: float) -> Figure:
        return Figure(table="half", case=runtime, contender="whole", measure="milliseconds", values=(milliseconds,))

    write_results("latency", Sheet(transcribed=True, figures=(half("onnx", 9.0),)))
    first = latency.with_others([half("torch", 1.0)])
    assert [each.values for each in first.figures] == [(1.0,)] and not first.transcribed
    write_results("latency", first)
    both = latency.with_others([half("onnx", 2.0)])
    assert [(each.case, each.value) for each in both.figures] == [("torch", 1.0), ("onnx", 2.0)]
    write_results("latency", both)
    again = latency.with_others([half("torch", 3.0)])
    assert [(each.case, each.value) for each in again.figures] == [("onnx", 2.0), ("torch", 3.0)]


def test_parts_of_what_is_large_are_added_one_by_one(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part, seconds in (("study", "1.0"), ("network", "2.0"), ("study", "3.0")):
        monkeypatch.setattr(large, "STEPS", [("a step", seconds, "5 MB", "")])
        write_results("large", large.with_part(part))
    found = Sheet.model_validate_json((results / "large.json").read_text())
    assert {name: grid.rows[0][1] for name, grid in found.grids.items()} == {"study": "3.0", "network": "2.0"}
    assert "| study | seconds | memory |  |" in section_text(BY_NAME["large"], found)
