"""The Markdown of the benchmark: what is lost at each size, where others are ahead of us, and what networks cost."""

import math
import statistics
from collections.abc import Mapping, Sequence

from benchmarks.paging.losses import losses, told
from benchmarks.paging.records import Comparison
from benchmarks.pruners.measuring import EPOCHS, RATIOS, TAUGHT
from benchmarks.pruners.problems import TITLES
from benchmarks.pruners.pruning import OURS, PRUNERS, SCRATCH, STREAM_KEPT
from benchmarks.pruners.records import PrunedRow, PruningResults

MISSING = "–"
RIVALS = (*(name for name in PRUNERS if name != OURS), *STREAM_KEPT)
Cells = Mapping[
    tuple[str, int, str, int], Sequence[PrunedRow]
]  # of a problem, size, pruner and epochs, seed after seed


def write_markdown(results: PruningResults) -> str:
    """Return all tables; where others are ahead comes first."""
    cells = cells_of(results.rows)
    problems = list(dict.fromkeys(row.problem for row in results.rows))
    parts = [behind_words(results), summary_table(cells, problems)]
    for problem in problems:
        title = f"{TITLES[problem]}: {dense_words(results.rows, problem)}"
        parts += [f"<details><summary>{title}</summary>", accuracy_table(cells, problem), "</details>"]
    return "\n\n".join(parts)


def pieces(results: PruningResults) -> dict[str, str]:
    """Return all tables by name."""
    return {"tables": write_markdown(results)}


def compare(results: PruningResults) -> list[Comparison]:
    """Return ours beside every other pruner, at each size and after each number of epochs, and beside new weights.

    A network of our shape that is trained from scratch, for as long as the whole one was, is compared with ours after
    the most epochs.
    """
    cells = cells_of(results.rows)
    found = []
    for (problem, ratio, pruner, epochs), rows in cells.items():
        ours_after = max(EPOCHS) if pruner == SCRATCH else epochs
        own = cells.get((problem, ratio, OURS, ours_after), ())
        ours, theirs = mean_of(own), mean_of(rows)
        if pruner in (*RIVALS, SCRATCH) and ours is not None and theirs is not None:
            gaps = [(one.accuracy or 0.0) - (two.accuracy or 0.0) for one, two in zip(own, rows, strict=False)]
            beside = f" beside {epoch_words(epochs)} from scratch" if pruner == SCRATCH else ""
            found.append(
                Comparison(
                    case=f"{TITLES[problem]}, {ratio} ×, {epoch_words(ours_after)}{beside}",
                    measure="accuracy, %",
                    better="more",
                    ours=ours,
                    theirs=theirs,
                    rival=pruner,
                    spread=statistics.stdev(gaps) / math.sqrt(len(gaps)) if len(gaps) > 1 else None,
                )
            )
    return found


def cells_of(rows: Sequence[PrunedRow]) -> dict[tuple[str, int, str, int], list[PrunedRow]]:
    """Return the rows of each problem, size, pruner and number of epochs, one per seed."""
    cells: dict[tuple[str, int, str, int], list[PrunedRow]] = {}
    for row in sorted(rows, key=lambda row: row.seed):
        cells.setdefault((row.problem, row.ratio, row.pruner, row.epochs), []).append(row)
    return cells


def behind_words(results: PruningResults) -> str:
    """Name every size and number of epochs at which others keep more accuracy than ours, on average."""
    found = [told(each) for each in losses(compare(results))]
    if not found:
        return "At no size, with no number of epochs, is anyone ahead of ours."
    return "Where others are ahead:\n\n" + "\n".join(f"- {line}" for line in found)


def summary_table(cells: Cells, problems: Sequence[str]) -> str:
    """Return a line per network and size: ours, and the best of all others in each column, chosen with hindsight."""
    headings = [f"{epoch_words(epochs)}: ours, others" for epochs in EPOCHS]
    lines = [["network", "smaller", *headings, "from scratch"], ["---"] * (len(EPOCHS) + 3)]
    for problem in problems:
        for ratio in RATIOS:
            pairs = []
            for epochs in EPOCHS:
                others = [mean_of(cells.get((problem, ratio, name, epochs), ())) for name in RIVALS]
                best = max((value for value in others if value is not None), default=None)
                pairs.append(f"**{shown(mean_of(cells.get((problem, ratio, OURS, epochs), ())))}**, {shown(best)}")
            scratch = next((rows for key, rows in cells.items() if key[:3] == (problem, ratio, SCRATCH)), ())
            lines.append([TITLES[problem], f"{ratio} ×", *pairs, shown(mean_of(scratch))])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def epoch_words(epochs: int) -> str:
    """Return how long networks were trained with labels."""
    return f"{epochs} epoch{'' if epochs == 1 else 's'}"


def shown(value: float | None) -> str:
    """Return an accuracy as it is printed."""
    return MISSING if value is None else f"{value:.2f}"


def dense_words(rows: Sequence[PrunedRow], problem: str) -> str:
    """Return what the whole networks are."""
    whole = {row.seed: row for row in rows if row.problem == problem}
    accuracies = [row.dense_accuracy for row in whole.values()]
    one = next(iter(whole.values()))
    spread = f" ± {statistics.stdev(accuracies):.2f}" if len(accuracies) > 1 else ""
    count = f"{len(whole)} network{'' if len(whole) == 1 else 's'}"
    return (
        f"{count}, {statistics.mean(accuracies):.2f}{spread} %, {one.dense_parameters:,} parameters, "
        f"{one.dense_macs:,} multiply-accumulates."
    )


def accuracy_table(cells: Cells, problem: str) -> str:
    """Return a line per size and pruner: accuracy after no, some and more epochs, and what the network costs."""
    lines = [
        ["smaller", "pruner", *(epoch_words(epochs) for epochs in EPOCHS), "parameters", "MACs", "time of the whole"],
        ["---"] * (len(EPOCHS) + 5),
    ]
    for ratio in RATIOS:
        for pruner in (OURS, *RIVALS, TAUGHT, SCRATCH):
            by_epochs = {key[3]: rows for key, rows in cells.items() if key[:3] == (problem, ratio, pruner)}
            if by_epochs:
                lines.append([f"{ratio} ×", pruner, *accuracy_cells(pruner, by_epochs), *cost_cells(by_epochs)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def accuracy_cells(pruner: str, by_epochs: Mapping[int, Sequence[PrunedRow]]) -> list[str]:
    """Return the accuracy for each number of epochs; from scratch, for as many as the whole network had."""
    if pruner == SCRATCH:
        ((epochs, rows),) = by_epochs.items()
        return [MISSING, MISSING, f"{accuracy_cell(rows)} ({epochs} epochs)"]
    return [accuracy_cell(by_epochs.get(epochs, ())) for epochs in EPOCHS]


def accuracy_cell(rows: Sequence[PrunedRow]) -> str:
    """Return the mean, with the standard deviation over seeds; MISSING where there is none."""
    values = [row.accuracy for row in rows if row.accuracy is not None]
    if not values:
        return MISSING
    spread = f" ± {statistics.stdev(values):.2f}" if len(values) > 1 else ""
    failed = f" ({len(rows) - len(values)} failed)" if len(values) < len(rows) else ""
    return f"{statistics.mean(values):.2f}{spread}{failed}"


def cost_cells(by_epochs: Mapping[int, Sequence[PrunedRow]]) -> list[str]:
    """Return parameters, multiply-accumulates, and the latency as a share of the whole network's."""
    rows = [row for row in next(iter(by_epochs.values())) if row.parameters is not None]
    if not rows:
        return [MISSING] * 3
    parameters = statistics.mean(row.parameters or 0 for row in rows)
    macs = statistics.mean(row.macs or 0 for row in rows)
    times = statistics.mean((row.latency_ms or 0) / (row.dense_latency_ms or 1) for row in rows)
    return [f"{parameters:,.0f}", f"{macs:,.0f}", f"{times:.2f}"]


def mean_of(rows: Sequence[PrunedRow]) -> float | None:
    """Return the mean accuracy of seeds; None where one is missing."""
    values = [row.accuracy for row in rows]
    known = [value for value in values if value is not None]
    return statistics.mean(known) if known and len(known) == len(values) else None
