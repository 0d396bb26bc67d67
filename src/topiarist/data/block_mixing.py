"""Random block mixing: new training samples of stretches of others of the same class (scenes paper, section 2.2).

The paper cuts ten seconds of sound into ten pieces; here the pieces are stretches of the last axis, which is time, of
spectrograms and wave forms alike. As in the paper, the pieces come from as many groups (cities) as possible. A
mixture of fine classes takes pieces of one fine class within one label.
"""

from dataclasses import replace
from math import ceil
from typing import Any, Literal

import numpy
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from pydantic import Field

from topiarist.data.dataset import Data, Part
from topiarist.data.source import Rows
from topiarist.errors import DataError
from topiarist.randomness import array_generator
from topiarist.settings import Settings


class BlockMixing(Settings):
    """How mixtures are made.

    A mixture has so many `pieces`, each of a sample of the same class: the label itself ("coarse") or the finer class
    that the source knows ("fine"). There are `copies` mixtures for each sample, of each class in proportion.
    """

    pieces: int = Field(default=10, ge=1)
    within: Literal["coarse", "fine"] = "coarse"
    copies: float = Field(default=1.0, gt=0)


def with_mixtures(data: Data, mixing: BlockMixing, *, seed: int) -> Data:
    """Append mixtures of its own training samples to the training part; the same seed gives the same ones.

    Samples are mixed as the network reads them, so the preprocessing stays that of the originals. A mixture belongs to
    no one group: the training part has none any more. Folds are mixed one by one, after they are made: the folds of
    mixed data are those of its source, without mixtures.
    """
    part, source, split = data.train, data.source, data.split
    if not isinstance(part, Part) or source is None or split is None:
        raise DataError("block mixing needs samples in memory; these are datasets read batch by batch")
    if data.preprocessing is not None and (data.preprocessing.columns or data.preprocessing.projection):
        raise DataError(f"block mixing needs samples with a time axis; {data.name} is a table or projected")
    if len(part) != len(split.train):
        raise DataError(f"{data.name} is mixed already: {len(part)} samples of {len(split.train)} rows")
    x, y = mix_blocks(
        part.x.numpy(),
        part.y.numpy(),
        finer=None if source.finer is None else source.finer[split.train],
        groups=part.groups,
        mixing=mixing,
        generator=array_generator(seed, "block mixing"),
    )
    train = Part(torch.cat([part.x, torch.from_numpy(x)]), torch.cat([part.y, torch.from_numpy(y)]))
    note = f"{len(y)} mixtures of {mixing.pieces} pieces added to {len(part)} training samples"
    return replace(data, train=train, notes=(*data.notes, note))


def mix_blocks(
    features: NDArray[Any],
    labels: NDArray[Any],
    *,
    finer: NDArray[Any] | None,
    groups: NDArray[Any] | None,
    mixing: BlockMixing,
    generator: numpy.random.Generator,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Give mixtures (n_mixtures, …, time) of samples (n_samples, …, time), and their labels; nothing else is read.

    Samples of unknown groups count as one group.
    """
    lengths = piece_lengths(features.shape[-1], mixing.pieces)
    classes = mixing_classes(labels, finer, mixing)
    known = numpy.zeros(len(labels), dtype=numpy.intp) if groups is None else groups
    members = numpy.bincount(classes)
    chosen = []
    for number, count in enumerate(mixture_counts(members, mixing.copies)):
        rows = numpy.flatnonzero(classes == number)
        chosen.append(draw_samples(rows, known[rows], count=int(count), pieces=mixing.pieces, generator=generator))
    samples = numpy.concatenate(chosen)
    starts = generator.integers(0, features.shape[-1] - lengths + 1, size=samples.shape)
    return cut_and_join(features, samples, starts, lengths), labels[samples[:, 0]]


def piece_lengths(length: int, pieces: int) -> Rows:
    """Cut a length into pieces that differ by one at most."""
    if pieces > length:
        raise DataError(f"samples of length {length} cannot be cut into {pieces} pieces: at most {length}")
    base, longer = divmod(length, pieces)
    return numpy.full(pieces, base, dtype=numpy.intp) + (numpy.arange(pieces) < longer)


def mixing_classes(labels: NDArray[Any], finer: NDArray[Any] | None, mixing: BlockMixing) -> Rows:
    """Number the classes that are mixed within; samples of different labels are never in one."""
    if not len(labels):
        raise DataError("there are no samples to mix")
    coarse = numpy.unique(labels, return_inverse=True)[1]
    if mixing.within == "coarse":
        return coarse
    if finer is None:
        raise DataError("mixing within fine classes needs the finer class of each sample; the source knows none")
    values, fine = numpy.unique(finer, return_inverse=True)
    both: Rows = numpy.unique(coarse * len(values) + fine, return_inverse=True)[1]
    return both


def mixture_counts(members: Rows, copies: float) -> Rows:
    """Give how many mixtures each class gets: its quota rounded up or down, the total exact."""
    quotas = members * copies
    counts: Rows = numpy.floor(quotas).astype(numpy.intp)
    missing = round(float(members.sum() * copies)) - int(counts.sum())
    counts[numpy.argsort(counts - quotas, kind="stable")[:missing]] += 1
    return counts


def draw_samples(
    rows: Rows, groups: NDArray[Any], *, count: int, pieces: int, generator: numpy.random.Generator
) -> Rows:
    """Give the sample of each piece (count, pieces), of as many groups as possible and in random order.

    Every group is used floor(pieces / n_groups) or ceil(pieces / n_groups) times in a mixture.
    """
    names, numbers = numpy.unique(groups, return_inverse=True)
    turns, rest = divmod(pieces, len(names))
    hands = numpy.stack(
        [deal(rows[numbers == number], count, ceil(pieces / len(names)), generator) for number in range(len(names))],
        axis=1,
    )  # (count, n_groups, cards)
    always = hands[:, :, :turns].reshape(count, turns * len(names))
    order = generator.permuted(numpy.tile(numpy.arange(len(names)), (count, 1)), axis=1)
    more = hands[numpy.arange(count)[:, None], order[:, :rest], turns] if rest else always[:, :0]
    return generator.permuted(numpy.concatenate([always, more], axis=1), axis=1)


def deal(rows: Rows, count: int, cards: int, generator: numpy.random.Generator) -> Rows:
    """Deal rows to so many hands (count, cards): none twice in a hand before all are in it, all about equally often."""
    hands_a_deck, decks_a_hand = max(1, len(rows) // cards), ceil(cards / len(rows))
    deals = ceil(count / hands_a_deck)
    decks = generator.permuted(numpy.tile(rows, (deals * decks_a_hand, 1)), axis=1)
    return decks.reshape(deals, decks_a_hand * len(rows))[:, : hands_a_deck * cards].reshape(-1, cards)[:count]


def cut_and_join(features: NDArray[Any], samples: Rows, starts: Rows, lengths: Rows) -> NDArray[Any]:
    """Put stretches of samples one after the other: piece j of a mixture begins at its start and has length j."""
    mixtures = numpy.empty((len(samples), *features.shape[1:]), dtype=features.dtype)
    ends = numpy.cumsum(lengths)
    for piece, (length, end) in enumerate(zip(lengths.tolist(), ends.tolist(), strict=True)):
        windows = sliding_window_view(features, length, axis=-1)  # (n_samples, …, n_starts, length)
        mixtures[..., end - length : end] = windows[samples[:, piece], ..., starts[:, piece], :]
    return mixtures
