"""Several labels for each sample, each there or not."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from topiarist.errors import DataError
from topiarist.tasks import formulas
from topiarist.tasks.losses import TaskKind
from topiarist.tasks.probabilities import ProbabilityTask
from topiarist.tasks.regression import check_numbers

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class MultiLabel(ProbabilityTask):
    """Labels by name; targets (n_samples, n_labels) are 0 or 1, outputs are the logits of each label.

    Examples
    --------
    >>> str(MultiLabel(("red", "round", "ripe")))
    '3 labels: red, round, ripe'
    """

    kind: ClassVar[TaskKind] = "labels"
    reported: ClassVar[tuple[str, ...]] = ("roc_auc", "f1", "accuracy", "exact_match", "log_loss")
    calibration_metrics: ClassVar[tuple[str, ...]] = ("log_loss", "brier")
    credit_title: ClassVar[str] = "probability of what is true"

    labels: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The labels."""
        return self.labels

    def __str__(self) -> str:
        few = ", ".join(self.labels[:5]) + (", …" if len(self.labels) > 5 else "")
        return f"{len(self.labels)} label{'' if len(self.labels) == 1 else 's'}: {few}"

    def check_targets(self, y: object) -> None:
        """Raise an error for targets that are not 0 or 1 for each label."""
        check_numbers(y, len(self.labels), "labels")
        wrong = y[(y != 0) & (y != 1)]  # type: ignore[index]  # a tensor, which was just checked
        if len(wrong):
            raise DataError(f"labels must be 0 or 1; found {float(wrong[0]):g}")

    def answers(self, outputs: "Tensor") -> "Tensor":
        """Return the probability of each label."""
        return self.scaled(outputs).sigmoid()

    def losses(self, outputs: "Tensor", y: "Tensor") -> "Tensor":
        """Return the mean over labels of the binary cross-entropy, or of the focal loss, of each sample."""
        loss = self.named_loss
        each = (
            formulas.binary_focal(outputs, y, loss.number)
            if loss.name == "focal"
            else formulas.binary_entropy(outputs, y)
        )
        return each.mean(dim=-2)

    def losses_and_slopes(self, outputs: "Tensor", y: "Tensor") -> "tuple[Tensor, Tensor]":
        """Return the mean loss over labels of each sample, and its slope in the logits."""
        loss = self.named_loss
        focal = loss.name == "focal"
        slopes = formulas.binary_focal_slope(outputs, y, loss.number) if focal else outputs.sigmoid() - y
        return self.losses(outputs, y), slopes / len(self.labels)

    def distilled(
        self, outputs: "Tensor", teacher: "Tensor", y: "Tensor", *, weight: float, temperature: float
    ) -> "tuple[Tensor, Tensor]":
        """Return (1 − w) · loss with the labels + w · T² · binary cross-entropy with the teacher at temperature T."""
        soft, target = outputs / temperature, (teacher / temperature).sigmoid()
        taught = formulas.binary_entropy(soft, target).mean(dim=-2) * temperature**2
        slope = (soft.sigmoid() - target) * (temperature / len(self.labels))
        if weight == 1:  # the labels say nothing
            return taught, slope
        own, own_slope = self.losses_and_slopes(outputs, y)
        return own.lerp(taught, weight), own_slope.lerp(slope, weight)

    def divergence(self, outputs: "Tensor", teacher: "Tensor") -> "Tensor":
        """Return the sum over labels of the relative entropy of the answers, in nats."""
        return formulas.bernoulli_entropy(outputs, teacher)

    def credit(self, outputs: "Tensor", y: "Tensor") -> "Tensor":
        """Return the mean probability that what is true of each label is given."""
        return (-formulas.binary_entropy(outputs, y)).exp().mean(dim=1)

    def guess(self, y: "Tensor", weights: "Tensor | None" = None) -> "Tensor":
        """Return the logit of each label's prevalence."""
        wide = y.double()
        share = wide.new_ones(len(wide)) if weights is None else weights.double()
        return (wide * (share / share.sum())[:, None]).sum(dim=0).clamp(1e-6, 1 - 1e-6).logit()
