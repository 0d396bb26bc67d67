"""Runs the comparison of the Surgeon with plain training and writes its tables, figures and page."""

import warnings
from collections.abc import Sequence
from pathlib import Path

from topiarist.errors import TopiaristWarning
from topiarist.files import JsonObject
from topiarist.reproductions.claims import claims_frame
from topiarist.reproductions.findings import failures_of, versions, write_findings
from topiarist.reproductions.surgeon.claims import judge_surgeon_claims
from topiarist.reproductions.surgeon.comparison import OnRun, TrainedNetwork, comparisons_of, run_studies
from topiarist.reproductions.surgeon.data import DataSet, read_data_sets
from topiarist.reproductions.surgeon.options import FULL, PAPER_REPEATS, PAPER_SEEDS, SurgeonScope
from topiarist.reproductions.surgeon.page import surgeon_figures, surgeon_page, surgeon_summary
from topiarist.reproductions.surgeon.study import SCALINGS, surgeon_of
from topiarist.reproductions.surgeon.tables import runs_table, table_3
from topiarist.study.results import Results


def reproduce_surgeon(
    out: Path,
    *,
    data: Sequence[str] = (),
    scope: SurgeonScope = FULL,
    seed: int = 0,
    workers: int | None = 1,
    cluster: str | None = None,
    device: str | None = None,
    on_run: OnRun | None = None,
) -> JsonObject:
    """Reproduce the paper's Table 3 and Figure 2, and add ours; the same call after an interruption resumes.

    `data` are given as NAME=DATA or DATA alone; without any, digits stand in. `scope` says how much is run. Writes
    `index.html`, `tables/`, `figures/` and, in `studies/`, ledgers and networks. `on_run` is told how many networks are
    done of how many. Without a number of workers there are as many as pay.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # the page says it
        data_sets = read_data_sets(data, seed=seed, samples=scope.samples)
        networks, studies = run_studies(
            scope, data_sets, out / "studies", seed=seed, workers=workers, cluster=cluster, device=device, on_run=on_run
        )
    comparisons = comparisons_of(networks, scope, data_sets)
    table, claims, figures = table_3(comparisons), judge_surgeon_claims(comparisons), surgeon_figures(comparisons)
    notes = [*(note for each in data_sets for note in each.notes), *_dead_ends(networks), *_failures(studies)]
    facts = _facts(scope, data_sets, networks, seed)
    page = surgeon_page(comparisons, table, claims, figures, stand_in=not data, notes=notes, facts=facts)
    tables = {"claims": claims_frame(claims, paper="paper"), "table3": table, "runs": runs_table(networks, data_sets)}
    return {
        **write_findings(out, tables, figures, page),
        "stand_in": not data,
        "summary": surgeon_summary(table, claims, stand_in=not data),
        **failures_of(studies),
        "notes": notes,
        "claims": [claim.to_json() for claim in claims],
        "rows": table.astype(object).where(table.notna(), None).to_dict("records"),
    }


def _dead_ends(networks: Sequence[TrainedNetwork]) -> list[str]:
    """Return in how many runs of the published Surgeon the only hidden layer was folded."""
    published = [each for each in networks if (each.kind, each.setting) == ("surgeon", "published")]
    ended = [each for each in published if is_dead_end(each)]
    if not ended:
        return []
    listed = ", ".join(f"{each.data}, {each.topology}, seed {each.seed}" for each in ended)
    return [
        f"{len(ended)} of {len(published)} runs of the published Surgeon ended without a hidden layer: the last one was"
        " folded into the output, the network became linear, and as input and output layers never change, it could only"
        f" be trained on ({listed})."
    ]


def is_dead_end(network: TrainedNetwork) -> bool:
    """Return whether an evolution began with hidden layers and ended without any."""
    nodes = network.evolution.nodes
    return bool(nodes[0].widths) and any(node.fate == "best" and not node.widths for node in nodes)


def _failures(studies: Sequence[Results]) -> list[str]:
    rows = [row for study in studies for row in study.rows]
    reasons = [row["reason"] for row in rows if row["state"] == "failed"]
    listed = "; ".join(dict.fromkeys(reasons))
    said = f"{len(reasons)} of {len(rows)} runs failed, and the same command tries them again: {listed}"
    return [said] if reasons else []


def _facts(
    scope: SurgeonScope, data_sets: Sequence[DataSet], networks: Sequence[TrainedNetwork], seed: int
) -> dict[str, str]:
    """Return how the figures came about, so that they can be made again."""
    sizes = [
        f"{each.name}: {each.parts['train'].samples:,} to train on, {each.parts['validation'].samples:,} to choose by,"
        f" {each.parts['test'].samples:,} to test"
        for each in data_sets
    ]
    trainings = []
    for setting in scope.settings:
        usual = surgeon_of(scope, setting).usual_training
        inputs = "z-scores" if SCALINGS[setting] == "pixels" else "[0, 1]"
        trainings.append(
            f"{setting}: {usual.epochs} epochs, batch {usual.batch_size}, {usual.optimizer}"
            f" {usual.learning_rate:g}, {usual.schedule.name} rate, inputs {inputs}"
        )
    seeds = f"{scope.seeds} seed(s), from {seed}"
    if scope.paper_seeds:
        seeds = f"the paper's seeds {', '.join(map(str, PAPER_SEEDS))}, {PAPER_REPEATS} runs of each"
    return {
        "Data": "; ".join(sizes),
        "Repeats": seeds,
        "Training": "; ".join(trainings),
        "Runs": str(len(networks)),
        "Paper": "Schiessler, Aydin, Linka and Cyron, Neural network surgery: Combining training with topology"
        " optimization, 2021",
        "Versions": versions(),
    }
