"""What is left of a network that distinctiveness cuts to a budget, at once and after five epochs; one run.

scikit-learn's digits, pixels scaled to [0, 1], 64-128-64-10 ReLU, a network for each seed: 70 % of the samples,
stratified by seed; Adam at 0.001, batch 32, 60 epochs; initial weights as `nn.Linear` draws them, or He's. Each network
is cut to the same budgets of parameters, widths allotted freely; calibration: the training inputs, without labels.
torch-pruning cuts to the same widths by L1 norm. All are fine-tuned for five epochs by Adam, batch 32, with a rate that
falls by a cosine from 0.002; ours also with the uncut network as a teacher. No choice ever sees the test samples.
"""

import argparse
import warnings
from typing import Any

import torch
import torch_pruning
from torch import nn

from benchmarks.paging.records import Figure, Role, Sheet
from benchmarks.paging.writing import stamp, write_results
from benchmarks.refit import INITIAL, Trained, torch_pruning_by, train_networks
from topiarist import Budget, Data, TrainConfig, load_data, methods, resize, train
from topiarist.randomness import child_seed

BUDGETS = (6570, 3411, 2067, 928)
ALLOWED = {"at once": (0.3, 0.5, 0.8, 4.0), "after 5 epochs": (0.1, 0.3, 0.5, 2.0)}
Row = tuple[str, str, Role]
ROWS: tuple[Row, ...] = (
    ("at once", "torch-pruning, L1", "rival"),
    ("after 5 epochs", "torch-pruning, L1", "rival"),
    ("at once", "ours", "ours"),
    ("after 5 epochs", "ours, labels alone", "variant"),
    ("after 5 epochs", "ours, distilled", "ours"),
)


def task_of(trained: Trained) -> Data:
    """Return the data that a network was trained on."""
    return load_data("digits", scaling="minmax", test_fraction=0.3, validation_fraction=0.0, seed=trained.seed)


def cut_all_ways(trained: Trained, budget: int) -> list[float]:
    """Cut a network to a budget in every way; return the accuracies left, in the order of `ROWS`."""
    data, limit = task_of(trained), Budget(parameters=budget)
    method = methods.Distinctiveness()
    plain = methods.FineTuning(distillation=None)
    at_once = resize(trained.model, data, method, budget=limit, seed=trained.seed, latency=False)
    labels = resize(trained.model, data, method, budget=limit, retraining=plain, seed=trained.seed, latency=False)
    taught = resize(
        trained.model, data, method, budget=limit, retraining=methods.FineTuning(), seed=trained.seed, latency=False
    )
    widths = {name: after for name, (_, after) in at_once.units.items()}
    rival = torch_pruning_by(torch_pruning.importance.GroupMagnitudeImportance(p=1))(trained, widths)
    before = trained.accuracy(rival)
    fine_tune(rival, data, plain, trained.seed)
    return [before, trained.accuracy(rival), *(trained.accuracy(found.model) for found in (at_once, labels, taught))]


def fine_tune(model: nn.Module, data: Data, settings: methods.FineTuning, seed: int) -> None:
    """Fine-tune a network in place as `resize` fine-tunes ours."""
    known = settings.model_dump(exclude={"kind", "distillation"})
    train(model, data, TrainConfig(**known, schedule="cosine", seed=child_seed(seed, "fine-tuning") % 2**32))


def main() -> None:
    """Do it with both kinds of initial weights."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    seeds = parser.parse_args().seeds
    warnings.simplefilter("ignore")  # torch-pruning's, and that there is no validation part
    torch.set_num_threads(1)
    figures = [each for initial in INITIAL for each in compare(train_networks(seeds, initial), INITIAL[initial])]
    command = f"python -m benchmarks.distinctiveness --seeds {seeds}"
    print(write_results("distinctiveness", Sheet(**stamp(command, ["torch-pruning"]), figures=tuple(figures))))


def compare(networks: list[Trained], initial: str) -> list[Figure]:
    """Cut every network to every budget, and return what is left and what is lost beside what was asked for."""
    dense = tuple(trained.accuracy(trained.model) for trained in networks)
    figures = [Figure(table=initial, case="whole", contender="whole", measure="accuracy, %", values=dense)]
    for place, budget in enumerate(BUDGETS):
        left = list(zip(*(cut_all_ways(trained, budget) for trained in networks), strict=True))
        for (stage, name, role), values in zip(ROWS, left, strict=True):
            common: dict[str, Any] = {"table": f"{initial}, {stage}", "case": f"≤ {budget:,} parameters"}
            lost = tuple(whole - value for whole, value in zip(dense, values, strict=True))
            figures += [
                Figure(contender=name, role=role, measure="accuracy, %", values=values, **common),
                Figure(contender=name, role=role, measure="points lost", values=lost, **common),
            ]
            if role == "ours":
                asked = ALLOWED[stage][place]
                figures.append(
                    Figure(contender="our aim", role="aim", measure="points lost", values=(asked,), **common)
                )
    return figures


if __name__ == "__main__":
    main()
