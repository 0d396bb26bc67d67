"""Runs the study of the practices and writes its table, figures and page."""

import json
import warnings
from pathlib import Path
from typing import Any

from topiarist.data import Data, load_data
from topiarist.errors import TopiaristWarning
from topiarist.files import write_atomically
from topiarist.report import format_table
from topiarist.reproductions.findings import failures_of, file_stem, versions
from topiarist.reproductions.practices.claims import data_note, judged_claims, paper_data
from topiarist.reproductions.practices.findings import findings_of, table_of
from topiarist.reproductions.practices.page import curves_of, page_of, summary_of
from topiarist.reproductions.practices.study import Plan, plan_practices
from topiarist.study.engine import OnProgress
from topiarist.study.results import Results


def reproduce_practices(
    out: Path,
    *,
    location: str = "digits",
    target: str | None = None,
    samples: int | None = None,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = 1,
    cluster: str | None = None,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Compare every practice with its alternatives; the same call after an interruption goes on.

    Writes `index.html`, `table.csv`, `claims.json`, `figures/` and, in `study/`, the ledger. `samples` limits the
    training samples.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # the study says it again
        data = load_data(location, target=target, seed=seed)
    plan = plan_practices(data, location=location, target=target, samples=samples, quick=quick, seed=seed)
    results = plan.study.run(out / "study", workers=workers, cluster=cluster, on_progress=on_progress)
    return write_findings(out, plan, results, data)


def write_findings(out: Path, plan: Plan, results: Results, data: Data) -> dict[str, Any]:
    """Write what was found, and return where, with the findings and the claims."""
    findings = findings_of(plan, results)
    claims, note = judged_claims(findings), data_note(data.name)
    curves = {finding.practice.name: curves_of(finding, results) for finding in findings}
    table = table_of(findings)
    figures = out / "figures"
    figures.mkdir(exist_ok=True)
    for name, svg in curves.items():
        write_atomically(figures / f"{file_stem(name)}.svg", svg.encode())
    write_atomically(out / "table.csv", format_table(table, "csv"))
    write_atomically(out / "claims.json", json.dumps(claims, indent=1, ensure_ascii=False).encode())
    page = page_of(findings, claims, curves, note, facts_of(plan, data, results))
    write_atomically(out / "index.html", page.encode())
    return {
        "page": str(out / "index.html"),
        "table": str(out / "table.csv"),
        "figures": str(figures),
        "summary": summary_of(claims, note),
        "paper_data": paper_data(data.name),
        "claims": claims,
        **failures_of([results]),
        "findings": table.astype(object).where(table.notna(), None).to_dict("records"),
    }


def facts_of(plan: Plan, data: Data, results: Results) -> dict[str, str]:
    """Say how the figures came about, so that they can be made again."""
    study = plan.study
    repeats = (
        f"{study.folds} folds" if study.folds is not None else f"{len(study.seeds)} seeds, on the test part of the data"
    )
    test = "corrected resampled t" if study.folds is not None else "Wilcoxon rank-sum"
    return {
        "Data": f"{data.name}, {int(results.done['train_samples'].max())} training samples at most",
        "Repeats": repeats,
        "Test": f"{test}, p corrected by Holm within a practice and metric",
        "Cells": str(len(study.cells)),
        "Source of the practices": "Huang, Training Deep Neural Networks (2024)",
        "Versions": versions(),
    }
