"""What counts as lost: a contender of ours behind one of scikit-learn's on a table, and each aim that is missed."""

import math
from collections.abc import Sequence

import numpy

from benchmarks.paging.records import Comparison
from benchmarks.tabulating.records import TableResults, TableScore
from benchmarks.tabulating.summary import COMPARED, RIVALS, WORDS, Known, longest_below, paired, standard_error

WITHIN, WORST = {"classes": 0.5, "numbers": 0.0}, 4.0  # points behind boosting: on average, and on any table
MOST_KB, MEDIAN_KB = 100.0, 40.0
MOST_SECONDS = {1_000: 10.0, 10_000: 30.0}  # of the baseline, by rows
PAIR = ("delivered", "boosting")
CASES = {"delivered": "{}", "network": "{}, the network of train_tabular"}


def compare(results: TableResults) -> list[Comparison]:
    """Return what is delivered and `train_tabular` beside each rival, table by table, then the aims."""
    known = {score.key: score for score in results.scores}
    beside = [
        found
        for table in dict.fromkeys(score.table for score in results.scores)
        for own in COMPARED
        for rival in RIVALS
        if (found := _beside(known, table, own, rival)) is not None
    ]
    return [*beside, *_aims(results.scores, known)]


def _beside(known: Known, table: str, own: str, rival: str) -> Comparison | None:
    ours, theirs = paired(known, table, own, rival)
    if not len(ours):
        return None
    some = next(score for score in known.values() if score.table == table)
    return Comparison(
        case=CASES[own].format(table),
        measure=WORDS[some.task],
        better="more",
        ours=float(ours.mean()),
        theirs=float(theirs.mean()),
        rival=rival,
        spread=standard_error(ours - theirs, some.tested / some.rows) if len(ours) > 1 else None,
    )


def _aims(scores: Sequence[TableScore], known: Known) -> list[Comparison]:
    """Return what was set out for, of the network that is delivered and of its baseline."""
    own = [score for score in scores if score.contender == "delivered"]
    if not own:
        return []
    found = [aim for task in WORDS for aim in _score_aims(own, known, task)]
    sizes = [score.kilobytes for score in own if score.kilobytes is not None]
    found.append(_aim("the largest file that is delivered", "KB", "less", max(sizes), MOST_KB))
    found.append(_aim("the median file that is delivered", "KB", "less", float(numpy.median(sizes)), MEDIAN_KB))
    baselines = [score for score in scores if score.contender == "baseline"]
    for limit, most in MOST_SECONDS.items():
        if not math.isnan(seconds := longest_below(baselines, limit)):
            case = f"all baselines of a rightsizing, below {limit:,} rows"
            found.append(_aim(case, "seconds", "less", seconds, most))
    return found


def _score_aims(own: Sequence[TableScore], known: Known, task: str) -> list[Comparison]:
    tables = dict.fromkeys(score.table for score in own if score.task == task)
    pairs = [paired(known, table, *PAIR) for table in tables]
    gained = [float((ours - theirs).mean()) for ours, theirs in pairs if len(ours)]
    if not gained:
        return []
    kind, measure = f"tables of {task}, delivered − boosting", WORDS[task]
    return [
        _aim(f"mean over {len(gained)} {kind}", measure, "more", float(numpy.mean(gained)), -WITHIN[task]),
        _aim(f"worst of {len(gained)} {kind}", measure, "more", min(gained), -WORST),
    ]


def _aim(case: str, measure: str, better: str, ours: float, asked: float) -> Comparison:
    return Comparison.model_validate(
        {"case": case, "measure": measure, "better": better, "ours": ours, "theirs": asked, "rival": "aim", "aim": True}
    )
