import math
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from topiarist.errors import SettingsError
from topiarist.training.config import TrainConfig
from topiarist.training.schedules import Schedule, ScheduleName

STEPS = st.integers(0, 10_000)


def rate(name: ScheduleName, step: int, *, initial: float = 1.0, total: int = 1, **settings: float) -> float:
    return Schedule.model_validate({"name": name, **settings}).rate(step, initial=initial, total_steps=total)


@given(STEPS, st.floats(1, 1000), st.floats(0.1, 3))
def test_power_is_its_formula(step: int, size: float, exponent: float) -> None:
    found = rate("power", step, initial=0.1, step_size=size, power=exponent)
    assert found == 0.1 / (1 + step / size) ** exponent


@given(st.integers(0, 50), st.integers(1, 100))
def test_power_falls_by_one_minus_one_over_k_plus_two(k: int, size: int) -> None:
    ratio = rate("power", (k + 1) * size, step_size=size) / rate("power", k * size, step_size=size)
    assert ratio == pytest.approx(1 - 1 / (k + 2))


@pytest.mark.slow
@given(STEPS, st.integers(1, 1000))
def test_exponential_falls_tenfold_every_s_steps(step: int, size: int) -> None:
    here, later = (rate("exponential", t, initial=0.5, step_size=size) for t in (step, step + size))
    assert here == 0.5 * 0.1 ** (step / size)
    assert later == pytest.approx(here / 10)


def test_values_of_the_paper_by_hand() -> None:
    schedule = Schedule(name="power", step_size=10)
    assert [schedule.rate(t, initial=0.1, total_steps=0) for t in (0, 10, 30)] == pytest.approx([0.1, 0.05, 0.025])
    schedule = Schedule(name="exponential", step_size=20)
    assert [schedule.rate(t, initial=0.1, total_steps=0) for t in (0, 20, 40)] == pytest.approx([0.1, 0.01, 0.001])


def test_performance_divides_by_its_factor() -> None:
    schedule = Schedule(name="performance", factor=4.0)
    assert [schedule.rate(9, initial=1.0, total_steps=99, reductions=n) for n in range(3)] == [1.0, 0.25, 0.0625]


@pytest.mark.parametrize("name", ["power", "exponential"])
def test_without_a_step_size_the_rate_ends_at_a_tenth(name: str) -> None:
    schedule = Schedule.model_validate({"name": name})
    assert schedule.rate(500, initial=0.3, total_steps=500) == pytest.approx(0.03)


@given(st.integers(1, 500))
def test_warm_up_rises_linearly_to_the_rate(warmup: int) -> None:
    schedule = Schedule(warmup=warmup)
    rates = [schedule.rate(t, initial=2.0, total_steps=10) for t in range(warmup + 3)]
    assert rates[:warmup] == pytest.approx([2.0 * (t + 1) / warmup for t in range(warmup)])
    assert rates[warmup:] == [2.0, 2.0, 2.0]


def optimizer() -> torch.optim.Optimizer:
    return torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.4)


def test_cosine_is_that_of_torch() -> None:
    fake = optimizer()
    reference = torch.optim.lr_scheduler.CosineAnnealingLR(fake, T_max=50)
    for step in range(50):
        assert rate("cosine", step, initial=0.4, total=50) == pytest.approx(reference.get_last_lr()[0], abs=1e-12)
        fake.step()
        reference.step()


def test_one_cycle_rises_to_the_highest_and_falls_to_nearly_nothing() -> None:
    rates = [rate("one-cycle", step, initial=0.4, total=100) for step in range(101)]
    assert rates[0] == pytest.approx(0.4 / 25)
    assert max(rates) == rates[30] == pytest.approx(0.4)
    assert rates[100] == pytest.approx(0.4 / 250_000)
    assert all(before < after for before, after in pairwise(rates[:31]))
    assert all(before > after for before, after in pairwise(rates[30:]))


@pytest.mark.parametrize("setting", [{"name": "linear"}, {"step_size": 0}, {"factor": 1.0}, {"power": math.inf}])
def test_nonsense_is_refused(setting: dict[str, object]) -> None:
    with pytest.raises(SettingsError, match=next(iter(setting))):
        Schedule(**setting)


def test_a_schedule_may_be_given_by_name() -> None:
    assert TrainConfig.model_validate({"schedule": "cosine"}).schedule == Schedule(name="cosine")
