"""What a search over subsets of units needs of a network: its bits, its samples, and the fastest way to evaluate it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol

import numpy
import torch
from pydantic import Field
from torch import Tensor, nn

from topiarist.data import Part
from topiarist.errors import DataError, ModelError
from topiarist.methods.genetic.masked import MaskedForward, MaskedNetwork
from topiarist.methods.genetic.readout import Bits, Floats, Integers, Readout
from topiarist.methods.genetic.refitted import Refitted, RefittedNetwork
from topiarist.methods.job import Limits, Request
from topiarist.methods.method import Method
from topiarist.models.evaluation import numbers_of, placed
from topiarist.randomness import generator
from topiarist.surgery import Edit, Plan, RemoveUnits, apply, layers
from topiarist.surgery.calibration import watch
from topiarist.surgery.choice.allotment import LimitError
from topiarist.surgery.choice.costs import Costs
from topiarist.surgery.choice.evidence import blind_spot
from topiarist.surgery.masks import UnitMasks
from topiarist.tasks import Task
from topiarist.tracing import Anatomy, Space
from topiarist.training.inference import part_batches, part_logits

MOST_SAMPLES = 4096  # enough to tell subsets 1.5 points apart (two standard errors at 50 %)
WATCHED_TOGETHER = 512  # samples per batch: bounds the memory of activations


class SearchSettings(Method):
    """What searches over subsets of units have in common."""

    judged_on: Literal["held-out", "training"] = Field(
        default="held-out", description="Samples that fitness is computed on: validation samples where there are any."
    )
    population: int = Field(default=100, ge=2, description="Individuals of a generation.")
    generations: int = Field(default=50, ge=1, description="Number of generations at most.")
    patience: int | None = Field(default=15, ge=1, description="Stop after this many generations without progress.")
    spaces: tuple[str, ...] | None = Field(default=None, description="Cut only these spaces of units, such as hidden0.")


class Evaluator(Protocol):
    """Evaluates networks for masks over their units."""

    def accuracy(self, networks: Integers, masks: Bits) -> Floats:
        """Return the percentages (n,) of right answers of networks with ascending numbers (n,) and masks (n, bits).

        Of numbers and labels, the mean of `Task.rightness` in per cent.
        """
        ...


@dataclass(frozen=True)
class SearchProblem:
    """A network whose units are bits, space after space, and the samples that it is fitted and judged on."""

    request: Request
    anatomy: Anatomy
    training: Part
    judged: Part

    @property
    def model(self) -> nn.Module:
        """The network."""
        return self.request.model

    @property
    def spaces(self) -> Mapping[str, Space]:
        """The spaces that may be cut."""
        return self.anatomy.spaces

    @property
    def task(self) -> Task:
        """What is predicted."""
        return self.request.job.labelled("a genetic search").task

    @property
    def limits(self) -> Limits:
        """What the network may cost."""
        return self.request.limits

    @property
    def costs(self) -> Costs:
        """What the network would cost with other widths."""
        return self.request.costs

    @property
    def bits(self) -> int:
        """How many units there are."""
        return sum(space.size for space in self.spaces.values())

    @property
    def samples(self) -> str:
        """What it is judged on, in words."""
        return f"{len(self.judged):,} {'training' if self.judged is self.training else 'held-out'} samples"

    @property
    def of_samples(self) -> str:
        """What a figure is about, in words: a share of samples, or a mean over them."""
        return f"{'of' if self.task.kind == 'classes' else 'over'} {self.samples}"

    @property
    def best(self) -> str:
        """What the best network within limits is called."""
        return "most accurate within the limits" if self.task.kind == "classes" else "best within the limits"

    def shown(self, value: float) -> str:
        """Return the percentage that an evaluator gives, in words."""
        words = {"numbers": f"1 − squared error {value / 100:.3f}", "labels": f"probability of the truth {value:.1f} %"}
        return words.get(self.task.kind, f"{value:.1f} %")

    def by_space(self, bits: Bits) -> Iterator[tuple[str, Bits]]:
        """Yield the bits (…, n_bits) of each space."""
        ends = numpy.cumsum([space.size for space in self.spaces.values()])
        yield from zip(self.spaces, numpy.split(bits, ends[:-1], axis=-1), strict=True)

    def excess(self, masks: Bits) -> Floats:
        """Return by which share of a limit each mask (n, n_bits) is above it; 0 or below is within."""
        widths = {name: bits.sum(axis=1) for name, bits in self.by_space(masks)}
        over = [getattr(self.costs, measure)(widths) / limit - 1 for measure, limit in self.limits.items()]
        return numpy.max(over, axis=0) if over else numpy.zeros(len(masks))

    def possible(self, masks: Bits) -> Bits:
        """Return which masks (n, n_bits) leave a unit in each space."""
        found: Bits = numpy.logical_and.reduce([bits.any(axis=1) for _, bits in self.by_space(masks)])
        return found

    def reader(self) -> str | None:
        """Return the name of the last layer, where it alone reads the units and gives the network's answers."""
        if len(self.spaces) != 1:
            return None
        (space,) = self.spaces.values()
        if len(space.consumers) != 1 or blind_spot(space) or space.readers[0].positions.shape[1:] != (1, 1):
            return None
        name = space.readers[0].module
        seen, module = self.anatomy.calls[name], self.model.get_submodule(name)
        last = [step.kind for step in seen.step.users] == ["output"]
        whole = space.readers[0].length == space.size
        return name if isinstance(module, nn.Linear) and seen.count == 1 and last and whole else None

    def refuse_above_limits(self, kept: Bits) -> None:
        """Raise LimitError for the best that a search found where it is above a limit, with what it has."""
        widths = {name: int(bits.sum()) for name, bits in self.by_space(kept)}
        for measure, limit in self.limits.items():
            found = getattr(self.costs, measure)(widths)
            if found > limit:
                raise LimitError(measure, limit, found, "found")

    def removal(self, kept: Bits, *, refit: bool) -> tuple[Edit, ...]:
        """Return the edit that leaves the units of a mask (n_bits,); none where all stay."""
        removed = {name: tuple(numpy.flatnonzero(~bits).tolist()) for name, bits in self.by_space(kept)}
        some = {name: units for name, units in removed.items() if units}
        return (RemoveUnits(units=some, refit=refit),) if some else ()

    def resolve(self, kept: Bits, plain: float | None) -> tuple[tuple[Edit, ...], float]:
        """Return the edits that leave the units of a mask, with a refit where it does no harm, and the accuracy then.

        `plain` is the accuracy without a refit, None where there must be one; both are percentages on the samples
        judged.
        """
        job, refitted = self.request.job, self.removal(kept, refit=True)
        known = self.request.anatomy
        network = apply(
            Plan(refitted), self.model, job.example_input, calibration=job.calibration, anatomy=known, settling=0
        )
        found = 100 * self.task.rightness(*part_logits(network, self.judged)).double().mean().item()
        if plain is not None and found < plain:
            return self.removal(kept, refit=False), plain
        return refitted, found


def problem_for(
    request: Request, names: Sequence[str] | None, *, judged_on: str, all_samples: bool = False
) -> SearchProblem:
    """Return a request as a search sees it; without held-out samples, it is judged on the training samples.

    Without names, all spaces are cut whose units plain layers read, as these are hidden quickly; all others too where
    there are no such spaces, or where they alone do not reach the limits.
    Some thousands of samples are enough, unless `all_samples` are asked for.
    """
    training, held_out, seed = request.job.training, request.job.held_out, request.job.seed
    if training is None or not len(training):
        raise DataError("a genetic search needs labelled samples in memory")
    most = None if all_samples else MOST_SAMPLES
    fitted = training.draw(most, generator(seed, "samples to judge"))
    on_training = judged_on == "training" or held_out is None or not len(held_out)
    judged = fitted if on_training or held_out is None else held_out.draw(most, generator(seed, "samples to judge"))
    cuttable = request.cuttable(names)
    if names is None:
        plain = [name for name, space in cuttable.spaces.items() if blind_spot(space) is None]
        least = dict.fromkeys(plain, 1)
        enough = all(getattr(request.costs, measure)(least) <= limit for measure, limit in request.limits.items())
        cuttable = request.cuttable(plain) if plain and enough else cuttable
    return SearchProblem(request, cuttable, fitted, judged)


def evaluator_for(problems: Sequence[SearchProblem], *, refitted: bool) -> Evaluator:
    """Return the fastest evaluator that all networks allow; only units that the last layer reads can be refitted."""
    readers = [problem.reader() for problem in problems]
    if None in readers:
        if refitted:
            names = ", ".join(problems[0].spaces)
            raise ModelError(f"a refitted fitness is for one space, which the last layer reads: choose one of {names}")
        return MaskedForward([_masked(problem) for problem in problems])
    if not refitted and problems[0].task.kind != "classes":  # a readout compares classes
        return MaskedForward([_masked(problem) for problem in problems])
    known = [(problem, name) for problem, name in zip(problems, readers, strict=True) if name is not None]
    modules = [problem.model.get_submodule(name) for problem, name in known]
    weights = [layers.weight_of(module) for module in modules]
    hidden = [_activations(problem.model, name, problem.judged) for problem, name in known]
    labels = [problem.judged.y for problem in problems]
    biases = [layers.bias_of(module) for module in modules]
    if refitted:
        fitted = [_activations(problem.model, name, problem.training) for problem, name in known]
        tasks = [problem.task for problem in problems]
        parts = zip(fitted, weights, biases, hidden, labels, tasks, strict=True)
        return Refitted([RefittedNetwork(*each) for each in parts])
    zeros = [weight.new_zeros(len(weight)) for weight in weights]
    constants = [zero if bias is None else bias for bias, zero in zip(biases, zeros, strict=True)]
    return Readout(hidden, weights, constants, labels)


def _masked(problem: SearchProblem) -> MaskedNetwork:
    """Return a network whose units can be hidden."""
    x = placed(problem.judged.x, numbers_of(problem.model))
    network = MaskedNetwork(problem.model, list(problem.spaces.values()), x, problem.judged.y, problem.task)
    if all(blind_spot(space) is None for space in problem.spaces.values()):
        return network
    request = problem.request
    return replace(network, hiding=UnitMasks(problem.model, request.job.example_input, anatomy=request.anatomy))


def _activations(model: nn.Module, path: str, part: Part) -> Tensor:
    """Return what a layer reads (n_samples, n_inputs) of a part."""
    batches = (placed(x, numbers_of(model)) for x, _ in part_batches(part, WATCHED_TOGETHER))
    return torch.cat([taken for x in batches for taken, _ in watch(model, path, 1, (x,), {})])
