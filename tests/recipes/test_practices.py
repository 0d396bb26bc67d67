"""The recipe of the practices: what it declares, and a run of it on iris from end to end."""

import json
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pandas
import pytest

from topiarist import Data, load_data
from topiarist.recipes import reproduce_practices as recipe
from topiarist.recipes.practices import Plan, plan_practices
from topiarist.recipes.practices_page import compared, findings_of
from topiarist.study.results import Results
from topiarist.study.study import Study


def plan(data: Data, **options: object) -> Plan:
    settings = {"location": data.name, "target": None, "samples": None, "quick": True, "seed": 0, **options}
    return plan_practices(data, **settings)  # type: ignore[arg-type]


def test_every_practice_is_compared_with_its_alternatives() -> None:
    found = plan(load_data("digits"))
    names = [practice.name for practice in found.practices]
    wanted = ("schedules", "2 hidden", "8 hidden", "Batch", "clipping", "Early", "Dropout", "Monte-Carlo", "Transfer")
    assert all(any(word in name for name in names) for word in wanted)
    labels = set(found.labels.values())
    assert labels == {configuration.label for configuration in found.study.configurations}
    assert all(len(practice.alternatives) >= 3 for practice in found.practices)


def test_the_same_network_is_trained_once_for_two_practices() -> None:
    found = plan(load_data("digits"))
    assert found.labels["Batch normalisation", "none"] == found.labels["Activations with 8 hidden layers", "sigmoid"]
    assert found.labels["Monte-Carlo dropout", "one prediction"] == found.labels["Dropout", "0.2"]


def test_folds_where_there_is_no_test_part_and_seeds_where_there_is() -> None:
    digits = load_data("digits")
    assert plan(digits).study.folds == 5 and plan(digits, quick=False).study.folds == 10
    assert digits.source is not None
    parts = pandas.Series(["train"] * 1400 + ["test"] * 397).to_numpy(dtype=str)
    own = Data.from_source(type(digits.source)(**{**vars(digits.source), "parts": parts}))
    assert plan(own).study.folds is None and len(plan(own).study.seeds) == 5


def test_two_classes_are_too_few_for_transfer() -> None:
    assert "Transfer" not in [practice.name for practice in plan(load_data("breast-cancer")).practices]


@pytest.mark.parametrize(
    ("metric", "difference", "p", "verdict"),
    [
        ("accuracy", 0.1, 0.01, "helped"),
        ("accuracy", -0.1, 0.01, "hurt"),
        ("log_loss", 0.1, 0.01, "hurt"),
        ("log_loss", -0.1, 0.05, "helped"),
        ("log_loss", -0.1, 0.051, "no difference shown"),
    ],
)
def test_verdicts(metric: str, difference: float, p: float, verdict: str) -> None:
    test = {"difference": difference, "low": 0, "high": 0, "holm_p": p}
    assert compared(test, metric)["verdict"] == verdict


class Page(HTMLParser):
    """Collects the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.feed(text)

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def test_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Plan] = []

    def shortened(*arguments: object, **options: object) -> Plan:
        """Keep the declaration but for epochs: the same cells, in a moment."""
        found = plan_practices(*arguments, **options)  # type: ignore[arg-type]
        variants = [
            {**variant, "training": {**variant.get("training", {}), "epochs": 2}} for variant in found.study.variants
        ]
        study = Study(**{**found.study.to_json(), "variants": variants, "folds": 3})
        plans.append(Plan(study, found.practices, found.labels))
        return plans[-1]

    monkeypatch.setattr(recipe, "plan_practices", shortened)
    found = recipe.reproduce_practices(tmp_path, location="iris", quick=True)
    assert json.loads(json.dumps(found)) == found and found["failed"] == 0
    table = pandas.read_csv(found["table"])
    results = Results.read(tmp_path / "study")
    assert set(table["practice"]) == {practice.name for practice in plans[0].practices}
    by_hand = results.done[results.done["configuration"] == "Dropout: 0.3"]["accuracy"]
    row = table[(table["practice"] == "Dropout") & (table["alternative"].astype(str) == "0.3")].iloc[0]
    assert row["accuracy"] == pytest.approx(by_hand.mean()) and row["sd"] == pytest.approx(by_hand.std())
    findings = findings_of(plans[0], results)
    assert [finding.rows[0]["verdict"] for finding in findings] == ["baseline"] * len(findings)
    figures = sorted((tmp_path / "figures").glob("*.svg"))
    assert len(figures) == len(findings)
    for figure in figures:
        ElementTree.parse(figure)
    page = (tmp_path / "index.html").read_text()
    assert "://" not in page.replace("http://www.w3.org", "") and len(page) < 2_000_000
    assert {practice.name for practice in plans[0].practices} <= set(Page(page).texts)
