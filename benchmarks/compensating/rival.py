"""torch-pruning, asked to cut to the same widths as ours."""

from copy import deepcopy
from typing import Any, Literal

import torch
import torch_pruning
from torch import nn

from benchmarks.compensating.problem import Problem, Widths, chunks

Importance = Literal["L1", "Taylor"]
HEADS = ":heads"


def cut(problem: Problem, keep: Widths, importance: Importance) -> nn.Module:
    """Return a network that torch-pruning cut to widths; it is told which layers write them, and of heads."""
    model = deepcopy(problem.model)
    measure: Any = torch_pruning.importance.GroupMagnitudeImportance(p=1)
    if importance == "Taylor":
        gather_gradients(model, problem)
        measure = torch_pruning.importance.GroupTaylorImportance()
    ratios, head_ratio = asked_ratios(problem, model, keep)
    known = nn.Linear | nn.Conv2d | nn.LSTM
    ignored = [layer for layer in model.modules() if isinstance(layer, known) and layer not in ratios]
    heads = {model.get_submodule(path): count for path, count in problem.heads.items()}
    pruner = torch_pruning.pruner.BasePruner(
        model,
        problem.example,
        measure,
        pruning_ratio_dict=ratios,
        ignored_layers=ignored,
        num_heads=heads,
        prune_num_heads=bool(heads),
        prune_head_dims=False,
        head_pruning_ratio=head_ratio,
    )
    pruner.step()
    model.zero_grad(set_to_none=True)
    check(problem, model, keep)
    return model.eval()


def gather_gradients(model: nn.Module, problem: Problem) -> None:
    """Add up the gradients of the loss on the calibration samples, with their labels."""
    for x, y in zip(chunks(problem.calibration), chunks(problem.labels), strict=True):
        torch.autograd.backward(nn.functional.cross_entropy(model(x), y, reduction="sum") / len(problem.labels))


def asked_ratios(problem: Problem, model: nn.Module, keep: Widths) -> tuple[dict[nn.Module, float], float]:
    """Return what share goes of what each layer writes, and of the heads; half a unit is added against rounding."""
    ratios, head_ratio = {}, 0.0
    for name, width in keep.items():
        space = problem.anatomy[name]
        ratio = 1 - (width + 0.5) / space.size if width < space.size else 0.0
        if name.endswith(HEADS):
            ratio = head_ratio = 1 - width / space.size
        for place in space.producers:
            ratios[model.get_submodule(place.module)] = ratio
    return ratios, head_ratio


def check(problem: Problem, model: nn.Module, keep: Widths) -> None:
    """Raise where the rival did not cut to the widths that were asked for."""
    found = sum(parameter.numel() for parameter in model.parameters())
    asked = problem.costs.parameters(keep)
    if found != asked:
        raise ValueError(f"torch-pruning left {found:,} parameters where the same widths have {asked:,}")
