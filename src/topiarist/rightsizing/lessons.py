"""What networks for a table learn from: its rows and mixed ones between them, with what the teacher answers to them."""

from dataclasses import dataclass, replace

from torch import Tensor

from topiarist.data import Data, Part
from topiarist.training import TabularConfig, TrainConfig
from topiarist.training.tables.distilling import lesson_of, student_training
from topiarist.training.tables.folds import training_part

FEWEST_SAMPLES = 1_100  # that an epoch counts for: 90 epochs show 100,000 samples, however few rows there are
MOST_SAMPLES = 3_000  # up to which rows are filled up with mixed ones: benchmarks/README.md, as good as 10,000
MOST_NUMBERS = 2_000_000  # of all samples together: 8 MB, so that ten folds of a wide table fit in the memory


@dataclass(frozen=True)
class TableLesson:
    """The training part of a fold, filled up with mixed samples, and its teacher's answers (n_samples, n_outputs)."""

    rows: Data
    samples: Part
    answers: Tensor

    @property
    def data(self) -> Data:
        """The data to learn from; they are validated on what they were."""
        return replace(self.rows, train=self.samples)

    @property
    def epoch(self) -> int:
        """How many samples an epoch of a plan shows."""
        return max(len(self.rows.train), FEWEST_SAMPLES)

    def training(self, epochs: int, seed: int) -> TrainConfig:
        """Return how a network learns; `epochs` of a plan are passes over the rows, or over 1,100 where they are fewer.

        Nothing is learned from targets: those of mixed samples are not known.
        """
        shown = epochs * self.epoch
        passes = max(round(shown / len(self.samples)), min(epochs, 1))
        return student_training(len(self.samples), passes, seed)


@dataclass(frozen=True)
class TeacherAnswers:
    """What the teacher of a table answers to the validation part of a fold and, if there is one, to its test part."""

    validation: Tensor
    test: Tensor | None


def samples_to_learn(data: Data, seed: int) -> Part:
    """Return the training part of a table, filled up with mixed samples."""
    filled = min(MOST_SAMPLES, MOST_NUMBERS // max(data.input_shape[0], 1))
    return lesson_of(training_part(data), TabularConfig(filled_to=filled, seed=seed))
