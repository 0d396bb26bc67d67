"""The page of benchmarks: it is what its results say, every figure on it comes from them, and losses come first."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmarks.page import PAGE, TEMPLATES, measured_with, section_text, where_we_lose, write_pages
from benchmarks.paging.losses import compare, losses, told
from benchmarks.paging.records import Comparison, Figure, Measurement, Sheet
from benchmarks.paging.sections import SECTIONS, Section
from benchmarks.paging.tables import by_case, by_measure
from benchmarks.paging.writing import RESULTS, library_commit, read_results, stamp, write_results
from topiarist import __version__

MEASURED = [section for section in SECTIONS if (RESULTS / f"{section.name}.json").exists()]
UNITS = r"\b\d[\d.,]*\d? ?(?:×(?! ?\d| [a-z]+ )|ms\b|MB\b|KB\b|points\b|minutes\b|seconds\b)"
METHOD = {  # what is so by design, not by measurement
    "10 minutes": "proofs",
    "4 minutes": "honesty",
}


@pytest.mark.parametrize("page", write_pages(), ids=lambda path: str(path.name))
def test_the_committed_page_is_what_the_results_say(page: Path) -> None:
    assert page.read_text() == write_pages()[page], "run `python -m benchmarks.page`; nobody edits it by hand"


def test_a_section_without_results_names_its_command(tmp_path: Path) -> None:
    text = write_pages(tmp_path)[PAGE]
    for section in SECTIONS:
        assert f"{section.heading}\n\nNot measured yet: run `{section.command}`." in text
    assert "|---" not in text and "| ---" not in text


def test_every_section_has_a_template_and_every_result_a_section() -> None:
    names = {section.name for section in SECTIONS}
    assert names | {"head", "losses", "scale"} == {path.stem for path in TEMPLATES.glob("*.md")}
    assert {path.stem for path in RESULTS.glob("*.json")} <= names
    assert len({section.anchor for section in SECTIONS}) == len(SECTIONS)


def test_templates_hold_no_measured_figure() -> None:
    """What is measured has a unit, and stands in the results; templates have the settings of a method alone."""
    for path in TEMPLATES.glob("*.md"):
        words = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", path.read_text(), flags=re.DOTALL)
        found = [each for each in re.findall(UNITS, words) if METHOD.get(each) != path.stem]
        assert not found, f"{path.name}: {found}"


@pytest.mark.parametrize("section", MEASURED, ids=lambda section: section.name)
def test_the_figures_of_a_section_come_from_its_results(section: Section, tmp_path: Path) -> None:
    """Other results make another text, and no row of figures stays as it was."""
    path = tmp_path / f"{section.name}.json"
    path.write_text(json.dumps(changed(json.loads((RESULTS / path.name).read_text()))))
    before, after = (
        section_text(section, read_results(section.kind, section.name, folder)) for folder in (RESULTS, tmp_path)
    )
    kept = set(rows_with_decimals(before)) & set(rows_with_decimals(after))
    assert before != after and not kept, sorted(kept)[:3]


def changed(value: Any) -> Any:
    """Return results with other numbers; what names a thing, a version or a day stays."""
    if isinstance(value, dict):
        return {key: each if key in NAMED else changed(each) for key, each in value.items()}
    if isinstance(value, list):
        return [changed(each) for each in value]
    if isinstance(value, float):
        return value * 1.37 + 0.0137
    if isinstance(value, str):
        return value.translate(NEXT)
    return value


NAMED = ["version", "packages", "date", "commit", "command", "sizes", "table", "case", "contender", "measure"]
NAMED += ["setting", "experiment", "problem"]
NEXT = str.maketrans("0123456789", "1234567890")


def rows_with_decimals(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("|") and re.search(r"\d\.\d", line)]


def sheet(*figures: Figure) -> Sheet:
    return Sheet(figures=figures)


def figure(contender: str, role: Any, *values: float, measure: str = "accuracy, %", case: str = "digits") -> Figure:
    return Figure(case=case, contender=contender, measure=measure, values=values, role=role)


def test_a_rival_that_is_ahead_is_a_loss_whatever_is_better() -> None:
    more = sheet(figure("ours", "ours", 90.0), figure("theirs", "rival", 91.0))
    less = sheet(
        figure("ours", "ours", 2.0, measure="seconds"),
        figure("theirs", "rival", 1.0, measure="seconds"),
        figure("slow", "rival", 9.0, measure="seconds"),
    )
    assert [told(each) for each in losses(compare(more))] == ["digits: theirs 91, ours 90"]
    assert [told(each) for each in losses(compare(less))] == ["digits: theirs 1, ours 2"]
    assert not losses(compare(sheet(figure("ours", "ours", 90.0), figure("theirs", "rival", 90.0))))
    assert not compare(sheet(figure("ours", "ours", 90.0), figure("ours, more", "variant", 95.0)))


def test_a_loss_below_twice_its_standard_error_may_be_luck() -> None:
    found = compare(sheet(figure("ours", "ours", 89.0, 91.0), figure("theirs", "rival", 89.5, 91.5)))
    assert told(losses(found)[0]).endswith("(may be luck)")
    clear = compare(sheet(figure("ours", "ours", 89.9, 90.1), figure("theirs", "rival", 94.9, 95.1)))
    assert not told(losses(clear)[0]).endswith("(may be luck)")
    common: Any = {"case": "digits", "measure": "accuracy, %", "better": "more", "ours": 90.0}
    lucky = Comparison(**common, theirs=93.0, rival="lucky", spread=5.0)
    sure = Comparison(**common, theirs=91.0, rival="sure", spread=0.1)
    assert [each.rival for each in losses([sure, lucky])] == ["sure"]


def test_losses_and_missed_aims_are_told_apart() -> None:
    section = next(each for each in SECTIONS if each.name == "refit")
    known: dict[str, Measurement | None] = dict.fromkeys(each.name for each in SECTIONS)
    known[section.name] = sheet(
        figure("ours", "ours", 90.0), figure("theirs", "rival", 91.0), figure("our aim", "aim", 92.0)
    )
    lost, _, missed = where_we_lose(known).partition("What we set out for")
    assert "Of 1 comparisons" in lost and "theirs 91" in lost and "our aim" not in lost
    assert "of 1 aims" in missed and "our aim 92, ours 90" in missed


def test_tables_have_means_spreads_and_ratios_of_rounds() -> None:
    found = sheet(
        figure("ours", "ours", 2.0, 4.0, measure="seconds"),
        figure("theirs", "rival", 8.0, 6.0, measure="seconds"),
        figure("ours", "ours", 90.0, 92.0),
    )
    assert by_case(found, "accuracy, %", digits=1).splitlines()[-1] == "| ours | **91.0 ± 1.4** |"
    lines = by_measure(found, {"seconds": 1, "accuracy, %": 1}, times="seconds", beside="faster by").splitlines()
    assert lines[2:] == [
        "| digits: ours | **2.0** | **91.0 ± 1.4** |  |",
        "| digits: theirs | 6.0 | – | 3.0 × (1.5 to 4.0) |",
    ]


def test_what_was_measured_with_another_version_says_so() -> None:
    now = Sheet(**stamp("python -m benchmarks.x"))
    assert "This is version" not in measured_with(now) and now.date in measured_with(now)
    older = now.model_copy(update={"packages": {"topiarist": "0.0.1"}})
    assert f"This is version {__version__}" in measured_with(older)
    copied = now.model_copy(update={"transcribed": True})
    assert "Not measured with this version" in measured_with(copied) and now.commit in measured_with(copied)


def test_results_that_are_added_to_keep_their_first_day() -> None:
    first = Sheet(date="2020-01-01", commit="abc1234")
    both = stamp("python -m benchmarks.x", before=first)
    assert both["date"].startswith("2020-01-01 and ") and both["commit"] == f"abc1234 and {library_commit()}"
    assert stamp("python -m benchmarks.x", before=Sheet(**both)) == both
    older = Sheet(**{**both, "packages": {**both["packages"], "torch": "0.1"}})
    assert stamp("python -m benchmarks.x", before=older)["packages"]["torch"].startswith("0.1 and ")


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    found = Sheet(**stamp("python -m benchmarks.x", ["torch-pruning"]), figures=(figure("ours", "ours", 90.0),))
    write_results("refit", found, tmp_path / "refit.json")
    assert read_results(Sheet, "refit", tmp_path) == found
    shutil.rmtree(tmp_path)
    assert read_results(Sheet, "refit", tmp_path) is None
