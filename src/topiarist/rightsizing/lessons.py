"""What networks for a table learn from: its rows and mixed ones between them, with what the teacher answers to them."""

from dataclasses import dataclass, replace
from functools import cached_property

from torch import Tensor

from topiarist.data import Data, Part
from topiarist.training import TabularConfig, TrainConfig
from topiarist.training.tables.distilling import lesson_of, student_training
from topiarist.training.tables.folds import training_part
from topiarist.training.tables.teachers import Answering

FEWEST_SAMPLES = 1_100  # that an epoch counts for: 90 epochs show 100,000 samples, however few rows there are
MOST_SAMPLES = 3_000  # up to which rows are filled up with mixed ones: benchmarks/README.md, as good as 10,000
MOST_NUMBERS = 2_000_000  # of all samples together: 8 MB, so that ten folds of a wide table fit in the memory


@dataclass(frozen=True)
class TableLesson:
    """The training part of a fold, filled up with mixed samples, and what answers to them."""

    rows: Data
    answer: Answering
    seed: int

    @cached_property
    def data(self) -> Data:
        """The data to learn from; they are validated on what they were."""
        return replace(self.rows, train=self._samples)

    @cached_property
    def answers(self) -> Tensor:
        """What the teacher answers to each sample (n_samples, n_outputs)."""
        return self.answer(self._samples.x)

    @cached_property
    def _samples(self) -> Part:
        filled = min(MOST_SAMPLES, MOST_NUMBERS // max(self.rows.input_shape[0], 1))
        return lesson_of(training_part(self.rows), TabularConfig(filled_to=filled, seed=self.seed))

    def training(self, epochs: int, seed: int) -> TrainConfig:
        """Return how a network learns; `epochs` of a plan are passes over the rows, or over 1,100 where they are fewer.

        Nothing is learned from targets: those of mixed samples are not known.
        """
        shown = epochs * max(len(self.rows.train), FEWEST_SAMPLES)
        passes = max(round(shown / len(self._samples)), min(epochs, 1))
        return student_training(len(self._samples), passes, seed)
