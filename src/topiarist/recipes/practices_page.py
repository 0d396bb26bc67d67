"""What the study of the practices found: which helped and by how much, as a table, figures and a page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas

from topiarist.recipes.practices import Plan, Practice
from topiarist.report import Section, Table, differences, learning_curves, render_page
from topiarist.study.results import SMALLER_IS_BETTER, Results

ALPHA = 0.05
WORDS = {"accuracy": "test accuracy", "log_loss": "test log loss"}
COLUMNS = (
    "practice",
    "alternative",
    "accuracy",
    "sd",
    "log_loss",
    "metric",
    "difference",
    "low",
    "high",
    "p",
    "verdict",
)


@dataclass(frozen=True)
class Finding:
    """A practice with one row for each alternative, the baseline first."""

    practice: Practice
    rows: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]

    @property
    def best(self) -> Mapping[str, Any] | None:
        """The alternative that helped most, where one helped."""
        helped = [row for row in self.rows if row["verdict"] == "helped"]
        return max(helped, key=lambda row: abs(row["difference"]), default=None)


def findings_of(plan: Plan, results: Results) -> list[Finding]:
    """Compare the alternatives of each practice with its first."""
    summary, losses = by_label(results.summary()), by_label(results.summary("log_loss"))
    found = []
    for practice in plan.practices:
        labels = {name: plan.labels[practice.name, name] for name in practice.alternatives}
        baseline, *_ = labels.values()
        tests = by_label(results.compare(baseline, practice.metric, among=list(labels.values())))
        rows = tuple(
            {
                "practice": practice.name,
                "alternative": name,
                "label": label,
                "metric": practice.metric,
                "accuracy": summary[label]["mean"],
                "sd": summary[label]["sd"],
                "log_loss": losses.get(label, {}).get("mean"),
                **compared(tests.get(label), practice.metric),
            }
            for name, label in labels.items()
            if label in summary
        )
        notes = dict.fromkeys(note for test in tests.values() if test["notes"] for note in test["notes"].split("; "))
        found.append(Finding(practice, rows, tuple(notes)))
    return found


def by_label(frame: pandas.DataFrame) -> dict[str, dict[str, Any]]:
    """Give the rows of a table by configuration."""
    return {row["configuration"]: {str(name): value for name, value in row.items()} for row in frame.to_dict("records")}


def compared(test: Mapping[str, Any] | None, metric: str) -> dict[str, Any]:
    """Say how an alternative compares with the baseline."""
    if test is None:
        return {"difference": None, "low": None, "high": None, "p": None, "verdict": "baseline"}
    better = test["difference"] * (-1 if metric in SMALLER_IS_BETTER else 1) > 0
    verdict = ("helped" if better else "hurt") if test["holm_p"] <= ALPHA else "no difference shown"
    return {name: test[name] for name in ("difference", "low", "high")} | {"p": test["holm_p"], "verdict": verdict}


def table_of(findings: Sequence[Finding]) -> pandas.DataFrame:
    """Give all findings as one table."""
    return pandas.DataFrame([{name: row[name] for name in COLUMNS} for finding in findings for row in finding.rows])


def curves_of(finding: Finding, results: Results) -> str:
    """Draw how the validation loss falls."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for row in results.rows:
        if row["state"] == "done":
            cells.setdefault(row["label"], []).append(row)
    curves = {
        row["alternative"]: [
            [epoch["validation_loss"] for epoch in results.history(cell)] for cell in cells.get(row["label"], [])
        ]
        for row in finding.rows
    }
    return learning_curves(curves, title=finding.practice.name, y_label="validation loss", y_scale="log")


def forest_of(finding: Finding) -> str:
    """Draw the differences from the baseline."""
    rows = [
        {
            "name": row["alternative"],
            "difference": row["difference"],
            "low": row["low"],
            "high": row["high"],
            "significant": row["verdict"] != "no difference shown",
        }
        for row in finding.rows
        if row["difference"] is not None
    ]
    metric = WORDS[finding.practice.metric]
    better = "less" if finding.practice.metric in SMALLER_IS_BETTER else "more"
    return differences(rows, title=f"{finding.practice.name}: {metric}", unit=f"{better} is better")


def section_of(finding: Finding, curves: str) -> Section:
    """Give the section of one practice."""
    metric = WORDS[finding.practice.metric]
    columns = ("alternative", "accuracy", "SD", "log loss", f"difference in {metric}", "p (Holm)", "verdict")
    rows = tuple(
        (row["alternative"], row["accuracy"], row["sd"], row["log_loss"], row["difference"], row["p"], row["verdict"])
        for row in finding.rows
    )
    helped = frozenset(number for number, row in enumerate(finding.rows) if row["verdict"] == "helped")
    text = "\n\n".join([f"{finding.practice.question} {answer(finding)}", *finding.notes])
    table = Table(columns=columns, rows=rows, caption=f"Compared with the first row, by {metric}.", highlight=helped)
    return Section(title=finding.practice.name, text=text, figures=(curves, forest_of(finding)), tables=(table,))


def answer(finding: Finding) -> str:
    """Answer the practice's question in a sentence."""
    best, metric = finding.best, WORDS[finding.practice.metric]
    hurt = [row["alternative"] for row in finding.rows if row["verdict"] == "hurt"]
    said = f"{', '.join(hurt)} hurt." if hurt else ""
    if best is None:
        return f"No alternative was shown to help. {said}".strip()
    return f"{best['alternative']} helped most: {in_words(best, finding.practice)} {metric}. {said}".strip()


def in_words(row: Mapping[str, Any], practice: Practice) -> str:
    """Write a difference: points of accuracy, or a number."""
    difference = row["difference"]
    return f"{100 * difference:+.2f} points of" if practice.metric == "accuracy" else f"{difference:+.4f} in"


def summary_of(findings: Sequence[Finding]) -> str:
    """Say in a sentence or two what helped."""
    helped = [
        f"{finding.practice.name} ({finding.best['alternative']}: {in_words(finding.best, finding.practice)}"
        f" {WORDS[finding.practice.metric]})"
        for finding in findings
        if finding.best is not None
    ]
    unshown = [finding.practice.name for finding in findings if finding.best is None]
    first = f"What helped: {'; '.join(helped)}." if helped else "Nothing was shown to help."
    return f"{first} No help was shown for: {'; '.join(unshown)}." if unshown else first


def page_of(findings: Sequence[Finding], curves: Mapping[str, str], facts: Mapping[str, str]) -> str:
    """Give the whole page."""
    overview = table_of(findings).replace({"metric": WORDS})
    overview = overview[["practice", "alternative", "metric", "difference", "p", "verdict"]]
    shown = overview[overview["verdict"].isin(["helped", "hurt"])]
    table = Table(
        columns=tuple(shown.columns),
        rows=tuple(tuple(row) for row in shown.itertuples(index=False)),
        caption="Every difference from the baseline that was shown, p corrected by Holm within each practice.",
    )
    first = Section(title="What helped, and by how much", tables=(table,))
    sections = [first, *(section_of(finding, curves[finding.practice.name]) for finding in findings)]
    return render_page(
        title="Good practices of training, compared", summary=summary_of(findings), sections=sections, footer=facts
    )
