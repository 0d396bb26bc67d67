"""Runs the study of the practices and writes its table, figures and page."""

import json
import warnings
from pathlib import Path

from topiarist.data import Data, load_data
from topiarist.errors import TopiaristWarning
from topiarist.files import JsonObject
from topiarist.report import format_table
from topiarist.reproductions.findings import failures_of, figure_files, file_stem, versions, write_files
from topiarist.reproductions.practices.findings import data_note, judge_practices, paper_data, practices_findings
from topiarist.reproductions.practices.page import practice_curves, practices_page, practices_summary
from topiarist.reproductions.practices.study import PracticesPlan, plan_practices
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
    device: str | None = None,
    on_progress: OnProgress | None = None,
) -> JsonObject:
    """Compare every practice with its alternatives; the same call after an interruption resumes.

    Writes `index.html`, `table.csv`, `claims.json`, `figures/` and, in `study/`, the ledger. `samples` limits the
    training samples.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # the study says it again
        data = load_data(location, target=target, seed=seed)
    plan = plan_practices(data, location=location, target=target, samples=samples, quick=quick, seed=seed)
    results = plan.study.run(out / "study", workers=workers, cluster=cluster, device=device, on_progress=on_progress)
    return _write(out, plan, results, data)


def _write(out: Path, plan: PracticesPlan, results: Results, data: Data) -> JsonObject:
    """Judge and write what was found; return it with the places of the files."""
    findings = practices_findings(plan, results)
    table, note = findings.table, data_note(data.name)
    judged = judge_practices(plan.practices, findings)
    claims = [claim.to_json() for claim in judged]
    curves = {each.name: practice_curves(plan, each, results) for each in plan.practices if each.alternatives}
    page = practices_page(plan.practices, findings, judged, curves, note, _facts(plan, data, results))
    files = {
        **figure_files({file_stem(name): svg for name, svg in curves.items()}),
        "table.csv": format_table(table, "csv"),
        "claims.json": json.dumps(claims, indent=1, ensure_ascii=False).encode(),
        "index.html": page.encode(),
    }
    write_files(out, files)
    return {
        "page": str(out / "index.html"),
        "table": str(out / "table.csv"),
        "figures": str(out / "figures"),
        "summary": practices_summary(judged, note),
        "paper_data": paper_data(data.name),
        "claims": claims,
        **failures_of([results]),
        "findings": table.astype(object).where(table.notna(), None).to_dict("records"),
    }


def _facts(plan: PracticesPlan, data: Data, results: Results) -> dict[str, str]:
    """Return how the figures came about, so that they can be made again."""
    study = plan.study
    repeats, test = f"{study.folds} folds", "corrected resampled t"
    if study.folds is None:
        repeats, test = f"{len(study.seeds)} seeds, on the test part of the data", "Wilcoxon rank-sum"
    return {
        "Data": f"{data.name}, {int(results.done['train_samples'].max())} training samples at most",
        "Repeats": repeats,
        "Test": f"{test}, p corrected by Holm within a practice and metric",
        "Cells": str(len(study.cells)),
        "Source of the practices": "Huang, Training Deep Neural Networks (2024)",
        "Versions": versions(),
    }
