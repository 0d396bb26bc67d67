"""The recommendation as one object: lazy parts, plain records, networks left as they are, refusals in one line."""

import json
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn

from tests.surgery.labelled import labelled, loss_by_hand
from tests.surgery.samples import made
from topiarist import models
from topiarist.errors import DataError, ModelError, SettingsError, TopiaristError
from topiarist.models.evaluation import count_parameters
from topiarist.surgery import Recommendation, recommend, remove
from topiarist.surgery.advice import options, spectra
from topiarist.surgery.advice import recommendation as module
from topiarist.surgery.advice.readings import Readings, read_spaces
from topiarist.surgery.advice.trials import LabelledSamples
from topiarist.surgery.calibration import CalibrationBatches
from topiarist.surgery.choice.evidence import blind_spot
from topiarist.tracing import Anatomy, anatomy, finding


def seen(model: nn.Module, samples: LabelledSamples, **options: Any) -> Recommendation:
    x = samples.calibration
    return recommend(model, x[:2], calibration=x, labels=samples.labels, **options)


def tensors(model: nn.Module) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


NAMES = ("mlp", "vgg", "residual", "inception", "cascade", "gated", "grouped", "shared layer", "normed", "frozen")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_record_of_everything_is_plain_json(name: str) -> None:
    model, samples = labelled(name, 30)
    found = seen(model, samples)
    record = found.to_record(measured=True)
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    free = anatomy(model, samples.calibration[:2]).free
    assert list(record["spaces"]) == [name for name, space in free.items() if blind_spot(space) is None]
    assert record["parameters"] == count_parameters(model)
    assert record["loss"] == pytest.approx(loss_by_hand(model, samples))
    options = [option for space in record["spaces"].values() for option in space["removals"]]
    options += [option for layer in record["layers"].values() for option in layer["factorisings"]]
    assert options and all(isinstance(option["increase"], float) for option in options)


def test_nothing_is_measured_unless_asked() -> None:
    model, samples = labelled("mlp")
    record = seen(model, samples).to_record()
    assert "loss" not in record
    assert record["spaces"]["hidden0"]["removals"][0]["increase"] is None
    assert record["layers"]["hidden0"]["folding"]["increase"] is None


def test_the_parts_of_a_space() -> None:
    model, samples = labelled("mlp", 100)
    with torch.no_grad():
        model.get_parameter("hidden0.weight")[2] = 0
    found = seen(model, samples)
    hidden = model[:3](samples.calibration).detach().numpy()  # type: ignore[index]  # flatten, hidden0, activation0
    oracle = numpy.linalg.svd((hidden - hidden.mean(0)) / 10, compute_uv=False)
    assert found.spaces == {"hidden0": 8, "hidden1": 7}
    assert numpy.allclose(found.activations("hidden0").singular_values, oracle, atol=1e-7)
    assert found.activations("hidden0").effective_rank < 7.0001
    assert found.health("hidden0").dead == (2,)
    assert all(2 in removal.units for removal in found.removals("hidden0"))
    assert found.growth("hidden0").edit.by == 4


@pytest.mark.slow
def test_measured_damage_is_that_of_the_cut_made_by_hand() -> None:
    model, samples = labelled("vgg", 40)
    x = samples.calibration
    found = seen(model, samples, shares=(0.5,))
    for space in found.spaces:
        (removal,) = found.removals(space, measured=True)
        cut = remove(model, x[:2], units={space: removal.units}, calibration=x, settling=0)
        assert removal.increase == pytest.approx(loss_by_hand(cut, samples) - loss_by_hand(model, samples), rel=1e-6)


def test_scores_are_of_hidden_layers_and_spectra_of_all() -> None:
    model, samples = labelled("mlp")
    found = seen(model, samples)
    assert found.layers == ("hidden0", "hidden1", "output") and list(found.scores) == ["hidden0", "hidden1"]
    for name in found.layers:
        weight = model.get_parameter(f"{name}.weight").detach().numpy()
        assert numpy.allclose(found.weights(name).singular_values, numpy.linalg.svd(weight, compute_uv=False))
    assert found.to_record()["layers"]["output"]["scores"] is None


@pytest.mark.slow
@pytest.mark.parametrize("name", ["mlp", "residual", "vgg"])
def test_the_network_and_the_global_generator_stay_as_they_are(name: str) -> None:
    model, samples = labelled(name, 20)
    model.train()
    first = next(model.parameters()).requires_grad_(False)
    list(model.modules())[-1].eval()
    before, modes = tensors(model), [layer.training for layer in model.modules()]
    state = torch.get_rng_state()
    found = seen(model, samples)
    str(found)
    found.to_record(measured=True)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, before[key]) for key, tensor in model.state_dict().items())
    assert [layer.training for layer in model.modules()] == modes
    assert [parameter for parameter in model.parameters() if not parameter.requires_grad] == [first]
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in model.modules())


@pytest.mark.slow
def test_a_network_in_training_mode_is_seen_as_it_will_be_used() -> None:
    model, samples = labelled("vgg", 20)
    oracle = seen(model, samples).to_record(measured=True)
    assert seen(model.train(), samples).to_record(measured=True) == oracle


def test_activations_that_write_into_their_input_change_nothing() -> None:
    plain, x = made(lambda: nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)), 30, 4)
    inplace = nn.Sequential(*plain[:2], nn.ReLU(inplace=True), plain[3])
    samples = LabelledSamples(x, torch.arange(30) % 3)
    assert seen(inplace, samples).to_record(measured=True) == seen(plain, samples).to_record(measured=True)


def test_it_is_of_the_network_as_it_was() -> None:
    model, samples = labelled("mlp")
    found, oracle = seen(model, samples), seen(model, samples).to_record(measured=True)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    assert found.to_record(measured=True) == oracle


def test_a_part_is_computed_when_it_is_asked_for_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []

    def counted(name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def count(*args: Any, **options: Any) -> Any:
            called.append(name)
            return original(*args, **options)

        return count

    homes = {
        module: ("read_spaces", "mean_loss", "trial"),
        options: ("expected_growth", "predicted_folding"),
        spectra: ("weight_spectrum",),
    }
    for home, names in homes.items():
        for name in names:
            monkeypatch.setattr(home, name, counted(name, getattr(home, name)))
    model, samples = labelled("mlp")
    found = seen(model, samples)
    assert called == []
    found.growth("hidden0")
    found.growth("hidden0")
    assert called == ["expected_growth"]
    found.health("hidden0")
    found.removals("hidden0")
    found.activations("hidden0")
    assert called == ["expected_growth", "read_spaces"]
    called.clear()
    found.to_record()
    assert sorted(set(called)) == ["expected_growth", "predicted_folding", "read_spaces", "weight_spectrum"]
    assert called.count("read_spaces") == called.count("expected_growth") == 1  # of the other space
    called.clear()
    found.to_record()
    found.rows()
    str(found)
    assert called == []


def test_all_spaces_are_read_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    model, samples = labelled("residual")
    asked: list[list[str]] = []

    def watched(
        network: nn.Module, found: Anatomy, names: list[str], batches: CalibrationBatches
    ) -> dict[str, Readings]:
        asked.append(names)
        return read_spaces(network, found, names, batches)

    monkeypatch.setattr(module, "read_spaces", watched)
    for everything in (Recommendation.to_record, Recommendation.rows):
        found = seen(model, samples)
        everything(found)
        assert asked.pop() == list(found.spaces) and len(found.spaces) > 2 and not asked


def test_an_anatomy_that_is_known_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model, samples = labelled("mlp")
    known = anatomy(model, samples.calibration[:2])
    oracle = seen(model, samples).to_record(measured=True)
    monkeypatch.delattr(finding, "anatomy")
    assert seen(model, samples, anatomy=known).to_record(measured=True) == oracle


@pytest.mark.slow
def test_tables_have_a_row_for_each_space_and_each_layer() -> None:
    model, samples = labelled("residual")
    found = seen(model, samples, shares=(0.3,))
    tables = found.rows(measured=True)
    assert [row["space"] for row in tables["spaces"]] == list(found.spaces)
    assert [row["layer"] for row in tables["layers"]] == list(found.layers)
    first = tables["spaces"][0]
    removal = found.removals("stem", measured=True)[0]
    assert (first["lost at −30%"], first["loss at −30%"]) == (removal.lost, removal.increase)
    lines = str(found).splitlines()
    assert len(lines) == len(found.spaces) + len(found.layers) + 3
    assert lines[0].split()[:2] == ["space", "units"] and lines[1].split()[:2] == ["stem", "6"]


def test_a_network_without_a_hidden_layer_has_nothing_to_recommend() -> None:
    model = models.mlp([4, 3])
    found = seen(model, LabelledSamples(torch.randn(10, 4), torch.arange(10) % 3))
    record = found.to_record(measured=True)
    assert (record["spaces"], found.scores, found.rows()["spaces"]) == ({}, {}, [])
    assert record["layers"]["output"]["folding"] is None


def test_a_network_without_any_layer_has_an_empty_recommendation() -> None:
    found = seen(nn.Flatten(), LabelledSamples(torch.randn(10, 4), torch.arange(10) % 3))
    assert (found.to_record()["spaces"], found.to_record()["layers"]) == ({}, {})
    assert str(found) == "nothing to recommend"


def test_one_class_gives_defined_results() -> None:
    model = models.mlp([4, 6, 1])
    found = seen(model, LabelledSamples(torch.randn(20, 4), torch.zeros(20, dtype=torch.int64)))
    json.dumps(found.to_record(measured=True), allow_nan=False)
    assert found.loss == 0.0 and found.growth("hidden0").gain == 0.0
    assert all(removal.increase == 0.0 for removal in found.removals("hidden0", measured=True))


def test_a_dead_layer_gives_defined_results() -> None:
    model, x = made(
        lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)), 30, 4
    )
    with torch.no_grad():
        model[0].bias -= 100
    found = seen(model, LabelledSamples(x, torch.arange(30) % 3))
    json.dumps(found.to_record(measured=True), allow_nan=False)
    assert found.activations("0").effective_rank == found.activations("2").effective_rank == 0.0
    assert found.health("0").silent == tuple(range(6)) and found.health("2").dead == tuple(range(5))
    folding = found.folding("0", measured=True)
    assert folding is not None and folding.lost == 0.0
    assert [removal.lost for removal in found.removals("0")] == [0.0] * 3


def test_weights_of_zero_give_defined_results() -> None:
    model, samples = labelled("mlp")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    found = seen(model, samples)
    json.dumps(found.to_record(measured=True), allow_nan=False)
    assert found.weights("hidden0").effective_rank == 0.0 and found.scores["hidden0"].remove_layer == 1.0


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["stem_norm.running_var", "first.weight"])
def test_weights_that_are_no_numbers_are_refused(name: str, value: float) -> None:
    model, samples = labelled("residual")
    model.state_dict()[name].flatten()[0] = value
    with pytest.raises(ModelError, match=f"'{name}' holds values that are not finite numbers"):
        seen(model, samples)


def test_weights_whose_sum_is_too_large_are_finite() -> None:
    model = models.mlp([4, 3])
    with torch.no_grad():
        model.get_parameter("output.weight").fill_(3e38)
    assert seen(model, LabelledSamples(torch.zeros(10, 4), torch.arange(10) % 3)).loss == pytest.approx(numpy.log(3))


X, Y = torch.zeros(6, 6, dtype=torch.float64), torch.zeros(6, dtype=torch.int64)
REFUSED: dict[str, tuple[Any, Any, type[TopiaristError], str]] = {
    "fewer labels": (X, Y[:5], DataError, "one label per calibration sample; found 5 for 6"),
    "no samples": (X[:0], Y[:0], DataError, "empty"),
    "no axis": (X[0, 0], Y[:1], DataError, "found 1 for 0"),
    "labels in rows": (X, Y[:, None], DataError, r"one whole number per sample; found shape \(6, 1\)"),
    "real labels": (X, Y.double(), DataError, "whole number"),
    "lists": (X.tolist(), Y, DataError, "calibration must be a tensor; found list"),
    "not finite": (X / 0, Y, DataError, "not finite numbers"),
    "an unknown class": (X, Y + 3, DataError, "classes 0 to 2; found label 3"),
    "a class below 0": (X, Y - 1, DataError, "classes 0 to 2; found label -1"),
    "other inputs": (X[:, :2], Y, ModelError, "cannot read the calibration data"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_samples_that_make_no_sense_are_refused_in_one_line(kind: str) -> None:
    x, y, error, message = REFUSED[kind]
    model, _ = labelled("mlp")
    with pytest.raises(error, match=message) as raised:
        _ = recommend(model, X[:2], calibration=x, labels=y).loss
    assert "\n" not in str(raised.value)


def test_names_that_are_not_there_and_shares_that_are_none_are_refused() -> None:
    model, samples = labelled("mlp")
    found = seen(model, samples)
    for ask in (found.activations, found.health, found.removals, found.growth):
        with pytest.raises(ModelError, match="there is no space 'hidden9'"):
            ask("hidden9")
    for look in (found.weights, found.folding, found.factorisings):
        with pytest.raises(ModelError, match="there is no layer 'activation0'"):
            look("activation0")
    with pytest.raises(SettingsError, match=r"found 1\.5"):
        seen(model, samples, shares=(0.5, 1.5))


def test_an_output_that_is_no_class_scores_is_refused() -> None:
    model, x = made(lambda: nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Conv2d(2, 3, 1)), 4, 1, 5, 5)
    found = seen(model, LabelledSamples(x, torch.zeros(4, dtype=torch.int64)))
    assert found.activations("0").effective_rank > 1
    with pytest.raises(ModelError, match=r"class scores .* found shape \(4, 3, 3, 3\)"):
        found.growth("0")
