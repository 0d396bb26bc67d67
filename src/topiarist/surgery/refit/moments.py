"""Sums over samples from which least squares is solved, so that activations need not fit in memory."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from topiarist.devices import in_float64
from topiarist.errors import DataError

RIDGE = 1e-4  # of the mean second moment of the features: see docs/methods/index.md, "Refit"
SMALLEST = 1e-100  # a ridge for features that are all zero
# Of the mean second moment about zero: what rounding leaves of the variances of features that are all constant. A ridge
# below that would be one of noise, and the weights without bound.
ROUNDING = 1e-14


@dataclass
class Spread:
    """Mean and variance along the second axis of tensors (n_samples, n_units, …).

    Each sample is summed up in the tensors' own type, all of them in float64: `torch.var_mean` takes 20 times as long.
    """

    count: int = 0
    total: Tensor | float = 0.0
    squares: Tensor | float = 0.0

    def add(self, x: Tensor) -> None:
        """Add samples."""
        values = x.unsqueeze(-1).flatten(2)
        self.count += len(values) * values.shape[2]
        self.total = self.total + in_float64(values.sum(-1)).sum(0)
        self.squares = self.squares + in_float64(torch.linalg.vector_norm(values, dim=-1)).square().sum(0)

    @property
    def mean(self) -> Tensor:
        """Return the means (n_units,)."""
        return torch.as_tensor(self.total) / self.count

    @property
    def variance(self) -> Tensor:
        """Return the variances (n_units,)."""
        return (torch.as_tensor(self.squares) / self.count - self.mean**2).clamp_min(0)


@dataclass
class Moments:
    """First and second moments of features (n_samples, n_features) and targets (n_samples, n_targets), in float64."""

    count: int = 0
    feature_sum: Tensor | float = 0.0
    target_sum: Tensor | float = 0.0
    features: Tensor | float = 0.0
    products: Tensor | float = 0.0

    def add(self, features: Tensor, targets: Tensor | None = None) -> None:
        """Add samples; without targets, only the features count."""
        x = in_float64(features)
        y = x[:, :0] if targets is None else in_float64(targets)
        self.count += len(x)
        self.feature_sum = self.feature_sum + x.sum(0)
        self.target_sum = self.target_sum + y.sum(0)
        self.features = self.features + x.T @ x
        self.products = self.products + x.T @ y

    def include(self, other: "Moments") -> None:
        """Add the samples of other moments of the same features and targets."""
        self.count += other.count
        for name in ("feature_sum", "target_sum", "features", "products"):
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def restricted(self, features: Sequence[int], targets: Tensor | None = None) -> "Moments":
        """Return the moments as they are with some of the features, and of the targets, alone."""
        kept = slice(None) if targets is None else targets
        x, y, gram, products = map(torch.as_tensor, (self.feature_sum, self.target_sum, self.features, self.products))
        kept_features = list(features)
        gram = gram[kept_features][:, kept_features]
        return Moments(self.count, x[kept_features], y[kept], gram, products[kept_features][:, kept])

    def covariances(self) -> tuple[Tensor, Tensor]:
        """Return the covariance of the features, and that of the features with the targets (n_features, n_targets)."""
        return self.central(centred=True)[:2]

    def central(self, *, centred: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the second moments, about the means or about zero, and the means."""
        gram, cross = torch.as_tensor(self.features) / self.count, torch.as_tensor(self.products) / self.count
        x, y = torch.as_tensor(self.feature_sum) / self.count, torch.as_tensor(self.target_sum) / self.count
        if not bool(gram.isfinite().all() and cross.isfinite().all()):
            raise DataError("on the calibration data, the network computes values that are not finite numbers")
        if centred:
            gram, cross = gram - torch.outer(x, x), cross - torch.outer(x, y)
        return gram, cross, x, y

    def solve(self, prior: Tensor, *, centred: bool, ridge: float = RIDGE) -> tuple[Tensor, Tensor]:
        """Return weights (n_targets, n_features) and constants (n_targets,) with the least squared error.

        What the samples do not tell stays as in `prior` (n_targets, n_features): W = W₀ + (G + λI)⁻¹ (C − G W₀ᵀ),
        with λ the ridge as a fraction of the mean of the diagonal of G.
        """
        gram, cross, x, y = self.central(centred=centred)
        start = prior.to(gram)
        raw = gram.diagonal() + x.square() if centred else gram.diagonal()
        least = (ROUNDING * raw.mean()).clamp_min(SMALLEST)
        damping = torch.maximum(ridge * gram.diagonal().mean(), least)
        damped = gram + damping * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
        weights = start + torch.linalg.solve(damped, cross - gram @ start.T).T
        return weights, y - weights @ x if centred else torch.zeros_like(y)
