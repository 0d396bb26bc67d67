"""`topiarist report` makes the page of a record again."""

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.report.rightsizing_record import record
from topiarist.report import rightsizing_page


@pytest.mark.slow
def test_the_page_is_that_of_the_record(command: Run, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps(record().to_json()))
    assert command("report", tmp_path)[0] == 0
    assert (tmp_path / "report.html").read_text() == rightsizing_page(record())
    elsewhere = tmp_path / "elsewhere"
    assert command("report", tmp_path / "result.json", "--out", elsewhere)[0] == 0
    assert json.loads((elsewhere / "result.json").read_text()) == record().to_json()


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
