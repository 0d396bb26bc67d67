"""Runs the studies of the scenes and writes their tables, figures and page."""

import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from topiarist.errors import TopiaristWarning
from topiarist.reproductions.claims import claims_frame as verdict_frame
from topiarist.reproductions.findings import failures_of, versions, write_findings
from topiarist.reproductions.scenes.data import OnClip, Scenes, read_scenes
from topiarist.reproductions.scenes.judging import judge_depths, judge_scenes
from topiarist.reproductions.scenes.mixing import example_of, with_wave_mixtures
from topiarist.reproductions.scenes.page import Found, figures_of, page_of, summary_of
from topiarist.reproductions.scenes.scope import FULL, Scope
from topiarist.reproductions.scenes.study import Plan, plan_scenes
from topiarist.reproductions.scenes.tables import OF_PAPER, reported, table_1, table_2, table_3, table_4
from topiarist.reproductions.scenes.verdicts import Evidence, scenes_verdicts
from topiarist.study.engine import OnProgress
from topiarist.study.results import Results

CACHE, MIXTURES = "sounds", "mixtures"
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
    """Reproduce the paper's tables, and add ours; the same call after an interruption resumes.

    `location` is a folder of recordings; without it scenes are synthesised. `scope` says how much is run. Writes
    `index.html`, `tables/`, `figures/` and, in `studies/`, ledgers and networks; `watch` gives, for the name of a
    study, what hears of its progress. The result has every claim of the paper with its verdict.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # the page says it
        scenes = read_scenes(location, scope.sounds, target=target, cache=out / CACHE, seed=seed, on_clip=on_clip)
        plan = plan_scenes(scope, seed=seed, finer=scenes.know_finer)
        scenes = with_wave_mixtures(scenes, plan, out / CACHE / MIXTURES, on_clip=on_clip)
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
    """Bring what was found into tables, and decide on the paper's claims."""
    judged = judge_scenes(plan, results, scenes.sources)
    tables = {"table3": table_3(judged), "networks": judged.rows, "reported": reported()}
    mixing = depths = None
    if "tables" in results:
        tables |= {"table1": table_1(plan, results["tables"])} if plan.scope.bands else {}
        if plan.scope.pieces:
            tables["table2"], mixing = table_2(plan, results["tables"])
    if "depths" in results:
        depths = judge_depths(plan, results["depths"], scenes.sources)
        tables |= {"table4": table_4(depths), "depths": depths}
    evidence = Evidence(
        scope=plan.scope,
        judged=judged,
        depths=depths,
        mixing=mixing,
        stand_in=scenes.stand_in,
        like_the_paper=scenes.like_the_paper,
    )
    verdicts = scenes_verdicts(evidence)
    return Found(
        scope=plan.scope,
        verdicts=verdicts,
        example=example_of(scenes, plan),
        tables=tables | {"claims": verdict_frame(verdicts, paper=OF_PAPER)},
        mixing=mixing,
        gains=judged.gains,
        losses=epochs_of(results["vgg"], "train_loss"),
        sparsities={
            kind: runs for kind, runs in epochs_of(results["vgg"], "sparsity").items() if runs[0][0] is not None
        },
        stand_in=scenes.stand_in,
        like_the_paper=scenes.like_the_paper,
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
        "verdicts": [vars(verdict) for verdict in found.verdicts],
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
        "Pruning": f"to {max(scope.prunings.values()):.0%} by epoch {max(scope.prunings)}",
        "Mixing": f"{scope.mixing.pieces} pieces within the {scope.mixing.within} class, on the {scope.mixing.on}",
        "Ensemble": f"{scope.vgg_members} V and {scope.inception_members} I"
        + (", batch norm in the blocks of I" if scope.inception_norms else ""),
        "Cells": str(sum(len(study.cells) for study in plan.studies.values())),
        "Paper": "Ooi, Peksi and Gan, Ensemble of pruned low-complexity models for acoustic scene classification, 2020",
        "Versions": versions(),
    }
