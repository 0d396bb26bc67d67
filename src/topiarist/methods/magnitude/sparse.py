"""A network pruned while it is trained, and what follows: units that do nothing are cut out, weights are rounded."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.methods.job import Job
from topiarist.methods.retraining import FineTuning, Rewinding, retrain
from topiarist.models import Ensemble, attach, card_for, card_of
from topiarist.models.card import Bits
from topiarist.models.ensemble import members_of
from topiarist.models.evaluation import kernels_of
from topiarist.randomness import child_seed
from topiarist.storage.quantising import rounded
from topiarist.surgery import compact
from topiarist.surgery.applying import copied_with_plan
from topiarist.surgery.choice.weights import removed_counts, unit_weights
from topiarist.training import History
from topiarist.training.engines.pruner import Pruner
from topiarist.training.pruning import Pruning

Members = tuple[nn.Module, ...]


@dataclass(frozen=True)
class PrunedNetwork:
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

    def widths_at(self, sparsity: float) -> dict[str, int] | None:
        """Return the widths of the network once a share of its units is cut out; None where scores decide them."""
        if not (self.pruning.units and self.compacts and self.pruning.scope == "layer"):
            return None
        spaces = self.job.request().remember("prunable", lambda: unit_weights(self.job.whole, self.job.example_input))
        sizes = {name: space.size for name, space in spaces.items()}
        gone = removed_counts(sizes, sparsity)
        return {name: size - gone[name] for name, size in sizes.items()}

    def train(self, members: Members, sparsity: float) -> PrunedNetwork:
        """Train members again, each by itself, and prune them on the way."""
        pruning, trained = self._pruned_to(sparsity), []
        for member in members:
            job = self._member_job(member)
            trained += retrain([job], [member], self.retraining(job.seed), pruning=pruning)
        networks, histories = [network for network, _ in trained], tuple(history for _, history in trained)
        return PrunedNetwork(self.finished(members, networks), histories)

    def at_once(self, members: Members, sparsity: float) -> nn.Module:
        """Prune members by magnitude without training them, to see how large they become."""
        copies = [copied_with_plan(member) for member in members]
        pruning, sample = self._pruned_to(sparsity).model_copy(update={"score": "magnitude"}), self.job.sample
        assert isinstance(sample, Tensor)  # there are data: pruning while training needs them
        for copy in copies:
            Pruner(copy, pruning, {0: sparsity}, example_input=sample).before_epoch(0)
        return self.finished(members, copies)

    def finished(self, members: Members, pruned: Sequence[nn.Module]) -> nn.Module:
        """Cut out what does nothing, round the weights, and join what the members became."""
        done = [rounded(self._compacted(network), self.bits) for network in pruned]
        whole = self.job.whole
        if isinstance(whole, Ensemble):
            weights = dict(zip(map(id, whole.members), whole.weights.tolist(), strict=True))
            model: nn.Module = Ensemble(done, [weights[id(member)] for member in members])
        else:
            (model,) = done
        card = card_for(model, self.job.labelled("pruning"))
        attach(model, replace(card, bits=self.bits, training=card_of(whole).training))
        return model

    def reasons(self, found: PrunedNetwork) -> tuple[str, ...]:
        """Return what was done, a line each."""
        what, pattern = "units" if self.pruning.units else "weights of its kernels", self.pruning.pattern
        share = f"{100 * found.sparsity:.1f} %" if pattern is None else f"{pattern[0]} of every {pattern[1]}"
        lines = [f"pruned while training: {share} of the {what}, by {self.pruning.score}"]
        before, after = len(self.members), len(members_of(found.model))
        if after < before:
            lines.append(f"{after} of {before} members fit: the others were left out, the weakest first")
        elif gone := self._units_cut_out(found.model):
            lines.append(f"{gone} units that had nothing left to do were cut out")
        kernels = list(kernels_of(found.model).values())
        zeros, total = sum(int((kernel == 0).sum()) for kernel in kernels), sum(kernel.numel() for kernel in kernels)
        left = f"{zeros:,} of the {total:,} kernel weights that are left are zero"
        return (*lines, f"{left}: saved at {self.bits} bits per weight")

    def _member_job(self, member: nn.Module) -> Job:
        """Return the job of training one member, with a seed of its own."""
        number = next(place for place, known in enumerate(self.members) if known is member)
        seed = self.job.seed if number == 0 else child_seed(self.job.seed, "member", number) % 2**32
        early = self.job.early
        if isinstance(early, Ensemble) and len(early.members) == len(self.members):
            early = early.members[number]
        return replace(self.job, whole=member, early=early, seed=seed, memory={})

    def _pruned_to(self, sparsity: float) -> Pruning:
        if self.pruning.pattern is not None:
            return self.pruning
        initial = min(self.pruning.initial_sparsity, sparsity)
        return self.pruning.model_copy(update={"sparsity": sparsity, "initial_sparsity": initial})

    def _compacted(self, member: nn.Module) -> nn.Module:
        try:
            return compact(member, self.job.sample) if self.compacts else member
        except ModelError:  # a network that cannot be traced: nothing is cut out, and nothing is wrong
            return member

    def _units_cut_out(self, network: nn.Module) -> int:
        try:
            after = self.job.request(network).anatomy.free.values()
            return sum(self.job.widths.values()) - sum(space.size for space in after)
        except ModelError:  # then there was no compaction either
            return 0
