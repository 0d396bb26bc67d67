"""One network that answers as a teacher does: to the rows of a table, and to mixed ones between them."""

from dataclasses import replace

import torch
from torch import nn

from topiarist.data import Data, Part
from topiarist.models.table_networks import tabular
from topiarist.randomness import child_seed, generator
from topiarist.training.config import Distillation, TrainConfig
from topiarist.training.fitting import train
from topiarist.training.tables.config import TabularConfig
from topiarist.training.tables.folds import training_part
from topiarist.training.tables.members import batch_size_for
from topiarist.training.tables.mixing import mixed_samples
from topiarist.training.tables.teachers import TableTeacher

LEARNING_RATE = 0.01  # benchmarks/README.md: as good as 0.03, and a little better than 0.003
ACTIVATION = "silu"  # benchmarks/README.md: smooth, it comes nearer to a blend than ReLU does
WEIGHT_DECAY = 0.01  # that of AdamW in torch
SMALLEST_BATCH = 128  # as good as 64 for as many samples, and faster


def distil(data: Data, teacher: TableTeacher, config: TabularConfig) -> nn.Module:
    """Return a network that learned what a teacher answers, and nothing else.

    The teacher answers to the rows of the table and to mixed samples, of which there are the more the smaller the table
    is. All but one of its models per setting have seen a row, so that its answer there knows the target.
    """
    lesson = lesson_of(training_part(data), config)
    lent = replace(
        data, train=lesson, validation=replace(lesson, samples=lesson.samples[:0], y=lesson.y[:0], weights=None)
    )
    outputs, random = data.task.outputs, generator(config.seed, "student")
    student = tabular(data.input_shape[0], outputs, hidden=config.hidden, activation=ACTIVATION, generator=random)
    epochs, seed = config.epochs_of(len(lesson), config.network_samples), child_seed(config.seed, "student") % 2**32
    train(
        student,
        lent,
        student_training(len(lesson), epochs, seed, config.device),
        teacher=teacher.outputs(lesson.samples),
    )
    return student


def lesson_of(part: Part, config: TabularConfig) -> Part:
    """Return the rows of a table, then mixed samples that fill it up; each weighs what the row it began as does."""
    count = config.filled_to - len(part)
    if count <= 0:
        return part
    mixed, rows = mixed_samples(part.x, count, seed=config.seed)
    weights = None if part.weights is None else torch.cat([part.weights, part.weights[rows]])
    return Part(torch.cat([part.x, mixed]), torch.cat([part.y, part.y[rows]]), weights=weights)


def student_training(rows: int, epochs: int, seed: int, device: str | None = None) -> TrainConfig:
    """Return how a network learns from answers to so many samples, and from nothing else."""
    return TrainConfig(
        epochs=epochs,
        batch_size=max(SMALLEST_BATCH, batch_size_for(rows)),
        learning_rate=LEARNING_RATE,
        schedule="cosine",
        optimizer="adamw",
        weight_decay=WEIGHT_DECAY,
        distillation=Distillation(weight=1.0, temperature=1.0),
        threads=1,
        device=device,
        seed=seed,
    )
