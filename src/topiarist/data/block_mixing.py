"""Random block mixing: new training samples of stretches of others of the same class (scenes paper, section 2.2).

The paper joins ten pieces of sound of a second each and describes the result (`on="waveform"`); joining stretches of
spectrograms instead (`on="spectrogram"`) needs no waveforms, and no window lies across a seam. Pieces are stretches of
the last axis, which is time. As in the paper, they come from as many groups (cities) as possible. A mixture of fine
classes takes pieces of one fine class within one label.

Mixtures of waveforms are made before training and kept in files, because what trains has spectrograms alone.
"""

import hashlib
import json
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any, Literal

import numpy
import torch
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from pydantic import Field

from topiarist.data.checked_arrays import read_array, write_arrays
from topiarist.data.dataset import Data, Part
from topiarist.data.source import Rows, Source
from topiarist.data.split import Split, shares
from topiarist.errors import DataError
from topiarist.randomness import array_generator
from topiarist.settings import Settings


class BlockMixing(Settings):
    """How mixtures are made.

    A mixture has so many `pieces`, each of a sample of the same class: the label itself ("coarse") or the finer class
    that the source knows ("fine"). There are `copies` mixtures per sample, of each class in proportion. Pieces are cut
    `on` the "spectrogram", the samples as the network reads them, or on the "waveform" behind it.
    """

    pieces: int = Field(default=10, ge=1)
    within: Literal["coarse", "fine"] = "coarse"
    on: Literal["spectrogram", "waveform"] = "spectrogram"
    copies: float = Field(default=1.0, gt=0)


@dataclass(frozen=True, kw_only=True)
class MixtureDraw:
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
    mixtures. Mixtures of waveforms are read from the files that the source names.
    """
    part, source, split = parts_to_mix(data)
    if mixing.on == "waveform":
        assert data.preprocessing is not None
        path = source.mixtures.get(mixture_key(mixing, split.train, clips=len(source), seed=seed))
        if path is None:
            raise DataError(
                f"{source.name} has no mixtures of waveforms, which `topiarist reproduce scenes` makes:"
                " mix on='spectrogram'"
            )
        found = open_mixtures(path)
        if found is None:
            raise DataError(f"mixtures cannot be read from {path}: it is not on this machine, or damaged")
        x, first = data.preprocessing(found[0]), found[1][:, 0]
    else:
        drawn = draw_for(data, mixing, length=part.x.shape[-1], seed=seed)
        x, first = torch.from_numpy(cut_and_join(part.x.numpy(), drawn)), drawn.samples[:, 0]
    y = part.y[torch.from_numpy(first)]
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
    if part.weights is not None or part.y.ndim > 1:
        raise DataError("block mixing is for classes, and for samples that count the same")
    if len(part) != len(split.train):
        raise DataError(f"{data.name} is mixed already: {len(part)} samples of {len(split.train)} rows")
    return part, source, split


def draw_for(data: Data, mixing: BlockMixing, *, length: int, seed: int) -> MixtureDraw:
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
) -> MixtureDraw:
    """Draw mixtures of samples that have a length and a label each (n_samples,).

    Samples of unknown groups count as one group.
    """
    lengths = piece_lengths(length, mixing.pieces)
    classes = _mixing_classes(labels, finer, mixing)
    known = numpy.zeros(len(labels), dtype=numpy.intp) if groups is None else groups
    chosen = []
    for number, count in enumerate(shares(numpy.bincount(classes), mixing.copies, leave_one=False)):
        rows = numpy.flatnonzero(classes == number)
        chosen.append(_draw_samples(rows, known[rows], count=int(count), pieces=mixing.pieces, generator=generator))
    samples = numpy.concatenate(chosen)
    starts = generator.integers(0, length - lengths + 1, size=samples.shape)
    return MixtureDraw(samples=samples, starts=starts, lengths=lengths)


def piece_lengths(length: int, pieces: int) -> Rows:
    """Cut a length into pieces that differ by one at most."""
    if pieces > length:
        raise DataError(f"samples of length {length} cannot be cut into {pieces} pieces: at most {length}")
    base, longer = divmod(length, pieces)
    return numpy.full(pieces, base, dtype=numpy.intp) + (numpy.arange(pieces) < longer)


def _mixing_classes(labels: NDArray[Any], finer: NDArray[Any] | None, mixing: BlockMixing) -> Rows:
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


def _draw_samples(
    rows: Rows, groups: NDArray[Any], *, count: int, pieces: int, generator: numpy.random.Generator
) -> Rows:
    """Return the sample of each piece (count, pieces), of as many groups as possible and in random order.

    Every group is used floor(pieces / n_groups) or ceil(pieces / n_groups) times in a mixture.
    """
    names, numbers = numpy.unique(groups, return_inverse=True)
    turns, rest = divmod(pieces, len(names))
    hands = numpy.stack(
        [_deal(rows[numbers == number], count, ceil(pieces / len(names)), generator) for number in range(len(names))],
        axis=1,
    )  # (count, n_groups, cards)
    always = hands[:, :, :turns].reshape(count, turns * len(names))
    order = generator.permuted(numpy.tile(numpy.arange(len(names)), (count, 1)), axis=1)
    more = hands[numpy.arange(count)[:, None], order[:, :rest], turns] if rest else always[:, :0]
    return generator.permuted(numpy.concatenate([always, more], axis=1), axis=1)


def _deal(rows: Rows, count: int, cards: int, generator: numpy.random.Generator) -> Rows:
    """Deal rows to hands (count, cards): none twice in a hand before all are in it, all about equally often."""
    hands_per_deck, decks_per_hand = max(1, len(rows) // cards), ceil(cards / len(rows))
    deals = ceil(count / hands_per_deck)
    decks = generator.permuted(numpy.tile(rows, (deals * decks_per_hand, 1)), axis=1)
    return decks.reshape(deals, decks_per_hand * len(rows))[:, : hands_per_deck * cards].reshape(-1, cards)[:count]


def cut_and_join(features: NDArray[Any], drawn: MixtureDraw) -> NDArray[Any]:
    """Put stretches of samples one after the other: piece j of a mixture begins at its start and has length j."""
    mixtures = numpy.empty((len(drawn.samples), *features.shape[1:]), dtype=features.dtype)
    ends = numpy.cumsum(drawn.lengths)
    for piece, (length, end) in enumerate(zip(drawn.lengths.tolist(), ends.tolist(), strict=True)):
        windows = sliding_window_view(features, length, axis=-1)  # (n_samples, …, n_starts, length)
        mixtures[..., end - length : end] = windows[drawn.samples[:, piece], ..., drawn.starts[:, piece], :]
    return mixtures


def mixture_key(mixing: BlockMixing, rows: Rows, *, clips: int, seed: int) -> str:
    """Return a name for mixtures, from all that decides them: settings, seed, training rows and number of clips."""
    text = json.dumps([dict(sorted(mixing.model_dump().items())), seed, clips])
    return hashlib.sha256(text.encode() + rows.astype(numpy.int64).tobytes()).hexdigest()[:24]


def write_mixtures(path: Path, features: NDArray[numpy.float32], samples: Rows) -> None:
    """Write described mixtures (n_mixtures, …) and the training samples of their pieces (n_mixtures, pieces)."""
    write_arrays(path, {"features": features, "samples": samples.astype(numpy.int64)})


def open_mixtures(path: Path) -> tuple[NDArray[numpy.float32], Rows] | None:
    """Return what `write_mixtures` wrote; None where the file is not there or damaged."""
    features, samples = read_array(path, "features"), read_array(path, "samples")
    return None if features is None or samples is None or len(features) != len(samples) else (features, samples)
