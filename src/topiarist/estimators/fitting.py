"""What both estimators do: samples become data, a rightsizing finds the network, and answers are read from it."""

import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

import numpy
import pandas
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)
from torch import nn

from topiarist.data import Data, Preprocessing, Source
from topiarist.data.columns.deciding import read_source_columns
from topiarist.data.source import Features, RawFeatures, take_rows
from topiarist.devices import exact_device
from topiarist.errors import TopiaristWarning
from topiarist.measurement import Budget
from topiarist.models import card_of
from topiarist.models.copying import copied
from topiarist.models.evaluation import numbers_of
from topiarist.rightsizing import DEFAULT_EFFORT, FewSamplesError, RightsizingRecord, rightsize, unjudged_baseline
from topiarist.rightsizing.baseline import Model
from topiarist.rightsizing.planning import EffortName
from topiarist.statistics import Metric
from topiarist.threads import torch_threads, usable_cores
from topiarist.training.inference import predict_logits
from topiarist.training.tables.config import TableTeacherName

NUMBERS: dict[str, Any] = {"dtype": (numpy.float64, numpy.float32), "ensure_all_finite": "allow-nan"}


class RightSizedEstimator(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The parameters and the work of the estimators; what a target is, each of them says itself."""

    model_: nn.Module
    baseline_: nn.Module
    preprocessing_: Preprocessing
    report_: RightsizingRecord | None
    status_: str
    sentence_: str

    def __init__(
        self,
        *,
        budget: Budget | None = None,
        max_drop: float | None = None,
        metric: str | Metric | None = None,
        methods: Sequence[str] | None = None,
        effort: EffortName = DEFAULT_EFFORT,
        model: Model | None = None,
        teacher: TableTeacherName | None = None,
        random_state: int | numpy.random.RandomState | None = None,
        validation_fraction: float = 0.15,
        n_jobs: int | None = None,
        device: str | None = None,
    ) -> None:
        self.budget = budget
        self.max_drop = max_drop
        self.metric = metric
        self.methods = methods
        self.effort = effort
        self.model = model
        self.teacher = teacher
        self.random_state = random_state
        self.validation_fraction = validation_fraction
        self.n_jobs = n_jobs
        self.device = device

    def __sklearn_tags__(self) -> Any:
        """Declare to scikit-learn that numbers may be missing."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _fit_source(self, source: Source) -> None:
        """Find the network for raw samples and what is to be predicted of them."""
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must lie between 0 and 1; found {self.validation_fraction}")
        features = source.features
        source = read_source_columns(source) if isinstance(features, pandas.DataFrame) else source
        seed = seed_of(self.random_state)
        data = Data.from_source(source, seed=seed, test_fraction=0.0, validation_fraction=self.validation_fraction)
        self.preprocessing_ = always_filling(data.preprocessing, features)
        with self._threads():
            try:
                self._rightsize(data, seed)
            except FewSamplesError as error:
                self._keep_baseline(data, seed, why=str(error))

    def _answers(self, X: Any) -> NDArray[numpy.float64]:  # noqa: N803
        """Return what the network answers (n_samples, n_outputs): probabilities, or numbers in the units of `fit`."""
        check_is_fitted(self)
        inputs = self.preprocessing_(self._samples(X))
        task = card_of(self.model_).task
        assert task is not None
        with self._threads():
            outputs = predict_logits(in_double_precision(self.model_), inputs)
        found: NDArray[numpy.float64] = task.answers(outputs.double()).numpy()
        return found

    def _threads(self) -> AbstractContextManager[None]:
        return torch_threads(threads_of(self.n_jobs))

    def _rightsize(self, data: Data, seed: int) -> None:
        settings: dict[str, Any] = {"budget": self.budget, "max_drop": self.max_drop, "effort": self.effort}
        settings |= {"metric": self.metric, "methods": self.methods, "teacher": self.teacher}
        found = rightsize(data, self.model, seed=seed, device=self.device, brief=True, **settings)
        self.model_, self.baseline_ = found.model, found.baseline
        self.report_ = found.record
        self.status_, self.sentence_ = found.status, found.sentence

    def _keep_baseline(self, data: Data, seed: int, *, why: str) -> None:
        chosen = data if len(data.validation) else replace(data, validation=data.train)
        warnings.warn(f"the baseline stays as it is: {why}", TopiaristWarning, stacklevel=4)
        how: dict[str, Any] = {"budget": self.budget, "effort": self.effort, "seed": seed, "device": self.device}
        self.model_ = unjudged_baseline(chosen, self.model, **how)
        self.baseline_, self.report_, self.status_ = self.model_, None, "unchanged"
        self.sentence_ = f"The baseline stays as it is: {why}."

    def _training_samples(self, X: Any, y: Any, **checks: Any) -> tuple[Features, NDArray[Any]]:  # noqa: N803
        """Return samples and targets that are checked."""
        check_names(X, "X")
        check_names(y, "y")
        if not holds_text(X):
            found: tuple[Features, NDArray[Any]] = validate_data(self, X, y, **NUMBERS, **checks)
            return found
        targets = validate_data(self, "no_validation", y, **checks)
        validate_data(self, X, skip_check_array=True)
        check_consistent_length(X, targets)
        return self._table(X), targets

    def _samples(self, X: Any) -> Features:  # noqa: N803
        """Return samples in the form that was trained on."""
        check_names(X, "X")
        if not self.preprocessing_.columns:
            numbers: Features = validate_data(self, X, reset=False, **NUMBERS)
            return numbers
        validate_data(self, X, reset=False, skip_check_array=True)
        return self._table(X)

    def _table(self, X: Any) -> pandas.DataFrame:  # noqa: N803
        """Return samples as a table, its columns named as in training."""
        names = [str(name) for name in getattr(self, "feature_names_in_", range(self.n_features_in_))]
        table = X if isinstance(X, pandas.DataFrame) else pandas.DataFrame(numpy.asarray(X, dtype=object))
        return table.set_axis(names, axis=1).reset_index(drop=True)


def has_columns(y: Any) -> bool:
    """Return whether there are several targets for each sample."""
    shape = y.shape if hasattr(y, "shape") else numpy.asarray(y).shape  # sparse matrices are no arrays
    return len(shape) == 2 and shape[1] > 1


def check_names(table: object, what: str) -> None:
    """Raise where two columns of a table have one name: scikit-learn finds columns by name."""
    if not isinstance(table, pandas.DataFrame):
        return
    names = table.columns[table.columns.duplicated()].unique()
    if len(names):
        raise ValueError(f"{what} has several columns called {names[0]!r}: rename them, or leave all but one out")


def names_of_columns(y: Any, count: int) -> tuple[str, ...]:
    """Return what several targets are called: as the columns of a table are, or y0, y1, …"""
    return tuple(str(name) for name in getattr(y, "columns", ())) or tuple(f"y{number}" for number in range(count))


def threads_of(n_jobs: int | None) -> int | None:
    """Return how many threads scikit-learn's parameter asks for: −1 is one per core, −2 one fewer."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or a whole number other than 0; found {n_jobs!r}")
    return n_jobs if n_jobs is None or n_jobs > 0 else max(usable_cores() + 1 + n_jobs, 1)


@dataclass(frozen=True)
class WeighedSamples:
    """Samples that count, their targets, and how much each of them counts; None where all count the same."""

    features: Features
    targets: NDArray[Any]
    weights: NDArray[numpy.float64] | None


def weighed(features: Features, targets: NDArray[Any], weights: ArrayLike | None) -> WeighedSamples:
    """Return samples without those that weigh nothing, their weights as scikit-learn wants them checked."""
    if weights is None:
        return WeighedSamples(features, targets, None)
    like = numpy.empty((len(targets), 1))
    found = _check_sample_weight(weights, like, dtype=numpy.float64, ensure_non_negative=True)
    rows = numpy.flatnonzero(found)
    if not len(rows):
        raise ValueError("sample_weight must not be 0 for all samples")
    return WeighedSamples(take_rows(features, rows), targets[rows], found[rows])


def holds_text(samples: object) -> bool:
    """Return whether samples are a table with a column that is not of numbers or truth values."""
    if not isinstance(samples, pandas.DataFrame):
        return False
    return not all(pandas.api.types.is_numeric_dtype(kind) for kind in samples.dtypes)


def in_double_precision(model: nn.Module) -> nn.Module:
    """Return a network of ours in float64, so that no answer depends on the samples beside it; a user's as it is."""
    if card_of(model).spec is None:
        return model
    return copied(model).to(exact_device(numbers_of(model).device)).double()


def seed_of(random_state: int | numpy.random.RandomState | None) -> int:
    """Return an integer as it is, and otherwise one drawn from the generator, numpy's global one for None."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def always_filling(found: Preprocessing | None, features: RawFeatures) -> Preprocessing:
    """Let numbers be missing later though none was missing in training."""
    assert found is not None
    if isinstance(features, pandas.DataFrame) or found.fill:
        return found
    return replace(found, fill=tuple(numpy.median(features[:], axis=0).tolist()))
