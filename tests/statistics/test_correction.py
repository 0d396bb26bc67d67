import pytest
from hypothesis import given
from hypothesis import strategies as st

from topiarist.errors import SettingsError
from topiarist.statistics import holm

P_VALUES = st.lists(st.floats(0, 1), max_size=8)


def test_holms_example() -> None:
    # As R's p.adjust(c(.01, .04, .03, .005), "holm").
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx((0.03, 0.06, 0.06, 0.02))
    assert holm([0.7, 0.8]) == (1, 1)
    assert holm([0.3]) == (0.3,)
    assert holm([]) == ()


def closed_testing(p_values: list[float], which: int) -> float:
    """Return the largest Bonferroni p of all sets of hypotheses that hold this one; Holm's shortcut equals it."""
    others = [p for i, p in enumerate(p_values) if i != which]
    sets = [[others[i] for i in range(len(others)) if chosen >> i & 1] for chosen in range(2 ** len(others))]
    return max(min(1.0, (len(some) + 1) * min([*some, p_values[which]])) for some in sets)


@given(st.lists(st.floats(0, 1), max_size=6))
def test_it_is_closed_testing_with_bonferronis_p(p_values: list[float]) -> None:
    assert list(holm(p_values)) == pytest.approx([closed_testing(p_values, i) for i in range(len(p_values))])


@given(P_VALUES)
def test_adjusted_p_is_no_smaller_and_keeps_the_order(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= after <= 1 for p, after in zip(p_values, adjusted, strict=True))
    in_order = [after for _, after in sorted(zip(p_values, adjusted, strict=True))]
    assert in_order == sorted(adjusted)


@given(P_VALUES.flatmap(lambda p: st.tuples(st.just(p), st.permutations(range(len(p))))))
def test_each_p_is_adjusted_in_its_place(case: tuple[list[float], list[int]]) -> None:
    p_values, order = case
    adjusted = holm(p_values)
    assert holm([p_values[i] for i in order]) == tuple(adjusted[i] for i in order)


@pytest.mark.parametrize("bad", [[-0.1], [1.1], [float("nan")], [[0.1, 0.2]]])
def test_bad_p_values_are_refused(bad: list[float]) -> None:
    with pytest.raises(SettingsError, match="p_values"):
        holm(bad)
