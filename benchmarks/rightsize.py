"""What rightsizing comes to: ten seeds of digits, and a residual network of a user's own on Fashion-MNIST.

`python -m benchmarks.rightsize` runs digits, seeds 0 to 9, or those named (`10 11`); with a folder of Fashion-MNIST's
files, the residual network instead.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.paging.records import Cell, Grid, Sheet
from benchmarks.paging.writing import stamp, write_results
from topiarist import Data, load, load_data, rightsize
from topiarist.data.load import find_source
from topiarist.data.preparation import PreparationOptions
from topiarist.rightsizing.delivery import MODEL_FILE, deliver
from topiarist.rightsizing.folds import parts_set_aside
from topiarist.training.inference import predict_logits

SEEDS = 10
IMAGES, WIDTH, MAX_DROP = 4000, 16, 0.02


@dataclass(frozen=True)
class Row:
    """What one seed came to: a split of its own."""

    seed: int
    whole: int
    chosen: int
    smaller: float
    before: float
    after: float
    status: str
    p: float
    seconds: float

    @property
    def points(self) -> float:
        """Points of accuracy that are gained on the test part; less than 0 where some are lost."""
        return 100 * (self.after - self.before)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The row of the table."""
        size, seconds = f"{self.whole:,} → {self.chosen:,}", f"{self.seconds:.0f}"
        scores = (f"{self.before:.2%}", f"{self.after:.2%}", f"{self.points:+.2f}")
        return (str(self.seed), size, f"{self.smaller:.1f} ×", *scores, self.status, f"{self.p:.4f}", seconds)


def digits(seeds: Sequence[int] = range(SEEDS)) -> None:
    """Rightsize 64-128-64-10 on ten splits, quickly; what is measured is written after each."""
    rows = list[Row]()
    for seed in seeds:
        begun = time.process_time()
        source = find_source("digits")
        how: PreparationOptions = {**parts_set_aside(source), "seed": seed}
        data = Data.from_source(source, **how)  # as the command does
        record = rightsize(data, effort="quick", seed=seed).record
        assert record.test is not None and record.gains.parameters is not None
        before, after = (side["accuracy"] or 0.0 for side in (record.test.before, record.test.after))
        whole, chosen = record.networks[0], record.chosen
        rows.append(
            Row(
                seed=seed,
                whole=whole.parameters,
                chosen=chosen.parameters,
                smaller=record.gains.parameters,
                before=before,
                after=after,
                status=record.verdict.status,
                p=next((rung.p for rung in record.decision.rungs if rung.network == chosen.id), 1.0),
                seconds=time.process_time() - begun,
            )
        )
        print(*rows[-1].cells, sep="  ", flush=True)
        head = ("seed", "parameters", "smaller", "before", "after", "points", "status", "p", "seconds")
        grid = Grid(head=head, rows=tuple(row.cells for row in rows))
        notes = {"findings": findings(rows)}
        place = write_results(
            "rightsize", Sheet(**stamp("python -m benchmarks.rightsize"), grids={"seeds": grid}, notes=notes)
        )
    print(notes["findings"], place, sep="\n")


def findings(rows: Sequence[Row]) -> str:
    """Return what the seeds come to together."""
    proven = sum(row.status == "proven" for row in rows)
    lost = [-row.points for row in rows]
    return (
        f"Of {len(rows)} seeds, {proven} are proven: {statistics.fmean(row.smaller for row in rows):.1f} times fewer"
        f" parameters on average, {min(row.smaller for row in rows):.1f} at least. On the test part"
        f" {statistics.fmean(lost):.2f} points are lost on average, {max(lost):.2f} at worst."
        f" Each seed takes {min(row.seconds for row in rows):.0f} to {max(row.seconds for row in rows):.0f} s of"
        f" processor time on one thread. The aim is 12 times, with at most 0.5 points lost, all proven."
    )


class Block(nn.Module):
    """Two convolutions and a way around them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(outputs)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(outputs)
        self.around = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """Add both ways."""
        inner = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(inner)) + self.around(x))


class Residual(nn.Module):
    """A small residual network, as a user would write it."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(1, WIDTH, 3, padding=1)
        self.blocks = nn.Sequential(Block(WIDTH, WIDTH, 1), Block(WIDTH, 2 * WIDTH, 2), Block(2 * WIDTH, 4 * WIDTH, 2))
        self.head = nn.Linear(4 * WIDTH, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        logits: Tensor = self.head(self.blocks(torch.relu(self.stem(x))).mean(dim=(2, 3)))
        return logits


def residual(folder: str) -> None:
    """Rightsize a residual network, export it, load it again."""
    data = load_data(folder, samples=IMAGES)
    begun = time.perf_counter()
    sized = rightsize(data, Residual, effort="normal", max_drop=MAX_DROP)
    with tempfile.TemporaryDirectory() as place:
        record = deliver(sized, place)
        again = load(Path(place) / MODEL_FILE, into=Residual())
        x = data.test.x[:100]  # type: ignore[union-attr]  # these are in memory
        same = torch.equal(predict_logits(again, x), predict_logits(sized.model, x))
    print(record.verdict.sentence, *record.verdict.why, *record.notes, sep="\n")
    rows = tuple(
        (
            network.id,
            f"{network.parameters:,}",
            f"{network.macs:,}",
            f"{network.latency_ms:.3f} ms",
            f"{network.onnx_latency_ms:.3f} ms",
        )
        for network in record.networks
        if network.onnx_latency_ms is not None
    )
    print(f"loaded into a fresh network: {'the same answers' if same else 'OTHER ANSWERS'}")
    grid = Grid(head=("network", "parameters", "MACs", "time in torch", "time in ONNX Runtime"), rows=rows)
    words = " ".join([record.verdict.sentence, *record.verdict.why, f"It took {time.perf_counter() - begun:.0f} s."])
    found = Sheet(
        **stamp("python -m benchmarks.rightsize FOLDER", ["onnxruntime"]),
        grids={"residual": grid},
        notes={"findings": words},
    )
    print(write_results("residual", found))


if __name__ == "__main__":
    if len(sys.argv) > 1 and not sys.argv[1].isdigit():
        residual(sys.argv[1])
    else:
        digits([int(seed) for seed in sys.argv[1:]] or range(SEEDS))
