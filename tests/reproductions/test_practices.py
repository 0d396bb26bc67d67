"""The recipe of the practices: what it declares, and a run of it on iris from end to end."""

import json
import math
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pandas
import pytest
from scipy import stats

from topiarist import Data, load_data
from topiarist.reproductions.practices import reproduce as recipe
from topiarist.reproductions.practices.findings import (
    data_note,
    judge_advice,
    least_p,
    paper_data,
    practices_findings,
    reach_notes,
    verdict_on,
)
from topiarist.reproductions.practices.study import PracticeAdvice, PracticesPlan, plan_practices
from topiarist.study.comparison import compare
from topiarist.study.results import Results
from topiarist.study.study import Study

pytestmark = pytest.mark.slow

OPEN = "not testable on this data"


def plan(data: Data, **options: object) -> PracticesPlan:
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
    assert plan(digits).study.folds == plan(digits, quick=False).study.folds == 10
    assert digits.source is not None
    parts = pandas.Series(["train"] * 1400 + ["test"] * 397).to_numpy(dtype=str)
    own = Data.from_source(type(digits.source)(**{**vars(digits.source), "parts": parts}))
    assert plan(own).study.folds is None and len(plan(own).study.seeds) == 10


def test_two_classes_are_too_few_for_transfer() -> None:
    found = plan(load_data("breast-cancer"))
    assert [practice.name for practice in found.practices if not practice.alternatives] == ["Transfer"]
    assert "Transfer" not in {practice for practice, _ in found.labels}


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
    assert verdict_on(difference, p, False, metric=metric, least=0.0) == verdict
    assert verdict_on(difference, p, True, metric=metric, least=0.0) == "both at chance"
    assert verdict_on(difference, p, False, metric=metric, least=0.051) == "too few runs"
    assert verdict_on(math.nan, math.nan, False, metric=metric, least=0.0) == "not measured"


def test_transfer_is_between_every_second_class() -> None:
    found = next(practice for practice in plan(load_data("digits")).practices if practice.name == "Transfer")
    for name, overrides in found.alternatives.items():
        assert overrides["data"]["classes"] == ["1", "3", "5", "7", "9"]
        assert name == "from scratch" or overrides["base"]["classes"] == ["0", "2", "4", "6", "8"]


def test_early_stopping_is_judged_by_both_metrics() -> None:
    found = {practice.name: practice.metrics for practice in plan(load_data("digits")).practices}
    assert found["Early stopping"] == ("log_loss", "accuracy")


@pytest.mark.parametrize(
    ("test", "runs", "comparisons", "least"),
    [
        ("Wilcoxon rank-sum", 5, 7, 7 * 2 / 252),
        ("Wilcoxon rank-sum", 6, 7, 7 * 2 / 924),
        ("Wilcoxon rank-sum", 2, 7, 1.0),
        ("Wilcoxon signed-rank", 5, 2, 2 * 2 / 32),
        ("corrected resampled t", 5, 7, 0.0),
    ],
)
def test_the_least_p_after_holm(test: str, runs: int, comparisons: int, least: float) -> None:
    tests = pandas.DataFrame([{"test": test, "n": runs}] * comparisons)
    assert least_p(tests) == pytest.approx(least)
    assert bool(reach_notes(tests, least_p(tests), "accuracy")) == (least > 0.05)


def test_the_least_p_is_what_the_test_itself_gives() -> None:
    apart = {"a": pandas.Series(range(5)), **{f"b{n}": pandas.Series(range(10 * n, 10 * n + 5)) for n in range(1, 8)}}
    scores = {name: series.astype(float) for name, series in apart.items()}
    frame = compare(scores, "a", test="rank-sum", test_to_train=None)
    assert frame["holm_p"].min() == pytest.approx(least_p(frame))


def test_every_practice_can_reach_significance() -> None:
    digits = load_data("digits")
    assert digits.source is not None
    parts = pandas.Series(["train"] * 1400 + ["test"] * 397).to_numpy(dtype=str)
    own = Data.from_source(type(digits.source)(**{**vars(digits.source), "parts": parts}))
    found = plan(own)
    for practice in found.practices:
        test = {"test": "Wilcoxon rank-sum", "n": len(found.study.seeds)}
        assert least_p(pandas.DataFrame([test] * (len(practice.alternatives) - 1))) < 0.05


def test_chance_is_the_largest_class_and_a_binomial_interval() -> None:
    found = plan(load_data("digits")).chances
    assert found["Dropout"].samples == 1797 and found["Dropout"].share == pytest.approx(183 / 1797)
    highest = found["Dropout"].highest
    counts = stats.binom(1797, 183 / 1797)
    assert counts.cdf(1797 * highest) >= 0.975 > counts.cdf(1797 * highest - 1)
    odd = found["Transfer"]  # every second class has samples of its own
    assert odd.samples < 1797 and odd.share == pytest.approx(183 / odd.samples)


ADVICE = PracticeAdvice("Do one of these.", ("a0", "a1"))


def rows(*verdicts: str) -> pandas.DataFrame:
    figures = {"metric": "accuracy", "difference": 0.1, "low": 0.05, "high": 0.15, "p": 0.01}
    listed = [{"alternative": f"a{n}", "verdict": verdict, **figures} for n, verdict in enumerate(verdicts)]
    return pandas.DataFrame(listed, columns=["alternative", "verdict", *figures])


def judged(*verdicts: str, **changes: object) -> str:
    advice = replace(ADVICE, **changes)  # type: ignore[arg-type]
    return judge_advice("practice", advice, "accuracy", rows(*verdicts)).verdict


@pytest.mark.parametrize(
    ("verdicts", "better", "worse"),
    [
        (["helped", "no difference shown"], "supported", "not supported"),
        (["helped", "hurt"], "not supported", "not supported"),
        (["hurt", "both at chance"], "not supported", "supported"),
        (["no difference shown"], "not supported", "not supported"),
        (["both at chance", "too few runs"], OPEN, OPEN),
        ([], OPEN, OPEN),
    ],
)
def test_claims_are_decided_by_the_rule(verdicts: list[str], better: str, worse: str) -> None:
    assert judged(*verdicts) == better
    assert judged(*verdicts, says="worse") == worse
    assert judged(*verdicts, each=True) == (better if better != "supported" else "not supported")
    assert judged("helped", "helped", each=True) == "supported"


def test_a_claim_says_what_was_measured() -> None:
    claim = judge_advice("practice", ADVICE, "accuracy", rows("helped"))
    assert claim.claim == "practice: Do one of these." and claim.published == "at least one better: a0; a1"
    assert claim.ours == "a0: +10.00 [+5.00, +15.00] (points of accuracy)"
    assert claim.to_json()["differences"] == [
        {"alternative": "a0", "difference": 0.1, "low": 0.05, "high": 0.15, "p": 0.01, "verdict": "helped"}
    ]


def test_advice_is_on_alternatives_that_are_run() -> None:
    for practice in plan(load_data("digits")).practices:
        assert practice.advice
        baseline, *others = practice.alternatives
        assert all(set(advice.alternatives) <= set(others) for advice in practice.advice), baseline


def test_the_papers_data_are_known_by_name() -> None:
    assert (paper_data("fashion-mnist"), paper_data("CIFAR-10")) == ("Fashion-MNIST", "CIFAR-10")
    assert paper_data("cifar100") is paper_data("digits") is None
    assert "not from the data that the paper names" in data_note("digits")
    assert "which the paper names" in data_note("cifar10")


class Page(HTMLParser):
    """Collects the text of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.feed(text)

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


def shorten(monkeypatch: pytest.MonkeyPatch, **changes: object) -> list[PracticesPlan]:
    """Keep the declaration but for epochs and runs: the same cells, in a moment; give the plans that are made."""
    plans: list[PracticesPlan] = []

    def shortened(*arguments: object, **options: object) -> PracticesPlan:
        found = plan_practices(*arguments, **options)  # type: ignore[arg-type]
        variants = [
            {**variant, "training": {**variant.get("training", {}), "epochs": 2}} for variant in found.study.variants
        ]
        study = Study(**{**found.study.to_json(), "variants": variants, **changes})
        plans.append(replace(found, study=study))
        return plans[-1]

    monkeypatch.setattr(recipe, "plan_practices", shortened)
    return plans


def test_from_end_to_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans = shorten(monkeypatch, folds=3)
    found = recipe.reproduce_practices(tmp_path, location="iris", quick=True)
    assert json.loads(json.dumps(found)) == found and found["failed"] == 0
    table = pandas.read_csv(found["table"])
    results = Results.read(tmp_path / "study")
    run = [practice for practice in plans[0].practices if practice.alternatives]
    assert set(table["practice"]) == {practice.name for practice in run}
    by_hand = results.done[results.done["configuration"] == "Dropout: 0.3"]["accuracy"]
    row = table[(table["practice"] == "Dropout") & (table["alternative"].astype(str) == "0.3")].iloc[0]
    assert row["accuracy"] == pytest.approx(by_hand.mean()) and row["sd"] == pytest.approx(by_hand.std())
    findings = practices_findings(plans[0], results)
    for practice in run:
        assert {findings.on(practice, metric)["verdict"].iloc[0] for metric in practice.metrics} == {"baseline"}
    assert json.loads((tmp_path / "claims.json").read_text()) == found["claims"]
    assert {claim["verdict"] for claim in found["claims"]} <= {"supported", "not supported", OPEN}
    assert [claim["metric"] for claim in found["claims"] if claim["practice"] == "Early stopping"] == [
        "log_loss",
        "accuracy",
    ]
    transfer = next(claim for claim in found["claims"] if claim["practice"] == "Transfer")
    assert transfer["verdict"] == OPEN and transfer["ours"].startswith("not run")
    assert found["paper_data"] is None and "iris" in found["summary"]
    figures = sorted((tmp_path / "figures").glob("*.svg"))
    assert len(figures) == len(run)
    for figure in figures:
        ElementTree.parse(figure)
    page = (tmp_path / "index.html").read_text()
    assert page.index("What the paper recommends") < page.index("What helped, and by how much</h2>")
    assert "://" not in page.replace("http://www.w3.org", "") and len(page) < 2_000_000
    assert {practice.name for practice in run} <= set(Page(page).texts)


def test_few_runs_and_labels_without_sense_get_no_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random = numpy.random.default_rng(0)
    parts = {"train": 200, "test": 150}
    arrays: dict[str, Any] = {f"x_{part}": random.normal(size=(count, 3)) for part, count in parts.items()}
    arrays |= {f"y_{part}": random.integers(0, 2, count) for part, count in parts.items()}
    numpy.savez(tmp_path / "noise.npz", **arrays)
    shorten(monkeypatch, seeds=[0, 1])
    found = recipe.reproduce_practices(tmp_path / "out", location=str(tmp_path / "noise.npz"), quick=True)
    rows = [row for row in found["findings"] if row["verdict"] != "baseline"]
    assert {row["verdict"] for row in rows} <= {"both at chance", "too few runs"}
    assert sum(row["verdict"] == "both at chance" for row in rows) > len(rows) / 2
    assert all(row["least_p"] > 0.05 and row["p"] >= row["least_p"] for row in rows)
    assert {claim["verdict"] for claim in found["claims"]} == {OPEN}
    page = (tmp_path / "out" / "index.html").read_text()
    assert "2 runs of each cannot show a difference" in page and "No better than chance: " in page
    assert "no difference shown" not in page and "was shown to help" not in page
