"""Runs the study of the faces and writes its tables, figures, verdicts and page."""

import json
import warnings
from pathlib import Path

from topiarist.data import Data
from topiarist.errors import TopiaristWarning
from topiarist.files import JsonObject
from topiarist.reproductions.faces.claims import RULE
from topiarist.reproductions.faces.data import read_faces
from topiarist.reproductions.faces.features.describing import OnImage
from topiarist.reproductions.faces.figures import faces_figures
from topiarist.reproductions.faces.options import FaceImageOptions
from topiarist.reproductions.faces.page import faces_page, faces_summary
from topiarist.reproductions.faces.study import DEFAULT, FULL, QUICK, FacesPlan, plan_faces
from topiarist.reproductions.faces.tables import FacesFindings, faces_findings
from topiarist.reproductions.findings import failures_of, versions, write_files, write_findings
from topiarist.study.engine import OnProgress

VERDICTS, VERSION = "verdicts.json", 2  # version 1 had other names for what claims hold


def reproduce_faces(
    out: Path,
    *,
    location: Path | None = None,
    target: str | None = None,
    images: FaceImageOptions | None = None,
    quick: bool = False,
    seed: int = 0,
    workers: int | None = 1,
    cluster: str | None = None,
    device: str | None = None,
    on_image: OnImage | None = None,
    on_progress: OnProgress | None = None,
) -> JsonObject:
    """Reproduce the paper's tables and figures, and add ours; the same call after an interruption resumes.

    `location` is the spreadsheet of descriptors or a folder of images; without it a stand-in is used. Writes
    `index.html`, `verdicts.json`, `tables/`, `figures/` and, in `study/`, the ledger.
    """
    faces = read_faces(location, out, target=target, images=images or FaceImageOptions(), seed=seed, on_image=on_image)
    source, projection = faces.source, faces.projection
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # the page says it
        data = Data.from_source(source, projection=projection, validation_fraction=0.0, seed=seed)
        scope = QUICK if quick else FULL
        plan = plan_faces(source.name, samples=len(source), projection=projection, scope=scope, seed=seed)
        results = plan.study.run(
            out / "study", data=data, workers=workers, cluster=cluster, device=device, on_progress=on_progress
        )
        found = faces_findings(plan, results, faces)
    figures, judged = faces_figures(found), _verdicts_json(found)
    places = write_findings(out, found.tables, figures, faces_page(found, figures, _facts(plan, found)))
    write_files(out, {VERDICTS: json.dumps(judged, indent=2, ensure_ascii=False).encode()})
    return {
        **places,
        "stand_in": faces.stand_in,
        **judged,
        "verdicts_file": str(out / VERDICTS),
        "summary": faces_summary(found),
        **failures_of([results]),
        "notes": list(source.notes),
    }


def _verdicts_json(found: FacesFindings) -> dict[str, object]:
    """Return the claims, those of every reading, and what they rest on, as plain values."""
    return {
        "version": VERSION,
        "data": found.faces.to_json(),
        "reading": DEFAULT.name,
        "rule": RULE,
        "verdicts": [claim.to_json() for claim in found.claims],
        "readings": {
            match.reading.name: {
                "reproduced": match.reproduced if found.testable else None,
                "distance": match.distance if found.testable else None,
                "verdicts": [claim.to_json() for claim in match.claims],
            }
            for match in found.matches
        },
        "matches_best": None if found.best is None else found.best.reading.name,
    }


def _facts(plan: FacesPlan, found: FacesFindings) -> dict[str, str]:
    """Return how the figures came about, so that they can be made again."""
    source, scope = found.faces.source, plan.scope
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
