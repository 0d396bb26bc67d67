"""The page of the practices: the paper's claims first, then each practice with its figures, tests and verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pandas

from topiarist.report import Difference, Section, Table, differences, learning_curves, render_page, table_of
from topiarist.reproductions.claims import NOT_SUPPORTED, NOT_TESTABLE, SUPPORTED, claims_table
from topiarist.reproductions.practices.findings import (
    NO_VERDICT,
    RULE,
    UNSHOWN,
    WORDS,
    PracticeClaim,
    PracticesFindings,
    difference_in_words,
)
from topiarist.reproductions.practices.study import Practice, PracticesPlan
from topiarist.study.results import SMALLER_IS_BETTER, Results

_SHORT = {"accuracy": "accuracy", "log_loss": "log loss"}


def practices_page(
    practices: Sequence[Practice],
    findings: PracticesFindings,
    claims: Sequence[PracticeClaim],
    curves: Mapping[str, str],
    note: str,
    facts: Mapping[str, str],
) -> str:
    """Return the whole page."""
    caption = (
        "Differences from the first alternative of each practice, with the 95 % interval of each alone: only p, and so"
        " the verdict, is corrected for several comparisons."
    )
    return render_page(
        title="Good practices of training, compared",
        summary=practices_summary(claims, note),
        sections=[
            Section(
                title="What the paper recommends, and what we found",
                text=RULE,
                tables=(claims_table(claims, paper="the paper", caption=caption),),
            ),
            _overview(findings),
            *(_section_of(each, findings, curves[each.name]) for each in practices if each.alternatives),
        ],
        footer=facts,
    )


def practices_summary(claims: Sequence[PracticeClaim], note: str) -> str:
    """Return in a few sentences which of the paper's recommendations the figures support, and on which data."""
    sentences = []
    for verdict in (SUPPORTED, NOT_SUPPORTED, NOT_TESTABLE):
        named = [_short_name(claim, claims) for claim in claims if claim.verdict == verdict]
        sentences += [f"{verdict.capitalize()}: {'; '.join(named)}."] if named else []
    return "\n\n".join([note, " ".join(sentences)])


def _short_name(claim: PracticeClaim, claims: Sequence[PracticeClaim]) -> str:
    """Return the practice of a claim, with what distinguishes the claim from others of its practice."""
    others = [other for other in claims if other.practice == claim.practice]
    extra = [_SHORT[claim.metric]] if any(other.metric != claim.metric for other in others) else []
    extra += [claim.published] if any(other.claim != claim.claim for other in others) else []
    return f"{claim.practice} ({', '.join(extra)})" if extra else claim.practice


def _overview(findings: PracticesFindings) -> Section:
    rows = findings.table.replace({"metric": WORDS})
    left = {verdict: int((rows["verdict"] == verdict).sum()) for verdict in (UNSHOWN, *NO_VERDICT)}
    rest = ", ".join(f"{count} × {verdict}" for verdict, count in left.items() if count)
    caption = "Every difference from the baseline that was shown, p corrected by Holm within practice and metric."
    shown = rows.loc[
        rows["verdict"].isin(["helped", "hurt"]), ["practice", "alternative", "metric", "difference", "p", "verdict"]
    ]
    table = table_of(shown, caption + (f" Of the others: {rest}." if rest else ""))
    return Section(title="What helped, and by how much", tables=(table,))


def _section_of(practice: Practice, findings: PracticesFindings, curves: str) -> Section:
    tables = {metric: findings.on(practice, metric) for metric in practice.metrics}
    answers = [f"By {WORDS[metric]}: {_answer(rows)}" for metric, rows in tables.items()]
    return Section(
        title=practice.name,
        text="\n\n".join([practice.question, *answers, *findings.notes[practice.name]]),
        figures=(curves, *(_forest_of(practice, metric, rows) for metric, rows in tables.items())),
        tables=(_table_of(tables),),
    )


def _answer(rows: pandas.DataFrame) -> str:
    """Return the answer to a practice's question, in a sentence or two."""
    verdicts = rows["verdict"]
    if verdicts.isin([*NO_VERDICT, "baseline"]).all():
        return "no verdict can be given."
    helped, hurt = rows[verdicts == "helped"], rows.loc[verdicts == "hurt", "alternative"]
    first = "no alternative was shown to help."
    if len(helped):
        best = helped.iloc[helped["difference"].abs().argmax()]
        first = f"{best['alternative']} helped most, {difference_in_words(best)}."
    return f"{first} {', '.join(hurt)} hurt." if len(hurt) else first


def _table_of(tables: Mapping[str, pandas.DataFrame]) -> Table:
    """Return the alternatives of a practice with their figures, and difference, p and verdict by each metric."""
    first = next(iter(tables.values()))
    table = first[["alternative", "accuracy", "sd", "log_loss"]].rename(columns={"sd": "SD", "log_loss": "log loss"})
    helped = pandas.Series(data=False, index=table.index)
    for metric, rows in tables.items():
        of = f", {_SHORT[metric]}" if len(tables) > 1 else ""
        table[f"difference in {_SHORT[metric]}"] = rows["difference"]
        table[f"p (Holm){of}"], table[f"verdict{of}"] = rows["p"], rows["verdict"]
        helped |= rows["verdict"] == "helped"
    caption = f"Compared with the first row, by {' and by '.join(WORDS[metric] for metric in tables)}."
    return replace(table_of(table, caption), highlight=frozenset(helped.to_numpy().nonzero()[0].tolist()))


def practice_curves(plan: PracticesPlan, practice: Practice, results: Results) -> str:
    """Draw how the validation loss falls with each alternative of a practice."""
    names = {plan.labels[practice.name, name]: name for name in practice.alternatives}
    curves: dict[str, list[list[float | None]]] = {name: [] for name in practice.alternatives}
    for row in results.rows:
        if row["state"] == "done" and row["label"] in names:
            curves[names[row["label"]]].append([epoch["validation_loss"] for epoch in results.history(row)])
    trained = {name: runs for name, runs in curves.items() if runs}
    return learning_curves(trained, title=practice.name, y_label="validation loss", y_scale="log")


def _forest_of(practice: Practice, metric: str, rows: pandas.DataFrame) -> str:
    """Draw the differences from the baseline."""
    drawn = [
        Difference(
            name=row["alternative"],
            difference=row["difference"],
            low=row["low"],
            high=row["high"],
            significant=row["verdict"] in ("helped", "hurt"),
        )
        for row in rows.dropna(subset="difference").to_dict("records")
    ]
    better = "less" if metric in SMALLER_IS_BETTER else "more"
    return differences(drawn, title=f"{practice.name}: {WORDS[metric]}", unit=f"{better} is better")
