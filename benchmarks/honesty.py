"""Is "proven" true? Data sets of which the truth is known, and what rightsizing says of them.

`python -m benchmarks.honesty --out honesty.jsonl` rightsizes a small network on each of 66 data sets, asks 100,000
fresh samples of the same generator what is true, and prints how often each verdict was right. Each data set is a line
of the file, so that the same command resumes; `--most N` ends after so many more, `--first N` adds data sets of other
seeds to the same file.

For 36 of them, the smallest of the sizes that are tried lies *at* the margin: the loss that is allowed is the mean of
what that size truly loses on pilot data sets of the same generator, so that its true loss is now above, now below it.
"""

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from torch import nn

from benchmarks.paging.records import Grid, Sheet
from benchmarks.paging.writing import stamp, write_results
from topiarist import rightsize
from topiarist.data import Data
from topiarist.models import mlp
from topiarist.randomness import array_generator, generator
from topiarist.rightsizing import EFFORTS, Rightsizing
from topiarist.rightsizing.record import BASELINE, GUESSING
from topiarist.statistics.proofs.intervals import wilson

FRESH, PILOTS = 100_000, 4
INPUTS, HIDDEN = 6, (32, 16)
RATIOS = {"numbers": (2, 12)}  # of a kind: the first size is seldom worse, the second lies at the margin
USUAL_RATIOS = (2, 24)
GUESSES_TRUE = 0.005  # points of accuracy, or of the error, above a guess that count as none
VERDICTS = ("proven", "not proven", "rejected", GUESSING)

Drawn = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class DataSet:
    """One data set: its generator, how many samples it has, the loss that is allowed (None: by pilots), its seed."""

    kind: str
    samples: int
    seed: int
    max_drop: float | None = None

    @property
    def name(self) -> str:
        """What the file calls it."""
        return f"{self.kind}-{self.samples}-{self.seed}"


def data_sets() -> list[DataSet]:
    """Return all data sets; those without a loss of their own lie at the margin."""
    return [
        *(DataSet("teacher", 700, seed) for seed in range(14)),
        *(DataSet("rings", 500, seed) for seed in range(10)),
        *(DataSet("numbers", 600, seed) for seed in range(12)),
        *(DataSet("teacher", 900, 100 + seed, 0.08) for seed in range(8)),  # far within the margin
        *(DataSet("teacher", 700, 200 + seed, 0.005) for seed in range(6)),  # far beyond it
        *(DataSet("numbers", 600, 300 + seed, 0.15) for seed in range(4)),
        *(DataSet("noise", 400, seed, 0.02) for seed in range(8)),
        *(DataSet("rare", 600, seed, 0.05) for seed in range(4)),
    ]


def draw(kind: str, samples: int, seed: int) -> Drawn:
    """Draw samples from a generator; those of one kind follow one law, whatever the seed."""
    random = array_generator(seed, "honesty", kind, samples)
    x = random.normal(size=(samples, INPUTS)).astype(numpy.float32)
    if kind == "rings":  # which ring of a plane, with one label in twenty wrong
        radius = numpy.hypot(x[:, 0], x[:, 1])
        y = (radius > 0.8).astype(int) + (radius > 1.5)
        return x, numpy.where(random.random(samples) < 0.05, random.integers(0, 3, samples), y)
    if kind == "noise":  # seven of ten are of one class, whatever the inputs
        return x, (random.random(samples) < 0.3).astype(int)
    if kind == "rare":  # one of fifty is of the other class, and hard to tell
        return x, (x[:, 0] + 2 * random.normal(size=samples) > 4.6).astype(int)
    law = array_generator(0, "law", kind)
    hidden = numpy.tanh(1.5 * x @ law.normal(size=(INPUTS, 12)))
    if kind == "numbers":
        return x, hidden @ law.normal(size=12) + 0.5 * random.normal(size=samples)
    scores = hidden @ law.normal(size=(12, 3)) + 0.6 * random.gumbel(size=(samples, 3))
    return x, scores.argmax(axis=1)


@cache
def fresh(kind: str) -> Drawn:
    """Return the samples that tell the truth."""
    return draw(kind, FRESH, 10**6)


def rightsized(which: DataSet, max_drop: float) -> Rightsizing:
    """Rightsize a small perceptron, with little work and one method."""
    work = {"folds": 4, "seeds": 2, "epochs": 30, "finetuning_epochs": 40, "finer": 1}
    EFFORTS["quick"] = replace(EFFORTS["quick"], ratios=RATIOS.get(which.kind, USUAL_RATIOS), few_rows=None, **work)
    x, y = draw(which.kind, which.samples, which.seed)
    data = Data.from_arrays(x, y, scaling="none", name=which.name, test_fraction=0.15)
    sizes = [INPUTS, *HIDDEN, data.task.outputs]

    def build() -> nn.Module:
        return mlp(sizes, generator=generator(which.seed, "network"))

    return rightsize(data, build, max_drop=max_drop, methods=("distinctiveness",), effort="quick", seed=which.seed)


def true_score(found: Rightsizing, network: nn.Module, kind: str) -> float:
    """Return the accuracy of a network, or the negative RMSE, on the fresh samples."""
    x, y = fresh(kind)
    with torch.no_grad():
        answers = found.data.task.answers(network.eval()(torch.from_numpy(x))).double().numpy()
    if kind == "numbers":
        return -float(numpy.sqrt(((answers[:, 0] - y) ** 2).mean()))
    return float((answers.argmax(axis=1) == y).mean())


def true_differences(found: Rightsizing, kind: str) -> dict[str, tuple[float, float]]:
    """Return how much better than the baseline, and than a guess, each network truly is; of numbers as shares."""
    y = fresh(kind)[1]
    guess = -float(y.std()) if kind == "numbers" else float(numpy.bincount(y).max() / len(y))
    baseline = true_score(found, found.baseline, kind)

    def better(score: float, other: float) -> float:
        return (score - other) / abs(other) if kind == "numbers" else score - other

    judged = [BASELINE, *(rung.network for rung in found.record.decision.rungs)]
    scores = {name: true_score(found, found.networks[name], kind) for name in judged}
    return {name: (better(score, baseline), better(score, guess)) for name, score in scores.items()}


@cache
def margin_of(kind: str, samples: int) -> float:
    """Return what the smaller size truly loses on average over pilot data sets: the margin at which it then lies."""
    lost = []
    for pilot in range(PILOTS):
        found = rightsized(DataSet(kind, samples, 10_000 + pilot), max_drop=0.9)
        lost.append(-true_differences(found, kind)[f"final-{RATIOS.get(kind, USUAL_RATIOS)[-1]}"][0])
    return round(max(fmean(lost), 0.002), 4)


def look_at(which: DataSet) -> dict[str, Any]:
    """Rightsize one data set, and return each verdict beside the truth."""
    begun = time.process_time()
    margin = margin_of(which.kind, which.samples) if which.max_drop is None else which.max_drop
    found = rightsized(which, margin)
    truths = true_differences(found, which.kind)
    return {
        **asdict(which),
        "name": which.name,
        "margin": margin,
        "status": found.status,
        "chosen": truths[found.record.verdict.chosen],
        "sizes": [
            {"ratio": rung.ratio, "verdict": rung.verdict, "seen": rung.difference, "truth": truths[rung.network]}
            for rung in found.record.decision.rungs
        ],
        "agreement": found.record.verdict.agreement,
        "seconds": time.process_time() - begun,
    }


def is_right(verdict: str, truth: tuple[float, float], margin: float) -> bool | None:
    """Return whether a verdict on a size is true; None of one that claims nothing."""
    lost = truth[0] < -margin
    claims = {"proven": not lost, "rejected": lost, GUESSING: truth[1] <= GUESSES_TRUE}
    return claims.get(verdict)


def summary(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Yield the figures of all data sets as lines."""
    at_margin = [row for row in rows if row["max_drop"] is None]
    yield f"{len(rows)} data sets, {len(at_margin)} of them at the margin, {sum(row['seconds'] for row in rows):.0f} s"
    for name, some in (("all", rows), ("at the margin", at_margin)):
        false = [row for row in some if row["status"] == "proven" and row["chosen"][0] < -row["margin"]]
        yield f"false proofs, {name}: {_share(len(false), len(some))}"
    for verdict in VERDICTS:
        sizes = [(row, size) for row in rows for size in row["sizes"] if size["verdict"] == verdict]
        within = sum(size["truth"][0] >= -row["margin"] for row, size in sizes)
        right = [is_right(verdict, size["truth"], row["margin"]) for row, size in sizes]
        told = "" if None in right or not right else f"; right: {_share(sum(map(bool, right)), len(right))}"
        yield f"sizes {verdict}: {len(sizes)}, of which truly within the margin {within}{told}"
    for status in sorted({row["status"] for row in rows}):
        kinds = [row["kind"] for row in rows if row["status"] == status]
        yield f"status {status}: " + ", ".join(f"{kind} {kinds.count(kind)}" for kind in sorted(set(kinds)))


def verdict_grid(rows: Sequence[dict[str, Any]]) -> Grid:
    """Return false proofs, and how many verdicts of each kind were right."""
    lines = []
    for name, some in (
        ("false proofs, of all data sets", rows),
        ("false proofs, of those at the margin", [row for row in rows if row["max_drop"] is None]),
    ):
        false = sum(row["status"] == "proven" and row["chosen"][0] < -row["margin"] for row in some)
        lines.append((name, _share(false, len(some))))
    for verdict in VERDICTS:
        sizes = [(row, size) for row in rows for size in row["sizes"] if size["verdict"] == verdict]
        within = sum(size["truth"][0] >= -row["margin"] for row, size in sizes)
        right = [is_right(verdict, size["truth"], row["margin"]) for row, size in sizes]
        told = f"{within} of {len(sizes)} truly within the margin"
        if None not in right and right:
            told += f"; right: {sum(map(bool, right))} of {len(right)}"
        lines.append((f"sizes *{verdict}*", told))
    return Grid(head=("", f"{len(rows)} data sets"), rows=tuple(lines))


def _share(part: int, whole: int) -> str:
    if not whole:
        return "0 of 0"
    low, high = wilson(part / whole, whole)
    return f"{part} of {whole}, {part / whole:.1%} ({low:.1%} to {high:.1%})"


def main() -> None:
    """Look at the data sets that are not in the file yet, then print what is in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("honesty.jsonl"))
    parser.add_argument("--most", type=int, default=10**6)
    parser.add_argument("--first", type=int, default=0, help="is added to all seeds: other data sets of the same laws")
    options = parser.parse_args()
    rows = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    done = {row["name"] for row in rows}
    asked = [replace(each, seed=each.seed + options.first) for each in data_sets()]
    for which in [each for each in asked if each.name not in done][: options.most]:
        rows.append(look_at(which))
        with options.out.open("a") as file:
            file.write(json.dumps(rows[-1]) + "\n")
        print(f"{which.name:16} {rows[-1]['status']:24} {rows[-1]['seconds']:5.1f} s", flush=True)
    print("\n".join(summary(rows)))
    command = "python -m benchmarks.honesty"
    print(write_results("honesty", Sheet(**stamp(command), grids={"verdicts": verdict_grid(rows)})))


if __name__ == "__main__":
    main()
