"""The page of the practices: the paper's claims first, then each practice with its figures, tests and verdicts."""

from collections.abc import Mapping, Sequence
from typing import Any

from topiarist.report import Difference, Section, Table, differences, learning_curves, render_page
from topiarist.reproductions.practices.claims import RULE
from topiarist.reproductions.practices.findings import NO_VERDICT, UNSHOWN, WORDS, Finding, in_words, table_of
from topiarist.study.results import SMALLER_IS_BETTER, Results

SHORT = {"accuracy": "accuracy", "log_loss": "log loss"}


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


def forest_of(finding: Finding, metric: str) -> str:
    """Draw the differences from the baseline."""
    rows = [
        Difference(
            name=row["alternative"],
            difference=row["difference"],
            low=row["low"],
            high=row["high"],
            significant=row["verdict"] in ("helped", "hurt"),
        )
        for row in finding.by(metric)
        if row["difference"] is not None
    ]
    better = "less" if metric in SMALLER_IS_BETTER else "more"
    return differences(rows, title=f"{finding.practice.name}: {WORDS[metric]}", unit=f"{better} is better")


def section_of(finding: Finding, curves: str) -> Section:
    """Return the section of one practice."""
    metrics = finding.practice.metrics
    answers = [f"By {WORDS[metric]}: {answer(finding, metric)}" for metric in metrics]
    text = "\n\n".join([finding.practice.question, *answers, *finding.notes])
    figures = (curves, *(forest_of(finding, metric) for metric in metrics))
    return Section(title=finding.practice.name, text=text, figures=figures, tables=(table_in(finding),))


def table_in(finding: Finding) -> Table:
    """Return the alternatives of a practice with their figures, and difference, p and verdict by each metric."""
    metrics = finding.practice.metrics
    columns = ["alternative", "accuracy", "SD", "log loss"]
    for metric in metrics:
        of = f", {SHORT[metric]}" if len(metrics) > 1 else ""
        columns += [f"difference in {SHORT[metric]}", f"p (Holm){of}", f"verdict{of}"]
    rows = []
    for each in zip(*(finding.by(metric) for metric in metrics), strict=True):
        tested = [row[name] for row in each for name in ("difference", "p", "verdict")]
        rows.append((*(each[0][name] for name in ("alternative", "accuracy", "sd", "log_loss")), *tested))
    helped = frozenset(number for number, row in enumerate(rows) if "helped" in row[4:])
    said = " and by ".join(WORDS[metric] for metric in metrics)
    caption = f"Compared with the first row, by {said}."
    return Table(columns=tuple(columns), rows=tuple(rows), caption=caption, highlight=helped)


def answer(finding: Finding, metric: str) -> str:
    """Answer the practice's question in a sentence or two."""
    rows, best = finding.by(metric), finding.best(metric)
    tested = [row for row in rows if row["verdict"] != "baseline"]
    hurt = [row["alternative"] for row in tested if row["verdict"] == "hurt"]
    if all(row["verdict"] in NO_VERDICT for row in tested):
        return "no verdict can be given."
    first = "no alternative was shown to help."
    if best is not None:
        first = f"{best['alternative']} helped most, {in_words(best)}."
    return f"{first} {', '.join(hurt)} hurt." if hurt else first


def summary_of(claims: Sequence[Mapping[str, Any]], note: str) -> str:
    """Say in a few sentences which of the paper's recommendations the figures support, and on which data."""
    said = []
    for verdict in ("supported", "not supported", "not testable"):
        named = [claim_name(claim, claims) for claim in claims if claim["verdict"] == verdict]
        said += [f"{verdict.capitalize()}: {'; '.join(named)}."] if named else []
    return "\n\n".join([note, " ".join(said)])


def claim_name(claim: Mapping[str, Any], claims: Sequence[Mapping[str, Any]]) -> str:
    """Name a claim, with what tells it apart from others of its practice."""
    others = [other for other in claims if other["practice"] == claim["practice"] and other is not claim]
    extra = [SHORT[claim["metric"]]] if any(other["metric"] != claim["metric"] for other in others) else []
    names = ", ".join(row["alternative"] for row in claim["differences"])
    extra += [f"{names} {claim['says']}"] if any(other["recommends"] != claim["recommends"] for other in others) else []
    return f"{claim['practice']} ({', '.join(extra)})" if extra else str(claim["practice"])


def claim_section(claims: Sequence[Mapping[str, Any]]) -> Section:
    """Return the table of the paper's claims, and the rule by which it is decided."""
    columns = ("practice", "what the paper recommends", "what we measured", "verdict")
    rows = tuple(
        (claim["practice"], claim["recommends"], f"{claim['measured']} ({measure_of(claim)})", claim["verdict"])
        for claim in claims
    )
    supported = frozenset(number for number, claim in enumerate(claims) if claim["verdict"] == "supported")
    caption = (
        "Differences from the first alternative of each practice, with the 95 % interval of each alone: only p, and so"
        " the verdict, is corrected for several comparisons."
    )
    table = Table(columns=columns, rows=rows, caption=caption, highlight=supported)
    return Section(title="What the paper recommends, and what we found", text=RULE, tables=(table,))


def measure_of(claim: Mapping[str, Any]) -> str:
    """Say in what the differences of a claim are."""
    return "points of accuracy" if claim["metric"] == "accuracy" else "log loss, less is better"


def page_of(
    findings: Sequence[Finding],
    claims: Sequence[Mapping[str, Any]],
    curves: Mapping[str, str],
    note: str,
    facts: Mapping[str, str],
) -> str:
    """Return the whole page."""
    overview = table_of(findings).replace({"metric": WORDS})
    overview = overview[["practice", "alternative", "metric", "difference", "p", "verdict"]]
    shown = overview[overview["verdict"].isin(["helped", "hurt"])]
    left = {verdict: int((overview["verdict"] == verdict).sum()) for verdict in (UNSHOWN, *NO_VERDICT)}
    rest = ", ".join(f"{count} × {verdict}" for verdict, count in left.items() if count)
    table = Table(
        columns=tuple(shown.columns),
        rows=tuple(tuple(row) for row in shown.itertuples(index=False)),
        caption="Every difference from the baseline that was shown, p corrected by Holm within practice and metric."
        + (f" Of the others: {rest}." if rest else ""),
    )
    second = Section(title="What helped, and by how much", tables=(table,))
    each = (section_of(finding, curves[finding.practice.name]) for finding in findings)
    return render_page(
        title="Good practices of training, compared",
        summary=summary_of(claims, note),
        sections=[claim_section(claims), second, *each],
        footer=facts,
    )
