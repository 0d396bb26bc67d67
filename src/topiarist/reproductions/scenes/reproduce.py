"""Runs the studies of the scenes and writes their tables, figures and page."""

import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pandas

from topiarist.errors import TopiaristWarning
from topiarist.files import JsonObject
from topiarist.reproductions.claims import claims_frame
from topiarist.reproductions.findings import failures_of, versions, write_findings
from topiarist.reproductions.scenes import paper
from topiarist.reproductions.scenes.claims import judge_scenes_claims
from topiarist.reproductions.scenes.data import OnClip, Scenes, example_of, read_scenes, with_wave_mixtures
from topiarist.reproductions.scenes.evaluation import ScenesFindings, evaluate_depths, evaluate_models
from topiarist.reproductions.scenes.figures import scenes_figures
from topiarist.reproductions.scenes.page import scenes_page, scenes_summary
from topiarist.reproductions.scenes.study import FULL, ScenesScope, ScenesStudies, declare_studies
from topiarist.reproductions.scenes.tables import (
    OF_PAPER,
    depths_table,
    macro_table,
    mixing_tests,
    models_table,
    reported,
)
from topiarist.study.engine import OnProgress
from topiarist.study.results import Results

CACHE, MIXTURES = "sounds", "mixtures"
Watch = Callable[[str], AbstractContextManager[OnProgress | None]]


def reproduce_scenes(
    out: Path,
    *,
    location: Path | None = None,
    target: str | None = None,
    scope: ScenesScope = FULL,
    seed: int = 0,
    workers: int | None = 1,
    cluster: str | None = None,
    device: str | None = None,
    on_clip: OnClip | None = None,
    watch: Watch | None = None,
) -> JsonObject:
    """Reproduce the paper's tables, and add ours; the same call after an interruption resumes.

    `location` is a folder of recordings; without it scenes are synthesised. `scope` says how much is run. Writes
    `index.html`, `tables/`, `figures/` and, in `studies/`, ledgers and networks; `watch` returns, for the name of a
    study, what is told of its progress. The result has every claim of the paper with its verdict.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # the page says it
        scenes = read_scenes(location, scope.sounds, target=target, cache=out / CACHE, seed=seed, on_clip=on_clip)
        plan = declare_studies(scope, seed=seed, finer=scenes.first.finer is not None)
        scenes = with_wave_mixtures(scenes, plan, out / CACHE / MIXTURES, on_clip=on_clip)
        results = {}
        for name, study in plan.studies.items():
            with nullcontext() if watch is None else watch(name) as on_progress:
                results[name] = study.run(
                    out / "studies" / name,
                    data=scenes.sources,
                    workers=workers,
                    cluster=cluster,
                    device=device,
                    on_progress=on_progress,
                )
        tables, findings = _gather(plan, results, scenes)
    claims, example, notes = judge_scenes_claims(findings), example_of(scenes, plan), scenes.first.notes
    figures = scenes_figures(tables["table3"], results["vgg"], example)
    page = scenes_page(findings, tables, claims, figures, example, notes=notes, facts=_facts(plan, scenes))
    return {
        **write_findings(out, tables | {"claims": claims_frame(claims, paper=OF_PAPER)}, figures, page),
        "stand_in": scenes.stand_in,
        "gain": {kind: vars(gain) for kind, gain in findings.gains.items()},
        "summary": scenes_summary(findings, tables["table3"]),
        "verdicts": [claim.to_json() for claim in claims],
        **failures_of(results.values()),
        "notes": list(notes),
    }


def _gather(
    plan: ScenesStudies, results: Mapping[str, Results], scenes: Scenes
) -> tuple[dict[str, pandas.DataFrame], ScenesFindings]:
    """Return the tables by the names of their files, and what claims and page follow from."""
    networks, gains = evaluate_models(plan, results, scenes.sources)
    tables = {"table3": models_table(networks), "networks": networks, "reported": reported()}
    if plan.table_1:
        tables["table1"] = macro_table(plan.table_1, results["tables"], paper.TABLE_1)
    if plan.table_2:
        tables["table2"] = macro_table(plan.table_2, results["tables"], paper.TABLE_2)
    if "depths" in results:
        tables["depths"] = evaluate_depths(plan, results["depths"], scenes.sources)
        tables["table4"] = depths_table(tables["depths"])
    return tables, ScenesFindings(
        scope=plan.scope,
        networks=networks,
        depths=tables.get("depths"),
        gains=gains,
        mixing=mixing_tests(plan.table_2, results["tables"]) if plan.table_2 else None,
        stand_in=scenes.stand_in,
        like_the_paper=scenes.like_the_paper,
    )


def _facts(plan: ScenesStudies, scenes: Scenes) -> dict[str, str]:
    """Return how the figures came about, so that they can be made again."""
    source, scope, training = scenes.first, plan.scope, plan.scope.training
    frames = " × ".join(map(str, source.features.shape[2:]))
    return {
        "Data": f"{'synthesised scenes' if scenes.stand_in else 'recordings'}, {len(source)} clips, {frames}",
        "Repeats": f"{scope.runs} run(s)" + ("" if scope.folds is None else f" on each of {scope.folds} folds"),
        "Training": f"{training.epochs} epochs, batch {training.batch_size}, Adam {training.learning_rate:g},"
        f" weight decay {training.weight_decay:g}",
        "Test": "Wilcoxon's two-sided rank-sum test; bootstrap over clips for the gain of ensembles",
        "Pruning": f"to {max(scope.prunings.values()):.0%} by epoch {max(scope.prunings)}",
        "Mixing": f"{scope.mixing.pieces} pieces within the {scope.mixing.within} class, on the {scope.mixing.on}",
        "Ensemble": f"{scope.vgg_members} V and {scope.inception_members} I"
        + (", batch norm in the blocks of I" if scope.inception_norms else ""),
        "Cells": str(sum(len(study.cells) for study in plan.studies.values())),
        "Paper": "Ooi, Peksi and Gan, Ensemble of pruned low-complexity models for acoustic scene classification, 2020",
        "Versions": versions(),
    }
