"""Pruned ensembles on recordings: what pruning costs, what an ensemble gains, and what its file takes on disk.

Five folds, five V(2,2,3,3) and one I(2,1,2) in each, unpruned and pruned to 80 %: 60 trainings. It resumes where it was
interrupted. `python -m benchmarks.scenes FOLDER [OUT]`, the folder as `topiarist reproduce scenes --data` takes it.
"""

import csv
import sys
import time
from pathlib import Path

from benchmarks.paging.records import Grid, Sheet
from benchmarks.paging.writing import stamp, write_results
from topiarist.reproductions.scenes.reproduce import reproduce_scenes
from topiarist.reproductions.scenes.study import FASTER, ScenesScope

SCOPE = ScenesScope(
    recipe=FASTER,
    epochs=50,
    runs=1,
    folds=5,
    early=True,
    kinds=("unpruned", "pruned"),
    bands=(),
    windows=(),
    pieces=(),
    depths=False,
)


def main() -> None:
    """Run what is left to do, and print the results."""
    if len(sys.argv) < 2:
        raise SystemExit("python -m benchmarks.scenes FOLDER [OUT]: name a folder of recordings")
    out = Path(sys.argv[2] if len(sys.argv) > 2 else "scenes-benchmark")
    began = time.perf_counter()
    found = reproduce_scenes(out, location=Path(sys.argv[1]), scope=SCOPE, workers=None)
    print(found["summary"])
    head, *rows = csv.reader((out / "tables" / "table3.csv").read_text().splitlines())
    seconds = f"It took {time.perf_counter() - began:.0f} s."
    grid = Grid(head=tuple(head), rows=tuple(tuple(row) for row in rows))
    sheet = Sheet(
        **stamp("python -m benchmarks.scenes FOLDER"),
        grids={"results": grid},
        notes={"took": seconds, "ensemble": str(found["summary"])},
    )
    print(f"{seconds} Page: {found['page']}", write_results("scenes", sheet), sep="\n")


if __name__ == "__main__":
    main()
