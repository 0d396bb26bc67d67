"""What rightsizing comes to: ten seeds of digits, and a residual network of a user's own on Fashion-MNIST.

`python -m benchmarks.rightsize` runs digits; with a folder of Fashion-MNIST's files, the residual network instead.
"""

import sys
import tempfile
import time
from pathlib import Path

import torch
from torch import Tensor, nn

from benchmarks.paging.records import Cell, Grid, Sheet
from benchmarks.paging.writing import stamp, write_results
from topiarist import load, load_data, rightsize
from topiarist.rightsizing.delivery import MODEL_FILE, deliver
from topiarist.training.inference import predict_logits

SEEDS = 10
IMAGES, WIDTH, MAX_DROP = 4000, 16, 0.02


def digits() -> None:
    """Rightsize 64-128-64-10 on ten splits, quickly."""
    rows = list[tuple[Cell, ...]]()
    for seed in range(SEEDS):
        begun = time.process_time()
        record = rightsize(load_data("digits", seed=seed), effort="quick", seed=seed).record
        assert record.test is not None and record.gains.parameters is not None
        before, after = (side["accuracy"] or 0.0 for side in (record.test.before, record.test.after))
        whole, chosen = record.networks[0], record.chosen
        p = next((rung.p for rung in record.decision.rungs if rung.network == chosen.id), 1.0)
        rows.append(
            (
                str(seed),
                f"{whole.parameters:,} → {chosen.parameters:,}",
                f"{record.gains.parameters:.1f} ×",
                f"{before:.2%}",
                f"{after:.2%}",
                f"{100 * (after - before):+.2f}",
                record.verdict.status,
                f"{p:.4f}",
                f"{time.process_time() - begun:.0f}",
            )
        )
        print(*rows[-1], sep="  ", flush=True)
    head = ("seed", "parameters", "smaller", "before", "after", "points", "status", "p", "seconds")
    found = Sheet(**stamp("python -m benchmarks.rightsize"), grids={"seeds": Grid(head=head, rows=tuple(rows))})
    print(write_results("rightsize", found))


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
    if len(sys.argv) > 1:
        residual(sys.argv[1])
    else:
        digits()
