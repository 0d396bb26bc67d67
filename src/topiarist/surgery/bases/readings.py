"""Second moments of what modules read, as the changes of basis need them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from topiarist.models.attention import free_attention
from topiarist.models.evaluation import evaluating, numbers_of
from topiarist.randomness import isolated
from topiarist.surgery.calibration import CalibrationBatches, unreadable
from topiarist.tracing.running import Args, Kwargs

ATTENTION_INPUTS = ("query", "key", "value")
Read = tuple[str, int]  # a module, and which of the tensors that it is called with


@dataclass
class TokenMoments:
    """Moments of tokens (n_samples, n_tokens, n_features): of all, and about the mean of each sample."""

    count: int = 0
    total: Tensor | float = 0.0
    products: Tensor | float = 0.0
    within: Tensor | float = 0.0

    def add(self, tokens: Tensor) -> None:
        """Add samples; products are summed up in the tensors' own type, batches in float64."""
        means = tokens.mean(1)
        flat = tokens.flatten(0, 1)
        products = (flat.T @ flat).to("cpu", torch.float64)
        between = tokens.shape[1] * (means.T @ means).to("cpu", torch.float64)
        self.count += len(flat)
        self.total = self.total + flat.sum(0).to("cpu", torch.float64)
        self.products = self.products + products
        self.within = self.within + products - between

    @property
    def mean(self) -> Tensor:
        """Return the mean token (n_features,)."""
        return torch.as_tensor(self.total) / self.count

    @property
    def second(self) -> Tensor:
        """Return the second moments about zero (n_features, n_features)."""
        return torch.as_tensor(self.products) / self.count

    @property
    def about_samples(self) -> Tensor:
        """Return the second moments about the mean of each sample."""
        return torch.as_tensor(self.within) / self.count

    @property
    def covariance(self) -> Tensor:
        """Return the second moments about the mean of all."""
        return self.second - torch.outer(self.mean, self.mean)


def moments_read(model: nn.Module, reads: Iterable[Read], batches: CalibrationBatches) -> dict[Read, TokenMoments]:
    """Run a network on all batches, and return the moments of what modules read."""
    wanted = sorted(set(reads))
    found: dict[Read, TokenMoments] = {}

    def remember(read: Read, module: nn.Module, args: Args, kwargs: Kwargs) -> None:
        value = _argument(module, read[1], args, kwargs)
        if value is not None:
            found.setdefault(read, TokenMoments()).add(_tokens(module, value.detach()))

    with evaluating(model), isolated(0, numbers_of(model).device), free_attention(model), torch.no_grad():
        handles = [
            model.get_submodule(read[0]).register_forward_pre_hook(
                lambda module, args, kwargs, read=read: remember(read, module, args, kwargs), with_kwargs=True
            )
            for read in wanted
        ]
        try:
            for args, kwargs in batches:
                model(*args, **kwargs)
        except (RuntimeError, ValueError, TypeError) as error:
            raise unreadable(error) from error
        finally:
            for handle in handles:
                handle.remove()
    return found


def _argument(module: nn.Module, number: int, args: Sequence[Any], kwargs: Kwargs) -> Tensor | None:
    """Return one of the tensors that a module is called with; None where it is no tensor of tokens."""
    if len(args) > number:
        value = args[number]
    elif isinstance(module, nn.MultiheadAttention):
        value = kwargs.get(ATTENTION_INPUTS[number])
    else:
        value = kwargs.get("input", kwargs.get("hidden_states"))
    return value if isinstance(value, Tensor) and value.is_floating_point() and value.ndim > 1 else None


def _tokens(module: nn.Module, value: Tensor) -> Tensor:
    """Return what a module reads as (n_samples, n_tokens, n_features)."""
    if isinstance(module, _ConvNd):
        return value.flatten(2).transpose(1, 2)
    if isinstance(module, nn.MultiheadAttention) and not module.batch_first and value.ndim == 3:
        return value.transpose(0, 1)
    return value.unsqueeze(0) if value.ndim == 2 else value.flatten(1, -2)
