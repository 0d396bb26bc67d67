"""What the study of the practices found: each alternative against the first of its practice, with a verdict.

A verdict is given only where there can be one: not where both sides do no better than chance, and not where so few runs
cannot reach significance, be the difference what it may.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas

from topiarist.report.cells import signed
from topiarist.reproductions.practices.study import Chance, Plan, Practice
from topiarist.statistics.ranks import smallest_p_rank_sum, smallest_p_signed_rank
from topiarist.study.results import SMALLER_IS_BETTER, Results

ALPHA = 0.05
WORDS = {"accuracy": "test accuracy", "log_loss": "test log loss"}
AT_CHANCE, TOO_FEW, UNMEASURED, UNSHOWN = "both at chance", "too few runs", "not measured", "no difference shown"
NO_VERDICT = (AT_CHANCE, TOO_FEW, UNMEASURED)
COLUMNS = (
    *("practice", "alternative", "metric", "accuracy", "sd", "log_loss", "at_chance"),
    *("difference", "low", "high", "p", "least_p", "verdict"),
)


@dataclass(frozen=True)
class Finding:
    """A practice with one row for each metric and alternative, the baseline first, and chance on its samples."""

    practice: Practice
    rows: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]
    chance: Chance

    def by(self, metric: str) -> list[Mapping[str, Any]]:
        """Return the rows of one metric."""
        return [row for row in self.rows if row["metric"] == metric]

    def best(self, metric: str) -> Mapping[str, Any] | None:
        """Return the alternative that helped most by a metric, where one helped."""
        helped = [row for row in self.by(metric) if row["verdict"] == "helped"]
        return max(helped, key=lambda row: abs(row["difference"]), default=None)


def findings_of(plan: Plan, results: Results) -> list[Finding]:
    """Compare the alternatives of each practice with its first, by each of its metrics."""
    means = {metric: by_label(results.summary(metric)) for metric in WORDS}
    return [finding_of(practice, plan, results, means) for practice in plan.practices]


def finding_of(
    practice: Practice, plan: Plan, results: Results, means: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> Finding:
    """Compare the alternatives of one practice with its first."""
    labels = {name: plan.labels[practice.name, name] for name in practice.alternatives}
    baseline, *_ = labels.values()
    chance = plan.chances[practice.name]
    summary = means["accuracy"]
    at_chance = {label: summary[label]["mean"] <= chance.highest for label in labels.values() if label in summary}
    rows, notes = [], list[str]()
    for metric in practice.metrics:
        tests = by_label(results.compare(baseline, metric, among=list(labels.values())))
        least = least_p(list(tests.values()))
        for name, label in labels.items():
            if label in summary:
                figures = {"accuracy": summary[label]["mean"], "sd": summary[label]["sd"]}
                figures |= {"log_loss": means["log_loss"].get(label, {}).get("mean"), "at_chance": at_chance[label]}
                both = at_chance[label] and at_chance[baseline]
                verdict = compared(tests.get(label), metric, at_chance=both, least=least)
                verdict |= {"verdict": "baseline"} if label == baseline else {}
                named = {"practice": practice.name, "alternative": name, "label": label, "metric": metric}
                rows.append({**named, **figures, **verdict})
        notes += [note for test in tests.values() if test["notes"] for note in test["notes"].split("; ")]
        notes += reach_notes(list(tests.values()), least, metric)
    return Finding(practice, tuple(rows), (*dict.fromkeys(notes), *chance_notes(rows, chance)), chance)


def by_label(frame: pandas.DataFrame) -> dict[str, dict[str, Any]]:
    """Return the rows of a table by configuration."""
    return {row["configuration"]: {str(name): value for name, value in row.items()} for row in frame.to_dict("records")}


def least_p(tests: Sequence[Mapping[str, Any]]) -> float:
    """Return the least p that any of these comparisons can have after Holm's correction, be the difference what it may.

    Holm multiplies the smallest p by the number of comparisons. 5 and 5 runs have 252 rank sums, so that the exact test
    gives 2/252 or more, and 0.056 or more among 7. The t-test has no least p.
    """
    smallest = {
        "Wilcoxon rank-sum": lambda n: smallest_p_rank_sum(n, n),
        "Wilcoxon signed-rank": smallest_p_signed_rank,
    }
    found = [smallest[test["test"]](int(test["n"])) if test["test"] in smallest else 0.0 for test in tests]
    return min(1.0, min(found, default=0.0) * len(found))


def compared(test: Mapping[str, Any] | None, metric: str, *, at_chance: bool, least: float) -> dict[str, Any]:
    """Return how an alternative compares with the baseline: difference, interval, p by Holm, verdict."""
    if test is None:
        return dict.fromkeys(("difference", "low", "high", "p", "least_p")) | {"verdict": UNMEASURED}
    better = test["difference"] * (-1 if metric in SMALLER_IS_BETTER else 1) > 0
    verdict = ("helped" if better else "hurt") if test["holm_p"] <= ALPHA else UNSHOWN
    verdict = AT_CHANCE if at_chance else TOO_FEW if least > ALPHA else verdict
    figures = {name: test[name] for name in ("difference", "low", "high")}
    return figures | {"p": test["holm_p"], "least_p": least, "verdict": verdict}


def reach_notes(tests: Sequence[Mapping[str, Any]], least: float, metric: str) -> list[str]:
    """Say in a sentence that the runs cannot show a difference, where they cannot."""
    if least <= ALPHA:
        return []
    runs = max(int(test["n"]) for test in tests)
    return [
        f"{runs} runs of each cannot show a difference in {WORDS[metric]}: the least p that the exact test can give in"
        f" {len(tests)} comparisons is {least:.3g} after Holm's correction, above {ALPHA:g}. More runs are needed."
    ]


def chance_notes(rows: Sequence[Mapping[str, Any]], chance: Chance) -> list[str]:
    """Say which alternatives are at chance, and what that means."""
    names = list(dict.fromkeys(row["alternative"] for row in rows if row["at_chance"]))
    if not names:
        return []
    return [
        f"No better than chance: {', '.join(names)}. Always naming the largest class is right for {chance.share:.1%} of"
        f" {chance.samples:,} test samples; up to {chance.highest:.1%} is within the 95 % binomial interval of that."
        " Two that are both at chance get no verdict."
    ]


def table_of(findings: Sequence[Finding]) -> pandas.DataFrame:
    """Return all findings as one table."""
    return pandas.DataFrame([{name: row[name] for name in COLUMNS} for finding in findings for row in finding.rows])


def in_words(row: Mapping[str, Any], *, interval: bool = False) -> str:
    """Write a difference, with its interval where asked for: in points of accuracy, or in log loss."""
    scale, places = (100, 2) if row["metric"] == "accuracy" else (1, 4)
    unit = "points of test accuracy" if row["metric"] == "accuracy" else "in test log loss"
    difference, low, high = (
        signed(scale * row[name], places).replace("-", "−") for name in ("difference", "low", "high")
    )
    return f"{difference} [{low}, {high}]" if interval else f"{difference} {unit}"
