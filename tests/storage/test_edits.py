"""Model files of networks that surgery changed: the edits are replayed, the weights are exact to the bit."""

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load as unpack
from safetensors.torch import save as pack
from torch import Tensor, nn

from tests.examples import examples
from tests.networks import NETWORKS, ResidualNetwork, built, outputs
from tests.surgery.strategies import (
    SEEDS,
    Case,
    assert_equal_states,
    assert_identical,
    draw_edit,
    perceptron,
    perceptrons,
    untouched,
    zoo,
)
from topiarist import surgery
from topiarist.errors import ModelError
from topiarist.models import Card, attach, card_of
from topiarist.randomness import generator, isolated
from topiarist.storage import load, save, serialise
from topiarist.storage.header import KEY, digest, parse_header
from topiarist.surgery import plan_of
from topiarist.surgery.edits.examples import ExampleShape
from topiarist.tasks import Classification


def assert_loaded(loaded: nn.Module, saved: nn.Module, example: Any) -> None:
    """Assert that a network is what was saved: weights and outputs to the bit, plan, card and class."""
    assert_identical(loaded, saved)
    assert surgery.plan_of(loaded) == surgery.plan_of(saved)
    assert type(loaded) is type(saved)
    assert all(map(torch.equal, outputs(loaded, example), outputs(saved, example)))


@pytest.mark.slow
@examples(9)
@given(perceptrons(), st.integers(1, 6), st.data())
def test_a_perceptron_is_loaded_after_any_edits(case: Case, count: int, data: st.DataObject) -> None:
    model = case.model
    for _ in range(count):
        model = draw_edit(data, model, case.example)
    with TemporaryDirectory() as folder, untouched(model):
        loaded = load(save(model, Path(folder) / "m.safetensors"))
    assert_loaded(loaded, model, case.example)
    assert card_of(loaded) == card_of(model)
    again = draw_edit(data, loaded, case.example)
    assert surgery.plan_of(again).edits[: len(surgery.plan_of(model))] == surgery.plan_of(model).edits


@pytest.mark.slow
@examples(9)
@given(zoo(), SEEDS, st.integers(1, 6), st.data())
def test_a_users_network_is_loaded_into_a_fresh_one_after_any_edits(
    case: Case, seed: int, count: int, data: st.DataObject
) -> None:
    model = case.model
    for _ in range(count):
        model = draw_edit(data, model, case.example)
    name = case.label.split("'")[1]
    into, _ = NETWORKS[name](seed)
    with TemporaryDirectory() as folder, untouched(model):
        loaded = load(save(model, Path(folder) / "m.safetensors"), into=into)
    assert loaded is into
    assert_loaded(into, model, case.example)


def cut(seed: int = 0) -> tuple[nn.Module, Any]:
    """Return a residual network without some of its units."""
    model, example = NETWORKS["residual"](seed)
    return surgery.remove(model, example, units={"stem": [1, 4], "first": [0]}), example


def test_a_network_with_the_same_edits_is_filled_in_place(tmp_path: Path) -> None:
    model, example = cut()
    path = save(model, tmp_path / "m.safetensors")
    into, _ = cut(seed=1)
    assert load(path, into=into) is into
    assert_loaded(into, model, example)


def test_a_loaded_network_can_be_trained_and_saved_again(tmp_path: Path) -> None:
    model, example = cut()
    into = NETWORKS["residual"](1)[0].train()
    load(save(model, tmp_path / "m.safetensors"), into=into)
    assert all(module.training for module in into.modules())
    assert save(into, tmp_path / "again.safetensors").read_bytes() == (tmp_path / "m.safetensors").read_bytes()
    into(example).sum().backward()
    assert all(parameter.grad is not None for parameter in into.parameters())


def test_a_loaded_network_keeps_what_the_user_froze(tmp_path: Path) -> None:
    model, example = NETWORKS["frozen"](0)
    smaller = surgery.remove(model, example, units={"trunk.0": [1], "hidden": [2]})
    into, _ = NETWORKS["frozen"](1)
    load(save(smaller, tmp_path / "m.safetensors"), into=into)
    for name, parameter in into.named_parameters():
        assert parameter.requires_grad != name.startswith("trunk.")


def test_a_refitted_network_is_loaded_without_the_data(tmp_path: Path) -> None:
    model, example = NETWORKS["residual"](0)
    data = torch.randn(20, 3, 6, 6, dtype=torch.float64, generator=generator(0, "data"))
    refitted = surgery.remove(model, example, units={"stem": [1], "first": [0]}, calibration=data)
    into, _ = NETWORKS["residual"](1)
    load(save(refitted, tmp_path / "m.safetensors"), into=into)
    assert_loaded(into, refitted, example)


def test_a_compact_network_is_loaded(tmp_path: Path) -> None:
    model, example = perceptron([3, 6, 5, 2], "sigmoid")
    with torch.no_grad():
        model.get_parameter("hidden0.weight")[2] = 0
    smaller = surgery.compact(model, example)
    assert_loaded(load(save(smaller, tmp_path / "m.safetensors")), smaller, example)


def test_a_network_that_was_cut_with_inputs_by_name_is_loaded(tmp_path: Path) -> None:
    model, example = NETWORKS["two inputs"](0)
    named = dict(zip(("image", "row"), example, strict=True))
    smaller = surgery.remove(model, named, units={"look": [1]})
    into, _ = NETWORKS["two inputs"](1)
    load(save(smaller, tmp_path / "m.safetensors"), into=into)
    assert_loaded(into, smaller, example)


class LastSteps(nn.Module):
    """A network that reads the last step of each sequence, and the values of some rows alone."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        steps = self.hidden(x)
        last = steps.gather(1, (lengths - 1).view(-1, 1, 1).expand(-1, 1, steps.shape[2])).squeeze(1)
        given: Tensor = self.out(last[x.mean((1, 2)) > -1])
        return given


def test_a_network_that_takes_no_number_for_a_length_is_loaded(tmp_path: Path) -> None:
    inputs = torch.randn(3, 5, 4), torch.tensor([5, 2, 3])
    smaller = surgery.remove(LastSteps(), inputs, units={"hidden": range(4)})
    assert plan_of(smaller).example == (
        ExampleShape(shape=(3, 5, 4), dtype="float32"),
        ExampleShape(shape=(3,), dtype="int64", least=2, greatest=5),
    )
    loaded = load(save(smaller, tmp_path / "cut.safetensors"), into=LastSteps())
    assert torch.equal(loaded(*inputs), smaller(*inputs))


def test_the_card_is_kept(tmp_path: Path) -> None:
    model, example = cut()
    attach(model, Card(task=Classification(("a", "b", "c")), input_shape=(3, 6, 6)))
    into, _ = NETWORKS["residual"](1)
    load(save(model, tmp_path / "m.safetensors"), into=into)
    assert card_of(into) == card_of(model)
    assert_loaded(into, model, example)


def test_the_types_of_the_file_are_taken(tmp_path: Path) -> None:
    model, _ = cut()
    path = save(model.float(), tmp_path / "m.safetensors")
    into, _ = NETWORKS["residual"](1)
    assert {tensor.dtype for tensor in load(path, into=into).parameters()} == {torch.float32}


WRONG: dict[str, Callable[[], nn.Module]] = {
    "another class": lambda: NETWORKS["inception"](0)[0],
    "another class with the same inputs": lambda: NETWORKS["gated"](0)[0],
    "another width": lambda: ResidualNetwork(width=7).double().eval(),
    "a narrower network": lambda: ResidualNetwork(width=3).double().eval(),
    "a network with edits of its own": lambda: surgery.deepen(*NETWORKS["residual"](0), after="first"),
    "a network without layers": nn.Identity,
}


@pytest.mark.parametrize("what", WRONG)
def test_a_network_that_does_not_fit_is_refused_and_left_as_it_is(tmp_path: Path, what: str) -> None:
    model, _ = cut()
    path = save(model, tmp_path / "m.safetensors")
    into = WRONG[what]()
    with untouched(into), pytest.raises(ModelError) as caught:
        load(path, into=into)
    assert str(caught.value).startswith(f"cannot load {path}: ") and "\n" not in str(caught.value)


@pytest.mark.parametrize("what", ["the whole network", "weights of others"])
def test_weights_without_edits_do_not_fit_a_cut_network(tmp_path: Path, what: str) -> None:
    model, _ = NETWORKS["residual"](0)
    path = tmp_path / "m.safetensors"
    path.write_bytes(serialise(model) if what == "the whole network" else pack(dict(model.state_dict())))
    into, _ = cut()
    with untouched(into), pytest.raises(ModelError, match="cannot load"):
        load(path, into=into)


def rewritten(model: nn.Module, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return a model file whose header somebody changed and signed again."""
    content = serialise(model)
    tensors = unpack(content)
    start = 8 + int.from_bytes(content[:8], "little")
    record = json.loads(json.loads(content[8:start])["__metadata__"][KEY])
    change(record)
    header = parse_header(json.dumps(record))
    return pack(tensors, metadata={KEY: header.model_copy(update={"digest": digest(header, tensors)}).to_text()})


def edits(*found: dict[str, Any]) -> Callable[[dict[str, Any]], object]:
    """Put other edits into a header."""
    return lambda record: record.update(edits=list(found))


def example(**settings: Any) -> Callable[[dict[str, Any]], object]:
    """Put another example into a header."""
    return lambda record: record["example"].update(settings)


HOSTILE = {
    "no edits": edits(),
    "an unknown kind": edits({"kind": "explode"}),
    "an unknown space": edits({"kind": "remove", "units": {"nothing": [0]}}),
    "the output": edits({"kind": "grow", "space": "output", "by": 1, "seed": 0}),
    "a unit that is not there": edits({"kind": "remove", "units": {"hidden0": [10**12]}}),
    "all units": edits({"kind": "remove", "units": {"hidden0": list(range(6))}}),
    "other units": edits({"kind": "remove", "units": {"hidden0": [0, 1, 2]}}),
    "an unknown layer": edits({"kind": "deepen", "after": "nothing"}),
    "the network itself": edits({"kind": "factorise", "layer": "", "rank": 1}),
    "a layer within none": edits({"kind": "fold", "layer": "hidden0.weight"}),
    "an enormous rank": edits({"kind": "factorise", "layer": "hidden0", "rank": 10**18}),
    "more units than any memory holds": edits({"kind": "grow", "space": "hidden0", "by": 10**15, "seed": 0}),
    "more copies than any memory holds": edits({"kind": "widen", "space": "hidden0", "by": 10**15, "seed": 0}),
    "an example of another size": example(shape=[5, 99]),
    "an example of a negative size": example(shape=[5, -4]),
    "an example beyond all memory": example(shape=[10**12, 4]),
    "no example": lambda record: record.update(example=None),
    "a bias where none can be": edits({"kind": "remove", "units": {"hidden0": [1]}, "biased": ["activation0"]}),
    "a bias of an unknown layer": edits({"kind": "remove", "units": {"hidden0": [1]}, "biased": ["nothing"]}),
    "a negative unit": edits({"kind": "remove", "units": {"hidden0": [-1]}}),
    "an unknown setting": edits({"kind": "deepen", "after": "hidden0", "how": "well"}),
    "an example of no known type": example(dtype="nonsense"),
    "an example of what is no type": example(dtype="nn"),
    "an example without a type": lambda record: record["example"].pop("dtype"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_plan_in_the_header_is_one_line(tmp_path: Path, what: str) -> None:
    model, batch = perceptron([4, 6, 5, 3])
    smaller = surgery.remove(model, batch, units={"hidden0": [1]})
    path = tmp_path / "m.safetensors"
    path.write_bytes(rewritten(smaller, HOSTILE[what]))
    for into in (None, perceptron([4, 6, 5, 3], seed=1)[0]):
        before = deepcopy(into)
        with pytest.raises(ModelError) as caught:
            load(path, into=into)
        assert str(caught.value).startswith(f"cannot load {path}: ") and "\n" not in str(caught.value)
        if into is not None and before is not None:
            assert_equal_states(into.state_dict(), before.state_dict())


def test_a_damaged_plan_does_not_match_the_digest(tmp_path: Path) -> None:
    model, _ = cut()
    content = serialise(model)
    path = tmp_path / "m.safetensors"
    path.write_bytes(content.replace(b'\\"stem\\":[1,4]', b'\\"stem\\":[1,3]'))
    assert path.read_bytes() != content
    with pytest.raises(ModelError, match="does not match its digest"):
        load(path, into=NETWORKS["residual"](0)[0])


def test_a_network_changed_by_hand_after_surgery_has_no_spec(tmp_path: Path) -> None:
    model, batch = perceptron([4, 6, 5, 3])
    smaller = surgery.remove(model, batch, units={"hidden0": [1]})
    smaller.activation0 = nn.Tanh()
    with pytest.warns(match="no longer what its spec describes"):
        path = save(smaller, tmp_path / "m.safetensors")
    with pytest.raises(ModelError, match="build the module"):
        load(path)


def test_the_same_edits_give_the_same_bytes() -> None:
    assert serialise(cut()[0]) == serialise(cut()[0])


def test_a_sequence_without_a_spec_is_loaded(tmp_path: Path) -> None:
    def make(seed: int) -> tuple[nn.Module, Any]:
        return built(lambda: nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 2)), (4, 3), seed=seed)

    model, batch = make(0)
    deeper = surgery.deepen(surgery.grow(model, batch, space="0", by=2, generator=generator(0, "")), batch, after="1")
    into, _ = make(1)
    load(save(deeper, tmp_path / "m.safetensors"), into=into)
    assert_loaded(into, deeper, batch)


def test_a_file_from_before_there_were_edits_is_loaded() -> None:
    golden = Path(__file__).parents[1] / "golden" / "perceptron-without-edits.safetensors"
    assert b"example" not in golden.read_bytes()
    model = load(golden)  # written by the version before; its digest is checked too
    assert surgery.plan_of(model) == surgery.Plan()
    assert model(torch.zeros(2, 4)).shape == (2, 3)


class RemembersPlaces(nn.Module):
    """Attention by places alone, which the first run computes and keeps in a buffer, as ConViT does."""

    table: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first, self.places, self.last = nn.Linear(4, 6), nn.Linear(3, 1), nn.Linear(6, 2)
        self.register_buffer("table", torch.zeros(1, 1, 1, 3), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        tokens = x.shape[1]
        if self.table.shape[1] != tokens:
            steps = torch.arange(tokens, dtype=x.dtype)
            self.table = torch.zeros(1, tokens, tokens, 3, dtype=x.dtype)
            for place, power in enumerate((0.5, 1.0, 2.0)):
                self.table[..., place] = (steps.view(-1, 1) - steps).abs() ** power
        weights = self.places(self.table)[..., 0].softmax(-1)
        result: Tensor = self.last(weights @ self.first(x))
        return result


def test_a_network_that_had_run_is_loaded_into_one_that_has_not(tmp_path: Path) -> None:
    x = torch.randn(2, 5, 4, generator=generator(0, "tokens"))
    with isolated(0):
        model = RemembersPlaces().eval()
    model(x)
    cut = surgery.remove(model, x, units={"constant": [1], "first": [0, 4]})
    with isolated(1):
        loaded = load(save(cut, tmp_path / "m.safetensors"), into=RemembersPlaces().eval())
    assert torch.equal(loaded(x), cut(x))
