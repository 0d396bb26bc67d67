"""Markdown tables of the scores: mean and interval per table, and over the tables of classes and of numbers."""

import math
from collections.abc import Sequence

import numpy
from scipy import stats

from benchmarks.paging.records import Comparison
from benchmarks.tabulating.records import TableResults, TableScore

SHOWN = ("network", "teacher", "ensemble", "boosting", "linear", "perceptron", "forest")
RIVALS = ("boosting", "linear", "perceptron", "forest")  # scikit-learn's
ROWS = (1_000, 10_000)  # of which the longest training is named
CONFIDENCE = 0.95


def write_markdown(scores: Sequence[TableScore]) -> str:
    """Return tables of scores, of sizes and times, and of what was gained over boosting."""
    known = {score.key: score for score in scores}
    parts = []
    for task, words in (("classes", "accuracy, %"), ("numbers", "R² × 100")):
        tables = list(dict.fromkeys(score.table for score in scores if score.task == task))
        if tables:
            parts.append(_scores_table(tables, known, words))
    return "\n\n".join(parts)


def pieces(results: TableResults) -> dict[str, str]:
    """Return the tables, and the ranges of sizes and times, by name."""
    own = [score for score in results.scores if score.contender == "network"]
    sizes = [score.kilobytes for score in own if score.kilobytes is not None]
    words = f"{min(sizes):.0f} to {max(sizes):.0f} KB (median {numpy.median(sizes):.0f})"
    slowest = {
        limit: max(score.seconds or 0.0 for score in own if score.rows + score.tested < limit)
        for limit in ROWS
        if any(score.rows + score.tested < limit for score in own)
    }
    times = ", ".join(f"{seconds:.1f} s below {limit:,} rows" for limit, seconds in slowest.items())
    return {"tables": write_markdown(results.scores), "sizes": words, "times": times}


def compare(results: TableResults) -> list[Comparison]:
    """Return the network beside each of scikit-learn's models, table by table, on the same splits."""
    known = {score.key: score for score in results.scores}
    found = []
    for table in dict.fromkeys(score.table for score in results.scores):
        own = {score.split: score for score in known.values() if (score.table, score.contender) == (table, "network")}
        for rival in RIVALS:
            other = {split: known[table, split, rival] for split in own if (table, split, rival) in known}
            pairs = [(own[split].score, score.score) for split, score in other.items()]
            if pairs:
                ours, theirs = (100 * numpy.array(column) for column in zip(*pairs, strict=True))
                some = next(iter(own.values()))
                half = _half_width(ours - theirs, some.tested / some.rows) / _t(len(pairs)) if len(pairs) > 1 else None
                found.append(
                    Comparison(
                        case=table,
                        measure="accuracy, %" if some.task == "classes" else "R² × 100",
                        better="more",
                        ours=float(ours.mean()),
                        theirs=float(theirs.mean()),
                        rival=rival,
                        spread=half,
                    )
                )
    return found


def _scores_table(tables: list[str], known: dict[tuple[str, int, str], TableScore], words: str) -> str:
    extra = sorted({contender for _, _, contender in known if contender not in SHOWN})
    columns = [name for name in (*SHOWN, *extra) if any(name == contender for _, _, contender in known)]
    head = f"| {words} | rows | {' | '.join(columns)} | network − boosting | KB | s |"
    lines = [head, "|---|" + "---:|" * (len(columns) + 4)]
    means: list[dict[str, float]] = []
    differences = []
    for table in tables:
        own = {name: _values(known, table, name) for name in columns}
        mean = {name: 100 * float(numpy.mean(values)) if values else math.nan for name, values in own.items()}
        means.append(mean)
        some = next(score for score in known.values() if score.table == table and score.contender == "network")
        paired = 100 * (numpy.array(own["network"]) - numpy.array(own["boosting"]))
        differences.append(float(paired.mean()))
        half = _half_width(paired, some.tested / some.rows)
        files = [score for score in known.values() if score.table == table and score.contender == "network"]
        size = numpy.mean([score.kilobytes for score in files if score.kilobytes is not None])
        seconds = numpy.mean([score.seconds for score in files if score.seconds is not None])
        cells = " | ".join(f"{mean[name]:.1f}" for name in columns)
        gained = f"{paired.mean():+.1f} ± {half:.1f}"
        named = f"{table} ({len(files)} splits) | {some.rows + some.tested}"
        lines.append(f"| {named} | {cells} | {gained} | {size:.0f} | {seconds:.1f} |")
    cells = " | ".join(f"**{numpy.mean([mean[name] for mean in means]):.2f}**" for name in columns)
    half = _t(len(differences)) * float(numpy.std(differences, ddof=1)) / math.sqrt(len(differences))
    lines.append(f"| mean | | {cells} | **{numpy.mean(differences):+.2f}** ± {half:.2f} | | |")
    return "\n".join(lines)


def _values(known: dict[tuple[str, int, str], TableScore], table: str, contender: str) -> list[float]:
    found = [score for (name, _, other), score in known.items() if (name, other) == (table, contender)]
    return [score.score for score in sorted(found, key=lambda score: score.split)]


def _half_width(differences: "numpy.typing.NDArray[numpy.float64]", tested_per_row: float) -> float:
    """Return half a 95 % interval of a mean over splits that share rows (Nadeau and Bengio, 2003).

    The variance of the mean is s² · (1/k + n_test / n_train) rather than s² / k: k splits are no k new tables.
    """
    count = len(differences)
    if count < 2:
        return math.nan
    return _t(count) * float(differences.std(ddof=1)) * math.sqrt(1 / count + tested_per_row)


def _t(count: int) -> float:
    return float(stats.t.ppf(0.5 + CONFIDENCE / 2, count - 1)) if count > 1 else math.nan
