"""Runs the study of the faces and writes its tables, figures, verdicts and page."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from topiarist.data import Data
from topiarist.errors import TopiaristWarning
from topiarist.files import write_atomically
from topiarist.reproductions.faces.claims import RULE
from topiarist.reproductions.faces.data import Faces, Pictures, read_faces
from topiarist.reproductions.faces.figures import figures_of
from topiarist.reproductions.faces.found import Found
from topiarist.reproductions.faces.page import page_of
from topiarist.reproductions.faces.readings import best_per_claim, matches, side_by_side
from topiarist.reproductions.faces.study import DEFAULT, FULL, QUICK, Plan, plan_faces
from topiarist.reproductions.faces.tables import (
    cells_of,
    compared_with_unpruned,
    means_of,
    svm_cells,
    svm_table,
    table_1,
    verdict_table,
)
from topiarist.reproductions.faces.verdicts import absolute_table, all_verdicts
from topiarist.reproductions.faces.words import summary_of
from topiarist.reproductions.findings import failures_of, versions, write_findings
from topiarist.study.engine import OnProgress
from topiarist.study.results import Results

PARTS = (
    "table 1",
    "angles",
    "penalties",
    "variants",
    "readings",
    "pair orders",
    "search readings",
    "ours",
    "searches",
)
LOSSES = {"training": "train_loss", "held out": "validation_loss"}
ACCURACIES = {"training": "train_accuracy", "held out": "validation_accuracy"}
VERDICTS, VERSION = "verdicts.json", 1


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
    """Reproduce the paper's tables and figures, and add ours; the same call after an interruption resumes.

    `location` is the spreadsheet of descriptors or a folder of images; without it a stand-in is used. Writes
    `index.html`, `verdicts.json`, `tables/`, `figures/` and, in `study/`, the ledger.
    """
    chosen = Pictures() if pictures is None else pictures
    faces = read_faces(location, out, target=target, pictures=chosen, seed=seed, on_image=on_image)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # the page says it
        data = Data.from_source(faces.source, projection=faces.projection, validation_fraction=0.0, seed=seed)
        plan = plan_faces(
            faces.source.name,
            samples=len(faces.source),
            projection=faces.projection,
            scope=QUICK if quick else FULL,
            seed=seed,
        )
        results = plan.study.run(out / "study", data=data, workers=workers, cluster=cluster, on_progress=on_progress)
        found = gather(plan, results, faces, data)
    return write_found(out, found, facts_of(plan, faces, results), results)


def gather(plan: Plan, results: Results, faces: Faces, data: Data) -> Found:
    """Bring what was found into tables, and judge it."""
    cells = {part: cells_of(plan, results, part) for part in PARTS}
    scope, testable, ratio = plan.scope, faces.papers_data, results.test_to_train or 0.0
    machine = svm_cells(
        data, projection=faces.projection, folds=scope.folds, repeats=scope.repeats, seed=plan.study.seeds[0]
    )
    verdicts = all_verdicts(cells, machine, test_to_train=ratio, testable=testable)
    read = matches(cells["readings"], test_to_train=ratio, testable=testable)
    tables = {
        "verdicts": verdict_table(verdicts),
        "table1": table_1(cells["table 1"], testable=testable),
        "svm": svm_table(machine, testable=testable),
        "angles": means_of(cells["angles"], ["angle"]),
        "penalties": means_of(cells["penalties"], ["fitness", "units", "penalty"]),
        "equation6": absolute_table(cells["penalties"], ratio),
        "variants": compared_with_unpruned(plan, results, "variants"),
        "side-by-side": side_by_side(read, testable=testable),
        "readings": means_of(cells["readings"], ["length", "scaling", "units", "variant"]),
        "pair-orders": means_of(cells["pair orders"], ["order", "units", "variant"]),
        "search-readings": means_of(cells["search readings"], ["reading", "units", "search"]),
        "ours": compared_with_unpruned(plan, results, "ours"),
        "searches": means_of(cells["searches"], ["variant", "units"]),
    }
    return Found(
        tables=tables | ({"nearest": best_per_claim(read)} if testable else {}),
        cells=cells,
        losses=long_epochs(plan, results, LOSSES),
        accuracies=long_epochs(plan, results, ACCURACIES),
        verdicts=tuple(verdicts),
        matches=tuple(read),
        data=faces.record,
        notes=faces.source.notes,
    )


def long_epochs(plan: Plan, results: Results, curves: dict[str, str]) -> dict[str, list[list[float | None]]]:
    """Return figures of the long training, epoch by epoch, a run per network."""
    ((_, label),) = plan.rows("long training")
    histories = [results.history(row) for row in results.rows if row["label"] == label and row["state"] == "done"]
    return {name: [[epoch[figure] for epoch in run] for run in histories] for name, figure in curves.items()}


def write_found(out: Path, found: Found, facts: dict[str, str], results: Results) -> dict[str, Any]:
    """Write what was found, and return it with the places of the files."""
    figures = figures_of(found)
    places = write_findings(out, found.tables, figures, page_of(found, figures, facts))
    judged = verdicts_of(found)
    write_atomically(out / VERDICTS, json.dumps(judged, indent=2, ensure_ascii=False).encode())
    return {
        **places,
        "stand_in": found.data["form"] == "stand-in",
        **judged,
        "verdicts_file": str(out / VERDICTS),
        "summary": summary_of(found),
        **failures_of([results]),
        "notes": list(found.notes),
    }


def verdicts_of(found: Found) -> dict[str, Any]:
    """Return the verdicts, those of every reading, and what they rest on, as plain values."""
    match = found.matching
    return {
        "version": VERSION,
        "data": dict(found.data),
        "reading": DEFAULT.name,
        "rule": RULE,
        "verdicts": [verdict.to_json() for verdict in found.verdicts],
        "readings": {
            one.reading.name: {
                "reproduced": one.reproduced if found.testable else None,
                "distance": one.distance if found.testable else None,
                "verdicts": [verdict.to_json() for verdict in one.verdicts],
            }
            for one in found.matches
        },
        "matches_best": None if match is None else match.reading.name,
    }


def facts_of(plan: Plan, faces: Faces, results: Results) -> dict[str, str]:
    """Return how the figures came about, so that they can be made again."""
    source, scope = faces.source, plan.scope
    copies = "" if source.originals is None else f" of {len(set(source.originals.tolist()))} images"
    repeats = "1 repeat" if scope.repeats == 1 else f"{scope.repeats} repeats"
    return {
        "Data": f"{source.name}, {len(source)} samples{copies}",
        "Networks": f"{scope.repeats * scope.folds} per cell: {repeats} of {scope.folds} stratified folds, dealt anew"
        f" in each repeat, seed {plan.study.seeds[0]}",
        "Rewound": f"the learning rate to epoch {plan.rewound.late}, the weights to epoch {plan.rewound.early}",
        "Interval and test": "corrected resampled t over repeats and folds, p corrected by Holm within a size",
        "Cells": str(len(plan.study.cells)),
        "Paper": "Tanovic, Comparison of distinctiveness pruning and genetic algorithms for the reduction of a fully"
        " trained neural network",
        "Versions": versions(),
    }
