"""A trained network with what it is cut by and judged by."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from torch import Tensor, nn

from topiarist import anatomy
from topiarist.surgery.choice.costs import Costs
from topiarist.tracing import Anatomy

Widths = Mapping[str, int]
Value = TypeVar("Value")
CHUNK = 500  # samples of one forward pass


@dataclass(frozen=True)
class Problem:
    """A trained network, calibration samples out of its training samples, and test samples that no choice sees.

    Labels of the calibration samples are there for rivals that need them. `tune` trains a copy of a cut network with
    labels, and returns it; if asked, with the whole network as a teacher.
    """

    name: str
    seed: int
    model: nn.Module
    calibration: Tensor
    labels: Tensor
    x_test: Tensor
    y_test: Tensor
    tune: Callable[[nn.Module, bool], nn.Module] | None = None
    heads: Mapping[str, int] = field(default_factory=dict)  # the layers of attention, for rivals that must be told

    def __post_init__(self) -> None:
        """Trace the network once."""
        object.__setattr__(self, "anatomy", anatomy(self.model, self.example))
        object.__setattr__(self, "costs", Costs(self.model, self.anatomy))

    anatomy: Anatomy = field(init=False)
    costs: Costs = field(init=False)

    @property
    def example(self) -> Tensor:
        """Return an example input."""
        return self.calibration[:2]

    def accuracy(self, model: nn.Module) -> float:
        """Return the accuracy of a network on the test samples, in per cent."""
        return 100 * float((answers(model, self.x_test).argmax(1) == self.y_test).double().mean())

    def forward_seconds(self) -> float:
        """Return the processor seconds of one forward pass of the calibration samples, the less of two."""
        return min(timed(lambda: answers(self.model, self.calibration))[1] for _ in range(2))


def answers(model: nn.Module, x: Tensor) -> Tensor:
    """Return what a network that is ready to answer makes of samples, in chunks."""
    model.eval()
    with torch.no_grad():
        return torch.cat([model(part) for part in chunks(x)])


def chunks(x: Tensor) -> Iterator[Tensor]:
    """Yield samples in chunks of one forward pass."""
    for start in range(0, len(x), CHUNK):
        yield x[start : start + CHUNK]


def timed(compute: Callable[[], Value]) -> tuple[Value, float]:
    """Return what a computation returns, and the processor seconds that it took."""
    start = time.process_time()
    found = compute()
    return found, time.process_time() - start


def uniform(found: Anatomy, fraction: float, names: Callable[[str], bool] = lambda name: True) -> dict[str, int]:
    """Return the widths of named free spaces of which a fraction stays; at least one unit of each does."""
    return {name: max(1, round(fraction * space.size)) for name, space in found.free.items() if names(name)}


def uniform_within(
    problem: Problem, names: Callable[[str], bool], *, parameters: int | None = None, macs: int | None = None
) -> dict[str, int]:
    """Return the widths of the largest share of named spaces with which the network keeps within a budget."""
    for thousandth in range(1000, 0, -1):
        widths = uniform(problem.anatomy, thousandth / 1000, names)
        fits = parameters is None or problem.costs.parameters(widths) <= parameters
        if fits and (macs is None or problem.costs.macs(widths) <= macs):
            return widths
    raise ValueError(f"no share of these spaces is within {parameters} parameters and {macs} multiply-accumulates")
