"""A network pruned while it is trained, and what follows: units that do nothing are cut out, weights are rounded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from torch import nn

from topiarist.errors import ModelError
from topiarist.methods.jobs import Job
from topiarist.methods.retraining import FineTuning, Pupil, Rewinding, copied_with_edits, retrain
from topiarist.models import Ensemble, attach, card_for, card_of
from topiarist.models.card import Bits
from topiarist.models.ensemble import members_of
from topiarist.models.evaluation import kernels_of
from topiarist.randomness import child_seed
from topiarist.storage.quantising import rounded
from topiarist.surgery import compact
from topiarist.tracing import anatomy
from topiarist.training import History
from topiarist.training.engines.pruner import Pruner
from topiarist.training.pruning import Pruning

Members = tuple[nn.Module, ...]


@dataclass(frozen=True)
class Pruned:
    """A network, an ensemble or not, after pruning, and how each of its members was trained."""

    model: nn.Module
    histories: tuple[History, ...] = ()

    @property
    def sparsity(self) -> float:
        """The sparsity that training came to, less than asked for where it ended early."""
        last = [history.epochs[-1].sparsity for history in self.histories if history.epochs]
        known = [sparsity for sparsity in last if sparsity is not None]
        return sum(known) / len(known) if known else 0.0


@dataclass(frozen=True, kw_only=True)
class Sparsifying:
    """What is done to one network: how its members are pruned, trained by seed, and finished.

    `highest` is the sparsity beyond which an ensemble does better with fewer members.
    """

    job: Job
    pruning: Pruning
    retraining: Callable[[int], FineTuning | Rewinding]
    bits: Bits
    highest: float
    compacts: bool

    @cached_property
    def members(self) -> Members:
        """The networks that are pruned: the members of an ensemble, or the network itself."""
        return tuple(members_of(self.job.whole))

    def train(self, members: Members, sparsity: float) -> Pruned:
        """Train members again, each by itself, and prune them on the way."""
        pruning, trained = self._pruned_to(sparsity), []
        for member in members:
            pupil = self._pupil(member)
            trained += retrain([pupil], self.retraining(pupil.seed), pruning=pruning)
        return Pruned(
            self.finished(members, [network for network, _ in trained]), tuple(history for _, history in trained)
        )

    def at_once(self, members: Members, sparsity: float) -> nn.Module:
        """Prune members by magnitude without training them, to see how large they become."""
        copies = [copied_with_edits(member) for member in members]
        pruning = self._pruned_to(sparsity).model_copy(update={"score": "magnitude"})
        for copy in copies:
            Pruner(copy, pruning, {0: sparsity}, example_input=self.job.sample).before_epoch(0)
        return self.finished(members, copies)

    def finished(self, members: Members, pruned: Sequence[nn.Module]) -> nn.Module:
        """Cut out what does nothing, round the weights, and make one network of those that members became."""
        done = [rounded(self._compacted(network), self.bits) for network in pruned]
        whole = self.job.whole
        if isinstance(whole, Ensemble):
            weights = dict(zip(map(id, whole.members), whole.weights.tolist(), strict=True))
            model: nn.Module = Ensemble(done, [weights[id(member)] for member in members])
        else:
            (model,) = done
        attach(model, replace(card_for(model, self.job.data), bits=self.bits, training=card_of(whole).training))
        return model

    def reasons(self, found: Pruned) -> list[str]:
        """Say what was done."""
        what, pattern = "units" if self.pruning.units else "weights of its kernels", self.pruning.pattern
        share = f"{100 * found.sparsity:.1f} %" if pattern is None else f"{pattern[0]} of every {pattern[1]}"
        said = [f"pruned while training: {share} of the {what}, by {self.pruning.score}"]
        before, after = len(self.members), len(members_of(found.model))
        if after < before:
            said.append(f"{after} of {before} members fit: the others were left out, the weakest first")
        elif gone := self._cut_out(found.model):
            said.append(f"{gone} units that had nothing left to do were cut out")
        kernels = kernels_of(found.model).values()
        zeros, total = (
            sum(counts) for counts in zip(*((int((k == 0).sum()), k.numel()) for k in kernels), strict=True)
        )
        left = f"{zeros:,} of the {total:,} kernel weights that are left are zero"
        return [*said, f"{left}: saved at {self.bits} bits a weight"]

    def _pupil(self, member: nn.Module) -> Pupil:
        """Give a member as one to be trained again, with a seed of its own."""
        number = next(place for place, known in enumerate(self.members) if known is member)
        seed = self.job.seed if number == 0 else child_seed(self.job.seed, "member", number) % 2**32
        early = self.job.early
        if isinstance(early, Ensemble) and len(early.members) == len(self.members):
            early = early.members[number]
        return Pupil(whole=member, cut=member, data=self.job.data, early=early, seed=seed)

    def _pruned_to(self, sparsity: float) -> Pruning:
        """Give the pruning that ends at a sparsity."""
        if self.pruning.pattern is not None:
            return self.pruning
        initial = min(self.pruning.initial_sparsity, sparsity)
        return self.pruning.model_copy(update={"sparsity": sparsity, "initial_sparsity": initial})

    def _compacted(self, member: nn.Module) -> nn.Module:
        if not self.compacts:
            return member
        try:
            return compact(member, self.job.sample)
        except ModelError:  # what the network does cannot be followed: nothing is cut out, and nothing is wrong
            return member

    def _cut_out(self, network: nn.Module) -> int:
        """Count the units that compaction removed."""
        try:
            before, after = (anatomy(each, self.job.sample, partial=True) for each in (self.job.whole, network))
        except ModelError:  # then there was no compaction either
            return 0
        return sum(space.size for space in before.free.values()) - sum(space.size for space in after.free.values())
