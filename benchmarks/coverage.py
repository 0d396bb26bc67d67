"""How many networks can be cut, by us and by torch-pruning: half of all units at once, in every network of the zoo.

For every network: the time of `anatomy`; its free spaces; the share of parameters gone after every second unit of
every free space was removed in one cut; whether the outputs keep their shapes, whether the cut network can be saved
and loaded, whether it equals the reference and whether onnxruntime computes the same. Beside it, torch-pruning at a
ratio of 0.5, and whether its cut network is the original without the weights that are gone. A network is *useful* when
it runs, its outputs keep their shapes and a quarter of its parameters is gone. Hidden states and caches that the hub's
models return beside scores are no outputs. Each tool has a process of its own per network, one thread and a limit of
processor time; what fails is a row with its reason.

    python -m benchmarks.coverage [names or classes: hub, own, published] [--out results.json]

needs the extras `onnx`, `dev` and `zoo`. Rows are written as they come; the Markdown tables are printed at the end, or
again from files with `--table results.json [more.json]`.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.covering.isolation import measure_row
from benchmarks.covering.records import Attempt, Results, Row
from benchmarks.covering.tables import write_markdown
from benchmarks.paging.writing import RESULTS, stamp
from benchmarks.zoo import CATALOGUES, NETWORKS
from topiarist.files import write_atomically

PACKAGES = ("transformers", "pytorchcv", "torch-pruning", "onnx", "onnxscript", "onnxruntime")


def main() -> None:
    """Measure the networks that are asked for, and print the tables."""
    asked = _arguments()
    if asked.table:
        print(write_markdown(merged([Results.model_validate_json(path.read_text()) for path in asked.table])))
        return
    results = Results(**stamp("python -m benchmarks.coverage", PACKAGES), limit_seconds=asked.limit)
    for name in chosen(asked.networks):
        results = results.model_copy(update={"rows": (*results.rows, measure_row(name, asked.limit))})
        write_atomically(asked.out, results.model_dump_json(indent=1).encode())
        print(_progress(results.rows[-1]), file=sys.stderr, flush=True)
    print(write_markdown(results))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", help="names of networks, or hub, own, published; all without any")
    parser.add_argument("--out", type=Path, default=RESULTS / "coverage.json")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of processor time per network and tool")
    parser.add_argument("--table", type=Path, nargs="+", help="print the tables of these files and measure nothing")
    return parser.parse_args()


def merged(parts: Sequence[Results]) -> Results:
    """Return the rows of several runs with the same versions, in the order of the zoo; later ones count."""
    if any(part.packages != parts[0].packages for part in parts):
        raise SystemExit("these files were measured with different versions")
    rows = {row.name: row for part in parts for row in part.rows}
    return parts[-1].model_copy(update={"rows": tuple(rows[name] for name in NETWORKS if name in rows)})


def chosen(asked: Sequence[str]) -> list[str]:
    """Return the names of the networks that names and classes stand for; all of them for none."""
    classes = {catalogue.short: list(catalogue.entries) for catalogue in CATALOGUES}
    unknown = [name for name in asked if name not in classes and name not in NETWORKS]
    if unknown:
        raise SystemExit(f"no network or class is called {', '.join(unknown)}; classes are {', '.join(classes)}")
    named = [name for each in asked for name in classes.get(each, [each])]
    return list(dict.fromkeys(named)) or list(NETWORKS)


def _progress(row: Row) -> str:
    return f"{row.name:34} ours: {_told(row.ours):60} torch-pruning: {_told(row.torch_pruning)}"


def _told(attempt: Attempt) -> str:
    gone = "" if attempt.share_gone is None else f"{100 * attempt.share_gone:.0f} % gone "
    return f"{gone}{attempt.stage} {attempt.reason}"[:60]


if __name__ == "__main__":
    main()
