"""Batches of training samples: those found by the number of a row never pass through a `DataLoader`; datasets do."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.data import DataLoader

from topiarist.data import Data, LazySamples, Part, Samples, Stream
from topiarist.data.samples import JoinedSamples, read_once
from topiarist.models.evaluation import numbers_of, placed
from topiarist.randomness import generator
from topiarist.tasks import Task
from topiarist.training.config import TrainConfig
from topiarist.training.inference import part_targets

GATHERED_BYTES = 2**23  # of batches that are gathered at once: few indexing operations, and little memory
COPIED_BYTES = 2**24  # of samples of several parts, up to which they are copied into one tensor: rows are found faster
PREPARED_BYTES = 2**22  # of those prepared at once: larger blocks, freed and taken anew, leave gaps in the memory
# Rows in an order drawn by the seed lie all over their file, and a call for each takes longer than to learn from it. So
# an epoch reads the file once for every third of its samples, each held as it is in the file. Several members ask for
# rows in orders of their own: then for fewer steps at once, of which they ask together for no more than that.
READ_SHARE, READ_BYTES = 3, 2**25


@dataclass(frozen=True)
class Batch:
    """Samples of every member: x (n_members, n_samples, *input_shape), y (n_members, n_samples) or (…, n_outputs).

    Only the first `rows[i]` samples of member i are real. `answers` (n_members, n_samples, n_outputs) are those of
    teachers, where they are known beforehand; `weights` (n_members, n_samples) say how much samples count.
    """

    x: Tensor
    y: Tensor
    rows: tuple[int, ...]
    answers: Tensor | None = None
    weights: Tensor | None = None

    def first(self, count: int) -> "Batch":
        """Return the first samples of every member."""
        if count == self.x.shape[1]:
            return self
        answers, weights = (None if each is None else each[:, :count] for each in (self.answers, self.weights))
        return Batch(self.x[:, :count], self.y[:, :count], self.rows, answers, weights)


@dataclass(frozen=True)
class _Held:
    """Samples that were read from their file, each once; `places` (n_members, n) are those that members ask for."""

    samples: LazySamples
    places: Tensor

    def rows(self, some: slice, like: Tensor) -> Tensor:
        """Return some samples of every member, one member after the other, where the network computes."""
        return placed(self.samples[self.places[:, some].flatten()], like)


class MemoryBatches:
    """Batches of parts whose rows are gathered, one part per member, with its teacher's answers (n_samples, n_classes).

    There need be no teachers. The order of samples follows from the seed and the epoch's number alone. Networks with
    batch norm cannot learn from a batch of one sample: `smallest=2` leaves such a last batch out.

    Two members with 5 and 3 samples in batches of 2: `rows` of the three steps are (2, 2), (2, 1) and (1, 0).
    """

    def __init__(
        self,
        parts: Sequence[Part],
        seeds: Sequence[int],
        *,
        batch_size: int,
        smallest: int,
        like: Tensor,
        answers: Sequence[Tensor] = (),
    ) -> None:
        different = {(id(part.samples), id(part.y), id(part.weights)): part for part in parts}
        starts = dict(zip(different, accumulate(map(len, different.values()), initial=0), strict=False))
        self.samples = _joined([part.samples for part in different.values()], like)
        self.like = like
        y = _concatenated([part.y for part in different.values()])
        self.y = placed(y, like) if y.is_floating_point() else y.to(like.device)
        held = [part.weights for part in different.values() if part.weights is not None]
        self.weights = placed(_concatenated(held), like) if held else None
        self.members = [
            (starts[id(part.samples), id(part.y), id(part.weights)], len(part), seed)
            for part, seed in zip(parts, seeds, strict=True)
        ]
        self.answers = [placed(given, like) for given in answers]
        self.batch_size, self.smallest = min(batch_size, max(len(part) for part in parts)), smallest
        self.rows = self._plan()

    def epoch(self, number: int, first: int = 0, last: int | None = None) -> Iterator[Batch]:
        """Yield the batches of epoch 1, 2, …: all of them, or those from `first` to before `last`."""
        orders = self._orders(number)
        sample_bytes = math.prod(self.samples.shape[1:]) * self.like.dtype.itemsize
        batch_bytes = sample_bytes * self.batch_size * len(self.members)
        most = GATHERED_BYTES if isinstance(self.samples, Tensor) else PREPARED_BYTES
        together = max(1, most // max(batch_bytes, 1))
        end = len(self.rows) if last is None else min(last, len(self.rows))
        read_together = self._steps_read_at_once()
        for begin, stop in _stretches(first, end, read_together, together):
            chunk = orders[:, begin * self.batch_size : stop * self.batch_size]
            if (begin - first) % read_together == 0:
                held = None  # what was read before goes first
                held = self._read(orders[:, begin * self.batch_size : (begin + read_together) * self.batch_size])
                held_from = begin * self.batch_size
            rows = chunk.flatten().to(self.like.device)
            if held is None:
                x = self._gathered(rows)
            else:
                x = held.rows(slice(begin * self.batch_size - held_from, stop * self.batch_size - held_from), self.like)
            x = x.view(*chunk.shape, *self.samples.shape[1:])
            y = self.y.index_select(0, rows).view(*chunk.shape, *self.y.shape[1:])
            weights = None if self.weights is None else self.weights.index_select(0, rows).view(chunk.shape)
            given = x, y, self._answers_to(chunk), weights
            counted = self.rows[begin:stop]
            pieces = [
                [None] * len(counted) if each is None else torch.split(each, self.batch_size, dim=1) for each in given
            ]
            for samples, targets, answers, shares, counts in zip(*pieces, counted, strict=True):
                assert samples is not None and targets is not None
                yield Batch(samples, targets, counts, answers, shares).first(max(counts))

    def _steps_read_at_once(self) -> int:
        """Return how many steps' samples are read from a file at once; all of them where they are in memory.

        Of `share` of the steps, m members ask for 1 − (1 − share)^m of the samples.
        """
        if not (isinstance(self.samples, LazySamples) and self.samples.in_file):
            return max(1, len(self.rows))
        size = len(self.samples) * self.samples.row_bytes
        most = min(1.0, max(READ_BYTES, size // READ_SHARE) / max(size, 1))
        share: float = 1 - (1 - most) ** (1 / len(self.members))
        return max(1, math.ceil(len(self.rows) * share))

    def _read(self, orders: Tensor) -> "_Held | None":
        """Return the samples of some rows (n_members, n), held as they are in their file; None for others."""
        if isinstance(self.samples, LazySamples) and self.samples.in_file:
            rows, places = torch.unique(orders, return_inverse=True)
            return _Held(self.samples.held(rows), places)
        return None

    def _gathered(self, rows: Tensor) -> Tensor:
        """Return samples (n, *input_shape) where the network computes."""
        if isinstance(self.samples, Tensor):
            return self.samples.index_select(0, rows)
        return placed(self.samples[rows.cpu()], self.like)

    def _answers_to(self, rows: Tensor) -> Tensor | None:
        """Return what the teacher of each member answers to its rows (n_members, n) of x."""
        if not self.answers:
            return None
        starts = (start for start, _, _ in self.members)
        asked = zip(self.answers, rows, starts, strict=True)
        return torch.stack([given[(row - start).to(given.device)] for given, row, start in asked])

    def _orders(self, number: int) -> Tensor:
        """Return the rows of x in the order of this epoch (n_members, n_steps · batch_size), padded with first rows."""
        longest = max(count for _, count, _ in self.members)
        orders = torch.zeros(len(self.members), max(longest, len(self.rows) * self.batch_size), dtype=torch.int64)
        for order, (_, count, seed) in zip(orders, self.members, strict=True):
            torch.randperm(count, generator=generator(seed, "order", number), out=order[:count])
        orders += torch.tensor([[start] for start, _, _ in self.members])
        return orders[:, : len(self.rows) * self.batch_size]

    def steps(self, member: int) -> int:
        """Return how many batches of an epoch hold samples of a member."""
        count = self.members[member][1]
        return math.ceil(count / self.batch_size) - (count % self.batch_size in range(1, self.smallest))

    def continue_with(self, members: Sequence[int]) -> None:
        """Forget all other members."""
        self.members = [self.members[member] for member in members]
        self.answers = [self.answers[member] for member in members] if self.answers else []
        self.rows = self._plan()

    def _plan(self) -> list[tuple[int, ...]]:
        """Return for each step how many samples of each member it holds."""
        steps = max(self.steps(member) for member in range(len(self.members)))
        left = [[count - step * self.batch_size for _, count, _ in self.members] for step in range(steps)]
        held = [[min(self.batch_size, max(0, count)) for count in counts] for counts in left]
        return [tuple(rows if rows >= self.smallest else 0 for rows in step) for step in held]


class StreamBatches:
    """Batches of one dataset, shuffled and read by a `DataLoader`."""

    def __init__(self, stream: Stream, seed: int, *, task: Task, batch_size: int, smallest: int, like: Tensor) -> None:
        self.stream, self.seed, self.task, self.batch_size, self.like = stream, seed, task, batch_size, like
        self.drops_last = len(stream) % batch_size in range(1, smallest)

    def epoch(self, number: int, first: int = 0, last: int | None = None) -> Iterator[Batch]:
        """Yield the batches of epoch 1, 2, …, or some of them."""
        loader: DataLoader[tuple[Tensor, Tensor]] = DataLoader(
            self.stream.dataset,
            batch_size=self.batch_size,
            shuffle=True,
            drop_last=self.drops_last,
            num_workers=self.stream.workers,
            generator=generator(self.seed, "order", number),
        )
        for x, y in islice(loader, first, last):
            targets = self.task.as_targets(y)
            self.task.check_targets(targets)
            targets = placed(targets, self.like) if targets.is_floating_point() else targets.to(self.like.device)
            yield Batch(placed(x, self.like).unsqueeze(0), targets.unsqueeze(0), (len(x),))

    def steps(self, member: int) -> int:
        """Return the number of batches of an epoch."""
        return math.ceil(len(self.stream) / self.batch_size) - self.drops_last

    def continue_with(self, members: Sequence[int]) -> None:
        """Do nothing: there is one member."""


Batches = MemoryBatches | StreamBatches


def make_batches(
    models: Sequence[nn.Module],
    datas: Sequence[Data],
    configs: Sequence[TrainConfig],
    answers: Sequence[Tensor] = (),
) -> Batches:
    """Return the batches of the training parts, with what teachers answer where that is known."""
    batch_size, smallest = configs[0].batch_size, 2 if has_batch_norm(models[0]) else 1
    like, seeds = numbers_of(models[0]), [config.seed for config in configs]
    parts = [data.train for data in datas if isinstance(data.train, Part)]
    if len(parts) == len(datas):
        return MemoryBatches(parts, seeds, batch_size=batch_size, smallest=smallest, like=like, answers=answers)
    stream = datas[0].train
    assert isinstance(stream, Stream)  # only what is in memory is trained together
    return StreamBatches(stream, seeds[0], task=datas[0].task, batch_size=batch_size, smallest=smallest, like=like)


def class_weights(datas: Sequence[Data], configs: Sequence[TrainConfig], like: Tensor) -> list[Tensor] | None:
    """Return one weight per class for each training, or None where all classes count the same.

    Balanced: n_samples / (n_classes · samples of the class), as scikit-learn does it.
    """
    wanted = configs[0].class_weights
    if wanted is None:
        return None
    if isinstance(wanted, tuple):
        return [torch.tensor(wanted, dtype=like.dtype, device=like.device)] * len(datas)
    found = []
    for data in datas:
        labels = part_targets(data.train)
        counts = torch.bincount(labels, minlength=len(data.classes)).clamp(min=1)
        found.append((len(labels) / (len(data.classes) * counts)).to(like))
    return found


def has_batch_norm(model: nn.Module) -> bool:
    """Return whether a layer learns from the spread within a batch."""
    return any(isinstance(module, _BatchNorm) for module in model.modules())


def _stretches(first: int, end: int, outer: int, inner: int) -> Iterator[tuple[int, int]]:
    """Yield (begin, stop) of at most `inner` numbers each, of which none reaches over a multiple of `outer`.

    From 0 to 10, 5 and 2: (0, 2), (2, 4), (4, 5), (5, 7), (7, 9), (9, 10).
    """
    for low in range(first, end, outer):
        high = min(low + outer, end)
        yield from ((begin, min(begin + inner, high)) for begin in range(low, high, inner))


def _joined(samples: Sequence[Samples], like: Tensor) -> Tensor | LazySamples | JoinedSamples:
    """Return samples as one: tensors where the network computes, others and large ones as they are.

    Several parts of one file have rows in common: these are read once.
    """
    tensors = [each for each in samples if isinstance(each, Tensor)]
    large = sum(each.nbytes for each in tensors) > COPIED_BYTES
    here = like.device.type == "cpu" and all(placed(each[:0], like).dtype == each.dtype for each in tensors)
    if len(tensors) == len(samples) and (len(samples) == 1 or not (large and here)):
        return placed(_concatenated(tensors), like)
    return samples[0] if len(samples) == 1 else JoinedSamples(read_once(samples))


def _concatenated(tensors: Sequence[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(list(tensors))  # a single one is not copied
