"""Which units to keep: gains against regressions, greedy choices against brute force, all against exhaustive search."""

from itertools import combinations
from typing import Literal

import numpy
import pytest
import torch
from sklearn.linear_model import LinearRegression, Ridge
from torch import Tensor, nn

from topiarist.randomness import generator, isolated
from topiarist.surgery.calibration import batches_for
from topiarist.surgery.choice import reading_sums, selection
from topiarist.surgery.choice.evidence import evidence_of_whole
from topiarist.surgery.choice.selection import (
    SMALLEST_GAIN,
    SelectionEvidence,
    damped,
    eliminate,
    exchange,
    exchange_gains,
    gain,
    losses,
    match,
    select,
)
from topiarist.surgery.refit.moments import RIDGE
from topiarist.tracing import anatomy

SAMPLES = 200
Sample = tuple[Tensor, Tensor]


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator(seed, *shape), dtype=torch.float64)


def sample(seed: int, units: int = 8, targets: int = 3) -> Sample:
    """Return activations that hang together (n_samples, n_units), and what a reader needs (n_samples, n_targets)."""
    x = torch.relu(
        drawn(seed, SAMPLES, units // 2) @ drawn(seed + 1000, units // 2, units) + drawn(seed, SAMPLES, units) / 2
    )
    return x - x.mean(0), (x - x.mean(0)) @ drawn(seed + 2000, units, targets)


def evidence_of(*samples: Sample, ridge: float = RIDGE) -> SelectionEvidence:
    spreads = [x.T @ x / len(x) for x, _ in samples]
    needs = [y.T @ x / len(x) for x, y in samples]
    total = sum(float(y.var(0, correction=0).sum()) for _, y in samples)
    return SelectionEvidence(damped(torch.stack(spreads), ridge), torch.stack(needs), total)


def explained(x: Tensor, y: Tensor, kept: list[int]) -> float:
    """Return the variance that regression on some units explains."""
    model = LinearRegression().fit(x[:, kept].numpy(), y.numpy())
    shares = model.predict(x[:, kept].numpy()).var(0)
    return float(shares.sum())


def swapped(kept: list[int], size: int) -> list[list[int]]:
    return [sorted({*kept, unit} - {out}) for out in kept for unit in range(size) if unit not in kept]


@pytest.mark.parametrize("kept", [[0], [1, 4], [0, 2, 3, 7], list(range(8))])
def test_the_gain_is_the_variance_that_a_regression_explains(kept: list[int]) -> None:
    x, y = sample(0)
    assert gain(evidence_of((x, y), ridge=0.0), kept) == pytest.approx(explained(x, y, kept), rel=1e-9)


def test_all_units_explain_all() -> None:
    evidence = evidence_of(sample(0), ridge=0.0)
    assert gain(evidence, list(range(8))) == pytest.approx(evidence.total, rel=1e-9)


def test_with_a_ridge_the_gain_is_the_drop_of_the_ridge_objective() -> None:
    x, y = sample(0)
    kept = [0, 2, 5]
    alpha = 0.1 * float(x.var(0, correction=0).mean()) * SAMPLES
    oracle = Ridge(alpha=alpha, fit_intercept=False).fit(x[:, kept].numpy(), y.numpy())
    error = numpy.sum((y.numpy() - oracle.predict(x[:, kept].numpy())) ** 2) + alpha * numpy.sum(oracle.coef_**2)
    dropped = (float((y**2).sum()) - error) / SAMPLES
    assert gain(evidence_of((x, y), ridge=0.1), kept) == pytest.approx(dropped, rel=1e-9)


def test_the_gains_of_several_readers_are_added() -> None:
    samples = [sample(seed) for seed in (0, 1, 2)]
    kept = [1, 3, 6]
    alone = [gain(evidence_of(one), kept) for one in samples]
    assert gain(evidence_of(*samples), kept) == pytest.approx(sum(alone), rel=1e-9)


@pytest.mark.parametrize("readers", [1, 3])
def test_what_elimination_lost_is_the_difference_of_the_gains(readers: int) -> None:
    evidence = evidence_of(*(sample(seed) for seed in range(readers)))
    everything = gain(evidence, list(range(8)))
    _, path = eliminate(evidence, 0)
    assert path[8] == 0.0
    assert path[0] == pytest.approx(everything, rel=1e-9)
    for count in range(1, 8):
        kept, lost = eliminate(evidence, count)
        assert len(kept) == count
        assert float(lost[count]) == pytest.approx(everything - gain(evidence, kept), rel=1e-9, abs=1e-10 * everything)
        assert float(path[count]) == pytest.approx(float(lost[count]), rel=1e-9)


@pytest.mark.parametrize("readers", [1, 3])
def test_elimination_takes_the_unit_that_is_missed_least_again_and_again(readers: int) -> None:
    evidence = evidence_of(*(sample(seed) for seed in range(readers)))
    kept = list(range(8))
    for count in range(7, 0, -1):
        kept = max(([unit for unit in kept if unit != out] for out in kept), key=lambda left: gain(evidence, left))
        assert eliminate(evidence, count)[0] == kept


@pytest.mark.parametrize("readers", [1, 3])
def test_matching_adds_the_unit_that_explains_most_again_and_again(readers: int) -> None:
    evidence = evidence_of(*(sample(seed) for seed in range(readers)))
    kept: list[int] = []
    for count in range(1, 9):
        others = [unit for unit in range(8) if unit not in kept]
        kept = max((sorted([*kept, unit]) for unit in others), key=lambda more: gain(evidence, more))
        assert match(evidence, count) == kept


@pytest.mark.parametrize("readers", [1, 3])
def test_what_an_exchange_explains_is_the_difference_of_the_gains(readers: int) -> None:
    evidence = evidence_of(*(sample(seed) for seed in range(readers)))
    kept = [0, 3, 6]
    now = gain(evidence, kept)
    gains = exchange_gains(evidence, kept)
    for out, gone in enumerate(kept):
        for unit in range(8):
            if unit in kept:
                assert gains[out, unit] == -torch.inf
            else:
                after = gain(evidence, [*(other for other in kept if other != gone), unit])
                assert float(gains[out, unit]) == pytest.approx(after - now, rel=1e-6, abs=1e-9 * now)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("count", [1, 3, 6])
def test_after_exchanges_no_single_swap_explains_more(seed: int, count: int) -> None:
    evidence = evidence_of(sample(seed, 10), sample(seed + 100, 10))
    start = torch.randperm(10, generator=generator(seed))[:count].tolist()
    kept = exchange(evidence, start)
    assert len(set(kept)) == count and kept == sorted(kept)
    best = gain(evidence, kept)
    assert best >= gain(evidence, start)
    assert max(gain(evidence, other) for other in swapped(kept, 10)) <= best * (1 + 2 * SMALLEST_GAIN)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("readers", [1, 3])
def test_the_best_is_at_least_as_good_as_both_greedy_choices(seed: int, readers: int) -> None:
    evidence = evidence_of(*(sample(seed + 50 * reader, 12) for reader in range(readers)))
    for count in (1, 4, 9):
        best, *greedy = (gain(evidence, select(evidence, count, strategy)) for strategy in strategies())
        assert best >= max(greedy) * (1 - 1e-12)


def strategies() -> tuple[Literal["best"], Literal["elimination"], Literal["matching"]]:
    return "best", "elimination", "matching"


@pytest.mark.slow
def test_the_best_is_close_to_exhaustive_search_and_mostly_equal_to_it() -> None:
    shares, equal = [], 0
    for seed in range(60):
        evidence = evidence_of(sample(seed, targets=1 + seed % 4))
        count = 2 + seed % 4
        optimum = max(gain(evidence, list(kept)) for kept in combinations(range(8), count))
        found = gain(evidence, select(evidence, count))
        shares.append(found / optimum)
        equal += found >= optimum * (1 - 1e-9)
    assert min(shares) >= 0.98
    assert equal >= 50, f"{equal} of 60 choices are optimal"


@pytest.mark.parametrize("strategy", strategies())
@pytest.mark.parametrize("readers", [1, 2])
def test_dead_and_equal_units_are_the_first_to_go(
    strategy: Literal["best", "elimination", "matching"], readers: int
) -> None:
    samples = []
    for seed in range(readers):
        x, _ = sample(seed)
        x[:, 2] = 0.0
        x[:, 5] = x[:, 0]
        samples.append((x, x @ drawn(seed + 2000, 8, 3)))
    evidence = evidence_of(*samples)
    for count in range(1, 8):
        kept = select(evidence, count, strategy)
        assert len(set(kept)) == count and numpy.isfinite(gain(evidence, kept))
    kept = select(evidence, 6, strategy)
    assert 2 not in kept and len({0, 5} & set(kept)) == 1
    assert gain(evidence, kept) >= 0.999 * evidence.total


@pytest.mark.parametrize("strategy", strategies())
def test_units_that_are_all_dead_do_no_harm(strategy: Literal["best", "elimination", "matching"]) -> None:
    zeros = torch.zeros(SAMPLES, 8, dtype=torch.float64)
    evidence = evidence_of((zeros, zeros[:, :3]))
    for count in range(1, 9):
        assert len(set(select(evidence, count, strategy))) == count
    assert eliminate(evidence, 0)[1].isfinite().all()


@pytest.mark.parametrize("strategy", strategies())
def test_units_that_are_all_equal_do_no_harm(strategy: Literal["best", "elimination", "matching"]) -> None:
    x = drawn(0, SAMPLES, 1).expand(-1, 8)
    evidence = evidence_of((x, x[:, :2]))
    for count in range(1, 9):
        kept = select(evidence, count, strategy)
        assert len(set(kept)) == count
        assert gain(evidence, kept) >= 0.999 * evidence.total


@pytest.mark.parametrize("strategy", strategies())
def test_keeping_all_units_or_more_keeps_all(strategy: Literal["best", "elimination", "matching"]) -> None:
    evidence = evidence_of(sample(0))
    assert select(evidence, 8, strategy) == select(evidence, 9, strategy) == list(range(8))


def test_a_damped_covariance_has_a_ridge_in_proportion_to_the_mean_variance() -> None:
    x, _ = sample(0)
    spread = (x.T @ x / SAMPLES)[None]
    added = damped(spread, 0.5) - spread
    torch.testing.assert_close(added[0], 0.5 * x.var(0, correction=0).mean() * torch.eye(8, dtype=torch.float64))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("way", ["elimination", "matching"])
def test_units_of_several_features_go_and_come_together(seed: int, way: Literal["elimination", "matching"]) -> None:
    x, y = sample(seed, units=12)
    single = evidence_of((x, y))
    pairs = SelectionEvidence(single.spread, single.needs, single.total, each=2)

    def of_features(units: list[int]) -> float:
        return gain(single, pairs.features(units))

    kept = select(pairs, 5, way)
    oracles = [sorted(set(range(6)) - {out}) for out in range(6)] if way == "elimination" else None
    assert gain(pairs, kept) == pytest.approx(of_features(kept))
    if oracles is not None:
        assert kept == max(oracles, key=of_features)
        _, lost = eliminate(pairs, 0)
        assert lost[5] == pytest.approx(of_features(list(range(6))) - of_features(kept))
        assert lost[0] == pytest.approx(of_features(list(range(6))))
    else:
        assert select(pairs, 1, way) == [max(range(6), key=lambda unit: of_features([unit]))]


@pytest.mark.parametrize("readers", [1, 2])
def test_updates_in_blocks_choose_the_same_units(readers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    random = torch.Generator().manual_seed(readers)
    mixed = torch.randn(150, 150, generator=random, dtype=torch.float64)
    rows = torch.randn(readers, 400, 150, generator=random, dtype=torch.float64) @ mixed
    needs = torch.randn(readers, 20, 150, generator=random, dtype=torch.float64)
    spread = rows.mT @ rows / 400
    evidence = SelectionEvidence(damped(spread), needs @ spread, 1.0)
    kept, lost = eliminate(evidence, 10)
    matched = match(evidence, 110)
    monkeypatch.setattr(selection, "MANY_UNITS", 100)
    in_blocks, lost_in_blocks = eliminate(evidence, 10)
    assert in_blocks == kept
    torch.testing.assert_close(lost_in_blocks, lost)
    assert match(evidence, 110) == matched


def test_few_samples_of_many_units_are_the_same_evidence_in_a_smaller_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    with isolated(0):
        model = nn.Sequential(nn.Linear(6, 600), nn.ReLU(), nn.Linear(600, 40)).double()
        x = torch.randn(50, 6, dtype=torch.float64)
    found, batches = anatomy(model, x[:2]), batches_for(x, model, None)
    few = evidence_of_whole(model, found, ["0"], batches)["0"]
    monkeypatch.setattr(reading_sums, "ROWS_TO_SUM_UP", 10_000)
    many = evidence_of_whole(model, found, ["0"], batches)["0"]
    assert few is not None and many is not None
    assert few.is_low and not many.is_low
    torch.testing.assert_close(few.spread, many.spread)
    torch.testing.assert_close(few.needs.mT @ few.needs, many.needs.mT @ many.needs)
    kept = select(few, 300)
    assert gain(few, kept) > 0.999 * gain(many, list(range(600)))
    lost = losses(few)
    assert len(lost) == 601
    assert lost == sorted(lost, reverse=True)
    assert lost[0] == pytest.approx(gain(many, list(range(600))), rel=1e-3)
