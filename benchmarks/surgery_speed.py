"""What surgery costs and what it brings, on one core: a small CNN, and a network of the size of ResNet-18.

The small one: copy, trace, cut half the units of every space. The large one (11 M parameters): find the anatomy, remove
half of all units, then compare time and bytes before and after. Times are the processor's, rounds in turn.
torch-pruning does the same cut beside ours, and proves nothing: ours is timed without its proof and with it. After
that, what takes long to follow or to prove: a recurrent layer over 1,000 steps, wide layers, many layers and deep
attention.
"""

import argparse
import tempfile
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from pathlib import Path

import torch
import torch_pruning
from torch import Tensor, nn

from benchmarks.paging.records import Figure, Role, Sheet
from benchmarks.paging.timing import in_turn, milliseconds
from benchmarks.paging.writing import stamp, write_results
from tests.networks import ResNet18
from topiarist import anatomy, save, surgery
from topiarist.randomness import generator, isolated

Job = Callable[[], object]
RIVAL = "torch-pruning"
ROLES: dict[str, Role] = {"ours": "ours", "ours, with proof": "variant", RIVAL: "rival"}


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


def cuts(model: nn.Module, example: Tensor, units: dict[str, range]) -> dict[str, Job]:
    """Return the cuts that are compared."""
    return {
        "ours": lambda: surgery.remove(model, example, units=units, proof=False),
        "ours, with proof": lambda: surgery.remove(model, example, units=units),
        RIVAL: lambda: by_torch_pruning(model, example),
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


def timed(case: str, jobs: dict[str, Job], rounds: int) -> list[Figure]:
    """Return the milliseconds of each job, round by round."""
    figures = []
    for name, seconds in in_turn(jobs, rounds).items():
        print(f"{case}: {name}: {1000 * min(seconds):.2f} ms", flush=True)
        role = ROLES.get(name, "")
        values = milliseconds(seconds)
        figures.append(
            Figure(table="cuts", case=case, contender=name, measure="milliseconds", values=values, role=role)
        )
    return figures


def halved(large: nn.Module, half: nn.Module, rounds: int) -> list[Figure]:
    """Return the time of an image and the size of the file, before and after."""
    image = torch.rand(1, 3, 64, 64, generator=generator(0, "image"))
    with torch.no_grad():
        times = in_turn({"whole": lambda: large(image), "half of all units": lambda: half(image)}, rounds)
    with tempfile.TemporaryDirectory() as folder:
        sizes = [save(model, Path(folder) / "model.safetensors").stat().st_size for model in (large, half)]
    figures = []
    for (name, seconds), size in zip(times.items(), sizes, strict=True):
        common = {"table": "halved", "case": "a 64 × 64 image", "contender": name}
        figures += [
            Figure(measure="milliseconds", values=milliseconds(seconds), **common),
            Figure(measure="KB", values=(size / 1024,), **common),
        ]
    return figures


def main() -> None:
    """Measure all networks, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    warnings.simplefilter("ignore")  # torch-pruning's
    torch.set_num_threads(1)
    with isolated(0):
        small, large, networks = small_network(), ResNet18().float().eval(), demanding()
    example = torch.rand(2, 3, 32, 32, generator=generator(0, "example"))
    few = max(rounds // 4, 1)
    jobs: dict[str, Job] = {"anatomy alone": lambda: anatomy(small, example)}
    jobs |= cuts(small, example, every_other(small, example))
    figures = timed("small CNN (3 convolutions with batch norm, 2 linear layers)", jobs, rounds)
    units = every_other(large, example)
    count = sum(parameter.numel() for parameter in large.parameters())
    jobs = {"anatomy alone": lambda: anatomy(large, example), **cuts(large, example, units)}
    figures += timed(f"ResNet-18-sized network, {count / 1e6:.1f} M parameters", jobs, few)
    for name, (model, shape) in networks.items():
        batch = torch.rand(shape, generator=generator(0, name))
        jobs = {"anatomy alone": partial(anatomy, model.eval(), batch)}
        jobs |= cuts(model, batch, every_other(model, batch))
        del jobs[RIVAL]
        figures += timed(name, jobs, few)
    figures += halved(large, surgery.remove(large, example, units=units), rounds)
    command = f"python -m benchmarks.surgery_speed --rounds {rounds}"
    print(write_results("surgery_speed", Sheet(**stamp(command, ["torch-pruning"]), figures=tuple(figures))))


if __name__ == "__main__":
    main()
