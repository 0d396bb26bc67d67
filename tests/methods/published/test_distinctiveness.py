"""The published sweep over pairs, against a literal double loop; angles, against numpy on explicit vectors."""

from typing import Any, get_args

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.methods import networks as planted
from tests.methods.tasks import answers, cut, drawn, perceptron, same_state, state_of, unlabelled_request, widths_of
from topiarist.errors import SettingsError
from topiarist.methods import published
from topiarist.methods.published.distinctiveness import Order, angles_between, sweep
from topiarist.randomness import array_generator

Floats = NDArray[numpy.float64]
Visit = list[tuple[int, int]]


def literal(angles: Floats, threshold: float, visits: Visit) -> tuple[set[int], set[int], dict[int, set[int]]]:
    """Visit pairs one by one; give the units that stay, those of complementary pairs, and whose weights each holds."""
    alive, holds = set(range(len(angles))), {unit: {unit} for unit in range(len(angles))}
    opposed: set[int] = set()
    for one, other in visits:
        if one not in alive or other not in alive:
            continue
        if angles[one, other] < threshold:
            holds[one] |= holds.pop(other)
            alive -= {other}
        elif angles[one, other] > 180 - threshold:
            alive -= {one, other}
            opposed |= {one, other}
    return alive, opposed, holds


def visits_in(order: Order, angles: Floats) -> Visit:
    size = len(angles)
    pairs = [(one, other) for one in range(size) for other in range(one + 1, size)]
    if order == "in order":
        return pairs
    return sorted(pairs, key=lambda pair: min(angles[pair], 180 - angles[pair]))


def check_all_at_once(angles: Floats, threshold: float) -> None:
    """Every pair counts: the second of similar ones goes, and both of complements, whatever became of the other."""
    found, units = sweep(angles, threshold, "all at once"), range(len(angles))
    pairs = [(one, other) for one in units for other in units if one < other]
    opposed = {unit for pair in pairs if angles[pair] > 180 - threshold for unit in pair}
    similar = {other for one, other in pairs if angles[one, other] < threshold}
    alive = set(units) - opposed - similar or {min(opposed)}
    assert set(units) - set(found.merged) - found.removed == alive
    assert set(found.merged.values()) <= alive and not found.removed & set(found.merged)
    assert set(found.merged) <= similar


def check(angles: Floats, threshold: float, order: Order) -> None:
    if order == "all at once":
        check_all_at_once(angles, threshold)
        return
    found = sweep(angles, threshold, order)
    alive, opposed, holds = literal(angles, threshold, visits_in(order, angles))
    if not alive:
        alive = {min(opposed)}
    groups = {unit: {unit} | {other for other, into in found.merged.items() if into == unit} for unit in alive}
    assert set(range(len(angles))) - set(found.merged) - found.removed == alive
    assert groups == {unit: holds[unit] for unit in alive}
    assert not found.removed & set(found.merged)


def random_angles(seed: int, size: int, dimensions: int) -> Floats:
    vectors = array_generator(seed, "vectors").normal(size=(size, dimensions))
    return angles_between(vectors @ vectors.T)


@given(
    st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 4), st.floats(0.01, 90), st.sampled_from(get_args(Order))
)
def test_a_sweep_is_the_double_loop(seed: int, size: int, dimensions: int, threshold: float, order: Order) -> None:
    check(random_angles(seed, size, dimensions), threshold, order)


@given(st.integers(0, 10**6), st.integers(1, 10), st.sampled_from(get_args(Order)))
def test_angles_that_no_vectors_have_and_ties_make_no_difference(seed: int, size: int, order: Order) -> None:
    drawn = array_generator(seed, "angles").integers(0, 13, size=(size, size)) * 15.0
    angles = numpy.triu(drawn, 1)
    check(angles + angles.T, 45.0, order)


@given(st.integers(0, 10**6), st.integers(1, 12), st.floats(0.01, 90), st.sampled_from(get_args(Order)))
def test_at_least_one_unit_stays(seed: int, size: int, threshold: float, order: Order) -> None:
    found = sweep(random_angles(seed, size, 1), threshold, order)
    assert size - len(found.merged) - len(found.removed) >= 1


@pytest.mark.parametrize("order", get_args(Order))
def test_of_two_opposite_units_the_first_stays_where_there_are_no_others(order: Order) -> None:
    found = sweep(numpy.array([[0.0, 180.0], [180.0, 0.0]]), 15, order)
    assert (found.merged, found.removed) == ({}, frozenset({1}))


@pytest.mark.parametrize("order", get_args(Order))
def test_a_unit_merged_into_one_that_goes_with_its_complement_goes_too(order: Order) -> None:
    angles = numpy.array([[0, 5, 170, 90], [5, 0, 90, 90], [170, 90, 0, 90], [90, 90, 90, 0.0]])
    found = sweep(angles, 15, order)
    assert (found.merged, found.removed) == ({}, frozenset({0, 1, 2}))


def test_a_chain_of_merges_ends_where_the_last_went() -> None:
    angles = numpy.array([[0, 10, 90], [10, 0, 5], [90, 5, 0.0]])
    assert sweep(angles, 15, "most similar first").merged == {1: 0, 2: 0}
    assert sweep(angles, 15, "in order").merged == {1: 0}


def test_the_threshold_itself_is_not_similar() -> None:
    angles = numpy.array([[0, 15, 165], [15, 0, 90], [165, 90, 0.0]])
    assert sweep(angles, 15) == sweep(angles, 0)
    assert sweep(angles, 15).removed == frozenset()


@pytest.mark.slow
@given(st.integers(0, 10**6), st.integers(2, 8), st.integers(2, 20))
def test_angles_are_those_of_explicit_vectors(seed: int, size: int, samples: int) -> None:
    vectors = array_generator(seed, "vectors").normal(size=(size, samples))
    found = angles_between(vectors @ vectors.T / samples)
    for one in range(size):
        for other in range(size):
            lengths = numpy.linalg.norm(vectors[one]) * numpy.linalg.norm(vectors[other])
            cosine = numpy.clip(vectors[one] @ vectors[other] / lengths, -1, 1)
            assert found[one, other] == pytest.approx(numpy.degrees(numpy.arccos(cosine)), abs=1e-5)


def test_a_unit_that_is_zero_is_at_right_angles_to_all_and_stays() -> None:
    vectors = numpy.array([[1.0, 2.0], [0.0, 0.0], [1.0, 2.1]])
    angles = angles_between(vectors @ vectors.T)
    assert angles[1].tolist() == [90.0, 90.0, 90.0]
    found = sweep(angles, 90)
    assert (found.merged, found.removed) == ({2: 0}, frozenset())


def literal_sweep(vectors: Floats, outgoing: Floats, threshold: float) -> tuple[list[int], Floats]:
    """The paper's sweep over activation vectors (n_samples, n_units) and weights (n_outputs, n_units), word by word."""
    weights, alive = outgoing.copy(), [True] * vectors.shape[1]
    for one in range(vectors.shape[1]):
        for other in range(one + 1, vectors.shape[1]):
            if not (alive[one] and alive[other]):
                continue
            lengths = numpy.linalg.norm(vectors[:, one]) * numpy.linalg.norm(vectors[:, other])
            cosine = vectors[:, one] @ vectors[:, other] / lengths if lengths else 0.0
            angle = numpy.degrees(numpy.arccos(numpy.clip(cosine, -1, 1)))
            if angle < threshold:
                weights[:, one] += weights[:, other]
                alive[other] = False
            elif angle > 180 - threshold:
                alive[one] = alive[other] = False
    kept = [unit for unit in range(vectors.shape[1]) if alive[unit]]
    return kept, weights[:, kept]


@pytest.mark.parametrize("threshold", [15.0, 40.0, 60.0])
@pytest.mark.parametrize(("activation", "centre"), [("sigmoid", 0.5), ("relu", 0.0)])
def test_the_published_method_is_the_paper_word_by_word(activation: str, centre: float, threshold: float) -> None:
    model: Any = perceptron(3, 14, 4, activation=activation, double=True)
    x, others = drawn(50, 3, dtype=torch.float64), drawn(20, 3, seed=1, dtype=torch.float64)
    hidden, outside = (model[:-1](given).detach().numpy() for given in (x, others))
    kept, weights = literal_sweep(hidden - centre, model.output.weight.detach().numpy(), threshold)
    expected = outside[:, kept] @ weights.T + model.output.bias.detach().numpy()
    request = unlabelled_request(model, x)
    small: Any = cut(request, published.Distinctiveness(angle_degrees=threshold).propose(request).edits)
    assert widths_of(small)["hidden0"] == len(kept)
    assert numpy.allclose(answers(small, others).numpy(), expected)
    assert torch.equal(small.output.bias, model.output.bias)


def test_the_published_angle_is_15_degrees() -> None:
    model = perceptron(3, 14, 4, activation="sigmoid", double=True)
    request = unlabelled_request(model, drawn(50, 3, dtype=torch.float64))
    methods = published.Distinctiveness(), published.Distinctiveness(angle_degrees=15)
    assert methods[0].propose(request).edits == methods[1].propose(request).edits


def test_the_published_method_looks_at_all_positions_of_channels() -> None:
    model, x = planted.convolutions("sigmoid", 0)
    x = torch.cat([x, x.roll(3, 0), x.roll(5, 0)], dim=2)
    x = torch.cat([x, x.roll(7, 0)], dim=3)[:20]  # 16 × 10 positions after the first convolution
    channels = model[:2](x).transpose(0, 1).flatten(1).T.detach().numpy() - 0.5
    outgoing = model[2].weight.detach().numpy()
    columns = outgoing.transpose(0, 2, 3, 1).reshape(-1, 8)
    kept, weights = literal_sweep(channels, columns, 40.0)
    request = unlabelled_request(model, x)
    method = published.Distinctiveness(angle_degrees=40, spaces=("0",))
    small: Any = cut(request, method.propose(request).edits)
    assert 0 < len(kept) < 8
    assert torch.equal(small[0].weight, model[0].weight[kept])
    assert numpy.allclose(small[2].weight.detach().numpy().transpose(0, 2, 3, 1).reshape(-1, len(kept)), weights)
    assert torch.equal(small[2].bias, model[2].bias)


def test_both_orders_of_the_published_method_cut() -> None:
    model = perceptron(3, 30, 4, activation="sigmoid")
    request = unlabelled_request(model, drawn(50, 3))
    for order in ("in order", "most similar first"):
        small = cut(request, published.Distinctiveness(pairs=order, angle_degrees=45).propose(request).edits)
        assert 1 <= widths_of(small)["hidden0"] < 30


def test_only_spaces_that_are_named_are_cut() -> None:
    model, x = planted.perceptron("sigmoid")
    request = unlabelled_request(model, x)
    small = cut(request, published.Distinctiveness(spaces=("2",)).propose(request).edits)
    assert (widths_of(small)["0"], widths_of(small)["2"] < 8) == (8, True)


def test_proposing_and_cutting_leave_the_network_as_it_was() -> None:
    model, x = planted.perceptron("sigmoid")
    model.train()
    state, request = state_of(model), unlabelled_request(model, x)
    cut(request, published.Distinctiveness(angle_degrees=40).propose(request).edits)
    assert same_state(model, state)
    assert all(module.training and not module._forward_hooks for module in model.modules())


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"keep_fraction": 0.5}, "keep_fraction: there is no such setting"),
        ({"rounds": 2}, "rounds: there is no such setting"),
        ({"multiple_of": 2}, "multiple_of: there is no such setting"),
        ({"angle_degrees": 91}, "less than or equal to 90"),
        ({"pairs": "at random"}, "pairs"),
    ],
)
def test_settings_that_are_not_the_papers_are_one_line(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        published.Distinctiveness(**settings)
