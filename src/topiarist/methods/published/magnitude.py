"""Pruning while training as published: Ooi, Peksi and Gan, Ensemble of pruned low-complexity models (2020).

400 epochs with Adam at 0.0001, pruned by a polynomial schedule from 10 % to 80 % of the weights; no unit is cut out.
"""

from typing import Any, ClassVar

from pydantic import model_validator

from topiarist.methods.magnitude.magnitude import PruningMethod
from topiarist.methods.method import Traits
from topiarist.methods.retraining import Rewinding
from topiarist.training import TrainConfig

INITIAL_SPARSITY = 0.1  # s_i of the paper, section 4
TRAINING = TrainConfig(epochs=400, batch_size=128, learning_rate=0.0001, weight_decay=0.002)


class PublishedMagnitude(PruningMethod):
    """Train a network as the paper does, from whatever weights it has, and prune it on the way."""

    name: ClassVar[str] = "published-magnitude"
    traits: ClassVar[Traits] = Traits(
        summary="Prune weights while training for 400 epochs, as published.",
        in_rightsizing=False,
        all_samples=True,
    )

    @model_validator(mode="before")
    @classmethod
    def _start_at_ten_per_cent(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("schedule", "polynomial") not in ("polynomial", "linear"):
            return values
        sparsity = values.get("sparsity", INITIAL_SPARSITY)
        initial = min(INITIAL_SPARSITY, sparsity) if isinstance(sparsity, int | float) else INITIAL_SPARSITY
        return {"initial_sparsity": initial, **values}

    @property
    def has_own_target(self) -> bool:
        """The paper's sparsity decides."""
        return True

    def usual_retraining(self, seed: int) -> Rewinding:
        """Return the paper's training, from its first epoch."""
        return Rewinding(epoch=0, training=TRAINING.model_copy(update={"seed": seed}))
