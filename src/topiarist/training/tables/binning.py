"""Gradient boosting of scikit-learn's that takes its samples some columns at a time.

It puts every number into one of 256 bins, a byte each, and looks at nothing else. For that it wants all samples in
float64 at once: eight times what it learns from, and thirty-two times what pixels take. How a column is binned depends
on no other column, so that some at a time give the same bins. What is overridden here has no public name: a version of
scikit-learn that has no such methods is given all samples.
"""

from collections.abc import Iterator
from typing import Any

import numpy
import torch
from numpy.typing import NDArray

from topiarist.data import LazySamples, Samples

HOOKS = ("_preprocess_X", "_bin_data")
ROWS = 1_024  # that are prepared at once: of 784 pixels, 3 MB
BLOCK_BYTES = 2**24  # 16 MB of columns in float64: of 100,000 rows of pixels, a pass over all for every 20 inputs

Numbers = NDArray[Any]


class SampleColumns:
    """Some rows of flat samples, of which columns are asked for: it stands where an array (n_rows, n_inputs) stands."""

    def __init__(self, samples: Samples, rows: Numbers) -> None:
        self.samples, self.rows = samples, rows
        self.shape = len(rows), samples.shape[1]

    def in_float64(self, columns: slice) -> Numbers:
        """Return some columns (n_rows, n_columns) in float64; few rows are in memory in another type meanwhile."""
        start, stop, _ = columns.indices(self.shape[1])
        found = numpy.empty((len(self.rows), stop - start))
        for first in range(0, len(self.rows), ROWS):
            rows = torch.from_numpy(self.rows[first : first + ROWS])
            found[first : first + ROWS] = self.samples[rows][:, columns].numpy()
        return found

    def held(self) -> "SampleColumns":
        """Return the same rows, read from their file once where they lie in one: all are asked for several times."""
        if not isinstance(self.samples, LazySamples) or not self.samples.in_file:
            return self
        rows = numpy.arange(len(self.rows))
        return SampleColumns(self.samples.held(torch.from_numpy(self.rows)), rows)

    def blocks(self) -> Iterator[slice]:
        """Yield slices of columns that together are all, each of BLOCK_BYTES in float64."""
        rows, inputs = self.shape
        together = max(1, BLOCK_BYTES // max(8 * rows, 1))
        yield from (slice(start, min(start + together, inputs)) for start in range(0, inputs, together))


class BinsByColumns:
    """What a learner of scikit-learn's does otherwise while it is fitted to `SampleColumns`."""

    _bin_mapper: Any

    def _preprocess_X(self, x: SampleColumns, *, reset: bool) -> Any:  # noqa: N802  # scikit-learn's name
        if not reset:
            return x
        self.is_categorical_ = self._is_categorical_remapped = self._preprocessor = None
        self.n_features_in_ = x.shape[1]
        return x, None

    def _bin_data(self, x: SampleColumns, *weights: Any, is_training_data: bool) -> Numbers:
        """Return the bin of every number, as scikit-learn lays them out: columns first to learn from, else rows."""
        x = x.held()  # until they are binned: building trees takes as much memory again
        binned = numpy.empty(x.shape, numpy.uint8, order="F" if is_training_data else "C")
        if is_training_data:
            fit_bins(self._bin_mapper, x, binned, dict(zip(["sample_weight"], weights, strict=False)))
        else:
            for block in x.blocks():
                binned[:, block] = _of_columns(self._bin_mapper, block).transform(x.in_float64(block))
        return binned


def fit_bins(mapper: Any, samples: SampleColumns, binned: Numbers, weights: dict[str, Any]) -> None:
    """Learn the bins of all columns, and write that of each number."""
    from sklearn.base import clone  # noqa: PLC0415  # takes a second to import

    fitted = []
    for block in samples.blocks():
        of_block = clone(mapper)  # with the same seed: of many rows, it draws the same
        binned[:, block] = of_block.fit_transform(samples.in_float64(block), **weights)
        fitted.append(of_block)
    mapper.missing_values_bin_idx_ = fitted[0].missing_values_bin_idx_
    mapper.bin_thresholds_ = [thresholds for each in fitted for thresholds in each.bin_thresholds_]
    mapper.is_categorical_ = numpy.zeros(samples.shape[1], dtype=numpy.uint8)
    counts = [count for each in fitted for count in each.n_bins_non_missing_]
    mapper.n_bins_non_missing_ = numpy.array(counts, dtype=numpy.uint32)


def _of_columns(mapper: Any, block: slice) -> Any:
    """Return what bins some columns as a fitted mapper bins them."""
    from sklearn.base import clone  # noqa: PLC0415  # as above

    found = clone(mapper)
    found.missing_values_bin_idx_ = mapper.missing_values_bin_idx_
    for name in ("bin_thresholds_", "is_categorical_", "n_bins_non_missing_"):
        setattr(found, name, getattr(mapper, name)[block])
    return found


def fit_by_columns(
    model: Any, samples: Samples, y: Numbers, rows: Numbers, stopping: Numbers | None, settings: dict[str, Any]
) -> Any:
    """Return a model of scikit-learn's, fitted to some rows of samples; `stopping` are those that end the fitting.

    It is what its own `fit` makes of the same rows in float64, and of scikit-learn's own class.
    """
    plain = type(model)
    model.__class__ = type(plain.__name__, (BinsByColumns, plain), {})
    try:
        apart = {} if stopping is None else {"X_val": SampleColumns(samples, stopping), "y_val": y[stopping]}
        return model.fit(SampleColumns(samples, rows), y[rows], **apart, **settings)
    finally:
        model.__class__ = plain
