"""Which heads meet in a sum over their dims and nowhere else: shown on random weights.

With any invertible A, queries Q·A and keys K·A⁻ᵀ have the same products as Q and K. Where a network with such weights
returns what it did, a change of basis is exact; where rotary positions or a norm lie between, it is not.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy
import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.models.copying import copied
from topiarist.randomness import generator
from topiarist.surgery.bases.heads import Contraction, HeadDims, products_within, readings_within
from topiarist.surgery.layers import Holders
from topiarist.surgery.proof_runs import ProofBatch, outputs_of_cut, references
from topiarist.surgery.proving import TOLERANCE, is_double, largest_difference
from topiarist.tracing import Anatomy, ExampleInput

Candidates = dict[str, list[Contraction]]


@dataclass(frozen=True)
class ExactBases:
    """What may have another basis, by space: `products` of queries and keys, `readings` of values by a layer.

    Constants may be added to the heads of `few` in the spaces that are `free`, as to keys in front of a softmax.
    """

    products: dict[str, Contraction]
    readings: dict[str, Contraction]
    free: frozenset[str] = frozenset()

    @property
    def all(self) -> list[Contraction]:
        """Return all contractions."""
        return [*self.products.values(), *self.readings.values()]


class BasisTrials:
    """A network with random weights, on which changes of basis are tried."""

    def __init__(self, whole: nn.Module, batches: Sequence[ProofBatch]) -> None:
        self.whole, self.batches = whole, batches
        self.random = generator(0, "bases")

    @classmethod
    def of(cls, model: nn.Module, example_input: ExampleInput, anatomy: Anatomy) -> "BasisTrials | None":
        """Return the trials for a network; None where it does not run in float64."""
        if anatomy.trace is None:
            return None
        nothing = numpy.zeros(len(anatomy.trace.tracer.labels), bool)
        try:
            whole, batches = references(model, example_input, anatomy, nothing)
        except ModelError:
            return None
        return cls(whole, batches) if is_double(whole) else None

    def keeps_answers(self, change: Callable[[nn.Module, Holders], None]) -> bool:
        """Return whether the network returns the same after a change."""
        twin = copied(self.whole)
        change(twin, Holders(twin))
        try:
            pairs = [(batch.expected, outputs_of_cut(twin, batch, ())) for batch in self.batches]
            return all(largest_difference(one, other, "nothing") <= TOLERANCE for one, other in pairs)
        except ModelError:
            return False

    def first_exact(self, candidates: Candidates) -> dict[str, Contraction]:
        """Return, for each space, the first of its candidates that changes nothing; all spaces are tried at once."""
        found: dict[str, Contraction] = {}
        for number in range(max(map(len, candidates.values()), default=0)):
            trial = {
                name: each[number] for name, each in candidates.items() if name not in found and number < len(each)
            }
            if not trial:
                continue
            if self.keeps_answers(partial(self._mix, tuple(trial.values()))):
                found.update(trial)
                continue
            alone = trial if len(trial) > 1 else {}
            found |= {name: own for name, own in alone.items() if self.keeps_answers(partial(self._mix, (own,)))}
        return found

    def keys_last(self, contraction: Contraction) -> Contraction:
        """Return a contraction with the heads last to which constants may be added, where both could be."""
        if len(contraction.many) == len(contraction.few) and self.is_free(contraction.many):
            return Contraction(contraction.few, contraction.many)
        return contraction

    def is_free(self, heads: Sequence[HeadDims]) -> bool:
        """Return whether constants may be added to what heads write."""
        if any(head.reads or len(head.tensors) < 2 for head in heads):
            return False
        return self.keeps_answers(partial(self._shift, heads))

    def _mix(self, contractions: Sequence[Contraction], twin: nn.Module, holders: Holders) -> None:
        for contraction in contractions:
            for many, head in contraction.groups():
                size = len(head.positions)
                drawn = torch.randn(size, size, generator=self.random, dtype=torch.float64)
                mixing = torch.eye(size, dtype=torch.float64) + drawn / (2 * size**0.5)
                head.mix(twin, holders, mixing)
                for other in many:
                    other.mix(twin, holders, torch.linalg.inv(mixing).T)

    def _shift(self, heads: Sequence[HeadDims], twin: nn.Module, holders: Holders) -> None:
        for head in heads:
            module, name = twin.get_submodule(head.module), head.tensors[1][0]
            old: Tensor = getattr(module, name).detach()
            drawn = torch.randn(len(head.positions), generator=self.random, dtype=torch.float64).to(old)
            holders.put(module, name, old.index_add(0, torch.from_numpy(head.positions), drawn))


def exact_bases(model: nn.Module, anatomy: Anatomy, names: Sequence[str], trials: BasisTrials) -> ExactBases:
    """Return what may have another basis in some spaces."""
    products = {name: products_within(model, anatomy[name]) for name in names if anatomy[name].escaped}
    met = {name: trials.keys_last(each) for name, each in trials.first_exact(products).items()}
    left = {name: readings_within(model, anatomy[name], met.get(name)) for name in names}
    free = frozenset(name for name, each in met.items() if trials.is_free(each.few))
    return ExactBases(met, trials.first_exact(left), free)
