"""A study begun before methods had one registry resumes, or is refused with one line that says why.

The ledgers in tests/golden were written by the version before, interrupted after the first of two folds.
"""

import sqlite3
import warnings
from contextlib import closing
from pathlib import Path

import pytest

from tests.study.studies import check_whole, rows
from topiarist.errors import SettingsError, TopiaristWarning
from topiarist.study.results import Results
from topiarist.study.study import Study

GOLDEN = Path(__file__).parents[1] / "golden"


def begun_before(name: str, folder: Path) -> Path:
    """Return a folder with a ledger of the version before."""
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript((GOLDEN / f"{name}.sql").read_text())
    return folder


@pytest.mark.slow
def test_a_study_begun_before_resumes_and_keeps_what_is_done(tmp_path: Path) -> None:
    out = begun_before("study-to-resume", tmp_path)
    before = rows(out)
    assert [row["state"] for row in before] == ["done", "waiting"] * 7
    study = Study.in_folder(out)
    assert [cell.hash for cell in study.cells] == [row["hash"] for row in before]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # of other versions of torch, where they are others
        results = study.run(out)
    after = rows(out)
    assert results.cells["state"].tolist() == ["done"] * 14
    assert [row for row in after if row["fold"] == 0] == [row for row in before if row["fold"] == 0]
    assert len(results.summary()) == 7
    check_whole(out)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("study-with-a-plain-cut", "methods.1.name: must be one of none, distinctiveness, .*; found 'cut'"),
        ("study-as-published", "methods.0.published: there is no such setting; found True"),
    ],
)
def test_a_study_that_cannot_be_resumed_is_refused_in_one_line_and_can_be_read(
    name: str, why: str, tmp_path: Path
) -> None:
    out = begun_before(name, tmp_path)
    before = rows(out)
    said = f"^the study in .* was begun with another version of topiarist and cannot be resumed: {why}; its results"
    with pytest.raises(SettingsError, match=said) as refused:
        Study.in_folder(out)
    assert "\n" not in str(refused.value)
    assert rows(out) == before
    assert Results.read(out).cells["state"].tolist() == ["done", "waiting"] * (len(before) // 2)
