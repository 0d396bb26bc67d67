import math

import numpy
import pytest

from topiarist.errors import SettingsError
from topiarist.randomness import array_generator
from topiarist.statistics import holm, non_inferiority, smallest_not_worse
from topiarist.statistics.samples import Floats

SIZES = {"full": 100.0, "half": 50.0, "quarter": 25.0, "tiny": 5.0, "huge": 400.0}


def scores() -> dict[str, Floats]:
    generator = array_generator(0, "decision")
    base = generator.normal(0.9, 0.01, 10)
    losses = {"full": 0.0, "half": 0.0, "quarter": 0.002, "tiny": 0.2, "huge": 0.0}
    return {name: base - loss + generator.normal(0, 0.003, 10) * (name != "full") for name, loss in losses.items()}


def test_the_smallest_that_is_proven_is_chosen() -> None:
    found = smallest_not_worse(scores(), SIZES, baseline="full", margin=0.02, test_to_train=1 / 9)
    assert found.chosen == "quarter"
    assert [verdict.name for verdict in found.verdicts] == ["tiny", "quarter", "half"]
    assert [verdict.proven for verdict in found.verdicts] == [False, True, True]
    assert (found.baseline, found.margin, found.alpha) == ("full", 0.02, 0.05)


def test_where_none_is_proven_the_baseline_stays() -> None:
    assert smallest_not_worse(scores(), SIZES, baseline="full", margin=0.0).chosen == "full"
    alone = smallest_not_worse({"full": [0.9, 0.8]}, {"full": 1}, baseline="full", margin=0.1)
    assert (alone.chosen, alone.verdicts) == ("full", ())


def test_p_is_adjusted_over_the_smaller_ones_only() -> None:
    data = scores()
    found = smallest_not_worse(data, SIZES, baseline="full", margin=0.004, design="pairs")
    raw = [non_inferiority(data[v.name], data["full"], margin=0.004, design="pairs").p for v in found.verdicts]
    assert [verdict.p for verdict in found.verdicts] == raw
    assert tuple(verdict.adjusted_p for verdict in found.verdicts) == holm(raw)
    assert all(verdict.proven == (verdict.adjusted_p <= 0.05) for verdict in found.verdicts)


def test_correction_can_take_a_proof_away() -> None:
    # 5 pairs give 1/32 at best, which is no proof among two comparisons; and the notes say so.
    base = numpy.array([0.8, 0.82, 0.85, 0.81, 0.9])
    data = {"full": base, "half": base + numpy.arange(5) / 100, "quarter": base}
    pair = smallest_not_worse(data, SIZES, baseline="full", margin=0.01, design="pairs")
    assert pair.chosen == "full"
    assert "p below 0.0312: more runs are needed to reach 0.05 in 2 comparisons" in pair.verdicts[0].notes[0]
    del data["quarter"]
    single = smallest_not_worse(data, SIZES, baseline="full", margin=0.01, design="pairs")
    assert (single.chosen, single.verdicts[0].notes) == ("half", ())


def test_of_equal_size_the_better_mean_comes_first() -> None:
    data = {"full": [0.9, 0.8, 0.7], "a": [0.9, 0.8, 0.7], "b": [0.95, 0.85, 0.75]}
    found = smallest_not_worse(data, {"full": 2, "a": 1, "b": 1}, baseline="full", margin=0.1)
    assert [verdict.name for verdict in found.verdicts] == ["b", "a"]
    assert found.chosen == "b"


def test_of_independent_runs_there_may_be_different_numbers() -> None:
    data = {"full": scores()["full"], "half": scores()["half"][:6]}
    assert smallest_not_worse(data, SIZES, baseline="full", margin=0.1, design="runs").chosen == "half"


@pytest.mark.slow
def test_several_inferior_candidates_are_rarely_chosen() -> None:
    # Three candidates just worse by the margin: without Holm's correction one would be chosen in about 14 % of cases.
    generator = array_generator(1, "family")
    sizes = {"full": 9.0, "a": 1.0, "b": 2.0, "c": 3.0}
    wrong = 0
    for _ in range(300):
        data = dict(zip(sizes, generator.normal(size=(4, 10)), strict=True))
        data |= {name: data["full"] - 1 + generator.normal(size=10) for name in "abc"}
        wrong += smallest_not_worse(data, sizes, baseline="full", margin=1.0).chosen != "full"
    assert 0.005 < wrong / 300 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 300)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"baseline": "none"}, "baseline must be one of full, half; found 'none'"),
        ({"sizes": {"full": 2}}, "'half' is missing"),
        ({"sizes": {"full": 2, "half": math.nan}}, "sizes must be finite"),
        ({"scores": {"full": [1, 2], "half": [1, 2, 3]}}, "equal length"),
        ({"scores": {"full": [1], "half": [1]}}, "2 or more"),
        ({"scores": {"full": [1, 2], "half": [1, math.inf]}}, "half must be finite"),
        ({"scores": {}}, "found 'full'"),
        ({"margin": -1}, "margin"),
        ({"design": "blocks"}, "design"),
    ],
)
def test_bad_input_is_refused(changes: dict[str, object], match: str) -> None:
    base: dict[str, object] = {"baseline": "full", "margin": 1, "sizes": {"full": 2, "half": 1}}
    base["scores"] = {"full": [1, 2], "half": [1, 2]}
    with pytest.raises(SettingsError, match=match):
        smallest_not_worse(**(base | changes))  # type: ignore[arg-type]
