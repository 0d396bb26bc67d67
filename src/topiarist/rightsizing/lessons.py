"""What networks for a table learn from: its rows and mixed ones between them, with what the teacher answers to them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from torch import Tensor

from topiarist.data import Data, Part
from topiarist.training import TabularConfig, TrainConfig
from topiarist.training.tables.distilling import lesson_of, student_training
from topiarist.training.tables.folds import training_part
from topiarist.training.tables.members import batch_size_for

FEWEST_SAMPLES = 2_200  # that an epoch counts for: 90 epochs show 200,000 samples, however few rows there are
MOST_SAMPLES = 3_000  # up to which rows are filled up with mixed ones: benchmarks/README.md, as good as 10,000
MOST_NUMBERS = 2_000_000  # of all samples together: 8 MB, so that ten folds of a wide table fit in the memory
# Networks smaller than that of `train_tabular` take more and larger steps than it. Folds of twelve tables of
# benchmarks/README.md (split 500), points beside the baseline: 24-16 units −1.1 as that network learns, −0.4 so,
# −0.2 with 2,200 samples an epoch for 1,100; 12-10 units −1.3 and −0.8; 128-64 units −0.2, +0.1 and +0.1.
SMALLEST_BATCH, LEARNING_RATE, WEIGHT_DECAY = 64, 0.02, 0.03


@dataclass(frozen=True)
class LessonSize:
    """How many samples an epoch of a plan shows, and how many the largest lesson has; the same for all folds.

    These differ by some rows, and would train as several stacks if they made other numbers of passes.
    """

    epoch: int
    largest: int

    @classmethod
    def of(cls, datas: Sequence[Data], lessons: Sequence[Part]) -> "LessonSize":
        """Return that of the lessons of some folds."""
        return cls(max(FEWEST_SAMPLES, *(len(data.train) for data in datas)), max(map(len, lessons)))


@dataclass(frozen=True)
class TableLesson:
    """The training part of a fold, filled up with mixed samples, and its teacher's answers (n_samples, n_outputs)."""

    rows: Data
    samples: Part
    answers: Tensor
    size: LessonSize

    @cached_property
    def data(self) -> Data:
        """The data to learn from; they are validated on what they were."""
        return replace(self.rows, train=self.samples)

    def training(self, epochs: int, seed: int) -> TrainConfig:
        """Return how a network learns; `epochs` of a plan are passes over the rows, or over 2,200 where they are fewer.

        Nothing is learned from targets: those of mixed samples are not known.
        """
        shown = epochs * self.size.epoch
        passes = max(round(shown / self.size.largest), min(epochs, 1))
        batch_size = max(SMALLEST_BATCH, batch_size_for(self.size.largest))
        changes = {"batch_size": batch_size, "learning_rate": LEARNING_RATE, "weight_decay": WEIGHT_DECAY}
        return student_training(self.size.largest, passes, seed).model_copy(update=changes)


@dataclass(frozen=True)
class TeacherAnswers:
    """What the teacher of a table answers to the validation part of a fold and, if there is one, to its test part."""

    validation: Tensor
    test: Tensor | None


def samples_to_learn(data: Data, seed: int) -> Part:
    """Return the training part of a table, filled up with mixed samples."""
    filled = min(MOST_SAMPLES, MOST_NUMBERS // max(data.input_shape[0], 1))
    return lesson_of(training_part(data), TabularConfig(filled_to=filled, seed=seed))
