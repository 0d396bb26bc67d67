"""One class of several for each sample."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from topiarist.devices import in_float64
from topiarist.errors import DataError
from topiarist.tasks import formulas
from topiarist.tasks.losses import TaskKind
from topiarist.tasks.probabilities import ProbabilityTask

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Classification(ProbabilityTask):
    """Classes by name; targets are class numbers (n_samples,), outputs are logits (n_samples, n_classes).

    Examples
    --------
    >>> str(Classification(("cat", "dog")))
    '2 classes'
    """

    kind: ClassVar[TaskKind] = "classes"
    reported: ClassVar[tuple[str, ...]] = ("accuracy", "macro_accuracy", "log_loss")
    calibration_metrics: ClassVar[tuple[str, ...]] = ("log_loss", "brier", "calibration_error")
    credit_title: ClassVar[str] = "accuracy"

    classes: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The classes."""
        return self.classes

    def __str__(self) -> str:
        return f"{len(self.classes)} classes"

    def check_targets(self, y: object) -> None:
        """Raise an error for labels that are not the number of a class."""
        import torch  # noqa: PLC0415  # tasks are known without it

        if not isinstance(y, torch.Tensor) or y.ndim != 1 or y.dtype != torch.int64:
            found = f"{y.dtype} of shape {tuple(y.shape)}" if isinstance(y, torch.Tensor) else type(y).__name__
            raise DataError(f"labels must be class numbers, one whole number (int64) per sample; found {found}")
        last = len(self.classes) - 1
        if len(y) and not 0 <= int(y.min()) <= int(y.max()) <= last:
            raise DataError(f"labels must be class numbers from 0 to {last}; found {int(y.min())} to {int(y.max())}")

    def as_targets(self, y: "Tensor") -> "Tensor":
        """Return class numbers as they are."""
        return y

    def stacked_targets(self, y: "Tensor") -> "Tensor":
        """Return class numbers (…, n_samples) as (…, 1, n_samples)."""
        return y.unsqueeze(-2)

    def answers(self, outputs: "Tensor") -> "Tensor":
        """Return probabilities."""
        return self.scaled(outputs).softmax(dim=1)

    def true_answers(self, y: "Tensor") -> "Tensor":
        """Return class numbers as they are."""
        return y

    def losses(self, outputs: "Tensor", y: "Tensor") -> "Tensor":
        """Return the cross-entropy or the focal loss of each sample."""
        loss = self.named_loss
        return formulas.focal(outputs, y, loss.number) if loss.name == "focal" else formulas.cross_entropy(outputs, y)

    def losses_and_slopes(self, outputs: "Tensor", y: "Tensor") -> "tuple[Tensor, Tensor]":
        """Return the loss of each sample and its slope in the logits."""
        loss = self.named_loss
        if loss.name == "focal":
            return formulas.focal_and_slope(outputs, y, loss.number)
        return formulas.cross_entropy_and_slope(outputs, y)

    def distilled(
        self, outputs: "Tensor", teacher: "Tensor", y: "Tensor", *, weight: float, temperature: float
    ) -> "tuple[Tensor, Tensor]":
        """Return (1 − w) · loss with the labels + w · T² · cross-entropy of both networks' answers at temperature T."""
        soft, target = (outputs / temperature).log_softmax(dim=-2), (teacher / temperature).softmax(dim=-2)
        teacher_loss = (target * soft).sum(dim=-2).neg_() * temperature**2
        teacher_slope = (soft.exp() - target) * temperature
        if weight == 1:  # the labels say nothing
            return teacher_loss, teacher_slope
        if self.named_loss.name == "focal":
            label_loss, label_slope = formulas.focal_and_slope(outputs, y, self.named_loss.number)
        else:
            hard = outputs.log_softmax(dim=-2)
            label_loss = hard.gather(-2, y).neg_().squeeze(-2)
            label_slope = hard.exp().scatter_add_(-2, y, -y.new_ones(y.shape, dtype=outputs.dtype))
        return label_loss.lerp(teacher_loss, weight), label_slope.lerp(teacher_slope, weight)

    def mean_loss(
        self, outputs: "Tensor", y: "Tensor", *, weights: "Tensor | None" = None, class_weights: "Tensor | None" = None
    ) -> "Tensor":
        """Return the mean loss; classes may weigh differently."""
        from torch.nn import functional  # noqa: PLC0415  # tasks are known without torch

        if self.own_loss is None and self.named_loss.name == "cross-entropy" and weights is None:
            if class_weights is None:
                return functional.cross_entropy(outputs, y)
            total = functional.cross_entropy(outputs, y, weight=class_weights, reduction="sum")
            return total / class_weights[y].sum().clamp(min=1e-30)
        if class_weights is not None:
            weights = class_weights[y] if weights is None else class_weights[y] * weights
        return super().mean_loss(outputs, y, weights=weights)

    def _wide(self, y: "Tensor") -> "Tensor":
        return y

    def divergence(self, outputs: "Tensor", teacher: "Tensor") -> "Tensor":
        """Return the relative entropy of the answers, in nats."""
        return formulas.relative_entropy(outputs, teacher)

    def credit(self, outputs: "Tensor", y: "Tensor") -> "Tensor":
        """Return the probability that each sample's true class is given."""
        return outputs.softmax(dim=1).gather(1, y[:, None])[:, 0]

    def rightness(self, outputs: "Tensor", y: "Tensor") -> "Tensor":
        """Return 1 for each sample whose true class is named, and 0 for others."""
        return in_float64(outputs.argmax(dim=1) == y)

    def confusion(self, outputs: "Tensor", y: "Tensor") -> "Tensor":
        """Return the counts (n_classes, n_classes) of true classes by named ones."""
        count = len(self.classes)
        return (y * count + outputs.argmax(dim=1)).bincount(minlength=count**2).reshape(count, count)

    def guess(self, y: "Tensor", weights: "Tensor | None" = None) -> "Tensor":
        """Return the logarithms of the shares of the classes: the most frequent one is named."""
        counts = y.bincount(weights=weights, minlength=len(self.classes)).double()
        return (counts / counts.sum()).clamp(min=1e-12).log()
