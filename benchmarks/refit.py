"""What is left of a network after a cut, without any fine-tuning: ours side by side with torch-pruning, one run.

scikit-learn's digits, pixels scaled to [0, 1], 64-128-64-10 ReLU, a network for each seed. Training: 70 % of the
samples, stratified by seed; initial weights as `nn.Linear` draws them, or He's (as `models.mlp` draws them), which
learn better and are harder to cut; Adam at 0.001, batch 32, 60 epochs, cross-entropy, no decay. Cutting: the same
fraction of each hidden layer, or widths allotted freely within 928 parameters. Calibration: the training inputs,
without labels (Taylor gets the labels). No choice ever sees the test samples.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
import torch_pruning
from torch import Tensor, nn

from benchmarks.paging.records import Figure, Role, Sheet
from benchmarks.paging.writing import stamp, write_results
from topiarist import TrainConfig, load_data, models, surgery, train_many
from topiarist.data import Part
from topiarist.randomness import array_generator, generator, isolated

SIZES, FRACTIONS, BUDGET = (64, 128, 64, 10), (0.5, 0.7, 0.8, 0.9), 928
HIDDEN = {"hidden0": 128, "hidden1": 64}
OURS = "ours: best choice, refit"
INITIAL = {"torch": "initial weights of `nn.Linear`", "He": "He's initial weights"}
Keep = Mapping[str, int]
Cut = Callable[["Trained", Keep], nn.Module]


@dataclass(frozen=True)
class Trained:
    """A network with the samples that it was trained on and those that it never saw."""

    model: nn.Module
    train: Part
    test: Part
    seed: int

    @property
    def example(self) -> Tensor:
        """Return an example input."""
        return self.train.x[:2]

    def accuracy(self, model: nn.Module) -> float:
        """Return the accuracy of a network on the test samples, in per cent."""
        with torch.no_grad():
            return 100 * float((model(self.test.x).argmax(1) == self.test.y).double().mean())


def make_network(seed: int, initial: str) -> nn.Module:
    """Make a network with initial weights of one kind or the other."""
    model = models.mlp(SIZES, generator=generator(seed, "weights"))
    if initial == "torch":
        with isolated(seed):
            for layer in model.modules():
                if isinstance(layer, nn.Linear):
                    layer.reset_parameters()
    return model


def train_networks(seeds: int, initial: str) -> list[Trained]:
    """Train a network for each seed, all of them as one computation."""
    data = [
        load_data("digits", scaling="minmax", test_fraction=0.3, validation_fraction=0.0, seed=seed)
        for seed in range(seeds)
    ]
    networks = [make_network(seed, initial) for seed in range(seeds)]
    configs = [TrainConfig(epochs=60, learning_rate=0.001, batch_size=32, seed=seed) for seed in range(seeds)]
    train_many(networks, data, configs)
    trained = []
    for seed, (model, parts) in enumerate(zip(networks, data, strict=True)):
        assert isinstance(parts.train, Part)
        assert isinstance(parts.test, Part)
        trained.append(Trained(model, parts.train, parts.test, seed))
    return trained


def torch_pruning_by(importance: Any, *, gradients: bool = False) -> Cut:
    """Return a cut by torch-pruning, the same fraction of each hidden layer, to the same widths as ours."""

    def cut(trained: Trained, keep: Keep) -> nn.Module:
        model = deepcopy(trained.model)
        if gradients:
            torch.autograd.backward(nn.functional.cross_entropy(model(trained.train.x), trained.train.y))
        layers: dict[str, nn.Module] = {name: model.get_submodule(name) for name in HIDDEN}
        ratios = {layers[name]: 1 - keep[name] / size for name, size in HIDDEN.items()}
        pruner = torch_pruning.pruner.BasePruner(
            model,
            trained.example,
            importance,
            pruning_ratio_dict=ratios,
            ignored_layers=[model.get_submodule("output")],
        )
        pruner.step()
        return model

    return cut


def ours(choose: Callable[[Trained, Keep], Mapping[str, Any]], *, refit: bool = True) -> Cut:
    """Return a cut by ours, with a way to choose units."""

    def cut(trained: Trained, keep: Keep) -> nn.Module:
        calibration = trained.train.x if refit else None
        units = choose(trained, keep)
        return surgery.remove(trained.model, trained.example, units=units, calibration=calibration, settling=0)

    return cut


def chosen(strategy: surgery.Strategy) -> Callable[[Trained, Keep], Mapping[str, Any]]:
    """Choose units with `choose_units`."""
    return lambda trained, keep: surgery.choose_units(
        trained.model, trained.example, keep=keep, calibration=trained.train.x, strategy=strategy
    )


def random_units(trained: Trained, keep: Keep) -> Mapping[str, Any]:
    """Choose units at random."""
    random = array_generator(trained.seed, "random units")
    return {name: random.permutation(HIDDEN[name])[count:] for name, count in keep.items()}


def weakest_units(trained: Trained, keep: Keep) -> Mapping[str, Any]:
    """Choose the units with the smallest norm of incoming weights."""
    layers = {name: trained.model.get_submodule(name) for name in keep}
    norms = {name: layer.weight.norm(dim=1) for name, layer in layers.items() if isinstance(layer, nn.Linear)}
    return {name: norms[name].argsort(descending=True)[count:] for name, count in keep.items()}


IMPORTANCE = torch_pruning.importance
CUTS: dict[str, Cut] = {
    "torch-pruning, L1": torch_pruning_by(IMPORTANCE.GroupMagnitudeImportance(p=1)),
    "torch-pruning, L2": torch_pruning_by(IMPORTANCE.GroupMagnitudeImportance(p=2)),
    "torch-pruning, Taylor": torch_pruning_by(IMPORTANCE.GroupTaylorImportance(), gradients=True),
    "ours: best choice, no refit": ours(chosen("best"), refit=False),
    "ours: random units, refit": ours(random_units),
    "ours: smallest L2 norm, refit": ours(weakest_units),
    "ours: elimination, refit": ours(chosen("elimination")),
    "ours: matching, refit": ours(chosen("matching")),
    OURS: ours(chosen("best")),
}


def allotted(trained: Trained) -> dict[str, int]:
    """Return freely allotted widths within the budget."""
    return surgery.allot_widths(trained.model, trained.example, calibration=trained.train.x, parameters=BUDGET)


def role_of(name: str) -> Role:
    """Return what a way to cut is on the page."""
    return "ours" if name == OURS else "variant" if name.startswith("ours") else "rival"


def main() -> None:
    """Do it with both kinds of initial weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")  # torch-pruning's
    torch.set_num_threads(1)
    figures = [each for initial in INITIAL for each in compare(train_networks(seeds, initial), INITIAL[initial])]
    command = f"python -m benchmarks.refit --seeds {seeds}"
    print(write_results("refit", Sheet(**stamp(command, ["torch-pruning"]), figures=tuple(figures))))


def compare(networks: list[Trained], table: str) -> list[Figure]:
    """Cut every network in every way, and return the test accuracy that is left of each."""
    dense = tuple(trained.accuracy(trained.model) for trained in networks)
    figures = [Figure(table=table, case="whole", contender="whole", measure="accuracy, %", values=dense)]
    settings = {
        f"−{fraction:.0%}": [{name: round(size * (1 - fraction)) for name, size in HIDDEN.items()}] * len(networks)
        for fraction in FRACTIONS
    }
    settings[f"≤ {BUDGET} parameters"] = [allotted(trained) for trained in networks]
    for name, cut in CUTS.items():
        start = time.process_time()
        for case, widths in settings.items():
            left = tuple(trained.accuracy(cut(trained, keep)) for trained, keep in zip(networks, widths, strict=True))
            figures.append(
                Figure(table=table, case=case, contender=name, measure="accuracy, %", values=left, role=role_of(name))
            )
        seconds = (time.process_time() - start) / len(settings) / len(networks)
        figures.append(
            Figure(table=f"{table}: time", case="a cut", contender=name, measure="seconds", values=(seconds,))
        )
    return figures


if __name__ == "__main__":
    main()
