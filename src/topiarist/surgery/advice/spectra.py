"""Singular values: how many directions weights and activations really have, and the Surgeon's scores of that.

The scores are those of neural network surgery, section 3.2. Singular values that a layer with more units than inputs
does not have count as 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from topiarist.errors import SettingsError
from topiarist.surgery.choice.activity import Activity
from topiarist.tracing import Anatomy
from topiarist.tracing.steps import Step, behind

RELATIVE_FLOOR, ABSOLUTE_FLOOR = 0.005, 0.3  # ε₁ and ε₂ of the paper


@dataclass(frozen=True)
class Spectrum:
    """Singular values, the largest first, and the effective rank that they have."""

    singular_values: tuple[float, ...]
    effective_rank: float


def weight_spectrum(weight: Tensor) -> Spectrum:
    """Return the spectrum of a kernel (n_units, …) as a matrix (n_units, n_inputs · kernel)."""
    return spectrum_of(torch.linalg.svdvals(weight.detach().flatten(1).to("cpu", torch.float64)).tolist())


def activity_spectrum(activity: Activity) -> Spectrum:
    """Return the spectrum of activations (n_rows, n_units) divided by √n_rows, so that samples do not count.

    The activations are those that a refit can use: about their means, or about zero where no constant can move. They
    are known by second moments, so that values below 1e-8 of the largest mean nothing.
    """
    squares = numpy.linalg.eigvalsh(activity.varied)[::-1]
    return spectrum_of(numpy.sqrt(squares.clip(min=0)).tolist())


def spectrum_of(values: Sequence[float]) -> Spectrum:
    """Return singular values with their effective rank."""
    return Spectrum(tuple(values), effective_rank(values))


def effective_rank(values: Sequence[float]) -> float:
    """Return exp(−Σ p ln p) with p = σ / Σσ (Roy and Vetterli, The effective rank, 2007); 0 where all σ are 0.

    It is n for n equal values, and 1 where one value alone is not 0.
    """
    total = math.fsum(values)
    shares = [value / total for value in values if value > 0]
    return math.exp(-math.fsum(share * math.log(share) for share in shares if share > 0)) if shares else 0.0


def smallest_rank(values: Sequence[float], keep: float) -> int:
    """Return the smallest rank, at least 1, that keeps a share of the sum of squares of singular values."""
    if not 0 < keep <= 1:
        raise SettingsError(f"a share to keep must be above 0 and at most 1; found {keep}")
    kept = numpy.cumsum(numpy.square(values))
    return 1 + int(numpy.count_nonzero(kept[:-1] < keep * kept[-1]))


def lost_share(values: Sequence[float], rank: int) -> float:
    """Return the share of the sum of squares of singular values that a rank leaves out."""
    squares = numpy.square(values)
    total = float(squares.sum())
    return float(squares[rank:].sum()) / total if total else 0.0


def count_negligible(
    values: Sequence[float], units: int, *, relative: float = RELATIVE_FLOOR, absolute: float = ABSOLUTE_FLOOR
) -> int:
    """Return n_r of the paper: how many singular values are below ε₁ of the largest, or below ε₂."""
    full = numpy.zeros(units)
    full[: len(values)] = values[:units]
    return int(numpy.count_nonzero((full < relative * full.max(initial=0.0)) | (full < absolute)))


@dataclass(frozen=True)
class Scores:
    """What the paper thinks of the edits of one hidden layer.

    Parameters
    ----------
    units, negligible : int
        Its units, n_l, and how many of them could go by the singular values, n_r.
    add_neurons, add_layer, remove_neurons, remove_layer : float
        The score of each edit, from 0 to 1.
    """

    units: int
    negligible: int
    add_neurons: float
    add_layer: float
    remove_neurons: float
    remove_layer: float

    @property
    def truncate(self) -> float:
        """Return the score of a truncated SVD, n_r/n_l: the published code has it, the text has none."""
        return self.remove_neurons


def paper_scores(
    matrices: Sequence[Tensor], *, relative: float = RELATIVE_FLOOR, absolute: float = ABSOLUTE_FLOOR
) -> tuple[Scores, ...]:
    """Score the hidden layers of a network as neural network surgery does.

    Add neurons 1 − n_r/n_l, add layer (1 − n_r/n_l) · i/h, remove neurons n_r/n_l, remove layer (n_r/n_l) · i/h, or 1
    where n_r = n_l; i counts the h hidden layers from 1.

    Parameters
    ----------
    matrices : sequence of Tensor
        The weights (n_units, …) of the layers, in the order in which they run.
    relative, absolute : float
        A singular value is negligible below this part of the largest, or below this value.

    Returns
    -------
    tuple[Scores, ...]

    Examples
    --------
    >>> paper_scores([torch.eye(4), torch.zeros(4, 4)])[1].remove_layer
    1.0
    """
    spectra = [weight_spectrum(matrix) for matrix in matrices]
    return score_spectra(spectra, [len(matrix) for matrix in matrices], relative, absolute)


def score_spectra(
    spectra: Sequence[Spectrum],
    units: Sequence[int],
    relative: float = RELATIVE_FLOOR,
    absolute: float = ABSOLUTE_FLOOR,
) -> tuple[Scores, ...]:
    """Score hidden layers whose spectra are known; see `paper_scores`."""
    scores = []
    for number, (spectrum, count) in enumerate(zip(spectra, units, strict=True), 1):
        negligible = count_negligible(spectrum.singular_values, count, relative=relative, absolute=absolute)
        share, depth = negligible / count, number / len(spectra)
        remove_layer = 1.0 if negligible == count else share * depth
        scores.append(Scores(count, negligible, 1 - share, (1 - share) * depth, share, remove_layer))
    return tuple(scores)


def weighted_layers(model: nn.Module, anatomy: Anatomy) -> tuple[str, ...]:
    """Name the linear layers and convolutions, but not transposed ones, in the order in which they run."""
    return tuple(
        name
        for name in anatomy.calls
        if isinstance(module := model.get_submodule(name), (nn.Linear, _ConvNd))
        and not isinstance(module, _ConvTransposeNd)
    )


def hidden_layers(model: nn.Module, anatomy: Anatomy) -> tuple[str, ...]:
    """Name the linear layers and convolutions behind which another comes: all but those that return the output."""
    weighted = weighted_layers(model, anatomy)
    waiting = [step for step in behind(call.step for call in anatomy.calls.values()) if step.kind == "output"]
    known: set[Step] = set()
    last: set[str] = set()
    while waiting:
        for step in waiting.pop().inputs:
            if step.kind == "layer" and isinstance(model.get_submodule(step.name), (nn.Linear, _ConvNd)):
                last.add(step.name)
            elif step not in known:
                known.add(step)
                waiting.append(step)
    return tuple(name for name in weighted if name not in last)
