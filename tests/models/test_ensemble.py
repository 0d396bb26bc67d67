"""Ensembles: the mean of the members' class probabilities, measured, trained and exported as one network."""

import json
import warnings
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn

from topiarist import Data, TrainConfig, measure, train
from topiarist.data import Part, Preprocessing, SplitRule
from topiarist.errors import ModelError
from topiarist.measurement.footprint import footprint
from topiarist.models import Card, Ensemble, attach, build, card_of, inception, mlp, spec_of, vgg
from topiarist.randomness import generator
from topiarist.tasks import Classification

IMAGES = (1, 12, 14)
WEIGHTS = st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=5)


class Given(nn.Module):
    """A user's network: gives the logits that it was made with, whatever it sees."""

    def __init__(self, logits: NDArray[numpy.float64]) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.from_numpy(logits))

    def forward(self, x: Tensor) -> Tensor:
        return self.logits + 0 * x.sum()


def perceptrons(count: int = 3) -> list[nn.Module]:
    return [mlp([4, 6 + seed, 3], dropout=0.3, generator=generator(seed, "weights")).eval() for seed in range(count)]


def image_networks() -> list[nn.Module]:
    return [vgg(1, 0, 1, 1, input_shape=IMAGES).eval(), inception(1, 0, 1, input_shape=IMAGES).eval()]


def samples(count: int = 5, shape: Sequence[int] = (4,)) -> Tensor:
    return torch.randn(count, *shape, generator=generator(0, "samples"))


def mean_probabilities(logits: NDArray[numpy.float64], weights: Sequence[float]) -> NDArray[numpy.float64]:
    """Return Σ wₖ · softmax(zₖ) for logits (n_members, n_samples, n_classes)."""
    powers = numpy.exp(logits - logits.max(axis=2, keepdims=True))
    probabilities = powers / powers.sum(axis=2, keepdims=True)
    mean: NDArray[numpy.float64] = numpy.average(probabilities, axis=0, weights=weights)
    return mean


@pytest.mark.slow
@given(WEIGHTS, st.integers(1, 4), st.integers(1, 5), st.floats(0.1, 30), st.integers(0, 2**16))
def test_the_output_is_the_logarithm_of_the_weighted_mean(
    weights: list[float], rows: int, classes: int, spread: float, seed: int
) -> None:
    logits = numpy.random.default_rng(seed).normal(scale=spread, size=(len(weights), rows, classes))
    given = Ensemble([Given(member) for member in logits], weights)(samples(rows)).detach()
    expected = mean_probabilities(logits, weights)
    numpy.testing.assert_allclose(given.exp().numpy(), expected, rtol=1e-10)
    numpy.testing.assert_allclose(given.softmax(1).numpy(), expected, rtol=1e-10)


def test_what_is_improbable_for_all_members_has_a_logarithm() -> None:
    logits = numpy.array([[[0.0, -2000.0]], [[0.0, -2001.0]]])
    (sure, never) = Ensemble([Given(member) for member in logits])(samples(1))[0].tolist()
    assert sure == 0.0
    assert never == pytest.approx(-2000 + numpy.log((1 + numpy.exp(-1)) / 2), rel=1e-12)


def test_members_count_the_same_without_weights() -> None:
    members, x = perceptrons(), samples()
    mean = torch.stack([member(x).softmax(1) for member in members]).mean(0)
    torch.testing.assert_close(Ensemble(members)(x).exp(), mean, rtol=0, atol=1e-6)
    assert torch.equal(Ensemble(members)(x), Ensemble(members, [2, 2, 2])(x))


def test_weights_sum_to_one() -> None:
    assert Ensemble(perceptrons(), [3, 4, 1]).weights.tolist() == pytest.approx([0.375, 0.5, 0.125])
    assert Ensemble(perceptrons(2), [1e308, 1e308]).weights.tolist() == pytest.approx([0.5, 0.5])


def test_weights_may_come_from_an_array() -> None:
    spec = card_of(Ensemble(perceptrons(2), list(numpy.array([1, 3], dtype=numpy.float32)))).spec
    assert spec is not None and json.loads(json.dumps(spec["weights"])) == [0.25, 0.75]


def test_one_member_alone_gives_its_logarithms() -> None:
    (member,), x = perceptrons(1), samples()
    assert torch.equal(Ensemble([member], [0.2])(x), member(x).log_softmax(1))


def test_the_order_of_the_members_does_not_matter() -> None:
    members, x = perceptrons(), samples()
    one, other = Ensemble(members, [1, 2, 3]), Ensemble(members[::-1], [3, 2, 1])
    torch.testing.assert_close(one(x), other(x), rtol=0, atol=1e-6)


def test_an_ensemble_of_ensembles_is_one_of_all_members() -> None:
    members, x = perceptrons(), samples()
    nested = Ensemble([Ensemble(members[:2], [1, 3]), members[2]], [4, 2])
    torch.testing.assert_close(nested(x), Ensemble(members, [1, 3, 2])(x), rtol=0, atol=1e-6)
    spec = spec_of(nested)
    assert spec is not None and repr(build(spec)) == repr(nested)


def test_members_are_held_and_a_copy_has_its_own() -> None:
    members, x = perceptrons(), samples()
    ensemble = Ensemble(members)
    copy = deepcopy(ensemble)
    assert torch.equal(copy(x), ensemble(x)) and card_of(copy) == card_of(ensemble)
    nn.init.zeros_(members[0].get_parameter("output.weight"))
    assert ensemble.members[0] is members[0]
    assert not torch.equal(copy(x), ensemble(x))


def test_modes_reach_the_members() -> None:
    ensemble, x = Ensemble(perceptrons()), samples()
    assert not ensemble.training and torch.equal(ensemble(x), ensemble(x))
    ensemble.train()
    assert all(module.training for module in ensemble.modules())
    assert not torch.equal(ensemble(x), ensemble(x))  # dropout
    assert Ensemble([*perceptrons(), mlp([4, 3])]).training


def test_numbers_are_those_of_the_members() -> None:
    ensemble = Ensemble([member.double() for member in perceptrons()], [1, 1, 2])
    assert ensemble.log_weights.dtype == torch.float64
    assert float(ensemble.log_weights[2]) == numpy.log(0.5)
    assert ensemble.bfloat16()(samples().bfloat16()).dtype == torch.bfloat16


def test_the_spec_went_through_json_and_builds_the_same() -> None:
    ensemble = Ensemble(image_networks(), [1, 3])
    spec = spec_of(ensemble)
    assert spec is not None and spec["family"] == "ensemble" and spec["weights"] == [0.25, 0.75]
    assert spec["members"] == [card_of(member).spec for member in ensemble.members]
    again = build(json.loads(json.dumps(spec)))
    assert repr(again) == repr(ensemble) and card_of(again).spec == spec
    assert all(map(torch.equal, again.state_dict().values(), ensemble.state_dict().values()))


def test_a_users_member_leaves_no_spec() -> None:
    members = [*perceptrons(), Given(numpy.zeros((5, 3)))]
    assert card_of(Ensemble(members)).spec is None


@pytest.mark.parametrize(
    "settings",
    [
        {"members": [], "weights": []},
        {"members": 3, "weights": [1]},
        {"members": [3], "weights": [1]},
        {"members": [{"family": "mlp", "sizes": [3, 2]}], "weights": ["a"]},
        {"members": [{"family": "mlp", "sizes": [3, 2]}], "weights": 1},
        {"members": [{"family": "mlp", "sizes": [3, 2]}], "weights": [10**400]},
        {"members": [{"family": "mlp", "sizes": [3, 2]}]},
    ],
)
def test_a_spec_that_makes_no_ensemble_is_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ModelError):
        build({"family": "ensemble", **settings})


def carded(sizes: Sequence[int] = (4, 3), **known: Any) -> nn.Module:
    model = mlp(sizes)
    classes = known.pop("classes", None)
    task = None if classes is None else Classification(classes)
    attach(model, Card(spec=card_of(model).spec, task=task, **known))
    return model


def preprocessing(shift: float) -> Preprocessing:
    return Preprocessing(scaling="zscore", input_shape=(4,), shift=(shift,) * 4, scale=(1.0,) * 4)


def test_the_card_says_what_the_members_have_in_common() -> None:
    known: dict[str, Any] = {"classes": ("a", "b", "c"), "input_shape": (4,), "preprocessing": preprocessing(1)}
    rule = SplitRule(seed=7)
    card = card_of(Ensemble([carded(**known, rule=rule), mlp([4, 9, 3]), carded(**known, rule=SplitRule())]))
    assert {name: getattr(card, name) for name in known} == known
    assert card.rule is None and card.training is None
    assert card_of(Ensemble([carded(rule=rule), carded(rule=rule)])).rule == rule
    assert card_of(Ensemble([*image_networks()])).input_shape == IMAGES


DIFFERENT = {
    "number of classes": (mlp([4, 3]), mlp([4, 2])),
    "number of classes, named": (carded(classes=("a", "b", "c")), vgg(0, 0, 0, 0, input_shape=(1, 2, 2), classes=2)),
    "number of classes, nested": (Ensemble([Ensemble([mlp([4, 3])])]), mlp([4, 2])),
    "classes": (carded(classes=("a", "b", "c")), carded(classes=("c", "b", "a"))),
    "number of inputs": (mlp([5, 3]), vgg(0, 0, 0, 0, input_shape=(1, 2, 2))),
    "input shape": (inception(0, 0, 0, input_shape=(1, 4, 2)), vgg(0, 0, 0, 0, input_shape=(1, 2, 4))),
    "preprocessing": (carded(preprocessing=preprocessing(1)), carded(preprocessing=preprocessing(2))),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_members_that_do_not_fit_together_are_refused(what: str) -> None:
    one, other = DIFFERENT[what]
    message = rf"must have the same {what.split(',')[0]}: member 0 has .*, member 2 has .*"
    with pytest.raises(ModelError, match=message):
        Ensemble([one, Given(numpy.zeros((1, 3))), other])


def test_what_makes_no_ensemble_is_refused() -> None:
    member, other = perceptrons(2)
    with pytest.raises(ModelError, match="at least 1 member"):
        Ensemble([])
    with pytest.raises(ModelError, match="found str"):
        Ensemble(["a"])  # type: ignore[list-item]
    with pytest.raises(ModelError, match="once"):
        Ensemble([member, other, member])
    with pytest.raises(ModelError, match="one weight per member; found 3 for 2"):
        Ensemble([member, other], [1, 2, 3])


@pytest.mark.parametrize("weight", [0, -1.0, numpy.nan, numpy.inf, 1e-320])
def test_weights_that_are_none_are_refused(weight: float) -> None:
    with pytest.raises(ModelError, match="finite and above 0"):
        Ensemble(perceptrons(2), [1e300, weight])


def three_classes() -> Data:
    rows = numpy.random.default_rng(0).normal(size=(150, 4))
    return Data.from_arrays(rows, rows[:, :3].argmax(axis=1), scaling="zscore")


def test_it_is_trained_as_one() -> None:
    data, ensemble = three_classes(), Ensemble(perceptrons())
    before = {name: value.clone() for name, value in ensemble.named_parameters()}
    worse = measure(ensemble, data, latency=False)
    train(ensemble, data, TrainConfig(epochs=15, learning_rate=0.02))
    assert not any(torch.equal(value, before[name]) for name, value in ensemble.named_parameters())
    better = measure(ensemble, data, latency=False)
    assert better.accuracy > worse.accuracy and better.log_loss < worse.log_loss
    assert card_of(ensemble).classes == data.classes
    assert ensemble.weights.tolist() == pytest.approx([1 / 3] * 3)


def test_it_is_measured_as_one() -> None:
    data, members = three_classes(), perceptrons()
    ensemble, apart = Ensemble(members), [measure(member, data, latency=False) for member in members]
    together = measure(ensemble, data, repeats=5)
    assert isinstance(data.test, Part)
    mean = torch.stack([member(data.test.x).softmax(1) for member in members]).mean(0)
    assert together.accuracy == (mean.argmax(1) == data.test.y).double().mean().item()
    assert together.parameters == sum(measured.parameters for measured in apart)
    assert together.macs == sum(measured.macs for measured in apart) == 4 * 6 + 6 * 3 + 4 * 7 + 7 * 3 + 4 * 8 + 8 * 3
    assert max(measured.file_kb for measured in apart) < together.file_kb < sum(measured.file_kb for measured in apart)
    assert together.latency_ms is not None and together.latency_ms > 0


def test_it_has_one_footprint() -> None:
    members, sample = image_networks(), samples(1, IMAGES)
    together, apart = footprint(Ensemble(members), sample), [footprint(member, sample) for member in members]
    assert together.parameters == sum(found.parameters for found in apart)
    assert together.macs == sum(found.macs for found in apart)


@pytest.mark.slow
@pytest.mark.parametrize("dynamo", [False, True])
def test_onnx_runtime_computes_the_same_for_any_number_of_samples(tmp_path: Path, dynamo: bool) -> None:
    for extra in ("onnx", "onnxscript"):
        pytest.importorskip(extra)
    onnxruntime: Any = pytest.importorskip("onnxruntime")
    ensemble, path = Ensemble(image_networks(), [1, 3]), tmp_path / "m.onnx"
    for member in ensemble.members:
        nn.init.normal_(member.get_parameter("output.bias"), std=3, generator=generator(0, "bias"))
    batch: dict[str, Any] = (
        {"dynamic_shapes": ({0: torch.export.Dim("samples")},)} if dynamo else {"dynamic_axes": {"x": {0: "samples"}}}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what will change in torch
        example = (samples(2, IMAGES),)
        torch.onnx.export(
            ensemble, example, path, dynamo=dynamo, input_names=["x"], verbose=False, external_data=False, **batch
        )
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    for count in (1, 2, 7):
        x = samples(count, IMAGES)
        (found,) = session.run(None, {"x": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(found), ensemble(x).detach(), rtol=0, atol=1e-5)
