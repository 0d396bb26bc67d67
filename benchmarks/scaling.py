"""How time grows with size: exponents of processor seconds in samples, units, parameters, layers and cells.

    python -m benchmarks.scaling [names] [--out results.json]

Each experiment measures one job at four or more sizes, doubling; the exponent is the slope of the logarithms by least
squares: 1 where time is linear. The smallest size is measured once before, to load and prepare what is needed.
docs/scale.md carries the exponents on to sizes that nobody here could measure.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from benchmarks.compensating.problem import timed
from benchmarks.compensating.residual import CifarResNet
from benchmarks.compensating.speed import exponent
from benchmarks.paging.records import Measurement
from benchmarks.paging.writing import RESULTS, stamp, write_results
from topiarist import TrainConfig, anatomy, models, save, surgery, train_many
from topiarist.data import Data
from topiarist.randomness import generator, isolated
from topiarist.settings import Record
from topiarist.study.study import Study

Job = Callable[[], object]
REFIT_WIDTHS = (64, 256, 256, 10)


@dataclass(frozen=True)
class Scaling:
    """A job at several sizes: what is counted, the sizes, and what prepares a job that is timed."""

    title: str
    counted: str
    sizes: Sequence[int]
    prepare: Callable[[int], Job]


class ScalingRow(Record):
    """Processor seconds of one job at each size."""

    name: str
    title: str
    counted: str
    sizes: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def exponent(self) -> float:
        """The power of the size with which the time grows."""
        return exponent(self.sizes, self.seconds)


class ScalingResults(Measurement):
    """A run: when, on what, with which versions, and what it found."""

    rows: tuple[ScalingRow, ...] = ()


def perceptron(*sizes: int) -> nn.Module:
    """Return a perceptron with weights drawn by a fixed seed."""
    return models.mlp(sizes, generator=generator(0, "weights")).eval()


def samples(count: int, width: int = 64) -> torch.Tensor:
    """Return random samples."""
    return torch.randn(count, width, generator=generator(0, "samples"))


def find_units(width: int) -> Job:
    """Find the anatomy of two hidden layers of so many units."""
    model, x = perceptron(64, width, width, 10), samples(2)
    return lambda: anatomy(model, x)


def find_layers(blocks: int) -> Job:
    """Find the anatomy of a residual network with so many blocks in each of three stages."""
    with isolated(0):
        model = CifarResNet(blocks).eval()
    x = torch.zeros(2, 3, 32, 32)
    return lambda: anatomy(model, x)


def cut_half(width: int) -> Job:
    """Remove half of two hidden layers, with its proof."""
    model, x = perceptron(64, width, width, 10), samples(2)
    units = {name: range(width // 2) for name in ("hidden0", "hidden1")}
    return lambda: surgery.remove(model, x, units=units)


def choose_half(width: int) -> Job:
    """Choose half of the units of a layer, on four samples per unit."""
    model, x = perceptron(64, width, 10), samples(4 * width)
    return lambda: surgery.choose_units(model, x[:2], keep={"hidden0": width // 2}, calibration=x)


def refit_samples(count: int) -> Job:
    """Remove half of two layers of 256 units and refit on so many samples, without settling."""
    model, x = perceptron(*REFIT_WIDTHS), samples(count)
    units = {name: range(128) for name in ("hidden0", "hidden1")}
    return lambda: surgery.remove(model, x[:2], units=units, calibration=x, settling=0)


def train_samples(count: int) -> Job:
    """Train ten networks of 64-64-10 as one for two epochs of so many samples."""
    x = samples(count)
    y = torch.randint(0, 10, (count,), generator=generator(0, "targets"))
    data = [Data.from_arrays(x.numpy(), y.numpy(), seed=fold) for fold in range(10)]
    configs = [TrainConfig(epochs=2, seed=fold) for fold in range(10)]

    def job() -> object:
        return train_many([models.mlp((64, 64, 10)) for _ in data], data, configs)

    return job


def save_parameters(width: int) -> Job:
    """Save and close a file of about width × width parameters."""
    model = perceptron(64, width, width, 10)
    folder = tempfile.mkdtemp()
    return lambda: save(model, Path(folder) / "network.safetensors")


def run_cells(seeds: int) -> Job:
    """Run a study of 20 cells per seed, one epoch each, and read its results."""
    grid: dict[str, Any] = {"training.learning_rate": [0.1, 0.01], "model.hidden": [[4], [8]]}
    study = Study(data="iris", training={"epochs": 1}, grid=grid, folds=5, seeds=seeds)

    def job() -> object:
        with tempfile.TemporaryDirectory() as folder:
            return study.run(Path(folder) / "study")

    return job


EXPERIMENTS: Mapping[str, Scaling] = {
    "anatomy-units": Scaling("anatomy", "units of each layer", (512, 1024, 2048, 4096, 8192), find_units),
    "anatomy-layers": Scaling("anatomy of a residual network", "blocks of each stage", (2, 4, 8, 16), find_layers),
    "cut": Scaling("a cut with its proof", "units of each layer", (512, 1024, 2048, 4096), cut_half),
    "choice": Scaling("choice of half of a layer", "units", (128, 256, 512, 1024, 2048), choose_half),
    "refit": Scaling("a cut with its refit", "samples", (4_000, 8_000, 16_000, 32_000, 64_000), refit_samples),
    "training": Scaling("stacked training", "samples", (2_000, 4_000, 8_000, 16_000), train_samples),
    "files": Scaling("saving a network", "units of each layer", (512, 1024, 2048, 4096), save_parameters),
    "study": Scaling("a study", "seeds of 20 cells", (2, 4, 8, 16), run_cells),
}


def main() -> None:
    """Measure what is asked for, and print a table."""
    asked = _arguments()
    torch.set_num_threads(1)
    names = asked.names or list(EXPERIMENTS)
    known = ScalingResults.model_validate_json(asked.out.read_text()) if asked.out.exists() else ScalingResults()
    rows = {row.name: row for row in known.rows if row.name not in names}
    now = stamp("python -m benchmarks.scaling", before=known if rows else None)
    for name in names:
        rows[name] = measure(name)
        print(rows[name], rows[name].exponent, file=sys.stderr, flush=True)
        results = ScalingResults(**now, rows=tuple(rows[each] for each in EXPERIMENTS if each in rows))
        write_results("scaling", results, asked.out)
    print(write_markdown(results))


def measure(name: str) -> ScalingRow:
    """Time a job at each of its sizes, smallest first."""
    found = EXPERIMENTS[name]
    found.prepare(found.sizes[0])()
    seconds = tuple(timed(found.prepare(size))[1] for size in found.sizes)
    return ScalingRow(name=name, title=found.title, counted=found.counted, sizes=tuple(found.sizes), seconds=seconds)


def write_markdown(results: ScalingResults) -> str:
    """Return a line per job."""
    lines = ["| job | grows with | from, to | seconds | exponent |", "|---|---|---:|---:|---:|"]
    for row in results.rows:
        ends, times = (row.sizes[0], row.sizes[-1]), (row.seconds[0], row.seconds[-1])
        lines.append(
            f"| {row.title} | {row.counted} | {ends[0]:,}, {ends[1]:,} | {times[0]:.3g}, {times[1]:.3g} "
            f"| {row.exponent:.2f} |"
        )
    return "\n".join(lines)


def pieces(results: ScalingResults) -> dict[str, str]:
    """Return the table by name."""
    return {"table": write_markdown(results)}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*EXPERIMENTS, []], help=f"some of {', '.join(EXPERIMENTS)}")
    parser.add_argument("--out", type=Path, default=RESULTS / "scaling.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
