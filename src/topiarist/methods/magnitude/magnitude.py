"""Pruning while training: the weights that matter least become zero, step by step, and the file shrinks with them.

After Ooi, Peksi and Gan, Ensemble of pruned low-complexity models (2020), who follow Zhu and Gupta (2017);
`published.Magnitude` has it as they do. What the paper lacks: units that the zeros emptied are cut out, the file holds
what is not zero (and, if asked, 16 or 8 bits per weight), and its size is what a budget limits.
"""

from typing import ClassVar

from pydantic import Field

from topiarist.errors import SettingsError
from topiarist.methods.job import Job, Limits
from topiarist.methods.magnitude.search import SparsitySearch
from topiarist.methods.magnitude.sparse import Sparsifying
from topiarist.methods.method import Resizing, TrainingMethod, Traits
from topiarist.methods.outcome import Outcome
from topiarist.methods.retraining import FineTuning, Rewinding
from topiarist.models.card import Bits
from topiarist.training import TrainConfig
from topiarist.training.pruning import Pruning, PruningPhase, Scope

EPOCHS = 20  # of training while pruning, where nothing else is said: the schedule needs some epochs after its last step
CANDIDATE_EPOCHS = 0.04  # of those of the fine-tuning that follows in a rightsizing


class PruningMethod(TrainingMethod, Pruning):
    """What pruning while training, ours and as published, has in common."""

    bits: Bits = Field(default=32, description="Bits per weight in the packed file: 32, 16 or 8.")
    highest_sparsity: float = Field(
        default=0.9, gt=0, lt=1, description="An ensemble that would need a higher sparsity loses its weakest members."
    )

    @property
    def cuts_out_units(self) -> bool:
        """Whether units that the zeros emptied are cut out."""
        return False

    def usual_retraining(self, seed: int) -> FineTuning | Rewinding:
        """Return how a network is trained where nothing else is said."""
        return FineTuning(epochs=EPOCHS)

    def pruning_for(self, retraining: FineTuning | Rewinding | None) -> Pruning:
        """Return what is pruned, and when, in a training that is given or the usual one."""
        own = {name for name in type(self).model_fields if name not in Pruning.model_fields}
        return Pruning(**{**self.unless_given(retraining), **self.model_dump(exclude=own, exclude_unset=True)})

    def unless_given(self, retraining: FineTuning | Rewinding | None) -> dict[str, Scope | PruningPhase]:
        """Return settings of the pruning that hold unless the user says otherwise."""
        return {}

    def run(self, job: Job, resizing: Resizing) -> Outcome:
        """Train a network again, and prune it on the way."""
        job.labelled(self.name)
        if resizing.finetune is not None:
            raise SettingsError(
                "magnitude prunes while it trains: give retraining, or hold surgery.Masks in your own training loop"
            )
        given = resizing.retraining
        sparse = Sparsifying(
            job=job,
            pruning=self.pruning_for(given),
            retraining=self.usual_retraining if given is None else lambda _: given,
            bits=self.bits,
            highest=self.highest_sparsity,
            compacts=self.cuts_out_units,
        )
        return SparsitySearch(sparse, resizing.budget).run()


class Magnitude(PruningMethod):
    """Prune a network while it is trained again; an ensemble is pruned member by member.

    Without a `sparsity` or a budget, 80 % of the weights go. A budget in KB is that of the packed file: the lowest
    sparsity that keeps it is chosen. Zeros are still parameters that are multiplied: limits on these, and on latency,
    need `units`. Unless other retraining is given, it trains for 20 epochs.
    """

    # benchmarks.unstructured, five other networks on digits, 20 epochs: 90 and 95 % of single weights pruned layer by
    # layer in the middle half leave 91.0 and 63.8 % of 97.9; ranked together 94.7 and 85.1; early too 96.4 and 91.4.
    scope: Scope = Field(
        default="global",
        description="Rank all weights together (global), or prune the same fraction of each layer, "
        "as units and patterns are pruned unless this is given.",
    )
    when: PruningPhase = Field(
        default="early",
        description="Prune early, in the first quarter of the training, or in its middle half, as units, by other "
        "scores than the magnitude, and networks that are rewound are pruned unless this is given.",
    )
    name: ClassVar[str] = "magnitude"
    traits: ClassVar[Traits] = Traits(
        summary="Prune weights or units while training; the file is packed.",
        relative_cost=3.5,
        marker="diamond",
    )

    @property
    def cuts_out_units(self) -> bool:
        """Units that do nothing are cut out, unless that would break the pattern of those that stay."""
        return self.pattern is None

    @property
    def has_own_target(self) -> bool:
        """Whether the sparsity, and not a budget, is given."""
        return self.pattern is not None or "sparsity" in self.model_fields_set

    def unless_given(self, retraining: FineTuning | Rewinding | None) -> dict[str, Scope | PruningPhase]:
        """Return the best known for single weights of a trained network, and otherwise the plain settings."""
        if self.units or self.pattern is not None:
            return {}
        early = self.score == "magnitude" and not isinstance(retraining, Rewinding)
        return {"scope": "global", "when": "early" if early else "middle"}

    @classmethod
    def candidate(cls, job: Job, limits: Limits, training: TrainConfig) -> Resizing:
        """Prune units for a short while: what is left has no zeros, and is fine-tuned afterwards."""
        epochs = max(1, round(CANDIDATE_EPOCHS * training.epochs))
        retraining = FineTuning(epochs=epochs, learning_rate=training.learning_rate)
        return Resizing.within(cls(units=True), limits, retraining)
