"""What surgery costs and what it brings, on one core: a small CNN, and a network of the size of ResNet-18.

The small one: copy, trace, cut half the units of every space. The large one (11 M parameters): find the anatomy, remove
half of all units, then compare time and bytes before and after. Times are the best of several rounds, before and after
in turn. torch-pruning does the same cut beside ours, and proves nothing: ours is timed without its proof and with it.
After that, what takes long to follow or to prove: a recurrent layer over 1,000 steps, wide layers, many layers and deep
attention.
"""

import argparse
import tempfile
import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path

import torch
import torch_pruning
from torch import Tensor, nn

from tests.networks import ResNet18
from topiarist import anatomy, save, surgery
from topiarist.randomness import generator, isolated

Job = Callable[[], object]


def small_network() -> nn.Sequential:
    """Make three convolutions with batch norm and two linear layers."""
    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 16, 64), nn.ReLU(), nn.Linear(64, 10)).eval()


def every_other(model: nn.Module, example: Tensor) -> dict[str, range]:
    """Name half the units of every free space."""
    return {name: range(0, space.size - 1, 2) for name, space in anatomy(model, example).free.items()}


def by_torch_pruning(model: nn.Module, example: Tensor) -> nn.Module:
    """Copy a network and cut half of its units with torch-pruning."""
    copy = deepcopy(model)
    linear = [layer for layer in copy.modules() if isinstance(layer, nn.Linear)]
    importance = torch_pruning.importance.GroupMagnitudeImportance(p=2)
    torch_pruning.pruner.BasePruner(copy, example, importance, pruning_ratio=0.5, ignored_layers=linear[-1:]).step()
    return copy


def best(jobs: dict[str, Job], rounds: int) -> dict[str, float]:
    """Return the shortest time of each job in milliseconds; they take turns."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(rounds):
        for name, job in jobs.items():
            start = time.perf_counter()
            job()
            times[name].append(1000 * (time.perf_counter() - start))
    return {name: min(found) for name, found in times.items()}


def cuts(model: nn.Module, example: Tensor, units: dict[str, range]) -> dict[str, Job]:
    """Return the cuts that are compared."""
    return {
        "ours: copy, trace, cut": lambda: surgery.remove(model, example, units=units, proof=False),
        "ours: copy, trace, cut, proof": lambda: surgery.remove(model, example, units=units),
        "torch-pruning: copy, trace, cut": lambda: by_torch_pruning(model, example),
    }


class Recurrent(nn.Module):
    """A linear layer that reads the last state of an LSTM."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = nn.LSTM(8, 16, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        """Return scores for sequences."""
        scores: Tensor = self.head(self.memory(x)[0][:, -1])
        return scores


class Attention(nn.Module):
    """Self-attention of eight heads and a wider layer, around each of which the input is added."""

    def __init__(self, width: int = 256, heads: int = 8) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.queries, self.keys, self.values, self.out = (nn.Linear(width, width) for _ in range(4))
        self.wider = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return tokens that have seen each other."""
        batch, tokens, width = x.shape
        parts = (layer(self.norm(x)) for layer in (self.queries, self.keys, self.values))
        heads = (part.view(batch, tokens, self.heads, width // self.heads).transpose(1, 2) for part in parts)
        seen = nn.functional.scaled_dot_product_attention(*heads)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, tokens, width))
        given: Tensor = x + self.wider(x)
        return given


def demanding() -> dict[str, tuple[nn.Module, tuple[int, ...]]]:
    """Make networks that take long to follow or to prove, with the shapes of their inputs."""
    wide = nn.Sequential(nn.Linear(784, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10))
    chain = nn.Sequential(*(layer for _ in range(500) for layer in (nn.Linear(8, 8), nn.ReLU())))
    attention = nn.Sequential(nn.Linear(64, 256), *(Attention() for _ in range(8)), nn.Linear(256, 3))
    return {
        "LSTM over 1,000 steps": (Recurrent(), (2, 1000, 8)),
        "MLP 784-4096-4096-10": (wide, (2, 784)),
        "1,000 modules in a chain": (chain, (2, 8)),
        "attention of depth 8": (attention, (2, 6, 64)),
    }


def show(title: str, times: dict[str, float]) -> None:
    """Print times."""
    print(f"\n{title}")
    for name, milliseconds in times.items():
        print(f"  {name:44} {milliseconds:10.2f} ms")


def main() -> None:
    """Measure both networks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore")  # torch-pruning's
    torch.set_num_threads(1)
    with isolated(0):
        small, large = small_network(), ResNet18().float().eval()
    example = torch.rand(2, 3, 32, 32, generator=generator(0, "example"))
    units = every_other(small, example)
    show("small CNN, half the units of 4 spaces", best(cuts(small, example, units), rounds))

    units = every_other(large, example)
    half = surgery.remove(large, example, units=units)
    jobs: dict[str, Job] = {"ours: anatomy": lambda: anatomy(large, example), **cuts(large, example, units)}
    count = sum(parameter.numel() for parameter in large.parameters())
    show(f"ResNet-18-sized network, {count:,} parameters, half of all units", best(jobs, max(rounds // 4, 1)))
    with isolated(0):
        networks = demanding()
    for name, (model, shape) in networks.items():
        batch = torch.rand(shape, generator=generator(0, name))
        chosen = every_other(model.eval(), batch)
        ours = cuts(model, batch, chosen)
        del ours["torch-pruning: copy, trace, cut"]
        timed: dict[str, Job] = {"ours: anatomy": partial(anatomy, model, batch), **ours}
        show(name, best(timed, max(rounds // 4, 1)))
    image = torch.rand(1, 3, 64, 64, generator=generator(0, "image"))
    with torch.no_grad():
        times = best({"before": lambda: large(image), "after": lambda: half(image)}, rounds)
    show("latency of one 64x64 image", times)
    with tempfile.TemporaryDirectory() as folder:
        sizes = [save(model, Path(folder) / "model.safetensors").stat().st_size for model in (large, half)]
    print(f"\n{times['before'] / times['after']:.2f} times as fast, {sizes[1] / sizes[0]:.1%} of the bytes")


if __name__ == "__main__":
    main()
