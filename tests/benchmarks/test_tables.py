"""The benchmark of tables: means and intervals against numbers made up, what counts as lost, and what is delivered."""

import math
from pathlib import Path

import numpy
import pytest
from scipy import stats

from benchmarks.tabulating import delivered as delivering
from benchmarks.tabulating.losing import compare
from benchmarks.tabulating.records import TableResults, TableScore
from benchmarks.tabulating.sources import load_split
from benchmarks.tabulating.summary import write_markdown
from tests.rightsizing.tasks import use_small_plan


def make_score(table: str, split: int, contender: str, score: float, *, kilobytes: float = 12.4) -> TableScore:
    return TableScore(
        table=table,
        split=split,
        contender=contender,
        task="classes",
        rows=80,
        tested=20,
        score=score,
        kilobytes=kilobytes if contender in ("network", "delivered") else None,
        seconds=3.0,
    )


def make_scores(contender: str, gained: dict[str, list[float]]) -> list[TableScore]:
    return [
        make_score(table, split, name, 0.8 + (difference if name == contender else 0.0))
        for table, differences in gained.items()
        for split, difference in enumerate(differences)
        for name in (contender, "boosting")
    ]


def test_a_row_has_means_and_the_interval_of_splits_that_share_rows() -> None:
    lines = write_markdown(
        make_scores("network", {"one": [0.01, 0.03, 0.05], "other": [-0.02, 0.0, 0.02]})
    ).splitlines()
    half = stats.t.ppf(0.975, 2) * numpy.std([1, 3, 5], ddof=1) * math.sqrt(1 / 3 + 20 / 80)
    assert lines[2] == f"| one (3 splits) | 100 | 83.0 | 80.0 | +3.0 ± {half:.1f} |"
    over_tables = stats.t.ppf(0.975, 1) * numpy.std([3, 0], ddof=1) / math.sqrt(2)
    assert lines[4] == f"| mean | | **81.50** | **80.00** | **+1.50** ± {over_tables:.2f} |"
    assert half == pytest.approx(6.573, abs=1e-3)  # 4.30265 · 2 · √(1/3 + 1/4)
    assert "| network | 12.4 | 12.4 | 3.0 | 3.0 | 3.0 |" in lines


def test_contenders_are_compared_on_the_splits_that_both_have() -> None:
    scores = [*make_scores("delivered", {"one": [0.02, 0.04]}), make_score("one", 2, "boosting", 0.1)]
    (row,) = [line for line in write_markdown(scores).splitlines() if line.startswith("| one")]
    assert "| +3.0 ± " in row


def test_what_is_delivered_is_counted_beside_the_others_and_the_aims() -> None:
    scores = make_scores("delivered", {"one": [0.01, 0.02], "other": [-0.05, -0.04]})
    found = {each.case: each for each in compare(TableResults(scores=tuple(scores)))}
    assert not found["one"].lost and found["other"].lost
    mean = found["mean over 2 tables of classes, delivered − boosting"]
    assert mean.aim and mean.lost and mean.ours == pytest.approx(-1.5) and mean.theirs == -0.5
    worst = found["worst of 2 tables of classes, delivered − boosting"]
    assert worst.lost and worst.ours == pytest.approx(-4.5)
    assert not found["the median file that is delivered"].lost


@pytest.mark.slow
def test_what_is_delivered_learns_from_none_of_the_rows_to_test_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use_small_plan(monkeypatch)
    data = load_split("diabetes", 300)
    found = {score.contender: score for score in delivering.delivered(data, 300)}
    assert set(found) == {"delivered", "baseline"}
    for score in found.values():
        assert score.rows + score.tested == 442 and 0.2 < score.score < 0.7
        assert score.kilobytes and score.parameters and score.seconds and score.verdict
    assert found["baseline"].seconds < found["delivered"].seconds  # type: ignore[operator]
    files = [tmp_path / "learned.csv", tmp_path / "unseen.csv"]
    assert data.split is not None
    both = zip((data.split.train, data.split.test), files, strict=True)
    rows = [set(delivering.written(data, part, file).read_text().splitlines()[1:]) for part, file in both]
    assert not rows[0] & rows[1] and len(rows[0]) + len(rows[1]) == 442
