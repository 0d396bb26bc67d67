"""One number, or several, for each sample: standardised inside, and in the user's units outside."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy
from numpy.typing import NDArray

from topiarist.devices import in_float64
from topiarist.errors import DataError
from topiarist.files import JsonObject
from topiarist.tasks import formulas
from topiarist.tasks.losses import Loss, TaskKind
from topiarist.tasks.task import DIVERGED, Task

if TYPE_CHECKING:
    from torch import Tensor

SQUARED = Loss("squared")
ROUNDING = 1e-6  # of targets that are standardised in float32, about ten times its relative precision
SMALLEST_ERROR = 1e-12  # in deviations of the target: a smaller one is rounding


@dataclass(frozen=True)
class Regression(Task):
    """Numbers by name; targets and outputs are (n_samples, n_targets).

    Parameters
    ----------
    targets
        What the numbers are called.
    centre, scale
        An output o stands for o · scale + centre in the user's units; 0 and 1 where targets are left as they are.
    spread
        The deviation of the training targets as the network learns them: 1 where they are standardised. Errors of
        different targets are compared by it.

    Examples
    --------
    >>> str(Regression(("price",), centre=(200.0,), scale=(50.0,)))
    'a number: price'
    """

    kind: ClassVar[TaskKind] = "numbers"
    reported: ClassVar[tuple[str, ...]] = ("rmse", "mae", "r2")
    credit_title: ClassVar[str] = "share of the variance explained"

    targets: tuple[str, ...]
    centre: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    spread: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        count = len(self.targets)
        for name, usual in (("centre", 0.0), ("scale", 1.0), ("spread", 1.0)):
            found = tuple(float(value) for value in getattr(self, name)) or (usual,) * count
            if len(found) != count or not numpy.isfinite(found).all() or (usual and min(found) <= 0):
                raise DataError(f"the {name} of {count} targets must be a number for each; found {found}")
            object.__setattr__(self, name, found)

    @property
    def names(self) -> tuple[str, ...]:
        """The targets."""
        return self.targets

    def __str__(self) -> str:
        few = ", ".join(self.targets[:5]) + (", …" if len(self.targets) > 5 else "")
        return f"a number: {few}" if len(self.targets) == 1 else f"{len(self.targets)} numbers: {few}"

    def check_targets(self, y: object) -> None:
        """Raise an error for targets that are not finite numbers (n_samples, n_targets)."""
        check_numbers(y, len(self.targets), "targets")

    def standardised(self, values: NDArray[Any]) -> NDArray[numpy.float32]:
        """Return numbers in the user's units (n_samples, n_targets) as the network learns them."""
        moved = (values - numpy.array(self.centre)) / numpy.array(self.scale)
        return numpy.ascontiguousarray(moved, dtype=numpy.float32)

    def answers(self, outputs: "Tensor") -> "Tensor":
        """Return numbers in the user's units, in double precision: a price of 10⁹ has more digits than a float32."""
        wide = in_float64(outputs)
        return wide * wide.new_tensor(self.scale) + wide.new_tensor(self.centre)

    def finite_answers(self, outputs: "Tensor") -> "Tensor":
        """Return numbers in the user's units; what is not finite is far from all targets."""
        wide = in_float64(outputs)
        far = wide.new_tensor(self.spread) * DIVERGED
        return self.answers(wide.where(wide.isfinite(), far.expand_as(wide)))

    def losses(self, outputs: "Tensor", y: "Tensor") -> "Tensor":
        """Return the mean loss over targets of each sample."""
        return formulas.error_loss(outputs - y, self.named_loss).mean(dim=-2)

    def losses_and_slopes(self, outputs: "Tensor", y: "Tensor") -> "tuple[Tensor, Tensor]":
        """Return the mean loss over targets of each sample, and its slope in the outputs."""
        error = outputs - y
        losses, slopes = formulas.error_loss(error, self.named_loss), formulas.error_slope(error, self.named_loss)
        if len(self.targets) == 1:  # the usual case, of which a stack makes thousands of steps
            return losses.squeeze(-2), slopes
        return losses.mean(dim=-2), slopes.div_(len(self.targets))

    def distilled(
        self, outputs: "Tensor", teacher: "Tensor", y: "Tensor", *, weight: float, temperature: float
    ) -> "tuple[Tensor, Tensor]":
        """Return (1 − w) · loss with the targets + w · squared error from the teacher; there is no temperature."""
        error = outputs - teacher
        squared, slope = formulas.error_loss(error, SQUARED).mean(dim=-2), 2 * error / len(self.targets)
        if weight == 1:  # the targets say nothing
            return squared, slope
        own, own_slope = self.losses_and_slopes(outputs, y)
        return own.lerp(squared, weight), own_slope.lerp(slope, weight)

    def in_deviations(self, error: "Tensor") -> "Tensor":
        """Return errors of outputs (n_samples, n_targets) in deviations of the training targets."""
        return error / error.new_tensor(self.spread)

    def divergence(self, outputs: "Tensor", teacher: "Tensor") -> "Tensor":
        """Return the mean squared difference over targets, in deviations."""
        return self.in_deviations(outputs - teacher).square().mean(dim=1)

    def credit(self, outputs: "Tensor", y: "Tensor") -> "Tensor":
        """Return 1 less the squared error in deviations: the mean over samples is about R²."""
        return 1 - self.in_deviations(outputs - y).square().mean(dim=1)

    def true_answers(self, y: "Tensor") -> "Tensor":
        """Return targets in the user's units; those that rounding moved away from 0 are 0."""
        found = self.answers(self.as_targets(y))
        least = ROUNDING * (found.new_tensor(self.scale) + found.new_tensor(self.centre).abs())
        return found.where(found.abs() > least, 0.0)

    def score(self, outputs: "Tensor", y: "Tensor", weights: "Tensor | None" = None) -> float:
        """Return −ln of an error relative to the deviation: a loss of 0.02 is an RMSE, or an MAE, that is 2 % larger.

        Errors of several targets are compared in deviations, as in the proof.
        """
        metric = self.primary_metric
        if metric.errors is None or not metric.in_units or not bool(outputs.isfinite().all()):
            plain = super().score(outputs, y, weights)
            return -math.log(max(-plain, SMALLEST_ERROR)) if metric.relative else plain
        found, wanted = (self.in_deviations(each.detach().cpu().double()) for each in (outputs, self._wide(y)))
        errors = metric.errors(found.numpy(), wanted.numpy()).mean(axis=1)
        mean = float(numpy.average(errors, weights=None if weights is None else weights.cpu().numpy()))
        return -math.log(max(mean, SMALLEST_ERROR**metric.exponent)) / metric.exponent

    def guess(self, y: "Tensor", weights: "Tensor | None" = None) -> "Tensor":
        """Return the mean of each target, or the quantile that the loss aims at (the median for absolute and huber)."""
        wide, name = y.double(), self.named_loss.name
        share = wide.new_ones(len(wide)) if weights is None else weights.double()
        share = share / share.sum()
        if name == "squared":
            return (wide * share[:, None]).sum(dim=0)
        level = self.named_loss.number if name == "quantile" else 0.5
        ordered, rows = wide.sort(dim=0)
        reached = (share[rows].cumsum(dim=0) < level - 1e-9).sum(dim=0).clamp(max=len(wide) - 1)
        return ordered.gather(0, reached[None])[0]

    def to_record(self) -> JsonObject:
        """Return plain values."""
        numbers = {name: list(getattr(self, name)) for name in ("centre", "scale", "spread")}
        return super().to_record() | numbers


def check_numbers(y: object, count: int, what: str) -> None:
    """Raise an error for what is not finite numbers (n_samples, count)."""
    import torch  # noqa: PLC0415  # tasks are known without it

    if not isinstance(y, torch.Tensor) or not y.is_floating_point() or y.shape[1:] != (count,):
        found = f"{y.dtype} of shape {tuple(y.shape)}" if isinstance(y, torch.Tensor) else type(y).__name__
        raise DataError(f"{what} must be real numbers (n_samples, {count}); found {found}")
    if not bool(y.isfinite().all()):
        raise DataError(f"{what} must be finite; found {int((~y.isfinite()).sum())} that are missing or infinite")


def fit_regression(
    targets: tuple[str, ...], training: NDArray[Any], *, scaled: bool, name: str, loss: Loss | None = None
) -> Regression:
    """Return the task for training targets (n_samples, n_targets), standardised by them where `scaled`."""
    wide = numpy.asarray(training, dtype=float)
    centre, spread = wide.mean(axis=0), wide.std(axis=0)
    for target, mean, deviation in zip(targets, centre.tolist(), spread.tolist(), strict=True):
        if not deviation > SMALLEST_ERROR * max(1.0, abs(mean)) or len(wide) < 2:
            raise DataError(f"{name}: the target {target} is always {mean:g}: there is nothing to learn")
    if not scaled:
        return Regression(targets, spread=tuple(spread.tolist()), loss=loss)
    return Regression(targets, centre=tuple(centre.tolist()), scale=tuple(spread.tolist()), loss=loss)
