"""`topiarist report` makes the page of a record again."""

import json
import re
from html import unescape
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.report.rightsizing_record import changed, offering, record
from topiarist.report import rightsizing_page
from topiarist.report.rightsizing.side_by_side import side_by_side_page


@pytest.mark.slow
def test_the_page_is_that_of_the_record(command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "result.json").write_text(json.dumps(record().to_json()))
    assert command("report", tmp_path)[0] == 0
    assert (tmp_path / "report.html").read_text() == rightsizing_page(record())
    elsewhere = tmp_path / "elsewhere"
    monkeypatch.setattr("topiarist.report.writing.rightsizing_page", lambda record: "drawn")
    assert command("report", tmp_path / "result.json", "--out", elsewhere)[0] == 0
    assert json.loads((elsewhere / "result.json").read_text()) == record().to_json()
    assert (elsewhere / "report.html").read_text() == "drawn"


@pytest.mark.slow
def test_no_window_is_needed_to_draw(installed: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "result.json").write_text(json.dumps(record().to_json()))
    monkeypatch.setenv("MPLBACKEND", "nonsense")
    assert installed("report", tmp_path)[::2] == (0, "")
    assert "<svg" in (tmp_path / "report.html").read_text()


def test_two_results_stand_side_by_side(command: Run, tmp_path: Path) -> None:
    one, two = record(), offering()
    for name, each in (("one", one), ("two", two)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "result.json").write_text(json.dumps(each.to_json()))
    assert command("report", tmp_path / "one", tmp_path / "two", "--out", tmp_path)[0] == 0
    text = re.sub("<[^>]+>", " ", (tmp_path / "comparison.html").read_text())
    for told in (one.verdict.sentence, two.verdict.sentence, "10.4 KB", "96.93 % (95.14 % to 98.72 %)", "rejected"):
        assert told in unescape(text)
    assert "different data" not in text and "different metrics" not in text
    code, _, said = command("report", tmp_path / "one", tmp_path / "one" / "result.json")
    assert code == 2 and "are the same record: name two to compare them" in said and said.count("\n") == 1
    code, _, said = command("report", tmp_path / "one", tmp_path / "none")
    assert code == 2 and said.count("\n") == 1 and "none" in said


def test_what_cannot_be_compared_is_said() -> None:
    one = record()
    other = changed(
        one,
        task=changed(one.task, metrics=one.task.metrics[1:]),
        data=changed(one.data, name="other"),
    )
    text = side_by_side_page([one, other], ["one", "other"])
    assert "They were judged by different metrics" in text and "They are of different data or parts" in text


@pytest.mark.parametrize(
    "content", [None, "{", "[]", '{"networks": 3}', '{"format": 1, "networks": []}', '{"version": 2, "networks": []}']
)
def test_what_is_no_record_is_one_line(command: Run, tmp_path: Path, content: str | None) -> None:
    place = tmp_path / "result.json"
    if content is not None:
        place.write_text(content)
    code, _, said = command("report", place)
    assert code == 2 and said.count("\n") == 1 and str(place) in said
    assert not (tmp_path / "report.html").exists()
