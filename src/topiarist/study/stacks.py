"""Which cells one worker takes together: it follows from the declared grid and the data alone.

Floating-point sums depend on what is computed together, so a stack is never made of what happens to be left to do.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from torch import nn

from topiarist.data import Data
from topiarist.errors import DataError, TopiaristError
from topiarist.files import canonical_json
from topiarist.measurement.cost import count_macs
from topiarist.models.evaluation import count_parameters
from topiarist.models.stacked import stackable
from topiarist.study.declaration import Cell, Declaration
from topiarist.study.job import CellStack, first_of_each_training, network_for, train_config
from topiarist.study.samples import StudySamples
from topiarist.training import monte_carlo, reuse
from topiarist.training.inference import first_sample
from topiarist.training.preparation import check_trainable

STACKED_NUMBERS = 150_000  # parameters of a stack: beyond, the caches are too small and stacking no longer pays
HELD_NUMBERS = 2**28  # of the training samples of a stack


STEP_SECONDS = {True: 4e-5, False: 4e-4}  # of one network in a stack or alone, whatever its size
MACS_A_SECOND, PARAMETERS_A_SECOND = 1e10, 1e8


@dataclass(frozen=True)
class StackShape:
    """How many trainings run as one, and about how many seconds each takes; only the order of sizes matters."""

    together: int
    seconds: float


def stacks_of(study: Declaration, samples: StudySamples) -> list[CellStack]:
    """Return the stacks, those that take longest first, after a trial of every configuration's data and network."""
    groups: dict[str, list[Cell]] = {}
    for cell in study.cells:
        groups.setdefault(stack_key(cell), []).append(cell)
    found: list[tuple[float, list[Cell]]] = []
    for cells in groups.values():
        trainings = first_of_each_training(cells)
        shape = shape_of(trainings[0], samples, most=study.stack)
        for cell in first_of_each_configuration(cells)[1:]:
            try_out(cell, samples)
        for piece in pieces(trainings, shape.together):
            keys = {cell.training_key for cell in piece}
            members = [cell for cell in cells if cell.training_key in keys]
            found.append((len(piece) * shape.seconds, members))
    found.sort(key=lambda costed: -costed[0])
    return [
        CellStack(number=number, cells=tuple(cells), cost=cost, keep_models=study.models)
        for number, (cost, cells) in enumerate(found)
    ]


def stack_key(cell: Cell) -> str:
    """What trainings that run as one have in common: all but seed, fold, learning rate and what comes afterwards."""
    settings = cell.settings.model_dump(mode="json", exclude={"method", "prediction", "training"})
    return canonical_json([settings, cell.settings.training.model_dump(mode="json", exclude={"learning_rate"})])


def first_of_each_configuration(cells: Sequence[Cell]) -> list[Cell]:
    """Return one cell per configuration."""
    return list({cell.label: cell for cell in reversed(cells)}.values())[::-1]


def shape_of(cell: Cell, samples: StudySamples, *, most: int) -> StackShape:
    """Return how many networks are trained as one, from a look at one network and one fold."""
    data, model = try_out(cell, samples)
    training, base = cell.settings.training, cell.settings.base
    parameters, count, together = count_parameters(model), len(data.train), 1
    alone = bool(training.phases) and base is None
    if stackable(model) and not alone:
        held = count * math.prod(data.input_shape)
        together = max(1, min(most, max(4, STACKED_NUMBERS // parameters), HELD_NUMBERS // held))
    per_epoch = math.ceil(count / training.batch_size)
    phased = sum(phase.epochs for phase in training.phases) * per_epoch
    steps = max(1, phased or training.total_steps(per_epoch))
    if base is not None:
        steps += base.epochs * math.ceil((base.samples or count) / training.batch_size)
    forward_and_back = 3 * count_macs(model, first_sample(data.train)) * min(training.batch_size, count)
    arithmetic = forward_and_back / MACS_A_SECOND + parameters / PARAMETERS_A_SECOND
    return StackShape(together, steps * (STEP_SECONDS[together > 1] + arithmetic))


def try_out(cell: Cell, samples: StudySamples) -> tuple[Data, nn.Module]:
    """Make the data and the network of a cell, to see that they go together; an error names the configuration."""
    settings, base = cell.settings, cell.settings.base
    try:
        data = samples.of(cell)
        if not len(data.test):
            raise DataError("there is no test part to judge by: give it a fraction of the data above 0")
        if settings.method.method is not None:
            settings.method.method.check_data(data)
        built = data if base is None else samples.of_base(cell, base)
        model = network_for(settings, built, cell.training_seed)
        check_trainable(model, built, train_config(cell))
        if settings.prediction.monte_carlo is not None:
            monte_carlo(model, first_sample(built.train), passes=2)
        if base is not None:
            model = reuse(model, classes=data.task.outputs, drop=base.drop, add=base.add)
            check_trainable(model, data, train_config(cell))
    except TopiaristError as error:
        raise TopiaristError(f"configuration '{cell.label}': {error}") from error
    return data, model


def pieces(cells: Sequence[Cell], most: int) -> list[list[Cell]]:
    """Cut into as few pieces as can be, of nearly the same length."""
    count = math.ceil(len(cells) / most)
    bounds = [round(number * len(cells) / count) for number in range(count + 1)]
    return [list(cells[first:last]) for first, last in pairwise(bounds)]
