"""A scikit-learn classifier that finds the size of its network by itself."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any, Self

import numpy
import pandas
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data
from torch import nn

from topiarist.data import Data, Preprocessing, Source
from topiarist.data.columns.deciding import read_source_columns
from topiarist.data.source import Features
from topiarist.errors import TopiaristWarning
from topiarist.measurement import Budget
from topiarist.models import card_of
from topiarist.models.copying import copied
from topiarist.rightsizing import DEFAULT_EFFORT, FewSamplesError, RightsizingRecord, rightsize, unjudged_baseline
from topiarist.rightsizing.baseline import Model
from topiarist.rightsizing.planning import EffortName
from topiarist.training.inference import predict_logits

NUMBERS: dict[str, Any] = {"dtype": (numpy.float64, numpy.float32), "ensure_all_finite": "allow-nan"}


class RightSizedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The smallest network that is proven not to be worse than a well-trained one, as a scikit-learn classifier.

    No test part is set aside: `validation_fraction` of the samples are there to choose by, and folds judge. Numbers may
    be missing. What columns of text hold is decided as in a file: numbers, dates, yes and no, categories. Gaps are
    filled and marked; text that was not seen before is no category.

    Parameters
    ----------
    budget, max_drop, methods, effort, model
        As in `rightsize`.
    random_state : int, RandomState or None
        As scikit-learn means it: an int gives the same network each time, None another one each time.
    validation_fraction : float
        Share of the samples that networks are chosen by.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    model_, baseline_ : nn.Module
        The network, and the one that it was made of.
    preprocessing_ : Preprocessing
        What turns samples into the network's inputs.
    report_ : RightsizingRecord or None
        The record; None where a class has too few samples to judge by: then a warning says so, and the baseline stays.
    status_ : {"proven", "unproven", "unchanged"}
    sentence_ : str
        The result in a sentence.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> x, y = load_iris(return_X_y=True)
    >>> classifier = RightSizedClassifier(effort="quick", random_state=0).fit(x, y)  # doctest: +SKIP
    >>> classifier.predict(x[:1])  # doctest: +SKIP
    array([0])
    """

    def __init__(
        self,
        *,
        budget: Budget | None = None,
        max_drop: float | None = None,
        methods: Sequence[str] | None = None,
        effort: EffortName = DEFAULT_EFFORT,
        model: Model | None = None,
        random_state: int | numpy.random.RandomState | None = None,
        validation_fraction: float = 0.15,
    ) -> None:
        self.budget = budget
        self.max_drop = max_drop
        self.methods = methods
        self.effort = effort
        self.model = model
        self.random_state = random_state
        self.validation_fraction = validation_fraction

    def __sklearn_tags__(self) -> Any:
        """Declare to scikit-learn that numbers may be missing."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def fit(self, X: ArrayLike | pandas.DataFrame, y: ArrayLike) -> Self:  # noqa: N803
        """Find the network for samples (n_samples, n_features) and their labels (n_samples,), of any type."""
        if not 0 < self.validation_fraction < 1:
            raise ValueError(f"validation_fraction must lie between 0 and 1; found {self.validation_fraction}")
        features, labels = self._training_samples(X, y)
        check_classification_targets(labels)
        self.classes_, numbers = numpy.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"there must be 2 classes or more to tell apart; found one class, {self.classes_[0]!r}")
        names = tuple(str(label) for label in self.classes_.tolist())
        known = numpy.array(names)[numbers]
        source = Source(name="X", features=features, labels=known, classes=names)
        source = read_source_columns(source) if isinstance(features, pandas.DataFrame) else source
        seed = seed_of(self.random_state)
        data = Data.from_source(source, seed=seed, test_fraction=0.0, validation_fraction=self.validation_fraction)
        self.preprocessing_ = always_filling(data.preprocessing, features)
        try:
            self._rightsize(data, seed)
        except FewSamplesError as error:
            self._keep_baseline(data, seed, why=str(error))
        return self

    def predict(self, X: ArrayLike | pandas.DataFrame) -> NDArray[Any]:  # noqa: N803
        """Return the label of each sample (n_samples,), of the type that `fit` was given."""
        chosen = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[chosen]
        return labels

    def predict_proba(self, X: ArrayLike | pandas.DataFrame) -> NDArray[numpy.float64]:  # noqa: N803
        """Return the probability of each class (n_samples, n_classes), in the order of `classes_`."""
        check_is_fitted(self)
        inputs = self.preprocessing_(self._samples(X))
        logits = predict_logits(in_double_precision(self.model_), inputs)
        found: NDArray[numpy.float64] = logits.double().softmax(dim=1).numpy()
        return found

    def _rightsize(self, data: Data, seed: int) -> None:
        settings: dict[str, Any] = {"budget": self.budget, "max_drop": self.max_drop, "effort": self.effort}
        found = rightsize(data, self.model, methods=self.methods, seed=seed, **settings)
        self.model_, self.baseline_ = found.model, found.baseline
        self.report_: RightsizingRecord | None = found.record
        self.status_, self.sentence_ = found.status, found.sentence

    def _keep_baseline(self, data: Data, seed: int, *, why: str) -> None:
        chosen = data if len(data.validation) else replace(data, validation=data.train)
        warnings.warn(f"the baseline stays as it is: {why}", TopiaristWarning, stacklevel=3)
        self.model_ = unjudged_baseline(chosen, self.model, budget=self.budget, effort=self.effort, seed=seed)
        self.baseline_, self.report_, self.status_ = self.model_, None, "unchanged"
        self.sentence_ = f"The baseline stays as it is: {why}."

    def _training_samples(self, X: Any, y: Any) -> tuple[Features, NDArray[Any]]:  # noqa: N803
        """Return samples and labels that are checked."""
        if not holds_text(X):
            found: tuple[Features, NDArray[Any]] = validate_data(self, X, y, **NUMBERS)
            return found
        labels = validate_data(self, "no_validation", y)
        validate_data(self, X, skip_check_array=True)
        check_consistent_length(X, labels)
        return self._table(X), labels

    def _samples(self, X: Any) -> Features:  # noqa: N803
        """Return samples in the form that was trained on."""
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


def holds_text(samples: object) -> bool:
    """Return whether samples are a table with a column that is not of numbers or truth values."""
    if not isinstance(samples, pandas.DataFrame):
        return False
    return not all(pandas.api.types.is_numeric_dtype(kind) for kind in samples.dtypes)


def in_double_precision(model: nn.Module) -> nn.Module:
    """Return a network of ours in float64, so that no answer depends on the samples beside it; a user's as it is."""
    return model if card_of(model).spec is None else copied(model).double()


def seed_of(random_state: int | numpy.random.RandomState | None) -> int:
    """Return an integer as it is, and otherwise one drawn from the generator, numpy's global one for None."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def always_filling(found: Preprocessing | None, features: Features) -> Preprocessing:
    """Let numbers be missing later though none was missing in training."""
    assert found is not None
    if isinstance(features, pandas.DataFrame) or found.fill:
        return found
    return replace(found, fill=tuple(numpy.median(features, axis=0).tolist()))
