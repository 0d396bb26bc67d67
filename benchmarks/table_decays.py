"""Which weight decays members of a table's teacher should choose from: on splits that nothing else is measured on.

Networks of all rates, dropouts and decays are cross-fitted once, with boosting and, where few rows allow, trees; what a
teacher may choose from is then a part of them. Two splits, 100 and 101, of the tables of `benchmarks.tables` with fewer
than 1,000 rows.

    python -m benchmarks.table_decays [--splits 2]

takes about 5 minutes of one core. It needs what `benchmarks.tables` needs.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence

from benchmarks.paging.records import Figure, Sheet
from benchmarks.paging.writing import stamp, write_results
from benchmarks.tabulating.contenders import score_of, tested
from benchmarks.tabulating.sources import TABLES, load_split
from topiarist import Data
from topiarist.threads import torch_threads
from topiarist.training import TabularConfig
from topiarist.training.tables.folds import training_part
from topiarist.training.tables.members import Members
from topiarist.training.tables.teachers import best_blend
from topiarist.training.tables.teaching import FittedTeacher, fit_teacher

FIRST = 100  # of the splits; 0 to 9 are those of `benchmarks.tables`
LARGE_TABLES = ("Satellite", "spam")
RATES, DECAYS = (0.003, 0.01, 0.02, 0.03), (0.01, 0.3)
SMALL, LARGE = "the small decay", "the large decay"
Settings = tuple[Sequence[float], Sequence[float], Sequence[float]]  # rates, dropouts and decays
CHOICES: Mapping[str, Settings] = {
    "three rates, decay 0.01": ((0.003, 0.01, 0.03), (0.0, 0.2), (0.01,)),
    "two rates, decay 0.01 or 0.3": ((0.01, 0.03), (0.0, 0.2), DECAYS),
    "rate 0.01, decay 0.01 alone": ((0.01,), (0.0,), (0.01,)),
    "rate 0.02, decay 0.3 alone": ((0.02,), (0.0,), (0.3,)),
}
CHOSEN = ("two rates, decay 0.01 or 0.3", "rate 0.02, decay 0.3 alone")  # by train_tabular, and in rightsize


def main() -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=2)
    splits = range(FIRST, FIRST + parser.parse_args().splits)
    figures: list[Figure] = []
    with torch_threads(1):
        for name in TABLES:
            if name not in LARGE_TABLES:
                figures += _figures(name, splits)
                print(f"{name} is measured", file=sys.stderr, flush=True)
    sheet = Sheet(**stamp("python -m benchmarks.table_decays", ["scikit-learn"]), figures=tuple(figures))
    print(write_results("table_decays", sheet))


def _figures(name: str, splits: Sequence[int]) -> list[Figure]:
    """Return the scores of each choice, and the losses out of fold of the best members of each decay."""
    scores: dict[str, list[float]] = {choice: [] for choice in CHOICES}
    losses: dict[str, list[float]] = {SMALL: [], LARGE: []}
    measure = "accuracy, %" if TABLES[name].task == "classes" else "R² × 100"
    for split in splits:
        data = load_split(name, split)
        fitted = fit_teacher(data, TabularConfig(rates=RATES, weight_decays=DECAYS, seed=split))
        for choice, settings in CHOICES.items():
            scores[choice].append(100 * _score(data, fitted, settings))
        for decay, word in zip(DECAYS, losses, strict=True):
            losses[word].append(min(each.loss for each in fitted.members if each.setting.weight_decay == decay))
    return [
        *(
            Figure(
                table=measure, case=name, contender=choice, measure="score", values=tuple(values), role=_role(choice)
            )
            for choice, values in scores.items()
        ),
        *(
            Figure(table="losses", case=name, contender=word, measure="loss", values=tuple(values), role="variant")
            for word, values in losses.items()
        ),
    ]


def _role(choice: str) -> str:
    return "ours" if choice in CHOSEN else "variant"


def _score(data: Data, fitted: FittedTeacher, settings: Settings) -> float:
    """Return what the blend of some members, and of all that are no networks, scores on the test part."""
    kept = [each.fitted for each in fitted.members if _among(each, settings)]
    others = [each for each in fitted.candidates if all(each is not members.fitted for members in fitted.members)]
    teacher = best_blend([*kept, *others], training_part(data), data.task)
    return score_of(data, teacher.outputs(tested(data).x))


def _among(members: Members, settings: Settings) -> bool:
    own = members.setting
    return all(
        value in allowed
        for value, allowed in zip((own.learning_rate, own.dropout, own.weight_decay), settings, strict=True)
    )


def pieces(sheet: Sheet) -> dict[str, str]:
    """Return the table of means, and of how many tables the large decay suits best."""
    lines = ["| may be chosen | accuracy, % | R² × 100 |", "|---|---:|---:|"]
    for choice in CHOICES:
        means = []
        for measure in ("accuracy, %", "R² × 100"):
            found = [each.value for each in sheet.figures if (each.table, each.contender) == (measure, choice)]
            means.append(f"{sum(found) / len(found):.2f}" if found else "–")
        lines.append(f"| {choice} | {' | '.join(means)} |")
    known = {(each.case, each.contender): each.value for each in sheet.figures if each.table == "losses"}
    tables = list(dict.fromkeys(case for case, _ in known))
    better = [name for name in tables if known[name, LARGE] < known[name, SMALL]]
    return {"table": "\n".join(lines), "better": str(len(better)), "tables": str(len(tables))}


if __name__ == "__main__":
    main()
