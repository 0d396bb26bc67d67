"""How long it takes to find the units of well-known networks and to cut half of them, beside torch-pruning.

Both get the same network and one image of 224 × 224 pixels, and cut half of all units in a copy, by turns; times are
the processor's. torch-pruning proves nothing; so our cut is timed without its proof, and the proof by itself. A
network of 100 million parameters shows what memory tracing takes.

    python -m benchmarks.tracing_speed [--rounds 5]

needs the extras `zoo` and `dev`.
"""

import argparse
import resource
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread

import torch
import torch_pruning
from torch import Tensor, nn

from benchmarks.paging.records import Figure, Role, Sheet
from benchmarks.paging.writing import stamp, write_results
from topiarist import Anatomy, anatomy, surgery
from topiarist.data.extras import import_extra
from topiarist.randomness import isolated
from topiarist.surgery.proving import prove

CLASSES = 10
Maker = Callable[[], nn.Module]


def published(name: str) -> Maker:
    """Return what makes a published convolutional network with random weights."""

    def make() -> nn.Module:
        provider = import_extra("pytorchcv.model_provider", what="this benchmark", extra="zoo")
        network: nn.Module = provider.get_model(name, pretrained=False, num_classes=CLASSES)
        return network

    return make


def vision_transformer(**sizes: int) -> Maker:
    """Return what makes a vision transformer, the base one by default, with random weights."""

    def make() -> nn.Module:
        transformers = import_extra("transformers", what="this benchmark", extra="zoo")
        network: nn.Module = transformers.ViTForImageClassification(transformers.ViTConfig(num_labels=CLASSES, **sizes))
        return network

    return make


NETWORKS: dict[str, Maker] = {
    "ResNet-18": published("resnet18"),
    "ResNet-50": published("resnet50"),
    "DenseNet-121": published("densenet121"),
    "EfficientNet-B0": published("efficientnet_b0"),
    "ViT-B": vision_transformer(),
}


def ours(model: nn.Module, x: Tensor) -> float:
    """Return the seconds that it takes to find the units and to cut every second one."""
    start = time.process_time()
    found = anatomy(model, x)
    surgery.remove(model, x, units=halves(found), anatomy=found, proof=False)
    return time.process_time() - start


def halves(found: Anatomy) -> dict[str, range]:
    """Name every second unit of each free space."""
    return {name: range(1, space.size, 2) for name, space in found.free.items() if space.size > 1}


def theirs(model: nn.Module, x: Tensor) -> float:
    """Return the seconds that torch-pruning takes for the same, its copy included."""
    start = time.process_time()
    copy = deepcopy(model)
    last = [layer for layer in copy.modules() if isinstance(layer, nn.Linear)][-1:]
    importance = torch_pruning.importance.MagnitudeImportance(p=2)
    settings = {"pruning_ratio": 0.5, "ignored_layers": last, "output_transform": scores_of}
    torch_pruning.pruner.BasePruner(copy, x, importance, **settings).step()
    return time.process_time() - start


def scores_of(output: object) -> Tensor:
    """Return the sum of what a network returns, which torch-pruning follows back."""
    scores = getattr(output, "logits", output)
    assert isinstance(scores, Tensor)
    return scores.sum()


def main() -> None:
    """Time all networks, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore")
    x = torch.randn(1, 3, 224, 224, generator=torch.Generator().manual_seed(0))
    figures = []
    torch.set_num_threads(1)
    for name, make in NETWORKS.items():
        with isolated(0):
            model = make().eval()
        ours(model, x), theirs(model, x)  # what is loaded or compiled at the first call
        pairs = [(ours(model, x), theirs(model, x)) for _ in range(rounds)]
        found = anatomy(model, x)
        start = time.process_time()
        prove(model, x, found, halves(found))
        proof = time.process_time() - start
        first, second = zip(*pairs, strict=True)
        rows: dict[str, tuple[tuple[float, ...], Role]] = {
            "ours": (first, "ours"),
            "torch-pruning": (second, "rival"),
            "our proof": ((proof,), ""),
        }
        for contender, (values, role) in rows.items():
            figures.append(Figure(case=name, contender=contender, measure="seconds", values=values, role=role))
        print(f"{name}: {min(first):.2f} s, torch-pruning {min(second):.2f} s, proof {proof:.1f} s", flush=True)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:  # memory that others took would hide it
        figures += fresh.submit(measure_memory, x).result()
    packages = ["torch-pruning", "pytorchcv", "transformers"]
    command = f"python -m benchmarks.tracing_speed --rounds {rounds}"
    print(write_results("tracing_speed", Sheet(**stamp(command, packages), figures=tuple(figures))))


def resident() -> int:
    """Return how many bytes of memory this process has, on Linux."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def measure_memory(x: Tensor) -> list[Figure]:
    """Return the time and the memory that the anatomy of a network of 100 million parameters takes."""
    with isolated(0):
        model = vision_transformer(num_hidden_layers=14, hidden_size=768)().eval()
    with torch.no_grad():
        model(x)
    before, most, done = resident(), [0], Event()

    def watch() -> None:
        while not done.wait(0.002):
            most[0] = max(most[0], resident())

    watcher = Thread(target=watch)
    watcher.start()
    start = time.process_time()
    anatomy(model, x)
    seconds = time.process_time() - start
    done.set()
    watcher.join()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    megabytes = (most[0] - before) / 2**20
    common = {"table": "memory", "case": f"{parameters / 1e6:.0f} million parameters", "contender": "anatomy"}
    return [
        Figure(measure="seconds", values=(seconds,), **common),
        Figure(measure="MB", values=(megabytes,), **common),
    ]


if __name__ == "__main__":
    main()
