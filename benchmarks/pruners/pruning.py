"""The pruners: ours, and torch-pruning by four importances, each layer by the same share or all by one ranking."""

from collections.abc import Callable
from copy import deepcopy
from functools import partial
from itertools import product
from typing import Any, Literal

import torch
import torch_pruning
from torch import nn

from benchmarks.compensating.methods import has_batch_norms, recalibrated
from benchmarks.compensating.problem import Problem
from benchmarks.compensating.rival import gather_gradients
from topiarist import surgery
from topiarist.randomness import isolated
from topiarist.surgery.choice.choosing import cut_to_widths

OURS, SCRATCH = "ours", "trained from scratch"
Importance = Literal["L1", "L2", "Taylor", "random"]
Scope = Literal["uniform", "global"]
HIDDEN = "hidden units alone"  # of a network with a residual stream, which stays as wide as it is
HALVINGS = 12  # of the interval of ratios: to a thousandth of the units
MOST = 0.95  # of a layer's units may go by a global ranking, which would empty layers otherwise
Pruner = Callable[[Problem, int, tuple[str, ...]], nn.Module]


def count_parameters(model: nn.Module) -> int:
    """Return how many parameters a network has."""
    return sum(parameter.numel() for parameter in model.parameters())


def prune_ours(problem: Problem, parameters: int, stream: tuple[str, ...]) -> nn.Module:
    """Allot widths, choose, refit and settle without labels, all as it is by default; nothing is said of a stream."""
    known: dict[str, Any] = {"calibration": problem.calibration, "anatomy": problem.anatomy}
    widths = surgery.allot_widths(problem.model, problem.example, **known, parameters=parameters)
    return cut_to_widths(problem.model, problem.example, keep=widths, **known).model


def prune_rival(
    importance: Importance, scope: Scope, kept: bool, problem: Problem, parameters: int, stream: tuple[str, ...]
) -> nn.Module:
    """Return the largest network within a budget that torch-pruning makes; batch norms are measured anew.

    Its ratio is found by halving the interval; what it makes of a ratio is taken as it is. Where the stream is `kept`,
    the layers that write it, by the ends of their names, are left as wide as they are.
    """
    low, high, found = 0.0, 1.0, None
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        try:
            cut = _pruned(problem, importance, scope, middle, stream if kept else ())
            fits = count_parameters(cut) <= parameters
        except Exception:  # a ratio at which it fails is one too many
            high = middle
            continue
        if fits:
            high, found = middle, cut
        else:
            low = middle
    if found is None:
        raise ValueError(f"no ratio gives {parameters:,} parameters or fewer, and runs")
    return recalibrated(found, problem) if has_batch_norms(found) else found


def _pruned(
    problem: Problem, importance: Importance, scope: Scope, ratio: float, ignored: tuple[str, ...]
) -> nn.Module:
    model = deepcopy(problem.model)
    if importance == "Taylor":
        gather_gradients(model, problem)
    heads = {model.get_submodule(path): count for path, count in problem.heads.items()}
    last = [layer for layer in model.modules() if isinstance(layer, nn.Linear)][-1]
    written = [layer for path, layer in model.named_modules() if path.endswith(ignored)] if ignored else []
    with isolated(problem.seed):  # random importances are drawn from torch's own generator
        torch_pruning.pruner.BasePruner(
            model,
            problem.example,
            _importance(importance),
            pruning_ratio=ratio,
            max_pruning_ratio=MOST if scope == "global" else 1.0,
            global_pruning=scope == "global",
            ignored_layers=[last, *written],
            num_heads=heads,
            prune_num_heads=bool(heads),
            prune_head_dims=False,  # forward parts heads by their size, which torch-pruning does not rewrite
            head_pruning_ratio=ratio,
        ).step()
    model.zero_grad(set_to_none=True)
    with torch.no_grad():
        if model.eval()(problem.example).shape != (len(problem.example), last.out_features):
            raise ValueError("the outputs changed their shape")
    return model


def _importance(name: Importance) -> object:
    made = {
        "L1": partial(torch_pruning.importance.GroupMagnitudeImportance, p=1),
        "L2": partial(torch_pruning.importance.GroupMagnitudeImportance, p=2),
        "Taylor": torch_pruning.importance.GroupTaylorImportance,
        "random": torch_pruning.importance.RandomImportance,
    }
    return made[name]()


IMPORTANCES: tuple[Importance, ...] = ("L1", "L2", "Taylor", "random")
SCOPES: tuple[Scope, ...] = ("uniform", "global")
FEWER: tuple[Importance, ...] = ("L1", "Taylor")  # where a stream is kept: the costly networks are trained so often
PRUNERS: dict[str, Pruner] = {
    OURS: prune_ours,
    **{
        f"torch-pruning, {importance}, {scope}": partial(prune_rival, importance, scope, False)
        for importance, scope in product(IMPORTANCES, SCOPES)
    },
}
STREAM_KEPT: dict[str, Pruner] = {
    f"torch-pruning, {importance}, {scope}, {HIDDEN}": partial(prune_rival, importance, scope, True)
    for importance, scope in product(FEWER, SCOPES)
}


def pruners_for(stream: tuple[str, ...]) -> dict[str, Pruner]:
    """Return the pruners by name; where there is a residual stream, also such that leave it as wide as it is."""
    return {**PRUNERS, **(STREAM_KEPT if stream else {})}
