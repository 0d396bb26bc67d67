"""Sums over samples from which least squares is solved, so that activations need not fit in memory."""

from dataclasses import dataclass

import torch
from torch import Tensor

from topiarist.errors import DataError

RIDGE = 1e-4
SMALLEST = 1e-100  # a ridge for features that are all constant


@dataclass
class Spread:
    """Mean and variance along the second axis of tensors (n_samples, n_units, …), in float64."""

    count: int = 0
    total: Tensor | float = 0.0
    squares: Tensor | float = 0.0

    def add(self, x: Tensor) -> None:
        """Add samples."""
        values = x.transpose(0, 1).flatten(1).to(torch.float64)
        self.count += values.shape[1]
        self.total = self.total + values.sum(1)
        self.squares = self.squares + (values**2).sum(1)

    @property
    def mean(self) -> Tensor:
        """Give the means (n_units,)."""
        return torch.as_tensor(self.total) / self.count

    @property
    def variance(self) -> Tensor:
        """Give the variances (n_units,)."""
        return (torch.as_tensor(self.squares) / self.count - self.mean**2).clamp_min(0)


@dataclass
class Moments:
    """First and second moments of features (n_samples, n_features) and targets (n_samples, n_targets), in float64."""

    count: int = 0
    feature_sum: Tensor | float = 0.0
    target_sum: Tensor | float = 0.0
    features: Tensor | float = 0.0
    products: Tensor | float = 0.0

    def add(self, features: Tensor, targets: Tensor) -> None:
        """Add samples."""
        x, y = features.to(torch.float64), targets.to(torch.float64)
        self.count += len(x)
        self.feature_sum = self.feature_sum + x.sum(0)
        self.target_sum = self.target_sum + y.sum(0)
        self.features = self.features + x.T @ x
        self.products = self.products + x.T @ y

    def covariances(self) -> tuple[Tensor, Tensor]:
        """Give the covariance of the features, and that of the features with the targets (n_features, n_targets)."""
        return self.central(centred=True)[:2]

    def central(self, *, centred: bool) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Give the second moments, about the means or about zero, and the means."""
        gram, cross = torch.as_tensor(self.features) / self.count, torch.as_tensor(self.products) / self.count
        x, y = torch.as_tensor(self.feature_sum) / self.count, torch.as_tensor(self.target_sum) / self.count
        if not bool(gram.isfinite().all() and cross.isfinite().all()):
            raise DataError("the calibration data give values that are no finite numbers")
        if centred:
            gram, cross = gram - torch.outer(x, x), cross - torch.outer(x, y)
        return gram, cross, x, y

    def solve(self, prior: Tensor, *, centred: bool, ridge: float = RIDGE) -> tuple[Tensor, Tensor]:
        """Give weights (n_targets, n_features) and constants (n_targets,) with the least squared error.

        What the samples do not tell stays as in `prior` (n_targets, n_features): the ridge, a fraction of the mean
        second moment of the features, draws towards it.
        """
        gram, cross, x, y = self.central(centred=centred)
        start = prior.to(gram)
        scale = gram.diagonal().mean().clamp_min(SMALLEST)
        damped = gram + ridge * scale * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
        weights = start + torch.linalg.solve(damped, cross - gram @ start.T).T
        return weights, y - weights @ x if centred else torch.zeros_like(y)
