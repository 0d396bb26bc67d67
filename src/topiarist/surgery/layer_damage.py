"""What is lost where a layer folds into the next one, or becomes the product of two thinner ones."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.errors import ModelError
from topiarist.models.evaluation import count_parameters
from topiarist.surgery import layers
from topiarist.surgery.edits import FactoriseLayer, FoldLayer
from topiarist.surgery.folding import LINEAR, chain_from
from topiarist.surgery.moments import Spread
from topiarist.surgery.refit import Pair
from topiarist.surgery.spectra import Spectrum, lost_share, smallest_rank
from topiarist.surgery.trials import Samples, mean_loss, trial
from topiarist.tracing import Anatomy

KEPT_SHARES = (0.99, 0.95, 0.9)


@dataclass(frozen=True)
class Folding:
    """A layer folded into the next one, with the activation between them dropped and a refit.

    `lost` is the squared error of what the next layer gives, relative to its variance; `increase` that of the mean
    cross-entropy, where it was measured; `parameters` are those of the whole network afterwards. Losses are on
    the samples that the refit was made on: with fewer of them than the layer has inputs, they promise too much.
    """

    edit: FoldLayer
    into: str
    lost: float
    parameters: int
    increase: float | None = None


@dataclass(frozen=True)
class Factorising:
    """A layer as the product of two of the smallest rank that keeps a share of the squared singular values.

    `lost` is the share that it does not keep; `increase` and `parameters` are as in `Folding`.
    """

    edit: FactoriseLayer
    keep: float
    lost: float
    parameters: int
    increase: float | None = None


def predicted_folding(
    model: nn.Module, found: Anatomy, name: str, samples: Samples, *, before: float | None = None
) -> Folding | None:
    """Fold a layer of a copy and compare; None where it cannot fold. With the loss `before`, also measure the new."""
    edit = FoldLayer(layer=name, linearise=True, refit=True)
    batches = samples.batches(model)
    try:
        into = chain_from(model, edit, found)[-1]
        folded = trial(model, edit, found, batches)
    except ModelError:  # it says why this layer cannot fold
        return None
    lost = relative_error(Pair(model, folded, into, found, batches))
    increase = None if before is None else mean_loss(folded, samples) - before
    return Folding(edit, into, lost, count_parameters(folded), increase)


def relative_error(pair: Pair) -> float:
    """Give the squared error of what a layer gives, relative to its variance in the whole network; 0 if that is 0."""
    error, whole = Spread(), Spread()
    for (_, given), (_, wanted) in pair:
        error.add(by_unit(pair.whole, given - wanted))
        whole.add(by_unit(pair.whole, wanted))
    total = float(whole.variance.sum())
    return float((error.variance + error.mean**2).sum()) / total if total else 0.0


def by_unit(module: nn.Module, given: Tensor) -> Tensor:
    """Give what a layer gives with its units along the second axis."""
    return given if isinstance(module, _ConvNd) else given.flatten(0, -2)


def predicted_factorisings(
    model: nn.Module, name: str, spectrum: Spectrum, keep: Sequence[float] = KEPT_SHARES
) -> tuple[Factorising, ...]:
    """Predict from a layer's spectrum what the ranks lose that keep some shares; none where it cannot factorise."""
    layer = model.get_submodule(name)
    if not can_factorise(model, name):
        return ()
    weight = layers.weight_of(layer).flatten(1)
    others = count_parameters(model) - weight.numel()
    found = []
    for share in keep:
        rank = smallest_rank(spectrum.singular_values, share)
        edit = FactoriseLayer(layer=name, rank=rank)
        lost = lost_share(spectrum.singular_values, rank)
        found.append(Factorising(edit, share, lost, others + rank * sum(weight.shape)))
    return tuple(found)


def can_factorise(model: nn.Module, name: str) -> bool:
    """Say whether a layer can be replaced by two: it is plain, has one group, one name, and something that holds it."""
    layer = model.get_submodule(name)
    alone = [known for known, module in model.named_modules(remove_duplicate=False) if module is layer] == [name]
    grouped = isinstance(layer, _ConvNd) and layer.groups != 1
    return bool(name) and alone and isinstance(layer, LINEAR) and layers.is_plain(layer) and not grouped
