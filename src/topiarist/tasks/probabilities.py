"""Tasks whose answers are probabilities, which a temperature can make mean what they say."""

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar, Self

from topiarist.errors import DataError
from topiarist.files import JsonObject
from topiarist.tasks.task import Task

if TYPE_CHECKING:
    from torch import Tensor

DIGITS = 4  # of a temperature: more change no probability that is shown


@dataclass(frozen=True, kw_only=True)
class ProbabilityTask(Task):
    """A task of classes or labels: outputs are logits, and answers probabilities of logits / `temperature`.

    The temperature belongs to one network (Guo et al., On calibration of modern neural networks, 2017): two tasks that
    differ in it alone are equal. It changes no answer's order, so neither which class is named nor accuracy.
    """

    calibration_metrics: ClassVar[tuple[str, ...]]  # by which probabilities are seen to mean what they say

    temperature: float = field(default=1.0, compare=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.temperature < math.inf:
            raise DataError(f"a temperature must be a number above 0; found {self.temperature}")

    @property
    def chosen(self) -> JsonObject:
        """What was chosen besides names and loss, the temperature among it where it is not 1."""
        return super().chosen | ({} if self.temperature == 1 else {"temperature": self.temperature})

    def answering_like(self, other: Task | None) -> Self:
        """Return the task with the temperature of another one."""
        return replace(self, temperature=other.temperature) if isinstance(other, ProbabilityTask) else self

    def uncalibrated(self) -> Self:
        """Return the task at temperature 1."""
        return replace(self, temperature=1.0)

    def calibrated(self, outputs: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> Self:
        """Return the task with the temperature at which log loss is least; 1 where the samples do not tell."""
        from topiarist.statistics import fit_temperature  # noqa: PLC0415  # tasks are known without numpy

        if not len(y) or not bool(outputs.isfinite().all()):
            return self.uncalibrated()
        given = None if weights is None else weights.double().numpy()
        found = fit_temperature(outputs.double().numpy(), self.true_answers(y).numpy(), given)
        return replace(self, temperature=float(f"{found:.{DIGITS}g}"))

    def scaled(self, outputs: "Tensor") -> "Tensor":
        """Return logits divided by the temperature."""
        return outputs if self.temperature == 1 else outputs / self.temperature
