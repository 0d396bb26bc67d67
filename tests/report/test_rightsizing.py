import base64
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.report import rightsizing_record as records
from tests.report.rightsizing_reader import Page, Quoted, look_up, read_page, strictly
from topiarist.errors import DataError
from topiarist.report import rightsizing_page
from topiarist.report.forest import Difference, lower_bounds
from topiarist.report.rightsizing.front import front_figure, spots_of
from topiarist.report.rightsizing.page import PARTS
from topiarist.report.rightsizing.quotes import FORMS, Quotes
from topiarist.report.writing import read_record
from topiarist.rightsizing.record import RightsizingRecord
from topiarist.rightsizing.wording import value_words

pytestmark = pytest.mark.slow

CASES: dict[str, Callable[[], RightsizingRecord]] = {
    "proven": records.record,
    "unproven": records.unproven,
    "offering": records.offering,
    "unchanged": records.unchanged,
    "guessing": records.guessing,
    "many classes": records.many_classes,
    "untested": records.untested,
    "unreachable": records.unreachable,
}
SCALES = {"percent": 0.01, "probability": 0.01, "points": 0.01, "drop": 0.01}
every_case = pytest.mark.parametrize("case", CASES)


@cache
def text_of(case: str) -> str:
    return rightsizing_page(CASES[case]())


@cache
def page_of(case: str) -> Page:
    return read_page(text_of(case))


def written(case: str) -> Any:
    return json.loads(json.dumps(CASES[case]().to_json()))


def says(found: Quoted, value: float) -> bool:
    """Return whether a text is the number, rounded to the digits that it shows."""
    text = found.text.replace("−", "-").replace(",", "")
    number = re.search(r"[-+]?\d+(\.(\d+))?(e[-+]\d+)?", text)
    assert number is not None, found
    scale = SCALES.get(found.attributes["data-form"], 1.0)
    if text.startswith("<"):
        return value < float(number[0]) * scale
    last_digit = abs(value) * 1e-5 if number[3] else 10.0 ** -len(number[2] or "")
    return abs(float(number[0]) * scale - value) <= 0.5000001 * last_digit * scale


@every_case
def test_every_quotation_is_what_the_record_says(case: str) -> None:
    record = written(case)
    quoted = page_of(case).quoted
    assert len(quoted) > 100
    for found in quoted:
        value = look_up(record, found.path)
        if found.tag == "data":
            assert json.loads(found.attributes["value"]) == value == strictly(record, found.path)
            assert found.text == FORMS[found.attributes["data-form"]](value).replace("-", "−")
            assert (found.text == ("yes" if value else "no")) if isinstance(value, bool) else says(found, value), found
        elif found.tag == "bdi":
            assert found.text == value
        else:
            assert (found.tag, found.text, value or None) == ("span", "–", None)


def test_what_is_quoted_is_there() -> None:
    record = written("proven")
    for found in page_of("proven").quoted:
        strictly(record, found.path)


@every_case
def test_no_number_stands_outside_of_a_quotation(case: str) -> None:
    page = page_of(case)
    assert [text for text in page.loose if re.search(r"\d", text)] == []
    record = CASES[case]()
    known = {network.name for network in record.networks} | simple_models(record)
    ticks = re.compile(r"−?[\d,]+(\.\d+)?( %)?")
    figures = [part for section, text in page.drawn if section != "lineage" for part in parted(text)]
    assert len(figures) > 10
    numbers = [text for text in figures if re.search(r"\d", text) and not ticks.fullmatch(text)]
    assert [text for text in numbers if not any(text in each for each in known)] == []  # long lines are broken in two


def simple_models(record: RightsizingRecord) -> set[str]:
    """Return all that a figure may say of simple models that it does not draw, and of the best constant answer."""
    guess = record.decision.guess
    scores = {guess.answer: guess.score} | {each.name: each.score for each in record.references}
    known = {name: score for name, score in scores.items() if score is not None}
    return {f"{name} {value_words(record.metric, score, decimals=1)}" for name, score in known.items()}


def parted(text: str) -> list[str]:
    """Return what a figure says of each model that is not drawn, or the text as it is."""
    return text.removeprefix("not drawn: ").split(", ") if text.startswith("not drawn: ") else [text]


def test_everything_that_was_found_is_told() -> None:
    told = {found.path for found in page_of("proven").quoted}

    def paths(value: Any, path: str) -> list[str]:
        if isinstance(value, dict):
            return [below for key, part in value.items() for below in paths(part, f"{path}.{key}")]
        if isinstance(value, list):
            return [below for place, part in enumerate(value) for below in paths(part, f"{path}.{place}")]
        return [] if value is None else [path]

    silent = r"version|networks\.\d+\.(id|marker|lineage|curve)|confusion|verdict\.(chosen|samples_needed)"
    silent += r"|test\.(before|after)\.accuracy|test\.score\.samples|gains\.latency"
    silent += r"|networks\.\d+\.relearned"  # a column where any is
    silent += r"|task\.metrics\.\d+\.(name|higher_is_better|share|relative|in_units)"
    untold = [
        path
        for key, part in written("proven").items()
        for path in paths(part, key)
        if path not in told and not re.match(silent, path)
    ]
    assert untold == []


@every_case
def test_names_are_shown_and_never_run(case: str) -> None:
    text, page = text_of(case), page_of(case)
    assert page.count("script") == 1
    assert page.count("b") == page.count("img") == 0
    assert "<script>alert" not in text and "</script>alert" not in text
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert sum(records.EVIL in found.text for found in page.quoted) >= 3
    assert sum(records.QUOTES in found.text for found in page.quoted) >= 3


@every_case
def test_nothing_is_asked_of_the_outside(case: str) -> None:
    text, page = text_of(case), page_of(case)
    assert not re.search(r"https?://|//[a-z]|@import|url\((?!#)|\bfetch\b|XMLHttp|\beval\b", text)
    assert page.values("target") == page.values("src") == page.values("action") == page.values("srcset") == []
    assert all(link.startswith("#") for name in ("href", "xlink:href") for link in page.values(name))
    script = re.search(r"<script>(.*)</script>", text, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'" in text


@every_case
def test_links_lead_somewhere(case: str) -> None:
    page = page_of(case)
    ids = page.values("id")
    assert len(ids) == len(set(ids))
    linked = [link[1:] for name in ("href", "xlink:href") for link in page.values(name)]
    used = re.findall(r"url\(#([^)]+)\)", text_of(case))
    assert set(linked + used + page.values("aria-labelledby")) <= set(ids)


@every_case
def test_the_page_is_small_and_always_the_same(case: str) -> None:
    assert len(text_of(case).encode()) < 400_000
    assert text_of(case).startswith("<!doctype html>")


def test_the_same_record_gives_the_same_bytes() -> None:
    assert rightsizing_page(records.record()) == text_of("proven")


def test_what_is_not_in_the_record_is_left_out() -> None:
    everything = page_of("proven").headings
    assert everything == list(PARTS)
    assert page_of("unproven").headings == [part for part in everything if part != "lineage"]
    unproven = " ".join(page_of("unproven").loose)
    assert "No curve was recorded." in unproven and "samples to raise it to" in unproven
    assert "No network keeps the budget and loses no more than is allowed. The nearest:" in unproven
    assert "not measured" in unproven
    assert "does not fit the budget" in unproven and "ONNX Runtime" not in unproven
    unchanged = " ".join(page_of("unchanged").loose)
    assert "The baseline stays" in unchanged and "No smaller network came to be tested." in unchanged
    assert not [found.path for found in page_of("unchanged").quoted if found.path.startswith(("gains", "test.after"))]


def test_the_verdict_comes_first() -> None:
    paths = [found.path for found in page_of("proven").quoted]
    assert paths[:3] == ["data.name", "verdict.sentence", "verdict.status"]
    tiles = [path for path in paths[paths.index("networks.0.file_kb") :] if not path.startswith("verdict")]
    assert tiles[:12] == [
        *("networks.0.file_kb", "networks.5.file_kb", "gains.size"),
        *("networks.0.latency_ms", "networks.5.latency_ms", "gains.speed"),
        *("networks.0.parameters", "networks.5.parameters", "gains.parameters"),
        *("decision.rungs.2.baseline_score", "decision.rungs.2.score", "decision.rungs.2.difference"),
    ]


def test_what_was_left_out_stands_before_the_figures() -> None:
    text = text_of("proven")
    assert text.index('data-path="plan.left_out.0"') < text.index('class="tiles"')
    assert text.count('data-path="plan.left_out.0"') == 1  # and once
    plan = records.record().plan.model_copy(update={"left_out": (), "cut_short": None, "notes": ()})
    whole = rightsizing_page(records.record().model_copy(update={"plan": plan}))
    assert "What was left out" not in whole


def test_simple_models_that_are_not_drawn_are_named_below_the_axis() -> None:
    whole = records.record()
    figure = front_figure(whole, "parameters") or ""
    low, unknown = whole.references[0], whole.references[-1]
    said = " ".join(re.findall(r">([^<>]+)</text>", figure))
    assert f"not drawn: {low.name} {100 * (low.score or 0):.1f} %" in said and unknown.name in said
    guess = whole.decision.guess
    alone = " ".join(re.findall(r">([^<>]+)</text>", front_figure(records.changed(whole, references=()), "macs") or ""))
    assert f"not drawn: {guess.answer} {100 * (guess.score or 0):.1f} %" in alone


def test_a_backbone_and_how_data_were_read_are_told() -> None:
    whole = records.record()
    base = records.changed(whole.settings, base="low.safetensors: vgg, SHA-256 0123")
    data = records.changed(whole.data, notes=("sounds are read as log-mel spectrograms",))
    told = rightsizing_page(records.changed(whole, settings=base, data=data))
    assert told.count('data-path="settings.base"') == 2 and 'data-path="data.notes.0"' in told
    assert "settings.base" not in rightsizing_page(whole).split('id="repeating"')[0]


def test_baselines_are_counted_as_they_were_judged() -> None:
    whole = records.record()
    for seeds, trainings, said in ((4, 3, "and as many of each baseline"), (2, 3, ", of each baseline"), (1, 1, None)):
        plan = records.changed(whole.plan, seeds=seeds, trainings=trainings, design="refitted")
        told = " ".join(read_page(rightsizing_page(records.changed(whole, plan=plan))).loose)
        assert (said in " ".join(told.split())) if said else "by chance alone" not in told


def test_an_almost_empty_record_has_a_page() -> None:
    page = read_page(rightsizing_page(records.smallest()))
    assert page.headings == ["comparison", "references", "networks", "curves", "statistics", "repeating"]


def test_without_a_test_part_nothing_is_claimed_of_it() -> None:
    told = " ".join(page_of("untested").loose)
    assert "There is no test part" in told
    assert "which no decision saw" not in told and "Beware" not in told and "On the test part" not in told


def test_a_budget_that_cannot_be_kept_is_no_network_that_stays() -> None:
    told = " ".join(page_of("unreachable").loose)
    assert "the baseline stays" not in told and "stays" not in told.split()
    assert "No network keeps the budget and loses no more than is allowed. The nearest:" in told


def test_a_record_without_networks_is_refused_in_one_line(tmp_path: Path) -> None:
    record = written("proven")
    place = tmp_path / "result.json"
    for change, message in (
        ({"networks": []}, "networks: Tuple should have at least 1 item"),
        (
            {"verdict": record["verdict"] | {"chosen": "none"}},
            "verdict.chosen must be one of baseline, .*; found 'none'",
        ),
        ({"data": record["data"] | {"colour": 1}}, "data.colour: there is no such field"),
        ({"version": 1}, "is a record of version 1; this topiarist reads version 4: run again"),
        ({"version": None}, "is a record without a version; this topiarist reads version 4: run again"),
    ):
        place.write_text(json.dumps(record | change))
        with pytest.raises(DataError, match=message) as refused:
            read_record(place)
        assert str(place) in str(refused.value) and "\n" not in str(refused.value)
    place.write_text(json.dumps({key: value for key, value in record.items() if key != "verdict"}))
    with pytest.raises(DataError, match="is not a whole record of a rightsizing: verdict: Field required"):
        read_record(place)


def test_a_record_of_the_first_version_is_refused_in_one_line(tmp_path: Path) -> None:
    place = tmp_path / "result.json"
    place.write_text(json.dumps({"format": 1, "verdict": {}, "networks": [{"id": "baseline"}]}))
    with pytest.raises(
        DataError, match="is a record of version 1; this topiarist reads version 4: run again"
    ) as refused:
        read_record(place)
    assert "\n" not in str(refused.value)


@every_case
def test_what_was_written_is_read(case: str, tmp_path: Path) -> None:
    place = tmp_path / "result.json"
    place.write_text(json.dumps(written(case)))
    assert read_record(place) == CASES[case]()
    assert rightsizing_page(read_record(place)) == text_of(case)


def test_a_network_that_does_not_exist_cannot_be_chosen() -> None:
    with pytest.raises(ValidationError, match=r"verdict\.chosen must be one of baseline"):
        RightsizingRecord.model_validate(written("unchanged") | {"verdict": written("proven")["verdict"]})


def test_many_classes_give_the_pairs_that_are_confused_most() -> None:
    counts = [found for found in page_of("many classes").quoted if found.path.startswith("confusion")]
    assert [found.path for found in counts[::2]] == [f"confusion.before.{pair}" for pair in ("3.39", "1.8", "20.21")]
    assert [int(found.text) for found in counts] == [2, 4, 3, 2, 0, 1]


@pytest.mark.parametrize("axis", ["parameters", "file_kb", "macs", "latency_ms"])
def test_no_network_on_the_front_is_both_larger_and_worse(axis: str) -> None:
    points = [spot.point for spot in spots_of(records.record(), axis)]
    for point in points:
        beaten = any(other.size < point.size and other.score >= point.score for other in points)
        assert point.front == (not beaten)


def test_every_point_leads_to_its_card() -> None:
    page = page_of("proven")
    for axis in ("parameters", "file_kb", "macs", "latency_ms"):
        assert axis in page.values("data-axis")
    # one figure for each axis, and a narrow one for phones
    assert page.values("xlink:href").count("#network-5") == page.values("aria-label").count("genetic-8") == 5


@pytest.mark.parametrize(
    "form, value, text",
    [
        ("percent", 0.97214, "97.21 %"),
        ("points", -0.00281, "-0.28 points"),
        ("points", 0.0000001, "0.00 points"),
        ("drop", 0.01, "1 point"),
        ("drop", 0.005, "0.5 points"),
        ("kilobytes", 1234.56, "1,234.6 KB"),
        ("kilobytes", 0.123, "0.12 KB"),
        ("milliseconds", 0.0123, "0.012 ms"),
        ("times", 8, "8 ×"),
        ("times", 7.31, "7.3 ×"),
        ("times", 0.956, "0.96 ×"),
        ("times", 1234.5, "1,234 ×"),
        ("p_value", 1e-9, "< 0.0001"),
        ("p_value", 0.0031, "0.0031"),
        ("plain", 1.1e-6, "1.1e-06"),
        ("plain", 1234567, "1234567"),
        ("truth", True, "yes"),
    ],
)
def test_numbers_are_written_for_people(form: str, value: float, text: str) -> None:
    assert FORMS[form](value) == text


def test_a_quotation_is_escaped_and_says_where_it_is_from() -> None:
    record = records.record()
    gains = records.changed(record.gains, size=-1.5, parameters=float("nan"), macs=None)
    verdict = records.changed(record.verdict, why=(records.QUOTES,))
    data = records.changed(record.data, notes=())
    quote = Quotes(records.changed(record, gains=gains, verdict=verdict, data=data)).quote
    path = "verdict.why.0"
    assert quote(path) == f'<bdi data-path="{path}">&#34;quotes&#39; &amp; &lt;b&gt;bold&lt;/b&gt;</bdi>'
    together = '<span class="together">{}</span>'.format
    path = "verdict.sentence"
    assert f"From {together('76.1 KB')} to {together('10.4 KB')}: {together('7.3 ×')} smaller" in quote(path)
    path = "gains.size"
    assert quote(path) == f'<data value="-1.5" data-path="{path}" data-form="plain">−1.5</data>'
    for nothing in ("gains.macs", "gains.parameters", "data.notes", "verdict.why.9", "nonsense", "verdict.why.0.c"):
        assert quote(nothing) == f'<span class="unknown" data-path="{nothing}">–</span>'


def test_bounds_need_a_difference() -> None:
    row = Difference(name="a", difference=None, low=None, significant=False)
    with pytest.raises(DataError, match="cannot draw 't': no row has a difference"):
        lower_bounds([row], title="t", unit="points", margin=1.0)
    proven = Difference(name="b", difference=0.5, low=-0.2, significant=True)
    svg = lower_bounds([row, proven], title="t", unit="", margin=1)
    assert "margin: the drop allowed" in svg and "not proven" in svg


def test_no_torch_is_needed() -> None:
    code = "import sys, topiarist.report.rightsizing\nprint('torch' in sys.modules)\n"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
