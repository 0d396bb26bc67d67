"""The race of widths: which multiple of its widths a network needs is found by training a little, from scratch.

At step 0 the network runs against itself with 2, 4 and 8 times the units, on the same batches, for half an epoch. What
counts is the cross-entropy on held-out samples, at a fitted temperature, plus a price for every doubling of the
parameters. The winner of a race that began with an untrained network simply goes on; a trained network grows once, by
fresh units, to the widths that the race found. Neither effective ranks nor gradients of fresh units tell as much: they
follow the correlation of the inputs, not the need.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from topiarist.devices import in_float64
from topiarist.methods.surgeon.branches import Branch
from topiarist.methods.surgeon.evolution import EditCandidate, Evolution
from topiarist.methods.surgeon.wider_networks import NEARLY_FREE, Factors, forgotten, groups_of, more, redraw
from topiarist.models.copying import copied
from topiarist.surgery import Edit, GrowSpace, WidenSpace
from topiarist.surgery.choice.costs import Costs
from topiarist.tasks import Task
from topiarist.tracing import Anatomy
from topiarist.training.inference import part_logits
from topiarist.training.metrics import better_than_chance

# Learning curves of 17 topologies on 4,000 samples of CIFAR-10 and of Fashion-MNIST, three seeds each: by the mean of
# three looks, sizes are chosen that gain 4.6 points on CIFAR-10 (from 10 units) and 6.5 (from 10-10-10), and 160 units
# stay in 6 of 6; by one look at the end, 2.8 and 6.3 points, and 160 units stay in 3 of 6.
LENGTH = 0.5  # of an epoch: how long networks race,
FEWEST, SHARE = 125, 0.05  # but so many steps at least, as far as that is no more than this share of the training
LOOKS = (0.5, 0.75, 1.0)  # of the race
PRICE = 10.0  # times the price of size: 0.01 nats per doubling of the parameters at the balanced aim
DOUBT = 0.5  # standard errors of the gain over samples that it must exceed: 1 keeps 10 units of CIFAR-10 at 40, not 80
TEMPERATURES = 2.0 ** torch.linspace(-4, 4, 33)


@dataclass(frozen=True, kw_only=True)
class Entrant:
    """A network in the race: its factor of each space, and its losses (n_samples,) at each look so far."""

    branch: Branch
    factors: Factors
    losses: tuple[Tensor, ...] = ()

    @property
    def each(self) -> Tensor:
        """The mean over looks for each sample: one look alone is as noisy as a doubling is worth."""
        return torch.stack(self.losses).mean(dim=0)

    @property
    def loss(self) -> float:
        """The mean over looks and samples."""
        return float(self.each.mean())


@dataclass(frozen=True)
class Climb:
    """Spaces that are widened together, and the share by which that may make the network larger."""

    group: Sequence[str]
    limit: float
    costs: Costs


@dataclass(kw_only=True)
class WidthRace:
    """One race of widths: `price` is what a doubling costs in nats, `most` the largest factor, `fits` asks the budget.

    A trained network grows by copies that can diverge where `copies` says so, else by fresh units.
    """

    evolution: Evolution
    price: float
    most: int
    fits: Callable[[nn.Module], bool]
    copies: bool = False
    tried: list[Branch] = field(default_factory=list)

    def run(self, start: Branch, found: Anatomy) -> Branch:
        """Return the network to go on with: the start as it is, or a wider one."""
        trained = better_than_chance(
            *part_logits(start.model, self.evolution.setup.data.validation), self.evolution.setup.data.task
        )
        first = self._operated(start, (), "to compare with")
        assert first is not None
        like = forgotten(start.model, self.evolution.seed("forget")) if trained else start.model
        same = Entrant(branch=replace(first, model=copied(like)), factors=dict.fromkeys(found.free, 1))
        best = same = self._raced(same, None)
        costs = Costs(start.model, found)
        groups = groups_of(costs, start.model, found)
        for group in groups:
            limit = NEARLY_FREE if group == groups[0] and len(groups) > 1 else math.inf
            best = self._climbed(start, best, Climb(group, limit, costs), found, like)
        winner = best.branch if best is same or not trained else self._grown(start, best, found)
        kept = replace(start, node=first.node) if best is same and trained else winner
        return self._decided(start, kept, same, best)

    def _climbed(self, start: Branch, best: Entrant, climb: Climb, found: Anatomy, like: nn.Module) -> Entrant:
        """Double the widths of a group until that does not pay twice in a row; a second try ends once behind."""
        missed, factor = False, 1
        while (factor := 2 * factor) <= self.most:
            factors = {
                name: max(known, factor) if name in climb.group else known for name, known in best.factors.items()
            }
            if more(climb.costs, factors) > climb.limit:
                break
            entrant = best if factors == best.factors else self._widened(start, factors, found, like)
            if entrant is None:
                break
            raced = entrant if entrant is best else self._raced(entrant, best if missed else None)
            if raced is best or self.pays(raced, best):
                best, missed = raced, False
            elif missed:
                break
            else:
                missed = True
        return best

    @property
    def measure(self) -> str:
        """What the race is decided by, in words."""
        numbers = self.evolution.setup.data.task.kind == "numbers"
        return "negative log-likelihood" if numbers else "cross-entropy"

    @property
    def length(self) -> int:
        """The steps of the race."""
        evolution = self.evolution
        return max(round(LENGTH * evolution.per_epoch), min(FEWEST, round(SHARE * evolution.last_step)))

    def _raced(self, entrant: Entrant, leader: Entrant | None) -> Entrant:
        """Train a network for half an epoch; where a leader is given, it leaves once it is behind at the same look."""
        evolution = self.evolution
        for number, look in enumerate(LOOKS):
            target = max(1, round(look * self.length))
            (branch,) = evolution.train([entrant.branch], target - entrant.branch.steps)
            data = evolution.setup.data
            losses = held_out_losses(*part_logits(branch.model, data.validation), data.task)
            entrant = replace(entrant, branch=branch, losses=(*entrant.losses, losses))
            evolution.record(branch, -self.score(entrant))
            if not math.isfinite(entrant.loss):
                break
            if leader is not None and self._at(entrant, number) >= self._at(leader, number):
                break
        return entrant

    def score(self, entrant: Entrant) -> float:
        """Return the mean cross-entropy plus the price of the size, in nats; less is better."""
        return self._priced(entrant, entrant.loss)

    def pays(self, wider: Entrant, best: Entrant) -> bool:
        """Return whether a wider network is worth its size beyond the doubt that the samples leave."""
        if len(wider.losses) < len(best.losses) or not math.isfinite(wider.loss):
            return False
        gains = (best.each - wider.each).double()
        doubt = DOUBT * float(gains.std()) / math.sqrt(len(gains)) if len(gains) > 1 else 0.0
        return self.score(best) - self.score(wider) > doubt

    def _at(self, entrant: Entrant, look: int) -> float:
        return self._priced(entrant, float(entrant.losses[look].mean()))

    def _priced(self, entrant: Entrant, loss: float) -> float:
        size = entrant.branch.parameters / self.evolution.start_parameters
        return loss + self.price * math.log2(size) if math.isfinite(loss) else math.inf

    def _widened(self, start: Branch, factors: Factors, found: Anatomy, like: nn.Module) -> Entrant | None:
        """Return a wider network from scratch; None where the network or the budget does not allow it."""
        seed = self.evolution.seed("widths", *(f"{name}/{factor}" for name, factor in factors.items()))
        branch = self._operated(start, self._edits(factors, found, seed), f"race of widths: {said_of(factors)}")
        if branch is None:
            return None
        if not self.fits(branch.model):
            self.evolution.drop(branch, "above the budget")
            return None
        redraw(branch.model, like, self.evolution.seed("redraw"))
        return Entrant(branch=replace(branch, memory={}), factors=factors)

    def _edits(self, factors: Factors, found: Anatomy, seed: int) -> tuple[Edit, ...]:
        more = {name: (factor - 1) * found.free[name].size for name, factor in factors.items() if factor > 1}
        kind = WidenSpace if self.copies else GrowSpace
        return tuple(kind(space=name, by=by, seed=seed) for name, by in more.items())

    def _operated(self, start: Branch, edits: tuple[Edit, ...], reason: str) -> Branch | None:
        kind = ("widen" if self.copies else "grow") if edits else "identity"
        candidate = EditCandidate(branch=start, kind=kind, edits=edits, reason=reason)
        branch = self.evolution.edit(candidate, self.evolution.lineage.next_decision)
        if branch is not None:
            self.tried.append(branch)
        return branch

    def _grown(self, start: Branch, best: Entrant, found: Anatomy) -> Branch:
        """Return the trained start with as many units as won the race, which computes what it computed."""
        edits = self._edits(best.factors, found, self.evolution.seed("grown"))
        branch = self._operated(start, edits, f"a race from scratch found {said_of(best.factors)}")
        assert branch is not None  # the same edits were made for the race
        (evaluated,) = self.evolution.train([branch], 0)
        self.evolution.record(evaluated, -self.score(best))
        return evaluated

    def _decided(self, start: Branch, winner: Branch, same: Entrant, best: Entrant) -> Branch:
        compared = f"after {self.length} steps from scratch, {self.measure} {same.loss:.3f} as it is"
        said = compared if best is same else f"{compared} and {best.loss:.3f} with {said_of(best.factors)}"
        for branch in self.tried:
            if branch.node != winner.node and branch.node != start.node:
                self.evolution.drop(
                    branch, "not worth its size" if branch.node != same.branch.node else "a wider one is better"
                )
        self.evolution.mark([start], "kept")
        edit = self.evolution.lineage.nodes[winner.node].edit
        number = self.evolution.lineage.next_decision
        self.evolution.decide(number=number, draw=0, tried=self.tried, kept=[winner], reason=f"{edit} ({said})")
        return winner


def said_of(factors: Factors) -> str:
    """Name the factors of a network."""
    return (
        ", ".join(f"{factor} × '{name}'" for name, factor in factors.items() if factor > 1) or "all widths as they are"
    )


def held_out_losses(logits: Tensor, labels: Tensor, task: Task | None = None) -> Tensor:
    """Return each sample's cross-entropy at the best of many temperatures: confidence says little so early.

    Of numbers, the negative log-likelihood of each sample at the deviation of the errors: ½ · (e² / σ² + ln σ²).
    """
    if task is not None and task.kind == "numbers":
        errors = in_float64(task.divergence(logits, task.as_targets(labels)))
        spread = errors.mean().clamp(min=1e-12)
        return (0.5 * (errors / spread + spread.log())).to(logits)
    if task is not None and task.kind == "labels":
        tried = (TEMPERATURES.to(logits)[:, None, None] * logits).mT
        each = task.losses(tried, task.as_targets(labels).T.to(logits)) * task.outputs
        return each[each.mean(dim=1).argmin()]
    scaled = TEMPERATURES.to(logits)[:, None, None] * logits
    truth = labels.expand(len(scaled), -1)
    losses = nn.functional.cross_entropy(scaled.permute(0, 2, 1), truth, reduction="none")
    return losses[int(losses.mean(dim=1).argmin())]
