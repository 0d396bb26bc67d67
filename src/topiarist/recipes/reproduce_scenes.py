"""Runs the studies of the scenes and writes their tables, figures and page."""

import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from topiarist.errors import TopiaristWarning
from topiarist.recipes.findings import failures_of, versions, write_findings
from topiarist.recipes.scenes import FULL, Plan, Scope, plan_scenes
from topiarist.recipes.scenes_data import OnClip, Scenes, read_scenes
from topiarist.recipes.scenes_judging import judge_scenes
from topiarist.recipes.scenes_page import Found, figures_of, page_of, summary_of
from topiarist.recipes.scenes_tables import table_1, table_2, table_3, table_4
from topiarist.study.engine import OnProgress
from topiarist.study.results import Results

CACHE = "sounds"
Watch = Callable[[str], AbstractContextManager[OnProgress | None]]


def reproduce_scenes(
    out: Path,
    *,
    location: Path | None = None,
    target: str | None = None,
    scope: Scope = FULL,
    seed: int = 0,
    workers: int | None = 1,
    cluster: str | None = None,
    on_clip: OnClip | None = None,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Reproduce the paper's tables, and add ours; the same call after an interruption goes on.

    `location` is a folder of recordings; without it scenes are synthesised. `scope` says how much is run. Writes
    `index.html`, `tables/`, `figures/` and, in `studies/`, ledgers and networks; `watch` gives, for the name of a
    study, what hears of its progress.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # the page says it
        scenes = read_scenes(location, scope.sounds, target=target, cache=out / CACHE, seed=seed, on_clip=on_clip)
        plan = plan_scenes(scope, seed=seed, finer=scenes.know_finer)
        results = {}
        for name, study in plan.studies.items():
            with nullcontext() if watch is None else watch(name) as on_progress:
                results[name] = study.run(
                    out / "studies" / name,
                    data=scenes.sources,
                    workers=workers,
                    cluster=cluster,
                    on_progress=on_progress,
                )
        found = gather(plan, results, scenes)
    return write_found(out, found, facts_of(plan, scenes), results)


def gather(plan: Plan, results: Mapping[str, Results], scenes: Scenes) -> Found:
    """Bring what was found into tables."""
    judged = judge_scenes(plan, results, scenes.sources)
    tables = {"table3": table_3(judged), "networks": judged.rows}
    mixing = None
    if "tables" in results:
        tables |= {"table1": table_1(plan, results["tables"])} if plan.scope.bands else {}
        if plan.scope.pieces:
            tables["table2"], mixing = table_2(plan, results["tables"])
        tables |= {"table4": table_4(results["tables"])} if plan.scope.depths else {}
    return Found(
        tables=tables,
        mixing=mixing,
        gains=judged.gains,
        losses=epochs_of(results["vgg"], "train_loss"),
        sparsities={
            kind: runs for kind, runs in epochs_of(results["vgg"], "sparsity").items() if runs[0][0] is not None
        },
        pruned_when=plan.scope.pruned_when,
        stand_in=scenes.stand_in,
        notes=next(iter(scenes.sources.values())).notes,
    )


def epochs_of(results: Results, figure: str) -> dict[str, list[list[float | None]]]:
    """Give a figure, epoch by epoch, for every run of each kind."""
    found: dict[str, list[list[float | None]]] = {}
    for row in results.rows:
        if row["state"] == "done":
            found.setdefault(row["label"], []).append([epoch[figure] for epoch in results.history(row)])
    return found


def write_found(out: Path, found: Found, facts: dict[str, str], results: Mapping[str, Results]) -> dict[str, Any]:
    """Write what was found, and say where."""
    figures = figures_of(found)
    return {
        **write_findings(out, found.tables, figures, page_of(found, figures, facts)),
        "stand_in": found.stand_in,
        "gain": {kind: vars(gain) for kind, gain in found.gains.items()},
        "summary": summary_of(found),
        **failures_of(results.values()),
        "notes": list(found.notes),
    }


def facts_of(plan: Plan, scenes: Scenes) -> dict[str, str]:
    """Say how the figures came about, so that they can be made again."""
    source = next(iter(scenes.sources.values()))
    scope, training = plan.scope, plan.scope.training
    frames = " × ".join(map(str, source.features.shape[2:]))
    return {
        "Data": f"{'synthesised scenes' if scenes.stand_in else 'recordings'}, {len(source)} clips, {frames}",
        "Repeats": f"{scope.runs} run(s)" + ("" if scope.folds is None else f" on each of {scope.folds} folds"),
        "Training": f"{training['epochs']} epochs, batch {training['batch_size']}, Adam {training['learning_rate']:g},"
        f" weight decay {training['weight_decay']:g}",
        "Test": "Wilcoxon's two-sided rank-sum test; bootstrap over clips for the gain of ensembles",
        "Cells": str(sum(len(study.cells) for study in plan.studies.values())),
        "Paper": "Ooi, Peksi and Gan, Ensemble of pruned low-complexity models for acoustic scene classification, 2020",
        "Versions": versions(),
    }
