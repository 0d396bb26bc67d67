"""Single weights that become zero: ours, pruned while training, beside `torch.nn.utils.prune`; digits, the same epochs.

    python -m benchmarks.unstructured [--seeds 5] [--epochs 20]

The networks of `benchmarks.refit` (64-128-64-10, He's initial weights, trained for 60 epochs). torch's module makes the
smallest weights zero at once, the same share of each layer or by one ranking of all, as its tutorial does, and the rest
is trained on; ours makes them zero step by step in the same training, when and by which ranking `Magnitude` does by
default, and in the middle half of it. Optimizer, rate, schedule and epochs are the same for all; no choice sees the
test samples.
"""

import argparse
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import torch
from torch import nn
from torch.nn.utils import prune

from benchmarks.distinctiveness import task_of
from benchmarks.paging.records import Figure, Role, Sheet
from benchmarks.paging.writing import stamp, write_results
from benchmarks.refit import Trained, train_networks
from topiarist import TrainConfig, train
from topiarist.methods import Magnitude
from topiarist.randomness import child_seed
from topiarist.training import Pruning

SPARSITIES = (0.8, 0.9, 0.95, 0.98)
OURS = "ours, as by default"
Pruned = Callable[[Trained, float, TrainConfig], nn.Module]


def layers_of(model: nn.Module) -> list[nn.Module]:
    """Return the layers whose weights are pruned."""
    return [layer for layer in model.modules() if isinstance(layer, nn.Linear)]


def by_torch(trained: Trained, sparsity: float, config: TrainConfig, *, ranked: bool) -> nn.Module:
    """Make weights zero at once with torch's module, train on, and make it permanent."""
    model = deepcopy(trained.model)
    layers = layers_of(model)
    if ranked:
        pairs = [(layer, "weight") for layer in layers]
        prune.global_unstructured(pairs, pruning_method=prune.L1Unstructured, amount=sparsity)
    else:
        for layer in layers:
            prune.l1_unstructured(layer, "weight", amount=sparsity)  # type: ignore[no-untyped-call]
    train(model, task_of(trained), config)
    for layer in layers:
        prune.remove(layer, "weight")  # type: ignore[no-untyped-call]
    return model


def by_ours(trained: Trained, sparsity: float, config: TrainConfig, *, pruning: Pruning | None = None) -> nn.Module:
    """Prune while training: as `Magnitude` does by default, or as is said."""
    model = deepcopy(trained.model)
    usual = Magnitude(sparsity=sparsity).pruning_for(None)
    train(model, task_of(trained), config.changed(pruning=pruning or usual))
    return model


PRUNERS: dict[str, tuple[Pruned, Role]] = {
    "`torch.nn.utils.prune`, each layer": (lambda *given: by_torch(*given, ranked=False), "rival"),
    "`torch.nn.utils.prune`, global": (lambda *given: by_torch(*given, ranked=True), "rival"),
    "ours, in the middle, each layer": (lambda *given: by_ours(*given, pruning=Pruning(sparsity=given[1])), "variant"),
    "ours, in the middle, global": (
        lambda *given: by_ours(*given, pruning=Pruning(sparsity=given[1], scope="global")),
        "variant",
    ),
    OURS: (by_ours, "ours"),
}


def zeros_of(model: nn.Module) -> float:
    """Return the share of weights that are zero, in per cent."""
    weights = torch.cat([layer.get_parameter("weight").detach().flatten() for layer in layers_of(model)])
    return 100 * float((weights == 0).double().mean())


def main() -> None:
    """Prune every network in every way, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    networks = train_networks(asked.seeds, "He")
    whole = tuple(trained.accuracy(trained.model) for trained in networks)
    figures = [Figure(table="whole", case="whole", contender="whole", measure="accuracy, %", values=whole)]
    for sparsity in SPARSITIES:
        for name, (pruned, role) in PRUNERS.items():
            made = [pruned(trained, sparsity, config_of(trained.seed, asked.epochs)) for trained in networks]
            accuracies = tuple(trained.accuracy(model) for trained, model in zip(networks, made, strict=True))
            zeros = tuple(map(zeros_of, made))
            common: dict[str, Any] = {"case": f"{sparsity:.0%} zero", "contender": name, "role": role}
            figures += [
                Figure(measure="accuracy, %", values=accuracies, **common),
                Figure(measure="zeros, %", values=zeros, **common),
            ]
            print(common["case"], name, f"{sum(accuracies) / len(made):.2f}", f"{zeros[0]:.2f}", flush=True)
    command = f"python -m benchmarks.unstructured --seeds {asked.seeds} --epochs {asked.epochs}"
    print(write_results("unstructured", Sheet(**stamp(command), figures=tuple(figures))))


def config_of(seed: int, epochs: int) -> TrainConfig:
    """Return how all are trained on: as fine-tuning is by default, for more epochs."""
    own = child_seed(seed, "unstructured") % 2**32
    return TrainConfig(epochs=epochs, learning_rate=0.002, batch_size=32, schedule="cosine", seed=own)


if __name__ == "__main__":
    main()
