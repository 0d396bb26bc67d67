"""Random block mixing: new training samples of stretches of others of the same class (scenes paper, section 2.2).

The paper joins ten pieces of sound of a second each and describes the result (`on="waveform"`); joining stretches of
spectrograms instead (`on="spectrogram"`) needs no wave forms, and no window lies across a seam. Pieces are stretches of
the last axis, which is time. As in the paper, they come from as many groups (cities) as possible. A mixture of fine
classes takes pieces of one fine class within one label.
"""

from dataclasses import dataclass, replace
from math import ceil
from typing import Any, Literal

import numpy
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from pydantic import Field

from topiarist.data.dataset import Data, Part
from topiarist.data.mixture_files import read_mixtures
from topiarist.data.source import Rows, Source
from topiarist.data.split import Split
from topiarist.errors import DataError
from topiarist.randomness import array_generator
from topiarist.settings import Settings


class BlockMixing(Settings):
    """How mixtures are made.

    A mixture has so many `pieces`, each of a sample of the same class: the label itself ("coarse") or the finer class
    that the source knows ("fine"). There are `copies` mixtures for each sample, of each class in proportion. Pieces are
    cut `on` the "spectrogram", the samples as the network reads them, or on the "waveform" behind it.
    """

    pieces: int = Field(default=10, ge=1)
    within: Literal["coarse", "fine"] = "coarse"
    on: Literal["spectrogram", "waveform"] = "spectrogram"
    copies: float = Field(default=1.0, gt=0)


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """What mixtures are made of: the sample and the start of each piece (n_mixtures, pieces), and the pieces' lengths.

    A mixture [3, 7] with starts [10, 0] and lengths [5, 4] is sample 3 from 10 to 15, then sample 7 from 0 to 4.
    """

    samples: Rows
    starts: Rows
    lengths: Rows


def with_mixtures(data: Data, mixing: BlockMixing, *, seed: int) -> Data:
    """Append mixtures of its own training samples to the training part; the same seed gives the same ones.

    The preprocessing stays that of the originals. A mixture belongs to no one group: the training part has none any
    more. Folds are mixed one by one, after they are made: the folds of mixed data are those of its source, without
    mixtures. Mixtures of wave forms are read from the files that the source names.
    """
    part, source, split = parts_to_mix(data)
    if mixing.on == "waveform":
        assert data.preprocessing is not None
        features, samples = read_mixtures(source, split.train, mixing.model_dump(), seed=seed)
        x, y = data.preprocessing(features), part.y[torch.from_numpy(samples[:, 0])]
    else:
        drawn = draw_for(data, mixing, length=part.x.shape[-1], seed=seed)
        x = torch.from_numpy(cut_and_join(part.x.numpy(), drawn))
        y = part.y[torch.from_numpy(drawn.samples[:, 0])]
    train = Part(torch.cat([part.x, x]), torch.cat([part.y, y]))
    note = f"{len(y)} mixtures of {mixing.pieces} pieces added to {len(part)} training samples"
    return replace(data, train=train, notes=(*data.notes, note))


def parts_to_mix(data: Data) -> tuple[Part, Source, Split]:
    """Return the training part, its source and its rows; refuse what cannot be mixed."""
    part, source, split = data.train, data.source, data.split
    if not isinstance(part, Part) or source is None or split is None:
        raise DataError("block mixing needs samples in memory; these are datasets read batch by batch")
    if data.preprocessing is not None and (data.preprocessing.columns or data.preprocessing.projection):
        raise DataError(f"block mixing needs samples with a time axis; {data.name} is a table or projected")
    if len(part) != len(split.train):
        raise DataError(f"{data.name} is mixed already: {len(part)} samples of {len(split.train)} rows")
    return part, source, split


def draw_for(data: Data, mixing: BlockMixing, *, length: int, seed: int) -> Drawn:
    """Draw mixtures of the training samples of `data`, which are numbered from 0, where samples have this length."""
    part, source, split = parts_to_mix(data)
    return draw_mixtures(
        length,
        part.y.numpy(),
        finer=None if source.finer is None else source.finer[split.train],
        groups=part.groups,
        mixing=mixing,
        generator=array_generator(seed, "block mixing"),
    )


def draw_mixtures(
    length: int,
    labels: NDArray[Any],
    *,
    finer: NDArray[Any] | None,
    groups: NDArray[Any] | None,
    mixing: BlockMixing,
    generator: numpy.random.Generator,
) -> Drawn:
    """Draw mixtures of samples that have a length and a label each (n_samples,).

    Samples of unknown groups count as one group.
    """
    lengths = piece_lengths(length, mixing.pieces)
    classes = mixing_classes(labels, finer, mixing)
    known = numpy.zeros(len(labels), dtype=numpy.intp) if groups is None else groups
    members = numpy.bincount(classes)
    chosen = []
    for number, count in enumerate(mixture_counts(members, mixing.copies)):
        rows = numpy.flatnonzero(classes == number)
        chosen.append(draw_samples(rows, known[rows], count=int(count), pieces=mixing.pieces, generator=generator))
    samples = numpy.concatenate(chosen)
    starts = generator.integers(0, length - lengths + 1, size=samples.shape)
    return Drawn(samples=samples, starts=starts, lengths=lengths)


def mix_blocks(
    features: NDArray[Any],
    labels: NDArray[Any],
    *,
    finer: NDArray[Any] | None,
    groups: NDArray[Any] | None,
    mixing: BlockMixing,
    generator: numpy.random.Generator,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return mixtures (n_mixtures, …, time) of samples (n_samples, …, time), and their labels; nothing else is read."""
    drawn = draw_mixtures(features.shape[-1], labels, finer=finer, groups=groups, mixing=mixing, generator=generator)
    return cut_and_join(features, drawn), labels[drawn.samples[:, 0]]


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


def cut_and_join(features: NDArray[Any], drawn: Drawn) -> NDArray[Any]:
    """Put stretches of samples one after the other: piece j of a mixture begins at its start and has length j."""
    mixtures = numpy.empty((len(drawn.samples), *features.shape[1:]), dtype=features.dtype)
    ends = numpy.cumsum(drawn.lengths)
    for piece, (length, end) in enumerate(zip(drawn.lengths.tolist(), ends.tolist(), strict=True)):
        windows = sliding_window_view(features, length, axis=-1)  # (n_samples, …, n_starts, length)
        mixtures[..., end - length : end] = windows[drawn.samples[:, piece], ..., drawn.starts[:, piece], :]
    return mixtures
