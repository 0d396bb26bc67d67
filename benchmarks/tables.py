"""A network for a table beside gradient boosting and others: ten tables of classes and four of numbers, ten splits.

Each split has a fifth of the rows to test on. All models learn from the other four fifths, `train_tabular` with its own
settings and scikit-learn's with theirs; nothing is chosen on test rows. It needs the R packages mlbench and kernlab
(Debian: r-cran-mlbench, r-cran-kernlab; `R_LIBRARY` names another folder), and pyreadr (extra `benchmarks`).

    python -m benchmarks.tables [tables] [--splits 10] [--of network delivered boosting guess] [--out tables.json]

takes about 20 minutes of one core, and about 100 more for what `topiarist rightsize` delivers. Scores are written as
they come, and those in the file are not measured again. The Markdown tables are printed at the end, or again from files
with `--table tables.json [more.json]`.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.paging.writing import RESULTS, stamp, write_results
from benchmarks.tabulating.contenders import guess, ours, references
from benchmarks.tabulating.delivered import delivered
from benchmarks.tabulating.records import TableResults, TableScore
from benchmarks.tabulating.sources import TABLES, load_split
from benchmarks.tabulating.summary import write_markdown
from topiarist import Data
from topiarist.threads import torch_threads
from topiarist.training import TabularConfig

CONTENDERS = ("network", "delivered", "boosting", "guess")  # each with those that are measured beside it


def main() -> None:
    """Measure what is missing, and print the tables."""
    asked = _arguments()
    with torch_threads(1):
        results = merged(asked.table) if asked.table else run(asked)
    print(write_markdown(results.scores))


def run(asked: argparse.Namespace) -> TableResults:
    """Measure the splits that are not in the file yet: the first of all tables, then the second, and so on."""
    known = merged([asked.out]) if asked.out.exists() else None
    prefix = "" if asked.teacher == "both" else f"{asked.teacher}: "
    now = stamp("python -m benchmarks.tables", ["scikit-learn"], known)
    results = TableResults(**now, scores=known.scores if known else ())
    for split in range(asked.first, asked.first + asked.splits):
        for name in asked.tables or TABLES:
            done = {score.key for score in results.scores}
            measures: dict[str, Callable[[Data], list[TableScore]]] = {
                "network": partial(ours, split=split, config=TabularConfig(teacher=asked.teacher, seed=split)),
                "delivered": partial(delivered, split=split),
                "boosting": partial(references, split=split),
                "guess": partial(guess, split=split),
            }
            missing = [each for each in asked.of if (name, split, f"{prefix}{each}") not in done]
            if not missing:
                continue
            data = load_split(name, split)
            found = [score for each in missing for score in measures[each](data)]
            results = results.model_copy(update={"scores": (*results.scores, *found)})
            write_results("tables", results, asked.out)
            said = ", ".join(f"{score.contender} {score.score:.4f}" for score in found)
            print(f"{name}, split {split}: {said}", file=sys.stderr, flush=True)
    return results


def merged(paths: list[Path]) -> TableResults:
    """Return the scores of several files; later ones count."""
    parts = [TableResults.model_validate_json(path.read_text()) for path in paths]
    scores = {score.key: score for part in parts for score in part.scores}
    return parts[-1].model_copy(update={"scores": tuple(scores.values())})


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=[[], *TABLES], help="which tables; all unless given")
    parser.add_argument("--first", type=int, default=0, help="the number of the first split")
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--of", nargs="+", choices=CONTENDERS, default=CONTENDERS, help="what to measure")
    parser.add_argument("--teacher", choices=("both", "ensemble", "boosting"), default="both")
    parser.add_argument("--out", type=Path, default=RESULTS / "tables.json")
    parser.add_argument("--table", type=Path, nargs="+", help="print the tables of these files and measure nothing")
    return parser.parse_args()


if __name__ == "__main__":
    main()
