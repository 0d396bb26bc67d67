"""Training of the benchmark's networks on one thread: one cycle, a checkpoint after every epoch, weights kept."""

import hashlib
import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from topiarist.randomness import child_seed, generator, isolated

CLIP_NORM = 5.0  # only transformers and LSTMs come near it


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How a network is trained: the rate rises for a fifth of the steps and falls to nothing (one cycle)."""

    epochs: int
    rate: float
    batch: int = 128
    decay: float = 0.0
    momentum: bool = False  # stochastic gradient descent with Nesterov's momentum; otherwise Adam
    crop: int = 0  # pixels by which images are shifted at random, and flipped
    half: bool = False  # bfloat16 where the processor computes with it


def half_precision() -> bool:
    """Return whether the processor multiplies in bfloat16."""
    known = getattr(torch.cpu, "_is_avx512_bf16_supported", lambda: False)
    return bool(known())


def draw_crops(x: Tensor, pad: int, random: torch.Generator) -> Tensor:
    """Return images shifted by up to `pad` pixels in each direction, zeros outside, half of them flipped."""
    count, _, height, width = x.shape
    padded = functional.pad(x, (pad,) * 4)
    tops, lefts = (torch.randint(0, 2 * pad + 1, (count, 1), generator=random) for _ in range(2))
    rows, columns = tops + torch.arange(height), lefts + torch.arange(width)
    flipped = torch.rand(count, generator=random) < 0.5
    columns = torch.where(flipped[:, None], columns.flip(1), columns)
    picked = padded[torch.arange(count)[:, None, None], :, rows[:, :, None], columns[:, None, :]]
    return picked.permute(0, 3, 1, 2)


def arrange(model: nn.Module, memory_format: torch.memory_format) -> None:
    """Lay out the weights of convolutions in memory, in place."""
    for parameter in model.parameters():
        if parameter.ndim == 4:
            parameter.data = parameter.data.contiguous(memory_format=memory_format)


def make_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Return the optimizer of a recipe."""
    if recipe.momentum:
        return torch.optim.SGD(
            model.parameters(), lr=recipe.rate, momentum=0.9, nesterov=True, weight_decay=recipe.decay
        )
    return torch.optim.AdamW(model.parameters(), lr=recipe.rate, weight_decay=recipe.decay)


def train_epoch(
    model: nn.Module,
    samples: tuple[Tensor, Tensor],
    recipe: Recipe,
    advance: Callable[[], None],
    random: torch.Generator,
    teacher: nn.Module | None = None,
) -> float:
    """Train for one epoch and return the mean loss; `advance` makes the step of optimizer and schedule.

    With a teacher, half of the loss is the cross-entropy with its answers.
    """
    x, y = samples
    total = 0.0
    order = torch.randperm(len(x), generator=random)
    for start in range(0, len(x), recipe.batch):
        picked = order[start : start + recipe.batch]
        batch = x[picked]
        if recipe.crop:
            batch = draw_crops(batch, recipe.crop, random)
        with torch.autocast("cpu", torch.bfloat16, enabled=recipe.half and half_precision()):
            answers = model(batch).float()
            if teacher is not None:
                with torch.no_grad():
                    wanted = teacher(batch).float().softmax(1)
        loss = functional.cross_entropy(answers, y[picked])
        if teacher is not None:
            loss = (loss + functional.cross_entropy(answers, wanted)) / 2
        torch.autograd.backward(loss)
        advance()
        total += loss.item() * len(picked)
    return total / len(x)


def write_checkpoint(path: Path, state: dict[str, object]) -> None:
    """Write a checkpoint that is either whole or not there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(state, path.with_suffix(".part"))
    path.with_suffix(".part").replace(path)


def fit(
    model: nn.Module,
    samples: tuple[Tensor, Tensor],
    recipe: Recipe,
    seed: int,
    checkpoint: Path | None = None,
    teacher: nn.Module | None = None,
) -> nn.Module:
    """Train a network in place, resuming from its checkpoint, and return it ready to answer."""
    optimizer = make_optimizer(model, recipe)
    steps = -(-len(samples[0]) // recipe.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, recipe.rate, total_steps=recipe.epochs * steps, pct_start=0.2, cycle_momentum=False
    )
    first = 0
    if checkpoint is not None and checkpoint.exists():
        state = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        first = state["epoch"]

    def advance() -> None:
        nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()

    for epoch in range(first, recipe.epochs):
        model.train()
        with isolated(child_seed(seed, "epoch", epoch)):  # what dropout draws
            loss = train_epoch(model, samples, recipe, advance, generator(seed, "order", epoch), teacher)
        print(f"  epoch {epoch + 1} of {recipe.epochs}: loss {loss:.4f}", file=sys.stderr, flush=True)
        if checkpoint is not None:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            write_checkpoint(checkpoint, {**state, "schedule": schedule.state_dict(), "epoch": epoch + 1})
    return model.eval()


def trained(
    name: str, make: Callable[[], nn.Module], samples: tuple[Tensor, Tensor], recipe: Recipe, seed: int, cache: Path
) -> nn.Module:
    """Return a trained network, from the cache where it was trained in the same way before."""
    digest = hashlib.sha256(repr((recipe, len(samples[0]))).encode()).hexdigest()[:8]
    place = cache / f"{name}-{seed}-{digest}.pt"
    with isolated(child_seed(seed, "weights")):
        model = make()
    if place.exists():
        model.load_state_dict(torch.load(place, weights_only=True))
        return model.eval()
    print(f"training {name}, seed {seed}", file=sys.stderr, flush=True)
    unfinished = place.with_suffix(".checkpoint")
    fit(model, samples, recipe, seed, unfinished)
    write_checkpoint(place, model.state_dict())
    unfinished.unlink()
    return model


def tuned(
    model: nn.Module, taught: bool, *, teacher: nn.Module, samples: tuple[Tensor, Tensor], recipe: Recipe, seed: int
) -> nn.Module:
    """Return a copy of a cut network that was trained with labels, and if asked with the answers of the whole one."""
    return fit(deepcopy(model), samples, recipe, seed, teacher=teacher.eval() if taught else None)
