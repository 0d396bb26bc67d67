"""Losses and their slopes in the outputs of a network, as arithmetic on tensors.

Outputs lie along axis -2 and samples along the last, (…, n_outputs, n_samples): so networks in a stack have them. The
losses alone are differentiable; slopes are for the stack, which has no autograd. Only methods of tensors are used:
importing this does not import torch.
"""

from typing import TYPE_CHECKING

from topiarist.tasks.losses import Loss

if TYPE_CHECKING:
    from torch import Tensor


def cross_entropy(outputs: "Tensor", y: "Tensor") -> "Tensor":
    """Return −ln p of the true class y (…, 1, n_samples), of each sample (…, n_samples)."""
    return outputs.log_softmax(dim=-2).gather(-2, y).neg().squeeze(-2)


def cross_entropy_and_slope(outputs: "Tensor", y: "Tensor") -> "tuple[Tensor, Tensor]":
    """Return the loss of each sample, and its slope p − 1(true class)."""
    log_probabilities = outputs.log_softmax(dim=-2)
    losses = log_probabilities.gather(-2, y).neg_().squeeze(-2)
    return losses, log_probabilities.exp_().scatter_(-2, y, -1.0, reduce="add")


def focal(outputs: "Tensor", y: "Tensor", focus: float) -> "Tensor":
    """Return −(1 − p)^γ · ln p of the true class."""
    log_p = outputs.log_softmax(dim=-2).gather(-2, y).squeeze(-2)
    return -(1 - log_p.exp()).clamp(min=0).pow(focus) * log_p


def focal_and_slope(outputs: "Tensor", y: "Tensor", focus: float) -> "tuple[Tensor, Tensor]":
    """Return the focal loss, and its slope [γ p (1 − p)^(γ−1) ln p − (1 − p)^γ] · (1(true class) − p)."""
    log_probabilities = outputs.log_softmax(dim=-2)
    log_p = log_probabilities.gather(-2, y)
    p = log_p.exp()
    rest = (1 - p).clamp(min=1e-12)  # a power below 1 of 0 has no slope
    factor = focus * p * rest.pow(focus - 1) * log_p - rest.pow(focus)
    towards = (-log_probabilities.exp()).scatter_add(-2, y, y.new_ones(y.shape, dtype=outputs.dtype))
    return (-rest.pow(focus) * log_p).squeeze(-2), towards * factor


def error_loss(error: "Tensor", loss: Loss) -> "Tensor":
    """Return the loss of errors, output − target, one by one."""
    match loss.name:
        case "squared":
            return error.square()
        case "absolute":
            return error.abs()
        case "huber":  # c = min(|e|, δ): c · (|e| − c / 2)
            size = error.abs()
            inner = size.clamp(max=loss.number)
            return inner * (size - 0.5 * inner)
        case _:  # quantile: an answer below the target costs the level, one above it the rest
            return (1 - loss.number) * error.clamp(min=0) - loss.number * error.clamp(max=0)


def error_slope(error: "Tensor", loss: Loss) -> "Tensor":
    """Return the slope of `error_loss` in the output."""
    match loss.name:
        case "squared":
            return error + error  # half the time of a product with a number, on tensors this small
        case "absolute":
            return error.sign()
        case "huber":
            return error.clamp(min=-loss.number, max=loss.number)
        case _:
            return (1 - loss.number) * (error > 0).to(error.dtype) - loss.number * (error < 0).to(error.dtype)


def binary_entropy(outputs: "Tensor", y: "Tensor") -> "Tensor":
    """Return −y ln σ(z) − (1 − y) ln(1 − σ(z)) of each output: ln(1 + eᶻ) − y z."""
    return outputs.clamp(min=0) - outputs * y + (-outputs.abs()).exp().log1p()


def binary_focal(outputs: "Tensor", y: "Tensor", focus: float) -> "Tensor":
    """Return −(1 − p)^γ · ln p of each output, where p is the probability of what is true."""
    loss = binary_entropy(outputs, y)  # −ln p
    return (1 - (-loss).exp()).clamp(min=1e-12).pow(focus) * loss


def binary_focal_slope(outputs: "Tensor", y: "Tensor", focus: float) -> "Tensor":
    """Return the slope of `binary_focal`: as that of `focal`, with 1 − p for the true side and its sign."""
    loss = binary_entropy(outputs, y)
    p = (-loss).exp()
    rest = (1 - p).clamp(min=1e-12)
    factor = -focus * p * rest.pow(focus - 1) * loss - rest.pow(focus)
    return factor * rest * (2 * y - 1)


def relative_entropy(found: "Tensor", wanted: "Tensor") -> "Tensor":
    """Return Σ p (ln p − ln q) of the softmax of logits (n_samples, n_classes), of each sample."""
    wanted, found = wanted.log_softmax(dim=1), found.log_softmax(dim=1)
    return (wanted.exp() * (wanted - found)).sum(dim=1)


def bernoulli_entropy(found: "Tensor", wanted: "Tensor") -> "Tensor":
    """Return the sum over labels of the relative entropy of the sigmoid of logits (n_samples, n_labels)."""
    p = wanted.sigmoid()
    return (binary_entropy(found, p) - binary_entropy(wanted, p)).sum(dim=1)
