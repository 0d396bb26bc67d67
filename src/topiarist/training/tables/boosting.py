"""scikit-learn's histogram gradient boosting as a teacher: cross-fitted, with outputs such as networks have.

Its answers to the rows that it was fitted on are nearly the targets themselves, and teach nothing that those do not: so
rows are answered by the model of the fold that left them out.

scikit-learn computes with float64, of which it would hold two copies of all rows: one as they came, and one parted into
rows to fit on and rows that end the fitting. Here they are parted before, as it would do it, and given to it some
columns at a time (`binning`): there is no copy but the bins. Of very many numbers, it is fitted to some of the rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any, NamedTuple

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor

from topiarist.data import Part, Samples
from topiarist.randomness import array_generator, child_seed
from topiarist.tasks import Task
from topiarist.threads import one_thread
from topiarist.training.tables.binning import HOOKS, SampleColumns, fit_by_columns
from topiarist.training.tables.folds import InnerFold
from topiarist.training.tables.teachers import CrossFitted, answers_out_of_fold

BOOSTING = "boosting"
LEAST_PROBABILITY = 1e-6  # of what was never seen: logarithms must be finite

MOST_TREES = 500  # an iteration makes a tree per class: of 19 classes, 100 iterations take longer than all else
ITERATIONS = 100  # scikit-learn's own
STOPPING_ROWS, STOPPING_SHARE = 10_000, 0.1  # its own too: of more rows, a tenth ends the fitting
# Rows, and their numbers, that are float64 at once, to be answered: more are no faster, and take 51 MB of 784 pixels.
CHUNK, CHUNK_NUMBERS = 8_192, 2**20
# Of pixels, boosting took most of the time and memory of a rightsizing. benchmarks/README.md, memory of large data:
MOST_CELLS = 2**25  # rows × inputs that are fitted to: 33 MB of bins, 42,799 rows of 784 pixels
MOST_FULL_INPUTS, FEWER_BINS = 256, 63  # open leaves hold a histogram of every input: of 784 in 255 bins, 124 MB

Numbers = NDArray[Any]


class Sides(NamedTuple):
    """The rows to fit on and those to end the fitting by, by their numbers; None where there are no such rows."""

    learned: Numbers
    stopping: Numbers | None


def cross_fit_boosting(
    folds: Sequence[InnerFold], task: Task, *, seed: int, first: "BoostedTrees | None" = None
) -> CrossFitted:
    """Return gradient boosting that was fitted on each fold; `first` is that of the first."""
    known = [] if first is None else [first]
    models = known + [fit_boosting(fold.learned(), task, seed=seed) for fold in folds[len(known) :]]
    return CrossFitted(BOOSTING, task.kind, models, answers_out_of_fold(folds, models, task))


@dataclass(frozen=True)
class BoostedTrees:
    """What answers to samples as a network does: one model for classes, one per number or label."""

    task: Task
    models: Sequence[Any]  # scikit-learn's; None stands for one that was shown a single class
    shown: Sequence[NDArray[Any]]  # the classes that each was shown

    def __call__(self, x: Samples) -> Tensor:
        """Return outputs (n_samples, n_outputs): logarithms of probabilities, logits of labels, or numbers."""
        together = min(CHUNK, max(CHUNK_NUMBERS // max(x.shape[1], 1), 1))
        found = [self._answers_to(x[at : at + together].numpy()) for at in range(0, max(len(x), 1), together)]
        return torch.cat(found)

    def _answers_to(self, samples: Numbers) -> Tensor:
        if self.task.kind == "numbers":
            return torch.from_numpy(numpy.stack([model.predict(samples) for model in self.models], axis=1))
        if self.task.kind == "classes":
            found = _probabilities(self.models[0], self.shown[0], samples, self.task.outputs)
            return torch.from_numpy(found).clamp(min=LEAST_PROBABILITY).log()
        pairs = zip(self.models, self.shown, strict=True)
        columns = [_probabilities(model, shown, samples, 2)[:, 1] for model, shown in pairs]
        return torch.from_numpy(numpy.stack(columns, axis=1)).logit(eps=LEAST_PROBABILITY)


def fit_boosting(part: Part, task: Task, *, seed: int) -> BoostedTrees:
    """Return gradient boosting that was fitted to samples: to some of them, where there are very many numbers."""
    number = child_seed(seed, "boosting") % 2**32
    chosen = _rows_to_fit(len(part), part.samples.shape[1], seed)
    if task.kind == "numbers":
        columns = list(part.y.numpy().T)
        return BoostedTrees(task, [_regressor(part, column, chosen, number) for column in columns], ())
    columns = [part.y.numpy()] if task.kind == "classes" else list(part.y.numpy().T.astype(numpy.int64))
    shown = [numpy.unique(column[chosen]) for column in columns]
    return BoostedTrees(task, [_classifier(part, column, chosen, number) for column in columns], shown)


def _rows_to_fit(rows: int, inputs: int, seed: int) -> Numbers:
    """Return the numbers of all rows, or of as many, drawn at random, as MOST_CELLS allow."""
    most = max(MOST_CELLS // max(inputs, 1), 1)
    if rows <= most:
        return numpy.arange(rows)
    drawn = array_generator(seed, "rows of boosting").choice(rows, most, replace=False)
    return numpy.sort(drawn)


def _regressor(part: Part, y: Numbers, rows: Numbers, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingRegressor  # noqa: PLC0415  # takes a second to import

    return _fitted(HistGradientBoostingRegressor, part, y, rows, seed, {})


def _classifier(part: Part, y: Numbers, rows: Numbers, seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415  # as above

    classes = len(numpy.unique(y[rows]))
    if classes < 2:
        return None
    iterations = min(ITERATIONS, MOST_TREES // classes if classes > 2 else ITERATIONS)
    return _fitted(HistGradientBoostingClassifier, part, y, rows, seed, {"max_iter": max(iterations, 1)})


def _fitted(learner: Any, part: Part, y: Numbers, rows: Numbers, seed: int, settings: dict[str, Any]) -> Any:
    """Fit a model of scikit-learn's to the samples of some rows; of many inputs, with fewer bins than its own."""
    if part.samples.shape[1] > MOST_FULL_INPUTS:
        settings = {**settings, "max_bins": FEWER_BINS}
    weights = None if part.weights is None else part.weights.numpy()
    can_stop = "X_val" in signature(learner.fit).parameters
    if not (can_stop and all(hasattr(learner, name) for name in HOOKS)):  # before scikit-learn 1.7: it parts the rows
        model = learner(random_state=seed, **settings)
        all_columns = SampleColumns(part.samples, rows).in_float64(slice(None))
        with one_thread():
            return model.fit(all_columns, y[rows], sample_weight=None if weights is None else weights[rows])
    sides = _sides(y, rows, seed, stratified=learner.__name__.endswith("Classifier"))
    model = learner(random_state=seed, early_stopping=sides.stopping is not None, **settings)
    counted: dict[str, Any] = {}
    if weights is not None:
        counted["sample_weight"] = weights[sides.learned]
        counted |= {} if sides.stopping is None else {"sample_weight_val": weights[sides.stopping]}
    with one_thread():
        return fit_by_columns(model, part.samples, y, sides.learned, sides.stopping, counted)


def _sides(y: Numbers, rows: Numbers, seed: int, *, stratified: bool) -> Sides:
    """Return the rows to fit on and those to end the fitting by, as scikit-learn's own `fit` parts them.

    A class with a single row, which it refuses, is fitted to.
    """
    from sklearn.model_selection import train_test_split  # noqa: PLC0415  # as above

    if len(rows) <= STOPPING_ROWS:
        return Sides(rows, None)
    number = numpy.random.RandomState(seed).randint(numpy.iinfo(numpy.uint32).max, dtype="u8")  # `_random_seed` of it
    dealt, single = rows, rows[:0]
    if stratified:
        _, places, counts = numpy.unique(y[rows], return_inverse=True, return_counts=True)
        alone = counts[places] == 1
        dealt, single = rows[~alone], rows[alone]
    learned, stopping = train_test_split(
        dealt, test_size=STOPPING_SHARE, random_state=number, stratify=y[dealt] if stratified else None
    )
    return Sides(numpy.concatenate([learned, single]), stopping)


def _probabilities(model: Any, shown: NDArray[Any], samples: NDArray[Any], classes: int) -> NDArray[Any]:
    """Return the probabilities of all classes; 0 for those that the model was not shown."""
    found = numpy.zeros((len(samples), classes))
    found[:, shown] = 1.0 if model is None else model.predict_proba(samples)
    return found
