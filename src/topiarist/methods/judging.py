"""What a search over subsets of units needs of a network: its bits, its samples, and the fastest way to judge it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy
import torch
from pydantic import Field
from torch import Tensor, nn

from topiarist.data import Part
from topiarist.errors import DataError, ModelError
from topiarist.methods.masked import Judged, MaskedForward
from topiarist.methods.readout import Bits, Floats, Integers, Readout
from topiarist.methods.refitted import Network, Refitted
from topiarist.methods.spaces import look
from topiarist.methods.task import Limits, Task
from topiarist.models.evaluation import numbers_of, placed
from topiarist.randomness import generator
from topiarist.settings import Settings
from topiarist.surgery import Edit, Plan, RemoveUnits, apply, layers
from topiarist.surgery.calibration import watch
from topiarist.surgery.choice.allotment import LimitError
from topiarist.surgery.choice.costs import Costs
from topiarist.tracing import Anatomy, Space
from topiarist.training.inference import part_logits
from topiarist.training.metrics import accuracy

MOST_SAMPLES = 4096
WATCHED_TOGETHER = 512


class SearchSettings(Settings):
    """What searches over subsets of units have in common.

    `judged_on` are the training samples, or those held out for validation, where there are any. A search ends after
    `patience` generations without progress. `spaces` names those to cut, unless all.
    """

    judged_on: Literal["held-out", "training"] = "held-out"
    population: int = Field(default=100, ge=2)
    generations: int = Field(default=50, ge=1)
    patience: int | None = Field(default=15, ge=1)
    spaces: tuple[str, ...] | None = None

    @property
    def rounds(self) -> int:
        """One search."""
        return 1

    @property
    def stops_itself(self) -> bool:
        """A budget's limits are part of the search."""
        return False


class Evaluator(Protocol):
    """Judges networks for masks over their units."""

    def accuracy(self, networks: Integers, masks: Bits) -> Floats:
        """Give the percentage (n,) of right answers of networks, their numbers (n,) ascending, with masks (n, bits)."""
        ...


@dataclass(frozen=True)
class Subject:
    """A network whose units are bits, space after space, and the samples that it is fitted and judged on."""

    model: nn.Module
    anatomy: Anatomy
    spaces: Mapping[str, Space]
    training: Part
    judged: Part
    limits: Limits
    costs: Costs

    @property
    def bits(self) -> int:
        """Give how many units there are."""
        return sum(space.size for space in self.spaces.values())

    @property
    def samples(self) -> str:
        """Say on what it is judged."""
        return f"{len(self.judged):,} {'training' if self.judged is self.training else 'held-out'} samples"

    def by_space(self, bits: Bits) -> Iterator[tuple[str, Bits]]:
        """Give the bits (…, n_bits) of each space."""
        ends = numpy.cumsum([space.size for space in self.spaces.values()])
        yield from zip(self.spaces, numpy.split(bits, ends[:-1], axis=-1), strict=True)

    def excess(self, masks: Bits) -> Floats:
        """Give by which share of a limit each mask (n, n_bits) is above it; 0 or below is within."""
        widths = {name: bits.sum(axis=1) for name, bits in self.by_space(masks)}
        over = [getattr(self.costs, measure)(widths) / limit - 1 for measure, limit in self.limits.items()]
        return numpy.max(over, axis=0) if over else numpy.zeros(len(masks))

    def possible(self, masks: Bits) -> Bits:
        """Say which masks (n, n_bits) leave a unit in each space."""
        found: Bits = numpy.logical_and.reduce([bits.any(axis=1) for _, bits in self.by_space(masks)])
        return found

    def reader(self) -> str | None:
        """Name the last layer, where it is all that reads the units, and gives the network's answers."""
        if len(self.spaces) != 1:
            return None
        (space,) = self.spaces.values()
        if len(space.consumers) != 1 or space.consumers[0].positions.shape[1:] != (1, 1):
            return None
        name = space.consumers[0].module
        seen, module = self.anatomy.calls[name], self.model.get_submodule(name)
        last = len(seen.node.users) == 1 and next(iter(seen.node.users)).op == "output"
        whole = space.consumers[0].length == space.size
        return name if isinstance(module, nn.Linear) and seen.count == 1 and last and whole else None


def subject_of(task: Task, names: Sequence[str] | None, *, training: bool, all_samples: bool = False) -> Subject:
    """Look at a task as a search does; `training` says that it is judged on the training samples.

    Unless `all_samples` are asked for, some thousands are enough.
    """
    if task.training is None or not len(task.training):
        raise DataError("a genetic search needs labelled samples in memory")
    looked = look(task, names)
    judged = task.training if training or task.held_out is None else task.held_out
    most = None if all_samples else MOST_SAMPLES
    fitted = fewer(task.training, task.seed, most)
    return Subject(
        model=task.model,
        anatomy=looked.anatomy,
        spaces=looked.spaces,
        training=fitted,
        judged=fitted if judged is task.training else fewer(judged, task.seed, most),
        limits=task.limits,
        costs=Costs(looked.model, looked.anatomy),
    )


def judged_on_training(task: Task, judged_on: str) -> bool:
    """Say whether a search is judged on the training samples: where that is asked, or nothing is held out."""
    return judged_on == "training" or task.held_out is None or not len(task.held_out)


def removal(subject: Subject, kept: Bits, *, refit: bool) -> tuple[Edit, ...]:
    """Give the edit that leaves the units of a mask (n_bits,); none where all stay."""
    removed = {name: tuple(numpy.flatnonzero(~bits).tolist()) for name, bits in subject.by_space(kept)}
    some = {name: units for name, units in removed.items() if units}
    return (RemoveUnits(units=some, refit=refit),) if some else ()


def settle(task: Task, subject: Subject, kept: Bits, plain: float | None) -> tuple[tuple[Edit, ...], float]:
    """Give the edits that leave the units of a mask, with a refit where that does no harm, and the accuracy then.

    `plain` is the accuracy without a refit, None where there must be one; both are in per cent on the samples judged.
    """
    refitted = removal(subject, kept, refit=True)
    network = apply(Plan(refitted), task.model, task.example_input, calibration=task.calibration)
    found = 100 * accuracy(*part_logits(network, subject.judged))
    if plain is not None and found < plain:
        return removal(subject, kept, refit=False), plain
    return refitted, found


def refuse_above_limits(subject: Subject, kept: Bits) -> None:
    """Refuse the best that a search found where it is above a limit, and name what it has."""
    widths = {name: int(bits.sum()) for name, bits in subject.by_space(kept)}
    for measure, limit in subject.limits.items():
        found = getattr(subject.costs, measure)(widths)
        if found > limit:
            raise LimitError(measure, limit, found, "found")


def fewer(part: Part, seed: int, most: int | None) -> Part:
    """Give at most so many samples, drawn by the seed."""
    if most is None or len(part) <= most:
        return part
    drawn = torch.randperm(len(part), generator=generator(seed, "samples to judge"))[:most].sort().values
    return Part(part.x[drawn], part.y[drawn])


def evaluator_for(subjects: Sequence[Subject], *, refitted: bool) -> Evaluator:
    """Give the fastest evaluator that all networks allow; only units that the last layer reads can be refitted."""
    readers = [subject.reader() for subject in subjects]
    if None in readers:
        if refitted:
            names = ", ".join(subjects[0].spaces)
            raise ModelError(f"a refitted fitness is for one space, which the last layer reads: choose one of {names}")
        return MaskedForward([judged(subject) for subject in subjects])
    known = [(subject, name) for subject, name in zip(subjects, readers, strict=True) if name is not None]
    modules = [subject.model.get_submodule(name) for subject, name in known]
    weights = [layers.weight_of(module) for module in modules]
    hidden = [activations(subject.model, name, subject.judged) for subject, name in known]
    labels = [subject.judged.y for subject in subjects]
    biases = [layers.bias_of(module) for module in modules]
    if refitted:
        fitted = [activations(subject.model, name, subject.training) for subject, name in known]
        return Refitted([Network(*parts) for parts in zip(fitted, weights, biases, hidden, labels, strict=True)])
    nothing = [weight.new_zeros(len(weight)) for weight in weights]
    constants = [zero if bias is None else bias for bias, zero in zip(biases, nothing, strict=True)]
    return Readout(hidden, weights, constants, labels)


def judged(subject: Subject) -> Judged:
    """Give a network as masks are tried on it."""
    x = placed(subject.judged.x, numbers_of(subject.model))
    return Judged(subject.model, list(subject.spaces.values()), x, subject.judged.y)


def activations(model: nn.Module, path: str, part: Part) -> Tensor:
    """Give what a layer reads (n_samples, n_inputs) of a part."""
    batches = torch.split(placed(part.x, numbers_of(model)), WATCHED_TOGETHER)
    return torch.cat([taken for x in batches for taken, _ in watch(model, path, 1, (x,), {})])
