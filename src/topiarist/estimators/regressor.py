"""A scikit-learn regressor that finds the size of its network by itself."""

from typing import Any, Self

import numpy
import pandas
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from topiarist.data import Source
from topiarist.errors import DataError
from topiarist.estimators.fitting import RightSizedEstimator, names_of_columns, weighed


class RightSizedRegressor(RegressorMixin, RightSizedEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The smallest network that is proven not to be worse than a well-trained one, as a scikit-learn regressor.

    It predicts one number or several. No test part is set aside: `validation_fraction` of the samples are there to
    choose by, and folds judge. Numbers may be missing among the features; columns of text are read as in a file.

    Parameters
    ----------
    budget, max_drop, metric, methods, effort, model, teacher
        As in `rightsize`: by default, the RMSE may become 2 % larger.
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
    model_, baseline_ : nn.Module
        The network, and the one that it was made of; their outputs are standardised.
    preprocessing_ : Preprocessing
        What turns samples into the network's inputs.
    report_ : RightsizingRecord or None
        The record; None where there are too few samples to judge by: then a warning says so, and the baseline stays.
    status_ : {"proven", "unproven", "unchanged", "no better than guessing"}
    sentence_ : str
        The result in a sentence.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> x, y = load_diabetes(return_X_y=True)
    >>> regressor = RightSizedRegressor(effort="quick", random_state=0).fit(x, y)  # doctest: +SKIP
    >>> regressor.score(x, y) > 0.4  # doctest: +SKIP
    True
    """

    def __sklearn_tags__(self) -> Any:
        """Declare to scikit-learn that there may be several targets."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(
        self,
        X: ArrayLike | pandas.DataFrame,  # noqa: N803
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Find the network for samples (n_samples, n_features) and numbers (n_samples,) or (n_samples, n_targets).

        `sample_weight` (n_samples,) says how much each sample counts: in losses, metrics and tests. A target that is
        always the same is refused with a ValueError.
        """
        found = weighed(*self._training_samples(X, y, multi_output=True, y_numeric=True), sample_weight)
        targets = found.targets
        if len(targets) < 2:
            raise ValueError("there must be 2 samples or more to learn from; found one sample")
        self._one_target = targets.ndim == 1
        source = Source(
            name="X",
            features=found.features,
            labels=targets,
            weights=found.weights,
            task="numbers",
            targets=("y",) if self._one_target else names_of_columns(y, targets.shape[1]),
        )
        try:
            self._fit_source(source)
        except DataError as error:
            raise ValueError(str(error)) from error
        return self

    def predict(self, X: ArrayLike | pandas.DataFrame) -> NDArray[numpy.float64]:  # noqa: N803
        """Return the number or numbers of each sample, in the shape and units that `fit` was given."""
        found = self._answers(X)
        return found[:, 0] if self._one_target else found
