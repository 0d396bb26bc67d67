"""A network as it is exported, with samples to try the export on: real ones where there are any.

The test part is compared and the training part calibrates, so that nothing is decided by the test part.
"""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from topiarist.data import AnyPart, Data, Part
from topiarist.data.columns.column import Column
from topiarist.data.source import Features, is_table, take_rows
from topiarist.data.split import Split
from topiarist.errors import DataError, ModelError
from topiarist.models import Card, card_for, card_of
from topiarist.models.copying import copied
from topiarist.models.ensemble import facts
from topiarist.models.evaluation import evaluating, placed
from topiarist.randomness import array_generator
from topiarist.storage.cells import Cells, cell_inputs, cells_of
from topiarist.storage.deployable import (
    Deployable,
    InputForm,
    Inputs,
    Preparation,
    TensorInput,
    as_inputs,
    form_of,
)
from topiarist.storage.flat import (
    Arguments,
    FlatNetwork,
    OpenAnswers,
    Several,
    arguments_of,
    first_rows,
    is_batched,
    is_several,
    single_argument,
)
from topiarist.tasks import Classification, Task
from topiarist.training.inference import part_batches, predict_logits, run_samples

if TYPE_CHECKING:
    import pandas

MOST_COMPARED, MOST_CALIBRATING, RANDOM = 1000, 512, 100  # samples: enough to see every layer, a few seconds of work
PARTS: tuple[Literal["test", "validation", "train"], ...] = ("test", "validation", "train")
RawSamples = ArrayLike | Features | Tensor | Several


@dataclass(frozen=True, kw_only=True)
class Trial:
    """`inputs` are samples as the file reads them; `logits` (n_samples, n_outputs) are what torch answers.

    Where a network reads several tensors, or returns anything else than outputs of this shape, `inputs` may be tensors
    by name, `logits` is None and `answers` are what torch returns. Torch computes in float32, after `Preprocessing`
    itself. `task` is None where nobody says what is predicted: logits of classes, then. `labels`, the targets, their
    `weights`, and `calibration`, samples to learn ranges from, are None where there are no data; `origin` says where
    the samples are from. `cells` are the samples by column, as a file may read those of a table that has more than
    numbers.
    """

    module: Deployable | FlatNetwork
    form: InputForm
    task: Task | None
    inputs: Inputs | Cells
    logits: Tensor | None
    labels: Tensor | None
    calibration: Inputs | Cells | None
    origin: str
    answers: OpenAnswers | None = None
    weights: Tensor | None = None
    columns: tuple[Column, ...] = ()
    cells: Cells | None = None

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The classes, where they are known."""
        return self.task.classes if isinstance(self.task, Classification) else None

    @property
    def known_task(self) -> Task:
        """What is predicted: without a word of it, classes of which only the number is known."""
        if self.task is not None:
            return self.task
        outputs = 0 if self.logits is None else self.logits.shape[1]
        return Classification(tuple(str(number) for number in range(outputs)))


def make_trial(model: nn.Module, data: Data | None, samples: RawSamples | None) -> Trial:
    """Copy a network in float32 and evaluation mode, and ask it for its answers; the network is left as it was.

    The samples are those given, those of the data's test part, or random numbers: raw, or as the network reads them
    where it has no preprocessing.
    """
    if is_several(samples):
        return _several(model, samples)
    card = card_of(model) if data is None else card_for(model, data)
    preprocessing, labels, weights, calibrating = card.preprocessing, None, None, None
    usable = data is not None and (data.preprocessing is None or (data.source is not None and data.split is not None))
    if data is not None and usable:
        calibrating = _drawn(data, "train", MOST_CALIBRATING)[0]
    if samples is not None:
        compared, origin = _as_features(samples), "samples given"
        calibrating = compared if calibrating is None else calibrating
    elif data is not None and usable:
        name = next(name for name in PARTS if len(getattr(data, name)))
        (compared, labels, weights), origin = _drawn(data, name, MOST_COMPARED), f"{name} part"
    else:
        compared, origin = _random_features(model, card), "random numbers"
    inputs, columns = as_inputs(compared, preprocessing), () if preprocessing is None else preprocessing.columns
    network = copied(model).cpu().float().eval().requires_grad_(False)
    read = preprocessing(compared) if preprocessing else torch.from_numpy(inputs)
    trial = Trial(
        module=Deployable(network, preprocessing, card.task).eval(),
        form=form_of(inputs, preprocessing),
        task=card.task,
        inputs=inputs,
        logits=None,
        labels=labels,
        calibration=None if calibrating is None else as_inputs(calibrating, preprocessing),
        origin=origin,
        weights=weights,
        columns=columns,
        cells=cells_of(compared, columns, inputs.dtype.type) if cell_inputs(columns) and is_table(compared) else None,
    )
    if not _gives_outputs(network, read, card.task):
        prepared = None if preprocessing is None else Preparation(preprocessing)
        return _with_answers(trial, network, single_argument(network), (read,), prepared)
    logits = predict_logits(network, read)
    if not logits.isfinite().all():
        raise ModelError("the network gives numbers that are not finite: an export cannot be compared with it")
    return replace(trial, logits=logits)


def _gives_outputs(network: nn.Module, read: Tensor, task: Task | None) -> bool:
    """Return whether a network returns outputs (n_samples, n_outputs), or one number per sample for a known task."""
    samples = first_rows(read, 2)
    with evaluating(network):
        found = run_samples(network, placed(samples, torch.empty(0)))
    if not isinstance(found, Tensor) or not found.is_floating_point() or found.ndim not in (1, 2):
        return False
    return len(found) == len(samples) and (found.ndim == 2 or task is not None)


def _several(model: nn.Module, samples: Several) -> Trial:
    """Make a trial of a network that is called with several tensors, or with tensors that are nested."""
    if card_of(model).preprocessing is not None:
        raise DataError("a network with preprocessing is exported with samples of one array or table; found several")
    network = copied(model).cpu().float().eval().requires_grad_(False)
    arguments, tensors = arguments_of(network, samples)
    inputs: Cells = {name: tensor.numpy() for name, tensor in zip(arguments.names, tensors, strict=True)}
    skipped = 1 if is_batched(tensors) else 0
    form = InputForm(
        kind="tensors",
        shape=(),
        type="",
        tensors=tuple(TensorInput(name, x.shape[skipped:], x.dtype.name) for name, x in inputs.items()),
    )
    trial = Trial(
        module=FlatNetwork(network, arguments),
        form=form,
        task=None,
        inputs=inputs,
        logits=None,
        labels=None,
        calibration=inputs,
        origin="samples given",
    )
    return _with_answers(trial, network, arguments, tensors, None)


def _with_answers(
    trial: Trial,
    network: nn.Module,
    arguments: Arguments,
    tensors: tuple[Tensor, ...],
    preparation: nn.Module | None,
) -> Trial:
    """Return a trial whose answers are whatever a network returns for some tensors."""
    plain, batched = FlatNetwork(network, arguments).eval(), is_batched(tensors)
    plain.learn_outputs(tensors, batched=batched)
    module = FlatNetwork(network, arguments, preparation).eval()
    module.outputs, module.per_sample = plain.outputs, plain.per_sample
    answers = OpenAnswers(plain, tensors, batched)
    answers.check_repeatable()
    return replace(trial, module=module, task=None, labels=None, weights=None, answers=answers)


def compared_alone(data: Data) -> Data:
    """Return data with no more samples than exports are compared on: large ones need not be in memory for it.

    What an export draws of them is what it draws of all.
    """
    if data.source is None or data.split is None or not (len(data.test) or len(data.validation)):
        return data
    most = {"train": MOST_CALIBRATING, "validation": MOST_COMPARED, "test": MOST_COMPARED}
    parts: dict[str, AnyPart] = {name: getattr(data, name) for name in most}
    places = {name: _spread(len(part), most[name]) for name, part in parts.items()}
    taken = {
        name: part.take(torch.from_numpy(places[name])) if isinstance(part, Part) else part
        for name, part in parts.items()
    }
    rows = {name: getattr(data.split, name)[places[name]] for name in most}
    kept = numpy.unique(numpy.concatenate(list(rows.values())))
    source = replace(
        data.source,
        features=take_rows(data.source.features, kept),
        labels=None,
        groups=None,
        originals=None,
        finer=None,
        parts=None,
        weights=None,
    )
    split = Split(**{name: numpy.searchsorted(kept, numbers) for name, numbers in rows.items()})
    train, validation, test = taken["train"], taken["validation"], taken["test"]
    return replace(data, source=source, split=split, train=train, validation=validation, test=test)


def _spread(count: int, most: int) -> NDArray[numpy.intp]:
    """Return the numbers of at most so many of `count` samples, evenly spread over them."""
    return numpy.linspace(0, count - 1, min(count, most)).astype(numpy.intp)


def _drawn(
    data: Data, name: Literal["test", "validation", "train"], most: int
) -> tuple[Features, Tensor, Tensor | None]:
    """Return some samples of a part, evenly spread over it, their targets and weights; the first ones of a stream."""
    part = getattr(data, name)
    if data.source is None or data.split is None or not isinstance(part, Part):
        x, y = next(part_batches(part, most))
        return x.numpy(), y, None
    chosen = _spread(len(part), most)
    rows, features = getattr(data.split, name)[chosen], data.source.features
    return take_rows(features, rows), part.y[chosen], None if part.weights is None else part.weights[chosen]


def _as_features(samples: RawSamples) -> Features:
    """Return samples as a table or an array of at least one."""
    if isinstance(samples, Tensor):
        samples = samples.detach().cpu().numpy()
    features = samples if is_table(samples) else numpy.asarray(samples)
    if features.ndim < 2 or not len(features):
        raise DataError(f"samples to compare an export on are (n_samples, …), 1 or more; found {features.shape}")
    return features


def _random_features(model: nn.Module, card: Card) -> Features:
    """Draw samples from a standard normal distribution, moved to where the training samples were scaled from."""
    random, known = array_generator(0, "samples to compare an export on"), card.preprocessing
    if known is None:
        return random.standard_normal((RANDOM, *input_shape(model, card)), dtype=numpy.float32)
    shape = (sum(block.columns for block in known.projection),) if known.projection else known.input_shape
    values = random.standard_normal((RANDOM, *shape))
    if known.shift and not known.projection:
        per_channel = (-1, *[1] * (len(shape) - 1))
        shift, scale = (numpy.array(numbers).reshape(per_channel) for numbers in (known.shift, known.scale))
        values = values / numpy.where(scale == 0, 1, scale) + shift
    return _as_table(values.reshape(RANDOM, math.prod(shape)), known.columns) if known.columns else values


def _as_table(values: NDArray[Any], columns: tuple[Column, ...]) -> "pandas.DataFrame":
    """Return a table of values (n_samples, width) whose cells are as random as the values."""
    import pandas  # noqa: PLC0415  # only tables need it

    pieces = numpy.split(values, numpy.cumsum([column.width for column in columns])[:-1], axis=1)
    cells = {column.name: _random_cells(piece, column) for column, piece in zip(columns, pieces, strict=True)}
    return pandas.DataFrame(cells, columns=[column.name for column in columns])


def _random_cells(piece: NDArray[Any], column: Column) -> NDArray[Any]:
    """Return a number, the category of which the value is largest, or a day and time."""
    if column.kind == "number":
        return piece[:, 0]
    if column.kind == "text":
        texts = numpy.array([*column.categories, None], dtype=object)
        return texts[piece[:, : len(column.categories)].argmax(axis=1)] if column.categories else texts[[0] * RANDOM]
    hours = numpy.round(24.0 * piece[:, 0]) if column.width else numpy.zeros(len(piece))
    found: NDArray[Any] = numpy.datetime64("1970-01-01T00", "s") + hours.astype("timedelta64[h]")
    return found


def input_shape(model: nn.Module, card: Card) -> tuple[int, ...]:
    """Return the shape of a sample as far as the card tells."""
    known = facts(model)
    if shape := card.input_shape or known.input_shape:
        return shape
    if known.number_of_inputs is None:
        raise ModelError("the network does not say what it reads: give data or samples to export it with")
    return (known.number_of_inputs,)
