"""The edits of the paper (the Surgeon), each against its formula written out in numpy, and what they keep.

Weights are those of torch, with a row a unit; the paper's are their transposes.
"""

import json
from collections.abc import Callable
from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

from tests.examples import examples
from tests.networks import NETWORKS, built, outputs
from tests.surgery.strategies import (
    SEEDS,
    Case,
    assert_equal_states,
    assert_identical,
    assert_same,
    incoming,
    networks,
    outgoing,
    perceptron,
    untouched,
    zoo,
)
from tests.surgery.test_width_properties import copies_in
from topiarist import surgery
from topiarist.errors import ModelError, TopiaristError
from topiarist.models import Ensemble, mlp
from topiarist.models.activations import ACTIVATIONS
from topiarist.randomness import generator
from topiarist.storage import load, save
from topiarist.surgery import Plan, ProjectSpace, WidenSpace
from topiarist.surgery.choice.evidence import blind_spot
from topiarist.surgery.replaying import rebuild
from topiarist.tracing import Inputs, Space, anatomy

Array = NDArray[numpy.float64]
Sizes = list[int]
DENSE = st.lists(st.integers(1, 8), min_size=3, max_size=6)
NAMES = st.sampled_from(sorted(ACTIVATIONS))


def arrays(model: nn.Module) -> dict[str, Array]:
    """Return the tensors of a network by name."""
    return {name: tensor.numpy() for name, tensor in model.state_dict().items()}


def dense_layers(sizes: Sizes) -> list[str]:
    """Name the layers of a multilayer perceptron in order."""
    return [*(f"hidden{number}" for number in range(len(sizes) - 2)), "output"]


def assert_arrays(model: nn.Module, expected: dict[str, Array], tolerance: float = 1e-9) -> None:
    """Assert that a network has these tensors and no others."""
    found = arrays(model)
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        numpy.testing.assert_allclose(found[name], values, rtol=0, atol=tolerance, err_msg=name)


def widened(case: Case, space: str, by: int, *, even: bool, seed: int = 0) -> tuple[nn.Module, Space]:
    """Return a wider network and the space that was widened."""
    random = generator(seed, space)
    wider = surgery.widen(case.model, case.example, space=space, by=by, generator=random, even=even)
    return wider, anatomy(wider, case.example)[space]


@pytest.mark.slow
@examples(12)
@given(networks(), st.integers(1, 9), SEEDS)
def test_equal_shares_keep_the_outputs_of_any_network(case: Case, by: int, seed: int) -> None:
    for name, space in anatomy(case.model, case.example).free.items():
        if blind_spot(space) is not None or any(place.parameter is not None for place in space.places):
            continue  # copies of such units may be refused
        with untouched(case.model):
            wider, found = widened(case, name, by, even=True, seed=seed)
        assert found.size == space.size + by
        assert_same(wider, case.model, case.example)
        for one, other in copies_in(wider, found):
            assert torch.equal(outgoing(wider, found, one), outgoing(wider, found, other))


@pytest.mark.slow
@given(DENSE, NAMES, SEEDS, st.data())
def test_one_copy_halves_what_the_unit_sends_out(sizes: Sizes, activation: str, seed: int, data: st.DataObject) -> None:
    model, example = perceptron(sizes, activation, seed=seed)
    layers = dense_layers(sizes)
    number = data.draw(st.integers(0, len(sizes) - 3), label="layer")
    layer, reader = layers[number], layers[number + 1]
    wider = surgery.widen(model, example, space=layer, by=1, generator=generator(seed, "copy"), even=True)
    old, new = arrays(model), arrays(wider)
    units, rows = range(sizes[number + 1]), new[f"{layer}.weight"]
    (copied,) = [unit for unit in units if numpy.array_equal(doubled(old[f"{layer}.weight"], unit), rows)]
    expected = dict(old)
    for name in (f"{layer}.weight", f"{layer}.bias"):
        expected[name] = doubled(old[name], copied)
    columns = old[f"{reader}.weight"].T.copy()
    columns[copied] /= 2  # formula (8)
    expected[f"{reader}.weight"] = doubled(columns, copied).T
    assert_arrays(wider, expected, 0.0)


def doubled(rows: Array, row: int) -> Array:
    """Return rows with one of them twice."""
    return numpy.insert(rows, row, rows[row], axis=0)


def train(model: nn.Module, example: Inputs, steps: int = 100) -> None:
    """Make steps of stochastic gradient descent towards random targets."""
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.05)
    assert isinstance(example, Tensor)
    for step in range(steps):
        random = generator(step, "batch")
        batch = torch.randn(16, *example.shape[1:], generator=random, dtype=torch.float64)
        optimizer.zero_grad()
        given = model(batch)
        (given - torch.randn(given.shape, generator=random, dtype=torch.float64)).square().mean().backward()
        optimizer.step()


def trained_case(kind: str) -> tuple[Case, str]:
    """Return a network by the name of its activation or its own, and a space of it."""
    if kind in ACTIVATIONS:
        return Case(kind, *perceptron([5, 4, 6, 3], kind)), "hidden1"
    return Case(kind, *NETWORKS[kind](0)), {"inception": "narrow", "residual": "stem", "cascade": "layers.1"}[kind]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*ACTIVATIONS, "inception", "residual", "cascade"])
def test_after_100_steps_copies_with_equal_shares_are_still_equal_and_others_are_not(kind: str) -> None:
    case, name = trained_case(kind)
    size = anatomy(case.model, case.example)[name].size
    pairs = [(2 * unit, 2 * unit + 1) for unit in range(size)]  # each unit has one copy, right behind it
    for even in (True, False):
        wider, space = widened(case, name, size, even=even)
        assert set(pairs) <= set(copies_in(wider, space))
        before = deepcopy(wider)
        train(wider, case.example)
        moved = [incoming(wider, space, unit).ne(incoming(before, space, unit)).any() for unit in range(2 * size)]
        alive = [pair for pair in pairs if moved[pair[0]]]
        assert len(alive) > size // 2  # a copy of a dead unit is dead
        read = [distance(outgoing, wider, space, pair) for pair in alive]
        written = [distance(incoming, wider, space, pair) for pair in alive]
        if even:
            assert max(*read, *written) < 1e-12
        else:
            assert min(*read, *written) > 1e-5


def distance(weights: Callable[..., Tensor], model: nn.Module, space: Space, pair: tuple[int, int]) -> float:
    """Return how different the weights are that write two units, or that read them."""
    one, other = (weights(model, space, unit) for unit in pair)
    return float((one - other).abs().max())


OLD_PLAN = '{"edits": [{"by": 2, "kind": "widen", "seed": 5, "space": "hidden0"}], "example": null}'


def test_a_plan_from_before_there_were_equal_shares_is_read_printed_and_written_as_it_was() -> None:
    plan = Plan.from_json(OLD_PLAN)
    assert plan == Plan((WidenSpace(space="hidden0", by=2, seed=5),))
    assert plan.to_json() == OLD_PLAN
    assert str(plan) == "1. widen 'hidden0' by 2"


def test_equal_shares_are_data() -> None:
    model, example = perceptron([4, 6, 3])
    wider = surgery.widen(model, example, space="hidden0", by=2, generator=generator(0, "shares"), even=True)
    plan = surgery.plan_of(wider)
    (edit,) = plan
    assert isinstance(edit, WidenSpace) and edit.even
    assert str(plan) == "1. widen 'hidden0' by 2 in equal shares"
    assert Plan.from_json(plan.to_json()) == plan
    assert_identical(surgery.apply(Plan.from_json(plan.to_json()), model), wider)


def test_the_seed_copies_the_same_units_whatever_their_shares() -> None:
    model, example = perceptron([4, 6, 3])
    one, other = (
        surgery.apply(Plan((WidenSpace(space="hidden0", by=4, seed=3, even=even),)), model, example)
        for even in (False, True)
    )
    assert torch.equal(one.get_parameter("hidden0.weight"), other.get_parameter("hidden0.weight"))
    assert not torch.equal(one.get_parameter("output.weight"), other.get_parameter("output.weight"))


def left_vectors(weight: Array, count: int) -> Array:
    """Return the first left singular vectors of a kernel (n_units, count), with the largest entry of each positive."""
    vectors = numpy.linalg.svd(weight.reshape(len(weight), -1), full_matrices=False)[0][:, :count]
    for column in range(count):
        if vectors[numpy.argmax(numpy.abs(vectors[:, column])), column] < 0:
            vectors[:, column] *= -1
    return vectors


def project_by_hand(old: dict[str, Array], layer: str, reader: str, to: int) -> dict[str, Array]:
    """Return the tensors of a network after a projection: each unit may be read at several columns."""
    vectors = left_vectors(old[f"{layer}.weight"], to)
    new = dict(old)
    for name in ("weight", "bias"):
        if f"{layer}.{name}" in old:
            new[f"{layer}.{name}"] = numpy.tensordot(vectors.T, old[f"{layer}.{name}"], axes=1)
    read = old[f"{reader}.weight"]
    columns = read.reshape(len(read), len(vectors), -1)  # (n_outputs, n_units, positions of a unit)
    mixed = numpy.stack([columns[:, :, place] @ vectors for place in range(columns.shape[2])], axis=2)
    new[f"{reader}.weight"] = mixed.reshape(len(read), -1, *read.shape[2:])
    return new


@pytest.mark.slow
@given(DENSE, NAMES, SEEDS, st.data())
def test_a_projection_is_the_formula_for_dense_layers(
    sizes: Sizes, activation: str, seed: int, data: st.DataObject
) -> None:
    model, example = perceptron(sizes, activation, seed=seed)
    layers = dense_layers(sizes)
    number = data.draw(st.integers(0, len(sizes) - 3), label="layer")
    to = data.draw(st.integers(1, min(sizes[number : number + 2])), label="to")
    with untouched(model):
        narrow: Any = surgery.project(model, example, space=layers[number], to=to)
    old = arrays(model)
    assert_arrays(narrow, project_by_hand(old, layers[number], layers[number + 1], to), 1e-8)
    assert narrow.get_submodule(layers[number]).out_features == to
    assert narrow.get_submodule(layers[number + 1]).in_features == to
    assert outputs(narrow, example)[0].isfinite().all()


@pytest.mark.slow
@given(st.integers(1, 8), st.integers(1, 8), st.integers(1, 5), SEEDS, st.data())
def test_in_the_papers_notation_the_layer_gets_us_and_the_next_one_vt_w(
    inputs: int, units: int, out: int, seed: int, data: st.DataObject
) -> None:
    model, example = perceptron([inputs, units, out], seed=seed)
    to = data.draw(st.integers(1, min(inputs, units)), label="to")
    narrow = arrays(surgery.project(model, example, space="hidden0", to=to))
    kernel, following = arrays(model)["hidden0.weight"].T, arrays(model)["output.weight"].T
    left, values, right = numpy.linalg.svd(kernel, full_matrices=False)  # formula (10), rows are inputs
    signs = numpy.sign(right[numpy.arange(to), numpy.abs(right[:to]).argmax(1)])
    numpy.testing.assert_allclose(narrow["hidden0.weight"].T, left[:, :to] * values[:to] * signs, rtol=0, atol=1e-8)
    numpy.testing.assert_allclose(narrow["output.weight"].T, signs[:, None] * right[:to] @ following, rtol=0, atol=1e-8)


class Functions(nn.Module):
    """A convolution whose units are passed on by functions alone."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(2, 5, 3, padding=1)
        self.second = nn.Linear(5 * 9, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = nn.functional.max_pool2d(torch.relu(self.first(x)), 2)
        given: Tensor = self.second(h.view(h.size(0), -1))
        return given


class Averages(nn.Module):
    """A convolution whose channels are averaged, after a gate made of themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv1d(2, 5, 3, bias=False)
        self.second = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        h = self.first(x)
        given: Tensor = self.second((h * torch.sigmoid(h)).mean(2))
        return given


Made = tuple[Callable[[], nn.Module], tuple[int, ...], str, str]
CONVOLUTIONS: dict[str, Made] = {
    "two convolutions": (
        lambda: nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.Tanh(), nn.Conv2d(6, 3, (2, 3), padding=1)),
        *((2, 2, 6, 6), "0", "2"),
    ),
    "behind a flatten": (
        lambda: nn.Sequential(
            *(nn.Conv2d(2, 6, 3, bias=False), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(), nn.Flatten(), nn.Linear(24, 3)),
        ),
        *((2, 2, 6, 6), "0", "5"),
    ),
    "on sequences": (
        lambda: nn.Sequential(nn.Conv1d(2, 6, 3, stride=2), nn.GELU(), nn.Identity(), nn.Conv1d(6, 3, 2, bias=False)),
        *((2, 2, 9), "0", "3"),
    ),
    "functions": (Functions, (2, 2, 6, 6), "first", "second"),
    "averages": (Averages, (2, 2, 9), "first", "second"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", CONVOLUTIONS)
@pytest.mark.parametrize("seed", range(3))
def test_a_projection_is_the_formula_for_convolutions(kind: str, seed: int) -> None:
    make, shape, layer, reader = CONVOLUTIONS[kind]
    model, example = built(make, shape, seed=seed)
    size = anatomy(model, example)[layer].size
    for to in range(1, size + 1):
        narrow = surgery.project(model, example, space=layer, to=to)
        assert_arrays(narrow, project_by_hand(arrays(model), layer, reader, to))
        assert anatomy(narrow, example)[layer].size == to


def linear_network(sizes: Sizes, rank: int, seed: int, *, bias: str) -> tuple[nn.Module, Inputs]:
    """Return two layers with no activation between; the first has a rank, and a bias within what it can give or not."""

    def make() -> nn.Module:
        first = nn.Linear(sizes[0], sizes[1], dtype=torch.float64)
        factors = nn.Linear(rank, sizes[1], dtype=torch.float64), nn.Linear(sizes[0], rank, dtype=torch.float64)
        with torch.no_grad():
            first.weight.copy_(factors[0].weight @ factors[1].weight)
            if bias == "within":
                first.bias.copy_(first.weight.sum(1))
        return nn.Sequential(first, nn.Identity(), nn.Dropout(), nn.Linear(sizes[1], sizes[2]))

    return built(make, (7, sizes[0]), seed=seed)


THREE = st.lists(st.integers(1, 8), min_size=3, max_size=3)


@pytest.mark.slow
@given(THREE, SEEDS, st.data())
def test_without_an_activation_a_projection_to_the_rank_is_exact(sizes: Sizes, seed: int, data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, min(sizes[:2])), label="rank")
    model, example = linear_network(sizes, rank, seed, bias="within")
    assert_same(surgery.project(model, example, space="0", to=rank), model, example)


@pytest.mark.slow
@given(THREE, SEEDS, st.data())
def test_without_an_activation_what_is_lost_is_what_lies_outside_the_directions(
    sizes: Sizes, seed: int, data: st.DataObject
) -> None:
    model, example = linear_network(sizes, min(sizes[:2]), seed, bias="anywhere")
    to = data.draw(st.integers(1, min(sizes[:2])), label="to")
    old = arrays(model)
    vectors = left_vectors(old["0.weight"], to)
    kept = vectors @ vectors.T
    assert isinstance(example, Tensor)
    hidden = example.numpy() @ old["0.weight"].T + old["0.bias"]
    expected = hidden @ kept.T @ old["3.weight"].T + old["3.bias"]
    narrow = surgery.project(model, example, space="0", to=to)
    numpy.testing.assert_allclose(outputs(narrow, example)[0].numpy(), expected, rtol=0, atol=1e-8)
    lost = numpy.linalg.norm(old["0.weight"] - vectors @ arrays(narrow)["0.weight"])
    tail = numpy.linalg.svd(old["0.weight"], compute_uv=False)[to:]  # no product of that rank comes nearer
    assert lost == pytest.approx(numpy.sqrt((tail**2).sum()), abs=1e-9)


@pytest.mark.slow
@given(THREE, SEEDS)
def test_with_all_directions_a_projection_is_a_rotation(sizes: Sizes, seed: int) -> None:
    model, example = linear_network(sizes, min(sizes[:2]), seed, bias="anywhere")
    turned = surgery.project(model, example, space="0", to=sizes[1])
    assert_same(turned, model, example)
    rows = arrays(turned)["0.weight"]
    numpy.testing.assert_allclose(rows @ rows.T, numpy.diag(numpy.diag(rows @ rows.T)), rtol=0, atol=1e-9)


def test_each_projection_is_the_same_each_time_and_on_opposite_weights() -> None:
    model, example = perceptron([5, 6, 3])
    once, again = (surgery.project(model, example, space="hidden0", to=4) for _ in range(2))
    assert_identical(once, again)
    opposite = deepcopy(model)
    opposite.get_parameter("hidden0.weight").data.neg_()
    other = surgery.project(opposite, example, space="hidden0", to=4)
    assert_arrays(other, {**arrays(once), "hidden0.weight": -arrays(once)["hidden0.weight"]})


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_projection_keeps_type_mode_and_what_is_trained(dtype: torch.dtype) -> None:
    model, example = NETWORKS["frozen"](0)
    model.to(dtype).train()
    narrow = surgery.project(model, example, space="trunk.3", to=4)
    assert all(module.training for module in narrow.modules())
    assert {parameter.dtype for parameter in narrow.parameters()} == {dtype}
    for name, parameter in narrow.named_parameters():
        assert parameter.requires_grad != name.startswith("trunk.")


class Siamese(nn.Module):
    """One layer that runs twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 5)
        self.second = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.second(torch.relu(self.first(x)) + torch.relu(self.first(-x)))
        return given


class Joined(nn.Module):
    """A layer whose units are read twice by another, or scaled by a number of the input."""

    def __init__(self, *, scaled: bool) -> None:
        super().__init__()
        self.scaled = scaled
        self.first = nn.Linear(4, 5)
        self.second = nn.Linear(5 if scaled else 10, 2)

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.first(x))
        given: Tensor = self.second(h * x.mean(1, keepdim=True) if self.scaled else torch.cat([h, h.square()], 1))
        return given


class Unread(nn.Module):
    """A layer that nothing reads."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 5)
        self.second = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        self.first(x)
        given: Tensor = self.second(x)
        return given


class Summed(nn.Module):
    """Two layers that write the same units."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 5)
        self.beside = nn.Linear(4, 5)
        self.second = nn.Linear(5, 2)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.second(torch.relu(self.first(x) + self.beside(x)))
        return given


Factory = Callable[[], tuple[nn.Module, Inputs]]
REFUSED: dict[str, tuple[Factory, str, str]] = {
    "a batch norm": (
        lambda: NETWORKS["residual"](0),
        *("first", "'first' cannot be projected: 'first_norm' (BatchNorm2d) has values for each of its units"),
    ),
    "a batch norm of an addition": (lambda: NETWORKS["residual"](0), "stem", "'stem' cannot be projected: 'stem_norm'"),
    "slopes": (lambda: NETWORKS["gated"](0), "stem", "'stem' cannot be projected: 'slopes' (PReLU) has values"),
    "halves": (lambda: NETWORKS["gated"](0), "expand", "'expand' writes each of its units more than once"),
    "groups": (lambda: NETWORKS["grouped"](0), "stem:groups", "'grouped' (Conv2d) has values for each of its units"),
    "members of groups": (
        lambda: NETWORKS["grouped"](0),
        *("stem:members", "'stem' writes each of its units more than once"),
    ),
    "an addition": (
        lambda: built(Summed, (3, 4), seed=0),
        *("first", "'first' cannot be projected: 'first' and 'beside' write it together, as in an addition"),
    ),
    "a concatenation": (
        lambda: NETWORKS["cascade"](0),
        *("layers.0", "'layers.1' reads it together with others, as after a concatenation"),
    ),
    "a concatenation with itself": (
        lambda: built(lambda: Joined(scaled=False), (3, 4), seed=0),
        *("first", "'second' reads it together with others, as after a concatenation"),
    ),
    "a gate": (
        lambda: built(lambda: Joined(scaled=True), (3, 4), seed=0),
        *("first", "forward combines it with values that do not come from its layer"),
    ),
    "two readers": (lambda: NETWORKS["two inputs"](0), "shared", "'kind' and 'number' read it, not one layer alone"),
    "no reader": (lambda: built(Unread, (3, 4), seed=0), "first", "'first' cannot be projected: no layer reads it"),
    "a layer that runs twice": (lambda: built(Siamese, (3, 4), seed=0), "first", "'first' runs more than once"),
    "the output": (lambda: perceptron([4, 6, 3]), "output", "the units of 'output' are fixed: the network's output"),
    "an unknown space": (lambda: perceptron([4, 6, 3]), "nothing", "there is no space 'nothing'"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_projected_is_refused_in_one_line_that_says_why(what: str) -> None:
    make, space, refusal = REFUSED[what]
    model, example = make()
    with untouched(model), pytest.raises(ModelError) as caught:
        surgery.project(model, example, space=space, to=1)
    assert refusal in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("to", "refusal"),
    [(7, "cannot project 6 units of 'hidden0' to 7"), (0, "to must be greater than 0"), (-1, "to must be greater")],
)
def test_more_units_than_there_are_or_none_are_refused(to: int, refusal: str) -> None:
    model, example = perceptron([4, 6, 3])
    with untouched(model), pytest.raises(TopiaristError, match=refusal) as caught:
        surgery.project(model, example, space="hidden0", to=to)
    assert "\n" not in str(caught.value)


def test_weights_without_a_value_are_refused() -> None:
    model, example = perceptron([4, 6, 3])
    model.get_parameter("hidden0.weight").data[1, 2] = torch.nan
    with pytest.raises(ModelError, match="'hidden0' cannot be projected: its layer has weights that are not finite"):
        surgery.project(model, example, space="hidden0", to=2)


@pytest.mark.slow
@examples(10)
@given(zoo(["inception", "input residual", "frozen", "normed"]), SEEDS, st.data())
def test_a_projection_is_data_and_its_structure_has_no_values(case: Case, seed: int, data: st.DataObject) -> None:
    names = {"inception": "narrow_reduce", "input residual": "third", "frozen": "trunk.3", "normed": "hidden"}
    kind = case.label.split("'")[1]
    space = anatomy(case.model, case.example)[names[kind]]
    to = data.draw(st.integers(1, space.size), label="to")
    narrow = surgery.project(case.model, case.example, space=space.name, to=to)
    plan = surgery.plan_of(narrow)
    assert tuple(plan) == (ProjectSpace(space=space.name, to=to),)
    assert str(plan) == f"1. project '{space.name}' to {to}"
    read = Plan.from_json(plan.to_json())
    assert read == plan
    assert json.loads(plan.to_json())["edits"] == [{"kind": "project", "space": space.name, "to": to}]
    assert_identical(surgery.apply(read, case.model), narrow)
    bare = rebuild(read, NETWORKS[kind](seed)[0])
    new = {f"{space.producers[0].module}.weight", f"{space.producers[0].module}.bias"}
    new.add(f"{space.consumers[0].module}.weight")
    for name, tensor in bare.state_dict().items():
        assert tensor.shape == narrow.state_dict()[name].shape
        assert bool(tensor.isnan().all()) == (name in new) and bool(tensor.isnan().any()) == (name in new)
    assert repr(bare) == repr(narrow)


def test_a_projected_and_evenly_widened_network_is_loaded_without_code(tmp_path: Path) -> None:
    model, example = perceptron([4, 6, 5, 3], "tanh")
    edited = surgery.project(model, example, space="hidden0", to=3)
    edited = surgery.widen(edited, example, space="hidden1", by=2, generator=generator(0, "wider"), even=True)
    edited = surgery.project(edited, example, space="hidden1", to=6)
    loaded = load(save(edited, tmp_path / "m.safetensors"))
    assert_identical(loaded, edited)
    assert surgery.plan_of(loaded) == surgery.plan_of(edited)


def test_members_of_an_ensemble_are_projected_alone_or_together(tmp_path: Path) -> None:
    example = torch.randn(3, 4, generator=generator(0, "rows"))
    first, second = (mlp([4, 6, 5, 3], generator=generator(seed, "weights")).eval() for seed in (0, 1))
    alone = Ensemble([surgery.project(first, example, space="hidden0", to=3), second], [1, 2])
    both = surgery.project(alone, example, space="members.1.hidden1", to=2)
    assert isinstance(both, Ensemble)
    assert tuple(surgery.plan_of(both)) == (
        ProjectSpace(space="members.0.hidden0", to=3),
        ProjectSpace(space="members.1.hidden1", to=2),
    )
    assert tuple(surgery.plan_of(both.members[1])) == (ProjectSpace(space="hidden1", to=2),)
    by_itself = surgery.project(second, example, space="hidden1", to=2)
    assert_equal_states(both.members[1].state_dict(), by_itself.state_dict())
    assert_identical(load(save(both, tmp_path / "m.safetensors")), both)


@pytest.mark.slow
@given(DENSE, NAMES, SEEDS)
def test_a_layer_that_is_removed_is_multiplied_into_the_next(sizes: Sizes, activation: str, seed: int) -> None:
    model, example = perceptron(sizes, activation, seed=seed)
    old, layers = arrays(model), dense_layers(sizes)
    for layer, following in pairwise(layers):
        with untouched(model):
            removed = surgery.fold(model, example, layer=layer, linearise=True)
        kernel, bias = old[f"{layer}.weight"].T, old[f"{layer}.bias"]  # the paper's A_j and b_j
        next_kernel, next_bias = old[f"{following}.weight"].T, old[f"{following}.bias"]
        expected = {name: values for name, values in old.items() if not name.startswith(f"{layer}.")}
        expected[f"{following}.weight"] = (kernel @ next_kernel).T  # formula (11)
        expected[f"{following}.bias"] = bias @ next_kernel + next_bias  # formula (12)
        assert_arrays(removed, expected, 1e-12)
        number = layer.removeprefix("hidden")
        gone = {layer, f"activation{number}", f"dropout{number}"}
        assert [name for name, _ in removed.named_children()] == [
            name for name, _ in model.named_children() if name not in gone
        ]


@pytest.mark.slow
@given(DENSE, NAMES, SEEDS, st.data())
def test_a_factorised_layer_is_the_truncated_decomposition(
    sizes: Sizes, activation: str, seed: int, data: st.DataObject
) -> None:
    model, _ = perceptron(sizes, activation, seed=seed)
    number = data.draw(st.integers(0, len(sizes) - 2), label="layer")
    rank = data.draw(st.integers(1, min(sizes[number : number + 2])), label="rank")
    layer = dense_layers(sizes)[number]
    old, new = arrays(model), arrays(surgery.factorise(model, layer=layer, rank=rank))
    left, values, right = numpy.linalg.svd(old[f"{layer}.weight"].T, full_matrices=False)
    narrow, wide = new.pop(f"{layer}.narrow.weight"), new.pop(f"{layer}.wide.weight")
    assert narrow.shape == (rank, sizes[number]) and wide.shape == (sizes[number + 1], rank)
    nearest = (left[:, :rank] * values[:rank]) @ right[:rank]
    numpy.testing.assert_allclose(narrow.T @ wide.T, nearest, rtol=0, atol=1e-9)
    assert numpy.array_equal(new.pop(f"{layer}.wide.bias"), old[f"{layer}.bias"])
    rest = {name: values for name, values in old.items() if not name.startswith(f"{layer}.")}
    assert new.keys() == rest.keys() and all(numpy.array_equal(new[name], rest[name]) for name in rest)


@pytest.mark.slow
@given(DENSE, SEEDS, st.booleans())
def test_an_added_layer_is_exact_with_relu_and_as_wide_as_the_layer_it_follows(
    sizes: Sizes, seed: int, behind: bool
) -> None:
    model, example = perceptron(sizes, "relu", seed=seed)
    for number in range(len(sizes) - 2):
        after = f"activation{number}" if behind else f"hidden{number}"
        with untouched(model):
            deeper = surgery.deepen(model, example, after=after)
        assert all(map(torch.equal, outputs(deeper, example), outputs(model, example)))
        names = [name for name, _ in deeper.named_children()]
        added = [name for name in names if name not in dict(model.named_children())]
        (layer,) = [name for name in added if isinstance(deeper.get_submodule(name), nn.Linear)]
        width = sizes[number + 1]
        assert torch.equal(deeper.get_parameter(f"{layer}.weight"), torch.eye(width, dtype=torch.float64))
        assert not deeper.get_parameter(f"{layer}.bias").any()
        place = names.index(layer)
        around = [deeper.get_submodule(names[index]) for index in (place - 1, place + 1)]
        assert all(isinstance(module, nn.ReLU) for module in around)  # formula (3): Φ(x) = Φ(I · Φ(x))
        old, new = arrays(model), arrays(deeper)
        assert all(numpy.array_equal(new[name], old[name]) for name in old)
