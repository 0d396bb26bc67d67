"""Streaming least squares against scikit-learn."""

import numpy
import pytest
import torch
from sklearn.linear_model import LinearRegression, Ridge
from torch import Tensor

from topiarist.randomness import generator
from topiarist.surgery.refit.moments import RIDGE, Moments

SAMPLES, FEATURES, TARGETS = 60, 7, 3


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=generator(seed, "moments"), dtype=torch.float64)


def samples(seed: int = 0) -> tuple[Tensor, Tensor]:
    mixed = drawn(SAMPLES, FEATURES, seed=seed) @ drawn(FEATURES, FEATURES, seed=seed + 1)
    return mixed + 2.0, drawn(SAMPLES, TARGETS, seed=seed + 2) + mixed[:, :TARGETS] - 1.0


def moments_of(x: Tensor, y: Tensor, *, pieces: int = SAMPLES) -> Moments:
    moments = Moments()
    for part in zip(torch.split(x, pieces), torch.split(y, pieces), strict=True):
        moments.add(*part)
    return moments


def strength(x: Tensor, *, centred: bool, ridge: float) -> float:
    """Scikit-learn's alpha for our ridge, which is in proportion to the mean second moment of the features."""
    second = x.var(0, correction=0) if centred else (x**2).mean(0)
    return ridge * float(second.mean()) * len(x)


@pytest.mark.parametrize("ridge", [RIDGE, 0.1, 10.0])
@pytest.mark.parametrize("centred", [True, False])
def test_the_solution_is_ridge_regression_towards_zero(centred: bool, ridge: float) -> None:
    x, y = samples()
    oracle = Ridge(alpha=strength(x, centred=centred, ridge=ridge), fit_intercept=centred).fit(x.numpy(), y.numpy())
    weights, constants = moments_of(x, y).solve(torch.zeros(TARGETS, FEATURES), centred=centred, ridge=ridge)
    numpy.testing.assert_allclose(weights.numpy(), oracle.coef_, atol=1e-9)
    numpy.testing.assert_allclose(constants.numpy(), oracle.intercept_, atol=1e-9)


@pytest.mark.parametrize("ridge", [RIDGE, 0.1, 10.0])
@pytest.mark.parametrize("centred", [True, False])
def test_with_a_prior_only_the_difference_from_it_is_shrunk(centred: bool, ridge: float) -> None:
    x, y = samples()
    prior = drawn(TARGETS, FEATURES, seed=9)
    alpha = strength(x, centred=centred, ridge=ridge)
    oracle = Ridge(alpha=alpha, fit_intercept=centred).fit(x.numpy(), (y - x @ prior.T).numpy())
    weights, constants = moments_of(x, y).solve(prior, centred=centred, ridge=ridge)
    numpy.testing.assert_allclose(weights.numpy(), prior.numpy() + oracle.coef_, atol=1e-9)
    numpy.testing.assert_allclose(constants.numpy(), oracle.intercept_, atol=1e-9)


@pytest.mark.parametrize("centred", [True, False])
def test_a_vanishing_ridge_gives_plain_least_squares(centred: bool) -> None:
    x, y = samples()
    oracle = LinearRegression(fit_intercept=centred).fit(x.numpy(), y.numpy())
    weights, constants = moments_of(x, y).solve(drawn(TARGETS, FEATURES), centred=centred, ridge=1e-13)
    numpy.testing.assert_allclose(weights.numpy(), oracle.coef_, atol=1e-7)
    numpy.testing.assert_allclose(constants.numpy(), oracle.intercept_, atol=1e-7)


def test_an_overwhelming_ridge_gives_the_prior_and_the_mean() -> None:
    x, y = samples()
    prior = drawn(TARGETS, FEATURES, seed=9)
    weights, constants = moments_of(x, y).solve(prior, centred=True, ridge=1e12)
    torch.testing.assert_close(weights, prior, atol=1e-9, rtol=0)
    torch.testing.assert_close((x @ weights.T + constants).mean(0), y.mean(0), atol=1e-9, rtol=0)


def test_what_the_samples_do_not_tell_stays_as_in_the_prior() -> None:
    x, y = samples()
    x[:, 2] = 0.0
    prior = drawn(TARGETS, FEATURES, seed=9)
    weights, _ = moments_of(x, y).solve(prior, centred=True)
    torch.testing.assert_close(weights[:, 2], prior[:, 2], atol=1e-12, rtol=0)


@pytest.mark.parametrize("pieces", [1, 7, 59])
def test_the_pieces_in_which_samples_come_do_not_matter(pieces: int) -> None:
    x, y = samples()
    prior = torch.zeros(TARGETS, FEATURES)
    whole, parts = (moments_of(x, y, pieces=size).solve(prior, centred=True) for size in (SAMPLES, pieces))
    torch.testing.assert_close(parts, whole, atol=1e-10, rtol=0)


def test_covariances_are_those_of_numpy() -> None:
    x, y = samples()
    oracle = numpy.cov(torch.cat([x, y], 1).numpy(), rowvar=False, bias=True)
    spread, cross = moments_of(x, y, pieces=13).covariances()
    numpy.testing.assert_allclose(spread.numpy(), oracle[:FEATURES, :FEATURES], atol=1e-12)
    numpy.testing.assert_allclose(cross.numpy(), oracle[:FEATURES, FEATURES:], atol=1e-12)


def test_single_precision_is_added_up_in_double() -> None:
    x, y = (values.float() for values in samples())
    prior = torch.zeros(TARGETS, FEATURES)
    rounded, exact = moments_of(x, y, pieces=5), moments_of(x.double(), y.double())
    torch.testing.assert_close(rounded.solve(prior, centred=True), exact.solve(prior, centred=True), atol=1e-10, rtol=0)


def test_equal_features_share_what_one_of_them_would_get() -> None:
    x, y = samples()
    twice = torch.cat([x[:, :1], x[:, :1]], 1)
    weights, _ = moments_of(twice, y).solve(torch.zeros(TARGETS, 2), centred=True, ridge=1e-8)
    alone, _ = moments_of(x[:, :1], y).solve(torch.zeros(TARGETS, 1), centred=True, ridge=1e-8)
    torch.testing.assert_close(weights, alone.expand(-1, 2) / 2, atol=1e-6, rtol=0)


@pytest.mark.parametrize("centred", [True, False])
def test_features_that_are_all_zero_leave_the_prior(centred: bool) -> None:
    prior = drawn(TARGETS, FEATURES)
    weights, _ = moments_of(torch.zeros(SAMPLES, FEATURES), samples()[1]).solve(prior, centred=centred)
    torch.testing.assert_close(weights, prior)


def test_one_sample_leaves_the_prior_and_meets_the_target() -> None:
    x, y = samples()
    prior = drawn(TARGETS, FEATURES)
    weights, constants = moments_of(x[:1], y[:1]).solve(prior, centred=True)
    torch.testing.assert_close(weights, prior)
    torch.testing.assert_close(x[:1] @ weights.T + constants, y[:1])
