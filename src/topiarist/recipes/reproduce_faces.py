"""Runs the study of the faces and writes its tables, figures and page."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from topiarist.data import Data
from topiarist.errors import TopiaristWarning
from topiarist.recipes.faces import FULL, QUICK, Plan, plan_faces
from topiarist.recipes.faces_data import Faces, Pictures, read_faces
from topiarist.recipes.faces_page import Found, figures_of, page_of, summary_of
from topiarist.recipes.faces_tables import (
    cells_of,
    compared_with_unpruned,
    distance_from_paper,
    means_of,
    svm_table,
    table_1,
    table_3,
)
from topiarist.recipes.findings import failures_of, versions, write_findings
from topiarist.study.engine import OnProgress
from topiarist.study.results import Results

PARTS = ("table 1", "scalings", "angles", "penalties", "variants", "ours", "searches")
LOSSES = {"training": "train_loss", "held out": "validation_loss"}
ACCURACY = {"held out": "validation_accuracy"}


def reproduce_faces(
    out: Path,
    *,
    location: Path | None = None,
    target: str | None = None,
    pictures: Pictures | None = None,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = 1,
    cluster: str | None = None,
    on_image: Callable[[int, int], None] | None = None,
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Reproduce the paper's tables and figures, and add ours; the same call after an interruption goes on.

    `location` is the spreadsheet of descriptors or a folder of pictures; without it a stand-in is used. Writes
    `index.html`, `tables/`, `figures/` and, in `study/`, the ledger.
    """
    chosen = Pictures() if pictures is None else pictures
    faces = read_faces(location, out, target=target, pictures=chosen, seed=seed, on_image=on_image)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # the page says it
        data = Data.from_source(faces.source, projection=faces.projection, validation_fraction=0.0, seed=seed)
        plan = plan_faces(faces.source.name, projection=faces.projection, scope=QUICK if quick else FULL, seed=seed)
        results = plan.study.run(out / "study", data=data, workers=workers, cluster=cluster, on_progress=on_progress)
        found = gather(plan, results, faces, data)
    return write_found(out, found, facts_of(plan, faces, results), results)


def gather(plan: Plan, results: Results, faces: Faces, data: Data) -> Found:
    """Bring what was found into tables."""
    cells = {part: cells_of(plan, results, part) for part in PARTS}
    folds, seed = plan.scope.folds, plan.study.seeds[0]
    tables = {
        "table1": table_1(cells["table 1"]),
        "svm": svm_table(data, projection=faces.projection, folds=folds, seed=seed),
        "table3": table_3(cells["scalings"]),
        "scalings": means_of(cells["scalings"], ["scaling", "units", "variant"]),
        "angles": means_of(cells["angles"], ["angle"]),
        "penalties": means_of(cells["penalties"], ["fitness", "units", "penalty"]),
        "variants": compared_with_unpruned(plan, results, "variants"),
        "ours": compared_with_unpruned(plan, results, "ours"),
        "searches": means_of(cells["searches"], ["variant", "units"]),
    }
    return Found(
        tables=tables,
        cells=cells,
        losses=long_epochs(plan, results, LOSSES),
        accuracies=long_epochs(plan, results, ACCURACY),
        distances=distance_from_paper(cells["scalings"]),
        stand_in=faces.stand_in,
        notes=faces.source.notes,
    )


def long_epochs(plan: Plan, results: Results, curves: dict[str, str]) -> dict[str, list[list[float | None]]]:
    """Give figures of the long training, epoch by epoch, a run a fold."""
    ((_, label),) = plan.rows("long training")
    histories = [results.history(row) for row in results.rows if row["label"] == label and row["state"] == "done"]
    return {name: [[epoch[figure] for epoch in run] for run in histories] for name, figure in curves.items()}


def write_found(out: Path, found: Found, facts: dict[str, str], results: Results) -> dict[str, Any]:
    """Write what was found, and say where."""
    figures = figures_of(found)
    places = write_findings(out, found.tables, figures, page_of(found, figures, facts))
    return {
        **places,
        "stand_in": found.stand_in,
        "scaling": {"nearest": found.matching, "factors": dict(found.distances)},
        "summary": summary_of(found),
        **failures_of([results]),
        "notes": list(found.notes),
    }


def facts_of(plan: Plan, faces: Faces, results: Results) -> dict[str, str]:
    """Say how the figures came about, so that they can be made again."""
    source = faces.source
    copies = "" if source.originals is None else f" of {len(set(source.originals.tolist()))} pictures"
    return {
        "Data": f"{source.name}, {len(source)} samples{copies}",
        "Repeats": f"{plan.scope.folds} stratified folds, seed {plan.study.seeds[0]}",
        "Test": "corrected resampled t over folds, p corrected by Holm within a size",
        "Cells": str(len(plan.study.cells)),
        "Paper": "Tanovic, Comparison of distinctiveness pruning and genetic algorithms for the reduction of a fully"
        " trained neural network",
        "Versions": versions(),
    }
