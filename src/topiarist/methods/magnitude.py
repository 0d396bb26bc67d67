"""Pruning while training: the weights that matter least become zero, step by step, and the file shrinks with them.

After Ooi, Peksi and Gan, Ensemble of pruned low-complexity models (2020), who follow Zhu and Gupta (2017). What the
paper lacks: units that the zeros emptied are cut out, the file holds what is not zero (and, if asked, 16 or 8 bits a
weight), and its size is what a budget limits.
"""

from collections.abc import Sequence

from pydantic import Field, model_validator

from topiarist.errors import SettingsError
from topiarist.methods.jobs import Job
from topiarist.methods.retraining import FineTuning, Rewinding
from topiarist.methods.shaping import Shaped, Shaping
from topiarist.methods.sparse import Sparsifying
from topiarist.methods.sparsity_search import SparsitySearch
from topiarist.models.card import Bits
from topiarist.training import TrainConfig
from topiarist.training.pruning import Pruning

EPOCHS = 20
INITIAL = 0.1  # sparsity of the paper's first pruning
POLYNOMIAL = ("polynomial", "linear")
PUBLISHED = TrainConfig(epochs=400, batch_size=128, learning_rate=0.0001, weight_decay=0.002)


class Magnitude(Pruning):
    """Prune a network while it is trained again; an ensemble is pruned member by member.

    Without a `sparsity` or a budget, 80 % of the weights go. A budget in KB is that of the packed file, with `bits` a
    weight: the lowest sparsity that keeps it is chosen; an ensemble that would need more than `highest_sparsity` loses
    its weakest members. Zeros are still parameters that are multiplied: limits on these, and on latency, need
    `units`. Training is `FineTuning` for 20 epochs unless `shape` is given another. With `published`, it is the
    paper's, 400 epochs from whatever weights the network has, and no unit is cut out.
    """

    published: bool = False
    bits: Bits = 32
    highest_sparsity: float = Field(default=0.9, gt=0, lt=1)

    @model_validator(mode="before")
    @classmethod
    def _paper(cls, values: object) -> object:
        """Start at the sparsity that the paper starts at."""
        if isinstance(values, dict) and values.get("published") and values.get("schedule", "polynomial") in POLYNOMIAL:
            sparsity = values.get("sparsity", INITIAL)
            return {"initial_sparsity": min(INITIAL, sparsity) if isinstance(sparsity, float) else INITIAL, **values}
        return values

    @property
    def rounds(self) -> int:
        """It goes its way in one training."""
        return 1

    @property
    def stops_itself(self) -> bool:
        """Say whether the sparsity, and not a budget, is given."""
        return self.published or self.pattern is not None or "sparsity" in self.model_fields_set

    @property
    def pruning(self) -> Pruning:
        """Give the settings of the pruning alone."""
        own = {name for name in type(self).model_fields if name not in Pruning.model_fields}
        return Pruning(**self.model_dump(exclude=own, exclude_unset=True))

    def shape_together(self, jobs: Sequence[Job], shaping: Shaping) -> list[Shaped]:
        """Train networks again, and prune them on the way."""
        if shaping.finetune is not None:
            raise SettingsError(
                "magnitude prunes while it trains: give retraining, or hold surgery.Masks in your own training loop"
            )
        return [SparsitySearch(self._sparsifying(job, shaping), shaping.budget).run() for job in jobs]

    def usual_retraining(self, seed: int) -> FineTuning | Rewinding:
        """Give how a network is trained where nothing else is said."""
        if self.published:
            return Rewinding(epoch=0, training=PUBLISHED.model_copy(update={"seed": seed}))
        return FineTuning(epochs=EPOCHS)

    def _sparsifying(self, job: Job, shaping: Shaping) -> Sparsifying:
        given = shaping.retraining
        return Sparsifying(
            job=job,
            pruning=self.pruning,
            retraining=self.usual_retraining if given is None else lambda _: given,
            bits=self.bits,
            highest=self.highest_sparsity,
            compacts=not self.published and self.pattern is None,  # a cut would break the pattern of those that stay
        )
