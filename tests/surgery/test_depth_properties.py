"""Changes of depth: deepening, exact folds and full ranks keep the outputs; all edits together keep the anatomy."""

from collections.abc import Callable
from copy import deepcopy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from tests.examples import examples
from tests.networks import NETWORKS, built, outputs
from tests.surgery.strategies import (
    Case,
    assert_same,
    deepened,
    draw_edit,
    factorisable,
    full_rank,
    networks,
    perceptron,
    sizes_of,
    untouched,
    weight,
)
from topiarist import surgery
from topiarist.errors import ModelError
from topiarist.tracing import Inputs, anatomy


def parameters_of(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.slow
@examples(8)
@given(networks(), st.booleans())
def test_deepening_after_any_layer_keeps_the_outputs(case: Case, batch_norm: bool) -> None:
    for name, seen in anatomy(case.model, case.example).calls.items():
        if seen.axis is None:  # only the input was flattened so far
            continue
        deeper = deepened(case.model, case.example, name, batch_norm=batch_norm)
        assert_same(deeper, case.model, case.example)
        if repr(deeper) == repr(case.model):  # refused in one line
            continue
        assert parameters_of(deeper) > parameters_of(case.model)
        found = anatomy(deeper, case.example)
        assert len(found.calls) > len(anatomy(case.model, case.example).calls)
        assert count_norms(deeper) == count_norms(case.model) + batch_norm


def count_norms(model: nn.Module) -> int:
    return sum(isinstance(module, _BatchNorm) for module in model.modules())


@pytest.mark.slow
@pytest.mark.parametrize("batch_norm", [False, True])
def test_a_network_deepens_again_and_again(batch_norm: bool) -> None:
    model, example = NETWORKS["residual"](0)
    deeper = model
    for _ in range(4):
        after = next(name for name in anatomy(deeper, example).calls if name.startswith("first"))
        deeper = surgery.deepen(deeper, example, after=after, batch_norm=batch_norm)
        assert_same(deeper, model, example)
    assert len(surgery.plan_of(deeper)) == 4


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_a_new_layer_has_the_activation_where_that_changes_nothing(activation: str) -> None:
    model, example = perceptron([3, 5, 2], activation)
    deeper = surgery.deepen(model, example, after="activation0")
    kinds = [type(module) for module in deeper.children()]
    assert kinds.count(type(model.get_submodule("activation0"))) == (2 if activation == "relu" else 1)
    assert_same(deeper, model, example)


def test_a_new_layer_is_an_identity_that_is_trained() -> None:
    model, example = perceptron([3, 5, 2])
    deeper = surgery.deepen(model, example, after="hidden0")
    (added,) = [layer for name, layer in deeper.named_children() if "deeper" in name and isinstance(layer, nn.Linear)]
    assert torch.equal(added.weight, torch.eye(5, dtype=torch.float64)) and not added.bias.any()
    assert added.weight.requires_grad


@pytest.mark.parametrize(
    "edit",
    [
        lambda model, example: surgery.deepen(model, example, after="stem"),
        lambda model, example: surgery.fold(model, example, layer="stem_norm"),
    ],
    ids=["deepen", "fold"],
)
def test_a_network_stays_in_one_mode(edit: Callable[[nn.Module, Inputs], nn.Module]) -> None:
    edited = edit(*NETWORKS["residual"](0))
    assert not any(module.training for module in edited.modules())


@pytest.mark.parametrize(
    ("after", "refusal"),
    [
        ("nothing", "the network has no layer 'nothing'"),
        ("flatten", "cannot deepen after 'flatten': it has no units"),
        ("", "does not run as one layer"),
    ],
)
def test_where_no_layer_fits_deepening_is_refused(after: str, refusal: str) -> None:
    model, example = perceptron([3, 5, 2])
    with untouched(model), pytest.raises(ModelError, match=refusal):
        surgery.deepen(model, example, after=after)


def test_a_batch_norm_between_rows_of_a_sequence_is_refused() -> None:
    model, example = built(lambda: nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 2)), (2, 7, 3), seed=0)
    assert_same(surgery.deepen(model, example, after="0"), model, example)
    with pytest.raises(ModelError, match="cannot put a batch norm after '0'"):
        surgery.deepen(model, example, after="0", batch_norm=True)


@pytest.mark.slow
@examples(8)
@given(networks())
def test_folding_any_batch_norm_that_can_fold_keeps_the_outputs(case: Case) -> None:
    folded = case.model
    for name, norm in case.model.named_modules():
        if isinstance(norm, _BatchNorm) and reads_a_layer(case.model, case.example, name):
            folded = surgery.fold(folded, case.example, layer=name)
            assert_same(folded, case.model, case.example)
            assert count_norms(folded) == count_norms(case.model) - len(surgery.plan_of(folded))


def reads_a_layer(model: nn.Module, example: Inputs, norm: str) -> bool:
    """Return whether a batch norm comes right after a linear layer or a convolution."""
    before = anatomy(model, example).calls[norm].step.inputs[0].name
    return isinstance(dict(model.named_modules()).get(before), (nn.Linear, nn.Conv1d, nn.Conv2d))


CHAINS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "linear": (lambda: nn.Sequential(nn.Linear(3, 6), nn.Linear(6, 2)), (4, 3)),
    "linear, norm": (lambda: nn.Sequential(nn.Linear(3, 6), nn.BatchNorm1d(6), nn.Linear(6, 2)), (4, 3)),
    "1×1, then 3×3": (lambda: nn.Sequential(nn.Conv2d(3, 6, 1), nn.Conv2d(6, 2, 3, stride=2)), (2, 3, 7, 7)),
    "1×1 without bias, then padded": (
        lambda: nn.Sequential(nn.Conv2d(3, 6, 1, bias=False), nn.Conv2d(6, 2, 3, padding=1)),
        (2, 3, 7, 7),
    ),
    "3×3 padded, then 1×1": (
        lambda: nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1, stride=2), nn.BatchNorm2d(6), nn.Dropout(), nn.Conv2d(6, 2, 1, stride=2)
        ),
        (2, 3, 9, 9),
    ),
    "in one dimension": (
        lambda: nn.Sequential(nn.Conv1d(3, 6, 5, padding=2, padding_mode="circular"), nn.Conv1d(6, 2, 1)),
        (2, 3, 9),
    ),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_folding_a_layer_into_the_next_keeps_the_outputs(chain: str) -> None:
    make, shape = CHAINS[chain]
    model, example = built(make, shape, seed=1)
    folded = surgery.fold(model, example, layer="0")
    assert_same(folded, model, example)
    assert len(anatomy(folded, example).spaces) == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "layer", "refusal"),
    [
        ("residual", "stem_norm_", "the network has no layer 'stem_norm_'"),
        ("residual", "stem", "'stem' cannot fold: 'relu' in forward comes before the next layer"),
        ("grouped sequence", "channel_norm", "'channel_norm' cannot fold"),
        ("shared layer", "shared", "'shared' cannot fold: what 'shared' returns is not read by one layer alone"),
        ("frozen", "trunk.0", r"'trunk.2' \(ReLU\) lies between it and the next layer; linearise=True drops it"),
        ("frozen", "trunk", "'trunk' does not run as one layer"),
    ],
)
def test_a_fold_that_would_change_the_outputs_is_refused(name: str, layer: str, refusal: str) -> None:
    model, example = NETWORKS[name](0)
    with untouched(model), pytest.raises(ModelError, match=refusal):
        surgery.fold(model, example, layer=layer)


def test_a_bias_is_not_folded_over_padding() -> None:
    model, example = built(
        lambda: nn.Sequential(nn.Conv2d(3, 6, 1), nn.Conv2d(6, 2, 3, padding=1)), (2, 3, 5, 5), seed=0
    )
    with untouched(model), pytest.raises(ModelError, match="no bias padded over"):
        surgery.fold(model, example, layer="0")


def test_linearising_drops_the_activation_between_two_layers() -> None:
    model, example = perceptron([3, 8, 2], "relu")
    linear = deepcopy(model)
    linear.activation0 = nn.Identity()
    assert_same(surgery.fold(model, example, layer="hidden0", linearise=True), linear, example)


@pytest.mark.slow
@examples(8)
@given(networks())
def test_factorising_any_layer_at_full_rank_keeps_the_outputs(case: Case) -> None:
    for name in factorisable(case.model):
        pair = surgery.factorise(case.model, layer=name, rank=full_rank(case.model, name))
        assert_same(pair, case.model, case.example)
        anatomy(pair, case.example)


def test_a_lower_rank_gives_the_nearest_product() -> None:
    model, example = NETWORKS["inception"](0)
    nearest = deepcopy(model)
    kernel = weight(nearest, "narrow")
    left, values, right = torch.linalg.svd(kernel.flatten(1), full_matrices=False)
    kernel.copy_(((left[:, :2] * values[:2]) @ right[:2]).reshape(kernel.shape))
    assert_same(surgery.factorise(model, layer="narrow", rank=2), nearest, example)


@pytest.mark.parametrize(
    ("layer", "rank", "refusal"),
    [
        ("stem", 7, "'stem' has rank 6 at most; found rank=7"),
        ("depthwise", 1, "'depthwise' is a grouped convolution, which cannot be factorised"),
        ("stem_norm", 1, "only linear layers and convolutions can be factorised; 'stem_norm' is a BatchNorm2d"),
        ("nothing", 1, "the network has no layer 'nothing'"),
        ("", 1, "only linear layers and convolutions can be factorised; '' is a ResidualNetwork"),
    ],
)
def test_what_cannot_be_factorised_is_refused(layer: str, rank: int, refusal: str) -> None:
    model, _ = NETWORKS["residual"](0)
    with untouched(model), pytest.raises(ModelError, match=refusal):
        surgery.factorise(model, layer=layer, rank=rank)


@pytest.mark.slow
@examples(12)
@given(networks(), st.data())
def test_random_sequences_of_all_edits_keep_the_anatomy_valid(case: Case, data: st.DataObject) -> None:
    model = case.model
    for _ in range(data.draw(st.integers(1, 6), label="edits")):
        with untouched(model):
            edited = draw_edit(data, model, case.example)
        model = edited
    found = anatomy(model, case.example)
    assert not found.opaque and found.free
    assert sizes_of(model, case.example)
    fixed = {space.size for space in found.spaces.values() if space.fixed}
    # units of an output lie along axis 1 or along the last; axis 0 is the batch, whose size says nothing
    assert all(fixed & {given.shape[1], given.shape[-1]} for given in outputs(model, case.example))
    assert all(bool(given.isfinite().all()) for given in outputs(model, case.example))


EXACT = ("widen", "grow", "deepen", "fold", "compact")


@pytest.mark.slow
@examples(12)
@given(networks(), st.data())
def test_random_sequences_of_exact_edits_keep_the_outputs(case: Case, data: st.DataObject) -> None:
    model = case.model
    for _ in range(4):
        expected = model
        model = draw_edit(data, model, case.example, EXACT)
        assert_same(model, expected, case.example)
    assert_same(model, case.model, case.example)
