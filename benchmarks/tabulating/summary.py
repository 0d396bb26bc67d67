"""Markdown tables of the scores: mean and interval per table, and over the tables of classes and of numbers."""

import math
from collections.abc import Mapping, Sequence

import numpy
from numpy.typing import NDArray
from scipy import stats

from benchmarks.paging.tables import MISSING
from benchmarks.tabulating.records import TableResults, TableScore

OWN = ("delivered", "baseline", "network", "teacher", "ensemble")
RIVALS = ("boosting", "linear", "perceptron", "forest")  # scikit-learn's
SHOWN = (*OWN, *RIVALS, "guess")
COMPARED = ("delivered", "network")  # with boosting
WORDS = {"classes": "accuracy, %", "numbers": "R² × 100"}
ROWS = (1_000, 10_000)  # of which the longest training is named
CONFIDENCE = 0.95

Known = Mapping[tuple[str, int, str], TableScore]


def write_markdown(scores: Sequence[TableScore]) -> str:
    """Return tables of scores, of what was gained over boosting, and of sizes and times.

    Who is missing on a table has no mean over tables; that of the gain over boosting is over the tables that there are.
    """
    known = {score.key: score for score in scores}
    parts = []
    for task, words in WORDS.items():
        tables = list(dict.fromkeys(score.table for score in scores if score.task == task))
        if tables:
            parts.append(_scores_table(tables, known, words))
    return "\n\n".join([*parts, _sizes_table(scores)])


def pieces(results: TableResults) -> dict[str, str]:
    """Return the tables, how many splits were delivered, and with which verdicts, by name."""
    tables = dict.fromkeys(score.table for score in results.scores)
    own = [score for score in results.scores if score.contender == "delivered"]
    counts = {name: sum(score.table == name for score in own) for name in tables}
    verdicts = [score.verdict for score in own if score.verdict]
    counted = ", ".join(f"{word} {verdicts.count(word)}" for word in sorted(set(verdicts)))
    return {
        "tables": write_markdown(results.scores),
        "delivered": ", ".join(f"{name} {count}" for name, count in counts.items()),
        "verdicts": counted or "none yet",
    }


def paired(known: Known, table: str, own: str, rival: str) -> tuple[NDArray[numpy.float64], NDArray[numpy.float64]]:
    """Return the scores × 100 of two contenders on the splits of a table that both have."""
    measured = sorted(split for name, split, who in known if (name, who) == (table, own))
    splits = [split for split in measured if (table, split, rival) in known]
    both = [[100 * known[table, split, who].score for split in splits] for who in (own, rival)]
    return numpy.array(both[0]), numpy.array(both[1])


def half_width(differences: NDArray[numpy.float64], tested_per_row: float) -> float:
    """Return half a 95 % interval of a mean over splits that share rows (Nadeau and Bengio, 2003).

    The variance of the mean is s² · (1/k + n_test / n_train) rather than s² / k: k splits are no k new tables.
    """
    count = len(differences)
    return t_value(count) * standard_error(differences, tested_per_row) if count > 1 else math.nan


def standard_error(differences: NDArray[numpy.float64], tested_per_row: float) -> float:
    """Return the standard error of such a mean."""
    return float(differences.std(ddof=1)) * math.sqrt(1 / len(differences) + tested_per_row)


def t_value(count: int) -> float:
    """Return the quantile of Student's t for an interval of a mean of so many."""
    return float(stats.t.ppf(0.5 + CONFIDENCE / 2, count - 1)) if count > 1 else math.nan


def _scores_table(tables: list[str], known: Known, words: str) -> str:
    names = {contender for table, _, contender in known if table in tables}
    columns = [*(name for name in SHOWN if name in names), *sorted(names.difference(SHOWN))]
    compared = [name for name in COMPARED if name in columns and "boosting" in columns]
    head = [words, "rows", *columns, *(f"{name} − boosting" for name in compared)]
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    means: dict[str, list[float]] = {name: [] for name in columns}
    gained: dict[str, list[float]] = {name: [] for name in compared}
    for table in tables:
        for name in columns:
            means[name].append(_mean(known, table, name))
        some = next(score for score in known.values() if score.table == table)
        cells = [_shown(means[name][-1]) for name in columns]
        for name in compared:
            own, other = paired(known, table, name, "boosting")
            gained[name].append(float((own - other).mean()) if len(own) else math.nan)
            cells.append(_gain(own - other, some.tested / some.rows))
        lines.append(f"| {table} ({_splits(known, table)}) | {some.rows + some.tested} | {' | '.join(cells)} |")
    total = [f"**{_shown(float(numpy.mean(means[name])), 2)}**" for name in columns]
    total += [_total_gain(numpy.array(gained[name])) for name in compared]
    return "\n".join([*lines, f"| mean | | {' | '.join(total)} |"])


def _splits(known: Known, table: str) -> str:
    """Return on how many splits those who are compared were measured."""
    counts = {name: sum((table, name) == (each, who) for each, _, who in known) for name in COMPARED}
    several = sorted({count for count in counts.values() if count})
    return f"{' and '.join(map(str, several))} splits"


def _mean(known: Known, table: str, contender: str) -> float:
    scores = [each.score for (name, _, who), each in known.items() if (name, who) == (table, contender)]
    return 100 * float(numpy.mean(scores)) if scores else math.nan


def _shown(value: float, digits: int = 1) -> str:
    return MISSING if math.isnan(value) else f"{value:,.{digits}f}"


def _gain(differences: NDArray[numpy.float64], tested_per_row: float) -> str:
    if not len(differences):
        return MISSING
    return f"{differences.mean():+.1f} ± {_shown(half_width(differences, tested_per_row))}"


def _total_gain(gained: NDArray[numpy.float64]) -> str:
    """Return the mean over tables with its interval; those that are not measured are left out."""
    there = gained[~numpy.isnan(gained)]
    if not len(there):
        return MISSING
    half = t_value(len(there)) * float(there.std(ddof=1)) / math.sqrt(len(there)) if len(there) > 1 else math.nan
    return f"**{there.mean():+.2f}** ± {_shown(half, 2)}"


def _sizes_table(scores: Sequence[TableScore]) -> str:
    """Return sizes of files and processor seconds of each contender: the median, and the most."""
    limits = [f"most s below {limit:,} rows" for limit in ROWS]
    lines = [f"| | KB: median | most | s: median | {' | '.join(limits)} |", "|---|" + "---:|" * (3 + len(ROWS))]
    for name in SHOWN:
        found = [score for score in scores if score.contender == name]
        sizes = [score.kilobytes for score in found if score.kilobytes is not None]
        seconds = [score.seconds for score in found if score.seconds is not None]
        if not (sizes or seconds) or name in ("teacher", "ensemble"):  # which are made on the way to the network
            continue
        longest = [longest_below(found, limit) for limit in ROWS]
        cells = [numpy.median(sizes), max(sizes)] if sizes else [math.nan, math.nan]
        cells += [numpy.median(seconds) if seconds else math.nan, *longest]
        lines.append(f"| {name} | {' | '.join(_shown(float(cell)) for cell in cells)} |")
    return "\n".join(lines)


def longest_below(scores: Sequence[TableScore], limit: int) -> float:
    """Return the most processor seconds on tables of fewer rows; NaN where there are none."""
    known = [score.seconds for score in scores if score.seconds is not None and score.rows + score.tested < limit]
    return max(known, default=math.nan)
