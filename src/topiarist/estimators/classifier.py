"""A scikit-learn classifier that finds the size of its network by itself."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy
import pandas
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from topiarist.data import Source
from topiarist.estimators.fitting import RightSizedEstimator, WeighedSamples, has_columns, names_of_columns, weighed
from topiarist.measurement import Budget
from topiarist.rightsizing import DEFAULT_EFFORT
from topiarist.rightsizing.baseline import Model
from topiarist.rightsizing.planning import EffortName
from topiarist.statistics import Metric
from topiarist.statistics.metrics.labels import THRESHOLD
from topiarist.training.tables.config import TableTeacherName


class RightSizedClassifier(ClassifierMixin, RightSizedEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The smallest network that is proven not to be worse than a well-trained one, as a scikit-learn classifier.

    No test part is set aside: `validation_fraction` of the samples are there to choose by, and folds judge. Numbers may
    be missing. What columns of text hold is decided as in a file: numbers, dates, yes and no, categories. Gaps are
    filled and marked; text that was not seen before is no category.

    Several labels, each there or not, are a matrix of 0 and 1 (n_samples, n_labels), as for `MLPClassifier`: `predict`
    returns such a matrix and `predict_proba` the probability of each label.

    Parameters
    ----------
    budget, max_drop, metric, methods, effort, model, teacher
        As in `rightsize`.
    class_weight : dict, list of dicts (one per label), "balanced" or None
        How much samples of each class count, times their `sample_weight`: in losses, metrics and tests.
    random_state : int, RandomState or None
        As scikit-learn means it: an int gives the same network each time, None another one each time.
    validation_fraction : float
        Share of the samples that networks are chosen by.
    n_jobs : int or None
        Threads for torch; −1 is one per core. None leaves torch alone. Networks below a million parameters take one.
    device : str or None
        Where networks are trained and answer, such as "cuda"; None is the CPU, or where the given network lies.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        Of several labels, their numbers.
    model_, baseline_ : nn.Module
        The network, and the one that it was made of.
    preprocessing_ : Preprocessing
        What turns samples into the network's inputs.
    report_ : RightsizingRecord or None
        The record; None where a class has too few samples to judge by: then a warning says so, and the baseline stays.
    status_ : {"proven", "unproven", "unchanged", "no better than guessing"}
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
        metric: str | Metric | None = None,
        methods: Sequence[str] | None = None,
        effort: EffortName = DEFAULT_EFFORT,
        model: Model | None = None,
        teacher: TableTeacherName | None = None,
        class_weight: Mapping[Any, float] | Sequence[Mapping[int, float]] | Literal["balanced"] | None = None,
        random_state: int | numpy.random.RandomState | None = None,
        validation_fraction: float = 0.15,
        n_jobs: int | None = None,
        device: str | None = None,
    ) -> None:
        super().__init__(
            budget=budget,
            max_drop=max_drop,
            metric=metric,
            methods=methods,
            effort=effort,
            model=model,
            teacher=teacher,
            random_state=random_state,
            validation_fraction=validation_fraction,
            n_jobs=n_jobs,
            device=device,
        )
        self.class_weight = class_weight

    def __sklearn_tags__(self) -> Any:
        """Declare to scikit-learn that there may be several labels."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def fit(
        self,
        X: ArrayLike | pandas.DataFrame,  # noqa: N803
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Find the network for samples (n_samples, n_features) and their labels (n_samples,), of any type.

        Several labels are 0 and 1 (n_samples, n_labels). `sample_weight` (n_samples,) says how much each sample counts:
        in losses, metrics and tests.
        """
        self._several = has_columns(y)
        features, targets = self._training_samples(X, y, multi_output=self._several)
        found = weighed(features, targets.toarray() if hasattr(targets, "toarray") else targets, sample_weight)
        check_classification_targets(found.targets)
        if self.class_weight is not None:
            of_classes = compute_sample_weight(self.class_weight, found.targets)
            found = replace(found, weights=of_classes if found.weights is None else found.weights * of_classes)
        self._fit_source(self._labelled(found, y) if self._several else self._classified(found))
        return self

    def _classified(self, found: WeighedSamples) -> Source:
        """Return samples of one class each."""
        self.classes_, numbers = numpy.unique(found.targets, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(f"there must be 2 classes or more to tell apart; found one class, {self.classes_[0]!r}")
        names = tuple(str(label) for label in self.classes_.tolist())
        known = numpy.array(names)[numbers]
        return Source(name="X", features=found.features, labels=known, classes=names, weights=found.weights)

    def _labelled(self, found: WeighedSamples, y: Any) -> Source:
        """Return samples with several labels each."""
        targets = found.targets
        if type_of_target(targets) != "multilabel-indicator":
            raise ValueError("y must be one class for each sample, or 0 and 1 for each of several labels")
        count = targets.shape[1]
        names, self.classes_ = names_of_columns(y, count), numpy.arange(count)
        if not numpy.ptp(targets, axis=0).any():
            raise ValueError("each label is always the same: there is nothing to learn")
        labels, weights = targets.astype(float), found.weights
        return Source(name="X", features=found.features, labels=labels, weights=weights, task="labels", targets=names)

    def predict(self, X: ArrayLike | pandas.DataFrame) -> NDArray[Any]:  # noqa: N803
        """Return the class of each sample (n_samples,), of the type that `fit` was given; of several labels 0 and 1."""
        found = self.predict_proba(X)
        if self._several:
            return (found > THRESHOLD).astype(int)
        labels: NDArray[Any] = self.classes_[found.argmax(axis=1)]
        return labels

    def predict_proba(self, X: ArrayLike | pandas.DataFrame) -> NDArray[numpy.float64]:  # noqa: N803
        """Return the probability of each class, or of each label (n_samples, n_classes), in the order of `classes_`."""
        return self._answers(X)
