"""What an edit would do: units of a space go or come, a layer folds into the next one or becomes two thinner ones."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy
import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.errors import ModelError, SettingsError
from topiarist.models.evaluation import count_parameters, numbers_of
from topiarist.randomness import isolated
from topiarist.surgery import layers
from topiarist.surgery.advice.readings import Readings, evidence_read
from topiarist.surgery.advice.spectra import Spectrum, lost_share, smallest_rank
from topiarist.surgery.advice.trials import LabelledSamples, mean_loss, trial
from topiarist.surgery.calibration import watch
from topiarist.surgery.choice.costs import Costs
from topiarist.surgery.choice.evidence import blind_spot
from topiarist.surgery.choice.selection import eliminate
from topiarist.surgery.depth.factorising import can_factorise
from topiarist.surgery.depth.folding import chain_from
from topiarist.surgery.edits.kinds import FactoriseLayer, FoldLayer, GrowSpace, RemoveUnits
from topiarist.surgery.refit.moments import Spread
from topiarist.surgery.width.axes import new_axis
from topiarist.surgery.width.reexpressions import growing
from topiarist.tracing import Anatomy, Space

SHARES = (0.25, 0.5, 0.75)  # of the units of a space that go on trial
KEPT_SHARES = (0.99, 0.95, 0.9)  # of the squared singular values that a factorisation keeps


@dataclass(frozen=True)
class Removal:
    """A share of the units of a space that would go, with a refit.

    `lost` is the share of the variance that the readers need which no refit brings back; `increase` that of the mean
    cross-entropy, where it was measured; `parameters` are those of the whole network afterwards.
    """

    space: str
    share: float
    units: tuple[int, ...]
    lost: float
    parameters: int
    increase: float | None = None

    @property
    def edit(self) -> RemoveUnits:
        """Return the edit that does it."""
        return RemoveUnits(units={self.space: self.units}, refit=True)


@dataclass(frozen=True)
class Folding:
    """A layer folded into the next one, with the activation between them dropped and a refit.

    `lost` is the squared error of what the next layer returns, relative to its variance; `increase` that of the mean
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


@dataclass(frozen=True)
class Growth:
    """What an edit that grows a space promises.

    `fresh` and `existing` have, for each unit, ‖gradient of the mean loss‖² over all of its outgoing weights. Those of
    fresh units are zero, so that a step along the gradient g lowers the loss by about the step size times ‖g‖²; the
    existing units are the measure of what is much. `parameters` are those of the whole network with it.
    """

    edit: GrowSpace
    fresh: tuple[float, ...]
    existing: tuple[float, ...]
    parameters: int

    @property
    def gain(self) -> float:
        """Return the mean over the fresh units."""
        return sum(self.fresh) / len(self.fresh)

    @property
    def existing_gain(self) -> float:
        """Return the mean over the units that are there."""
        return sum(self.existing) / len(self.existing)

    @property
    def relative_gain(self) -> float | None:
        """Return the gain of a fresh unit as a multiple of that of an existing one; None where the latter is 0."""
        if not self.gain:
            return 0.0
        return self.gain / self.existing_gain if self.existing_gain else None


def check_shares(shares: Sequence[float]) -> None:
    """Refuse what is no share of units that can go."""
    for share in shares:
        if not 0 < share < 1:
            raise SettingsError(f"shares of units must be above 0 and below 1; found {share}")


def judged_space(anatomy: Anatomy, name: str) -> Space:
    """Return a free space whose readers tell all of its units, or raise an error that says why they do not."""
    space = anatomy.free_space(name)
    reason = blind_spot(space)
    if reason is not None:
        raise ModelError(f"nothing can be said of '{space.name}': {reason}")
    return space


def predicted_removals(
    model: nn.Module, anatomy: Anatomy, name: str, readings: Readings, shares: Sequence[float] = SHARES
) -> tuple[Removal, ...]:
    """Predict what is lost with each share of the units of a space; a space of one unit has none to lose.

    At least one unit goes and at least one stays. Units go by greedy elimination, the one that is missed least first.
    """
    check_shares(shares)
    size = judged_space(anatomy, name).size
    evidence = evidence_read(model, anatomy, readings)
    costs = Costs(model, anatomy)
    removals = []
    for share in shares if size > 1 else ():
        keep = size - min(max(round(share * size), 1), size - 1)
        kept, lost = list(range(keep)), 0.0
        if evidence is not None:
            kept, path = eliminate(evidence, keep)
            lost = float(path[keep]) / evidence.total if evidence.total > 0 else 0.0
        units = tuple(sorted(set(range(size)) - set(kept)))
        removals.append(Removal(name, share, units, lost, costs.parameters({name: keep})))
    return tuple(removals)


def predicted_folding(
    model: nn.Module, anatomy: Anatomy, name: str, samples: LabelledSamples, *, before: float | None = None
) -> Folding | None:
    """Fold a layer of a copy and compare; None where it cannot fold. With the loss `before`, also measure the new."""
    edit = FoldLayer(layer=name, linearise=True, refit=True)
    batches = samples.batches(model)
    try:
        into = chain_from(model, edit, anatomy)[-1]
        folded = trial(model, edit, anatomy, batches)
    except ModelError:  # it says why this layer cannot fold
        return None
    error, whole = Spread(), Spread()
    calls, is_convolution = anatomy.calls[into].count, isinstance(model.get_submodule(into), _ConvNd)
    for args, kwargs in batches:  # the same batch for both, also where batches are shuffled
        seen = (watch(network, into, calls, args, kwargs) for network in (folded, model))
        for (_, given), (_, wanted) in zip(*seen, strict=True):
            for spread, values in ((error, given - wanted), (whole, wanted)):  # with the units along the second axis
                spread.add(values if is_convolution else values.flatten(0, -2))
    total = float(whole.variance.sum())
    lost = float((error.variance + error.mean**2).sum()) / total if total else 0.0
    increase = None if before is None else mean_loss(folded, samples) - before
    return Folding(edit, into, lost, count_parameters(folded), increase)


def predicted_factorisings(
    model: nn.Module, name: str, spectrum: Spectrum, keep: Sequence[float] = KEPT_SHARES
) -> tuple[Factorising, ...]:
    """Predict from a layer's spectrum what the ranks lose that keep some shares; none where it cannot factorise."""
    if not can_factorise(model, name):
        return ()
    weight = layers.weight_of(model.get_submodule(name)).flatten(1)
    others = count_parameters(model) - weight.numel()
    found = []
    for share in keep:
        rank = smallest_rank(spectrum.singular_values, share)
        lost = lost_share(spectrum.singular_values, rank)
        edit = FactoriseLayer(layer=name, rank=rank)
        found.append(Factorising(edit, share, lost, others + rank * sum(weight.shape)))
    return tuple(found)


def expected_growth(
    model: nn.Module, anatomy: Anatomy, name: str, samples: LabelledSamples, *, by: int | None = None, seed: int = 0
) -> Growth:
    """Grow a space of a copy, by half of its units and at least 2 unless `by` says otherwise, and take the gradient."""
    space = judged_space(anatomy, name)
    edit = GrowSpace(space=name, by=max(2, space.size // 2) if by is None else by, seed=seed)
    grown = trial(model, edit, anatomy, samples.batches(model)).eval()
    gradients = _weight_gradients(grown, [place.module for place in space.readers], samples)
    change = growing(space, edit, structure_only=True)
    gains = numpy.zeros(space.size + edit.by)
    for place, gradient in zip(space.readers, gradients, strict=True):
        squares = gradient.to("cpu", torch.float64).square().transpose(0, 1).flatten(1).sum(1).numpy()
        _, (part,) = new_axis([(place, change)])
        gains += squares[part.positions].sum((1, 2))
    existing, fresh = (tuple(part.tolist()) for part in numpy.split(gains, [space.size]))
    return Growth(edit, fresh, existing, Costs(model, anatomy).parameters({name: len(gains)}))


def _weight_gradients(model: nn.Module, paths: list[str], samples: LabelledSamples) -> list[Tensor]:
    """Return the gradients of the mean loss at the weights of some layers of a network that is the caller's own."""
    if not paths:
        return []
    with torch.inference_mode(False), torch.enable_grad(), isolated(0, numbers_of(model).device):
        model.requires_grad_(False)
        weights = [model.get_parameter(f"{path}.weight".removeprefix(".")).requires_grad_() for path in paths]
        totals = [torch.zeros_like(weight, requires_grad=False) for weight in weights]
        for loss in samples.losses(model):
            if loss.requires_grad:
                gradients = torch.autograd.grad(loss, weights, allow_unused=True)
                for total, gradient in zip(totals, gradients, strict=True):
                    total += 0 if gradient is None else gradient
    return totals
