"""Latency that is true: predicted against measured, allotted against measured, and milliseconds against arithmetic.

`python -m benchmarks.latency [--runtime torch|onnx|onnx-int8] [--threads 1] [PART …]`; without parts, all of them:

- predictions: ten cut networks of three kinds (plain, residual, depthwise), predicted before they are timed. Half have
  widths allotted to a share of the latency, half have widths drawn at random, which no allotment would choose.
- half: a CNN that is trained on scikit-learn's digits, drawn at 16 × 16 pixels, and resized to half of its latency with
  unlabelled training inputs; its latency is measured beside the whole network's.
- arithmetic: the same CNN within latencies, and within multiply-accumulates; accuracy on the test part and latency of
  each. No choice sees the test part.

Everything is timed in turn, and the fastest round counts; on a busy machine the figures still move by some per cent.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.paging.records import Figure, Sheet
from benchmarks.paging.writing import read_results, stamp, write_results
from topiarist import Budget, Data, TrainConfig, anatomy, load_data, measure, resize, train
from topiarist.measurement.budget import Runtime
from topiarist.measurement.runtimes import network_call, time_together
from topiarist.measurement.tables.prediction import LatencyModel, skeleton
from topiarist.methods import Distinctiveness
from topiarist.models.copying import copied
from topiarist.randomness import array_generator, isolated
from topiarist.surgery.calibration import batches_for
from topiarist.surgery.choice.allotment import Losses, lost_shares
from topiarist.surgery.choice.costs import Costs
from topiarist.threads import torch_threads

SHARES = (0.75, 0.6, 0.45)  # of the latency, and of the multiply-accumulates
REPEATS = 3  # comparisons of each pair, of which the median is shown
ALLOWED = 15.0  # per cent that a prediction may be off: what we set out for


def block(inputs: int, outputs: int, **settings: Any) -> list[nn.Module]:
    """Return a convolution with its norm and activation."""
    return [nn.Conv2d(inputs, outputs, 3, padding=1, **settings), nn.BatchNorm2d(outputs), nn.ReLU()]


def plain(channels: int = 3) -> nn.Module:
    """Return a plain CNN."""
    return nn.Sequential(
        *block(channels, 32),
        *block(32, 32),
        nn.MaxPool2d(2),
        *block(32, 64),
        *block(64, 64),
        nn.MaxPool2d(2),
        *block(64, 128),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


class Residual(nn.Module):
    """Adds what it computes to what it reads."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(*block(width, inner), nn.Conv2d(inner, width, 3, padding=1), nn.BatchNorm2d(width))

    def forward(self, x: Tensor) -> Tensor:
        """Return the sum."""
        return torch.relu(x + self.inner(x))


def residual() -> nn.Module:
    """Return a residual CNN."""
    return nn.Sequential(
        *block(3, 48),
        Residual(48, 48),
        Residual(48, 64),
        *block(48, 96, stride=2),
        Residual(96, 96),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(96, 10),
    )


def depthwise() -> nn.Module:
    """Return a CNN of depthwise and pointwise convolutions."""
    layers = block(3, 32, stride=2)
    for inputs, outputs, stride in ((32, 64, 1), (64, 128, 2), (128, 128, 1), (128, 256, 2)):
        layers += block(inputs, inputs, groups=inputs, stride=stride)
        layers += [nn.Conv2d(inputs, outputs, 1), nn.BatchNorm2d(outputs), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))


class Enlarged(nn.Module):
    """The digits at twice their size, read by a plain CNN."""

    def __init__(self) -> None:
        super().__init__()
        self.larger, self.network = nn.Upsample(scale_factor=2), plain(1)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        logits: Tensor = self.network(self.larger(x.reshape(-1, 1, 8, 8)))
        return logits


def find_predictions(runtime: Runtime, threads: int) -> list[Figure]:
    """Predict ten cut networks, then time them; return by how much the predictions are off."""
    errors: dict[str, list[float]] = {"allotted": [], "drawn": []}
    for name, make, count in (("plain", plain, 2), ("residual", residual, 2), ("depthwise", depthwise, 1)):
        with isolated(0):
            model, x = make().eval(), torch.randn(64, 3, 32, 32)
        found = anatomy(model, x[:2])
        costs = Costs(model, found)
        timed = costs.timing = LatencyModel(model, found, costs, x[:1], runtime=runtime, threads=threads)
        losses = Losses(costs, lost_shares(model, found, batches_for(x, model, x[:2])))
        random = array_generator(1, f"widths of {name}")
        widths: list[tuple[str, Mapping[str, int]]] = []
        for share in SHARES[:count]:
            widths.append(("allotted", losses.within(latency_ms=share * timed.whole_ms)))
            drawn = {space: int(random.integers(size // 4, size + 1)) for space, size in costs.widths.items()}
            widths.append(("drawn", drawn))
        cut = [skeleton(model, found, each) or model for _, each in widths]
        calls = [network_call(each, x[:1], runtime=runtime, threads=threads) for each in (copied(model), *cut)]
        whole, *times = time_together(calls, threads=threads)
        for (kind, each), milliseconds in zip(widths, times, strict=True):
            predicted, measured = float(timed.milliseconds(each)), milliseconds * timed.whole_ms / whole
            errors[kind].append(predicted / measured - 1)
            print(f"{name:10} {kind:9} predicted {predicted:.3f} ms, measured {measured:.3f}: {errors[kind][-1]:+.1%}")
    figures = []
    for kind, several in errors.items():
        common: dict[str, Any] = {"table": "predictions", "case": f"{runtime}, widths {kind}", "measure": "error, %"}
        off = tuple(100 * abs(each) for each in several)
        figures += [
            Figure(contender="off at most", values=off, role="ours", **common),
            Figure(contender="our aim", values=(ALLOWED,), role="aim", **common),
        ]
    return figures


def trained_network(epochs: int) -> tuple[nn.Module, Data]:
    """Return a CNN for digits and its data."""
    data = load_data("digits")
    with isolated(0):
        model = Enlarged()
    train(model, data, TrainConfig(epochs=epochs, batch_size=64, learning_rate=0.002, seed=0))
    return model.eval(), data


def ratio(model: nn.Module, cut: nn.Module, x: Tensor, runtime: Runtime, threads: int) -> tuple[float, float]:
    """Return the milliseconds of the whole network, and the share of them that a cut one takes: medians."""
    calls = [network_call(copied(each), x, runtime=runtime, threads=threads) for each in (model, cut)]
    pairs = [time_together(calls, threads=threads) for _ in range(REPEATS)]
    shares = sorted(after / before for before, after in pairs)
    return min(before for before, _ in pairs), shares[len(shares) // 2]


def cut_to(model: nn.Module, data: Data, budget: Budget) -> nn.Module:
    """Return the network that keeps a budget, with unlabelled training inputs alone."""
    return resize(model, data, Distinctiveness(), budget=budget, latency=False).model


def find_half(model: nn.Module, data: Data, runtime: Runtime, threads: int) -> list[Figure]:
    """Resize to half of the latency, and measure."""
    x = data.train.x[:1]  # type: ignore[union-attr]
    whole, _ = ratio(model, model, x, runtime, threads)
    cut = cut_to(model, data, Budget(latency_ms=whole / 2, runtime=runtime, threads=threads))
    again, share = ratio(model, cut, x, runtime, threads)
    before, after = (measure(each, data, latency=False) for each in (model, cut))
    common: dict[str, Any] = {"table": "half", "case": runtime}
    return [
        Figure(contender="whole", measure="milliseconds", values=(again,), **common),
        Figure(contender="whole", measure="accuracy, %", values=(100 * before.accuracy,), **common),
        Figure(contender="cut", measure="share of latency", values=(share,), **common),
        Figure(contender="cut", measure="accuracy, %", values=(100 * after.accuracy,), **common),
    ]


def find_arithmetic(model: nn.Module, data: Data, runtime: Runtime, threads: int) -> list[Figure]:
    """Compare budgets of milliseconds with budgets of multiply-accumulates."""
    x = data.train.x[:1]  # type: ignore[union-attr]
    whole, _ = ratio(model, model, x, runtime, threads)
    macs, figures = measure(model, data, latency=False).macs, list[Figure]()
    for share in SHARES:
        latency = Budget(latency_ms=share * whole, runtime=runtime, threads=threads)
        for name, budget in (("latency", latency), ("MACs", Budget(macs=int(share * macs)))):
            cut = cut_to(model, data, budget)
            _, found = ratio(model, cut, x, runtime, threads)
            after = measure(cut, data, latency=False)
            common: dict[str, Any] = {
                "table": "arithmetic",
                "case": f"{runtime}, {share:.0%}",
                "contender": f"within a share of {name}",
            }
            figures += [
                Figure(measure="share of latency", values=(found,), **common),
                Figure(measure="accuracy, %", values=(100 * after.accuracy,), **common),
                Figure(measure="log loss", values=(after.log_loss or 0.0,), **common),
            ]
    return figures


def with_others(figures: list[Figure]) -> Sheet:
    """Return figures with those of other runtimes and parts; what was transcribed is not mixed with them."""
    known = read_results(Sheet, "latency")
    known = None if known is None or known.transcribed else known
    measured = {(each.table, each.case.partition(",")[0]) for each in figures}
    kept = [] if known is None else known.figures
    others = [each for each in kept if (each.table, each.case.partition(",")[0]) not in measured]
    now = stamp("python -m benchmarks.latency", ["onnxruntime"], known)
    return Sheet(**now, figures=(*others, *figures))


def main() -> None:
    """Measure the parts that are asked for, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="predictions, half, arithmetic; all unless given")
    parser.add_argument("--runtime", choices=("torch", "onnx", "onnx-int8"), default="torch")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--out", type=Path, help="in the place of benchmarks/results/latency.json")
    asked = parser.parse_args()
    figures: list[Figure] = []
    parts = asked.parts or ["predictions", "half", "arithmetic"]
    with torch_threads(asked.threads):
        if "predictions" in parts:
            figures += find_predictions(asked.runtime, asked.threads)
        if {"half", "arithmetic"} & set(parts):
            model, data = trained_network(asked.epochs)
            for name, find in (("half", find_half), ("arithmetic", find_arithmetic)):
                if name in parts:
                    figures += find(model, data, asked.runtime, asked.threads)
    print(write_results("latency", with_others(figures), asked.out))


if __name__ == "__main__":
    main()
