"""Refitted layers against numpy's least squares on what the networks really compute."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial, partialmethod
from typing import Any

import numpy
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.linear import NonDynamicallyQuantizableLinear
from torch.utils.data import DataLoader, TensorDataset

from tests.networks import NETWORKS
from tests.surgery.samples import made, more
from topiarist import surgery
from topiarist.errors import ModelError, SettingsError
from topiarist.randomness import generator
from topiarist.surgery import grow, widen
from topiarist.surgery.choice.evidence import blind_spot
from topiarist.surgery.refit import fits
from topiarist.surgery.refit.moments import Moments
from topiarist.tracing import anatomy

Array = NDArray[Any]
remove = partial(surgery.remove, settling=0)  # refits alone
PADDING = {"zeros": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@pytest.fixture
def tiny_ridge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Moments, "solve", partialmethod(Moments.solve, ridge=1e-12))


def called(model: nn.Module, x: Any) -> Any:
    with torch.no_grad():
        return model(*x) if isinstance(x, tuple) else model(x)


def seen(model: nn.Module, path: str, x: Any) -> list[tuple[Tensor, Tensor]]:
    """Return what a layer takes and gives at each of its calls."""
    found: list[tuple[Tensor, Tensor]] = []
    hook = model.get_submodule(path).register_forward_hook(
        lambda _, taken, given: found.append((taken[0].clone(), given.clone()))
    )
    called(model, x)
    hook.remove()
    return found


def unfolded(layer: Any, x: Tensor) -> Array:
    """Return what a layer reads for each of its outputs, one position after the other."""
    if not isinstance(layer, _ConvNd):
        return x.reshape(-1, x.shape[-1]).numpy()
    kernel, stride, dilation = layer.kernel_size, layer.stride, layer.dilation
    spans = [reach * (size - 1) for size, reach in zip(kernel, dilation, strict=True)]
    if isinstance(layer.padding, str):
        borders = [(span // 2, span - span // 2) if layer.padding == "same" else (0, 0) for span in spans]
    else:
        borders = [(int(width), int(width)) for width in layer.padding]
    mode: Any = PADDING[layer.padding_mode]
    padded = numpy.pad(x.numpy(), [(0, 0), (0, 0), *borders], mode=mode)
    counts = [(size - span - 1) // step + 1 for size, span, step in zip(padded.shape[2:], spans, stride, strict=True)]
    rows = []
    for position in numpy.ndindex(*counts):
        places = [
            slice(start * step, start * step + span + 1, reach)
            for start, step, span, reach in zip(position, stride, spans, dilation, strict=True)
        ]
        rows.append(padded[:, :, *places].reshape(len(padded), -1))
    return numpy.stack(rows, 1).reshape(-1, rows[0].shape[1])


def flat_outputs(layer: Any, y: Tensor) -> Array:
    """Return a layer's outputs (n_samples · n_positions, n_outputs)."""
    return (y.flatten(2).transpose(1, 2) if isinstance(layer, _ConvNd) else y).reshape(-1, len(layer.weight)).numpy()


def least_squares(features: Array, targets: Array, *, bias: bool) -> Array:
    """Return the weights (n_targets, n_features), and the constants as a last column where there is a bias."""
    full = numpy.hstack([features, numpy.ones((len(features), 1))]) if bias else features
    solved: Array = numpy.linalg.lstsq(full, targets, rcond=None)[0]
    return solved.T


def weights_of(layer: Any) -> Array:
    """Return the weights of a layer as `least_squares` does."""
    flat = layer.weight.detach().flatten(1)
    return (flat if layer.bias is None else torch.cat([flat, layer.bias.detach()[:, None]], 1)).numpy()


def check_reader(whole: nn.Module, cut: nn.Module, path: str, x: Any, kept: list[int] | None = None) -> None:
    """Compare a layer's weights with least squares of what it gave on what it reads now."""
    layer: Any = cut.get_submodule(path)
    (taken, _), (_, given) = seen(cut, path, x)[0], seen(whole, path, x)[0]
    targets = flat_outputs(whole.get_submodule(path), given)
    features = unfolded(layer, taken)
    bias = layer.bias is not None
    fitted = least_squares(features, targets if kept is None else targets[:, kept], bias=bias)
    full = numpy.hstack([features, numpy.ones((len(features), 1))]) if bias else features
    numpy.testing.assert_allclose(full @ weights_of(layer).T, full @ fitted.T, atol=1e-6)
    if numpy.linalg.matrix_rank(full) == full.shape[1]:
        numpy.testing.assert_allclose(weights_of(layer), fitted, atol=1e-5)


def without(size: int, units: list[int]) -> list[int]:
    return [unit for unit in range(size) if unit not in units]


@pytest.mark.usefixtures("tiny_ridge")
@pytest.mark.parametrize("bias", [True, False])
def test_linear_layers_are_least_squares_of_what_they_gave_on_what_they_read_now(bias: bool) -> None:
    model, x = made(
        lambda: nn.Sequential(
            nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 7, bias=bias), nn.ReLU(), nn.Linear(7, 3, bias=bias)
        ),
        *(400, 6),
    )
    cut = remove(model, x[:2], units={"0": [1, 4], "2": [0, 6]}, calibration=x)
    check_reader(model, cut, "2", x, without(7, [0, 6]))
    check_reader(model, cut, "4", x)


PLAIN: dict[str, Any] = {"kernel_size": 3}
CONVOLUTIONS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "1×1": {"kernel_size": 1},
    "1×1 with a stride": {"kernel_size": 1, "stride": 2},
    "stride": {**PLAIN, "stride": 2},
    "padding": {**PLAIN, "padding": 1},
    "uneven": {"kernel_size": (3, 2), "stride": (1, 2), "padding": (2, 1), "dilation": (2, 1)},
    "same": {**PLAIN, "padding": "same"},
    "same, dilated": {**PLAIN, "padding": "same", "dilation": 2},
    "same, even kernel, dilated": {"kernel_size": 2, "padding": "same", "dilation": 2},
    "valid": {**PLAIN, "padding": "valid"},
    "reflect": {**PLAIN, "padding": 1, "padding_mode": "reflect"},
    "replicate": {**PLAIN, "padding": 2, "padding_mode": "replicate"},
    "circular": {**PLAIN, "padding": 1, "padding_mode": "circular", "stride": 2},
    "circular, same": {**PLAIN, "padding": "same", "padding_mode": "circular"},
    "no bias": {**PLAIN, "padding": 1, "bias": False},
}


@pytest.mark.slow
@pytest.mark.usefixtures("tiny_ridge")
@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_convolutions_of_images_are_least_squares_on_unfolded_patches(kind: str) -> None:
    model, x = made(
        lambda: nn.Sequential(nn.Conv2d(2, 5, 3, padding=1), nn.ReLU(), nn.Conv2d(5, 4, **CONVOLUTIONS[kind])),
        *(20, 2, 7, 6),
    )
    cut = remove(model, x[:2], units={"0": [1, 3]}, calibration=x)
    check_reader(model, cut, "2", x)


@pytest.mark.usefixtures("tiny_ridge")
@pytest.mark.parametrize("kind", [kind for kind in CONVOLUTIONS if kind != "uneven"])
def test_convolutions_of_sequences_are_least_squares_on_unfolded_patches(kind: str) -> None:
    model, x = made(
        lambda: nn.Sequential(nn.Conv1d(2, 5, 3, padding=1), nn.Tanh(), nn.Conv1d(5, 4, **CONVOLUTIONS[kind])),
        *(30, 2, 12),
    )
    cut = remove(model, x[:2], units={"0": [1, 3]}, calibration=x)
    check_reader(model, cut, "2", x)


@pytest.mark.usefixtures("tiny_ridge")
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_an_even_kernel_with_the_padding_same_reads_one_more_behind_than_before() -> None:
    model, x = made(
        lambda: nn.Sequential(nn.Conv2d(2, 5, 3), nn.ReLU(), nn.Conv2d(5, 4, (4, 2), padding="same")), *(20, 2, 7, 6)
    )
    cut = remove(model, x[:2], units={"0": [1, 3]}, calibration=x)
    check_reader(model, cut, "2", x)


@pytest.mark.usefixtures("tiny_ridge")
def test_readers_of_flattened_channels_are_least_squares_on_all_positions() -> None:
    model, x = made(
        lambda: nn.Sequential(nn.Conv2d(2, 5, 3), nn.ReLU(), nn.Flatten(), nn.Linear(5 * 9, 4)), *(300, 2, 5, 5)
    )
    cut = remove(model, x[:2], units={"0": [0, 3]}, calibration=x)
    assert cut.get_submodule("3").in_features == 27
    check_reader(model, cut, "3", x)


@pytest.mark.usefixtures("tiny_ridge")
def test_linear_layers_of_sequences_are_least_squares_over_all_places() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)), *(40, 5, 4))
    check_reader(model, remove(model, x[:2], units={"0": [2]}, calibration=x), "2", x)


@pytest.mark.usefixtures("tiny_ridge")
def test_in_a_residual_network_readers_that_write_the_same_space_are_least_squares_too() -> None:
    model, example = NETWORKS["residual"](0)
    x = more(example, 40)
    units = {"stem": [1, 4], "first": [0], "pointwise": [2]}
    cut = remove(model, example, units=units, calibration=x)
    check_reader(model, cut, "first", x, without(5, [0]))
    check_reader(model, cut, "second", x, without(6, [1, 4]))
    check_reader(model, cut, "pointwise", x, without(4, [2]))
    check_reader(model, cut, "head", x)


@pytest.mark.usefixtures("tiny_ridge")
def test_a_layer_that_runs_twice_is_least_squares_over_both_calls() -> None:
    model, example = NETWORKS["shared layer"](0)
    x = more(example, 200)
    kept = without(6, [1, 4])
    plain, cut = (remove(model, example, units={"stem": [1, 4]}, calibration=data) for data in (None, x))
    features = numpy.vstack([taken.numpy() for taken, _ in seen(plain, "shared", x)])
    targets = numpy.vstack([given.numpy()[:, kept] for _, given in seen(model, "shared", x)])
    fitted = least_squares(features, targets, bias=True)
    numpy.testing.assert_allclose(weights_of(cut.get_submodule("shared")), fitted, atol=1e-6)
    check_reader(model, cut, "head", x)


@pytest.mark.parametrize("seed", range(5))
def test_a_refit_brings_a_network_with_a_layer_that_runs_twice_closer(seed: int) -> None:
    model, example = NETWORKS["shared layer"](seed)
    x = more(example, 200)
    plain, cut = (remove(model, example, units={"stem": [1, 4]}, calibration=data) for data in (None, x))
    error, plain_error = (float((called(net, x) - called(model, x)).pow(2).mean()) for net in (cut, plain))
    assert error < plain_error


def test_the_ridge_is_small_beside_what_least_squares_gains() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 3)), *(400, 6))
    cut = remove(model, x[:2], units={"0": [1, 4]}, calibration=x)
    kept = seen(cut, "2", x)[0][0].numpy()
    targets = called(model, x).numpy()
    full = numpy.hstack([kept, numpy.ones((len(kept), 1))])
    best = ((full @ least_squares(kept, targets, bias=True).T - targets) ** 2).mean()
    refitted = ((called(cut, x).numpy() - targets) ** 2).mean()
    assert best <= refitted <= best * 1.001


def readers_of(model: nn.Module, example: Any, space: str) -> list[str]:
    """Name the plain layers that read a space, but for the last of torch's attention, which it never calls."""
    names = [place.module for place in anatomy(model, example).spaces[space].readers]
    return [name for name in names if not isinstance(model.get_submodule(name), NonDynamicallyQuantizableLinear)]


def written_rows(model: nn.Module, example: Any, space: str, path: str, units: list[int]) -> list[int]:
    """Return the outputs that a layer keeps when units of a space go."""
    gone = [
        int(position)
        for place in anatomy(model, example).spaces[space].producers
        if place.module == path
        for position in place.positions[units].reshape(-1)
    ]
    return without(len(model.get_submodule(path).weight), gone)  # type: ignore[arg-type]


SMALL = [name for name in NETWORKS if name not in ("resnet18", "shared layer")]


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_a_refit_never_increases_the_error_of_what_a_layer_gives(name: str) -> None:
    model, example = NETWORKS[name](2)
    x = more(example, 40)
    for space, found in anatomy(model, example).free.items():
        if blind_spot(found) is not None:
            continue
        units = list(range(0, found.size, 2))[: found.size - 1]
        plain, cut = (remove(model, example, units={space: units}, calibration=data) for data in (None, x))
        for path in readers_of(model, example, space):
            layer: Any = cut.get_submodule(path)
            (taken, after), (_, before) = seen(cut, path, x)[0], seen(model, path, x)[0]
            targets = flat_outputs(model.get_submodule(path), before)
            targets = targets[:, written_rows(model, example, space, path, units)]
            with torch.no_grad():
                removed = flat_outputs(layer, plain.get_submodule(path)(taken))
            error, plain_error = (((given - targets) ** 2).sum() for given in (flat_outputs(layer, after), removed))
            assert error <= plain_error * (1 + 1e-9) + 1e-20, (space, path)


FORMS: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "list": lambda image, row: list(zip(torch.split(image, 77), torch.split(row, 77), strict=True)),
    "generator": lambda image, row: (pair for pair in zip(torch.split(image, 150), torch.split(row, 150), strict=True)),
    "mapping": lambda image, row: {"row": row, "image": image},
    "list of mappings": lambda image, row: [
        {"image": image[:200], "row": row[:200]},
        {"image": image[200:], "row": row[200:]},
    ],
    "loader with labels": lambda image, row: DataLoader(
        TensorDataset(image, row, torch.zeros(len(row))), batch_size=31
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_network_with_two_inputs_takes_its_data_in_any_form(form: str) -> None:
    model, example = NETWORKS["two inputs"](0)
    image, row = more(example, 300)
    units = {"look": [0, 2], "read": [1], "shared": [5]}
    whole = remove(model, example, units=units, calibration=(image, row))
    cut = remove(model, example, units=units, calibration=FORMS[form](image, row))
    assert_close(cut, whole)


def assert_close(left: nn.Module, right: nn.Module, tolerance: float = 1e-9) -> None:
    assert left.state_dict().keys() == right.state_dict().keys()
    for name, values in left.state_dict().items():
        torch.testing.assert_close(values, right.state_dict()[name], atol=tolerance, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 7, 299, 300])
def test_how_the_data_are_cut_into_batches_does_not_matter(size: int) -> None:
    model, example = NETWORKS["residual"](0)
    x = more(example, 30 if size == 1 else 300)
    units = {"stem": [1, 4], "first": [0]}
    whole = remove(model, example, units=units, calibration=[x])
    assert_close(remove(model, example, units=units, calibration=list(x.split(size))), whole)


def norms_of(model: nn.Module) -> Iterator[tuple[str, _BatchNorm]]:
    return ((name, module) for name, module in model.named_modules() if isinstance(module, _BatchNorm))


def test_the_statistics_of_batch_norms_behind_a_change_follow_it() -> None:
    model, example = NETWORKS["residual"](0)
    x = more(example, 300)
    cut = remove(model, example, units={"stem": [1, 4]}, calibration=x)
    kept = {"second_norm": [0, 2, 3, 5]}
    for name in ["first_norm", "second_norm", "pointwise_norm"]:
        old: Any = model.get_submodule(name)
        rows = kept.get(name, list(range(old.num_features)))
        now, before = (seen(net, name, x)[0][0].transpose(0, 1).flatten(1) for net in (cut, model))
        norm: Any = cut.get_submodule(name)
        moved, grown = now.mean(1) - before[rows].mean(1), now.var(1) / before[rows].var(1)
        torch.testing.assert_close(norm.running_mean, old.running_mean[rows] + moved, atol=1e-9, rtol=0)
        torch.testing.assert_close(norm.running_var, old.running_var[rows] * grown, atol=1e-9, rtol=0)


def test_batch_norms_that_are_not_behind_a_change_are_left_alone() -> None:
    model, example = NETWORKS["residual"](0)
    cut = remove(model, example, units={"pointwise": [1]}, calibration=more(example, 50))
    kept = {"pointwise_norm": [0, 2, 3]}
    for name, norm in norms_of(model):
        rows = kept.get(name, list(range(norm.num_features)))
        after: Any = cut.get_submodule(name)
        assert norm.running_mean is not None and norm.running_var is not None
        assert torch.equal(after.running_mean, norm.running_mean[rows]), name
        assert torch.equal(after.running_var, norm.running_var[rows]), name


def test_without_calibration_data_nothing_but_the_removal_happens() -> None:
    model, example = NETWORKS["residual"](0)
    cut = remove(model, example, units={"first": [0]})
    assert torch.equal(cut.get_submodule("second").weight, model.get_submodule("second").weight[:, 1:])  # type: ignore[arg-type, index]
    assert torch.equal(cut.get_submodule("second_norm").running_mean, model.get_submodule("second_norm").running_mean)  # type: ignore[arg-type]


LARGE: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], str]] = {
    "convolution": (
        lambda: nn.Sequential(nn.Conv2d(2, 6, 3), nn.ReLU(), nn.Conv2d(6, 4, 3)),
        (40, 2, 8, 8),
        "2",
    ),
    "padded convolution": (
        lambda: nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 4, 3, padding=1)),
        (40, 2, 7, 7),
        "2",
    ),
    "sequence": (
        lambda: nn.Sequential(nn.Conv1d(2, 6, 3), nn.ReLU(), nn.Conv1d(6, 4, 5, bias=False)),
        (60, 2, 12),
        "2",
    ),
    "flattened": (
        lambda: nn.Sequential(nn.Conv2d(2, 6, 3), nn.ReLU(), nn.Flatten(), nn.Linear(6 * 16, 4)),
        (60, 2, 6, 6),
        "3",
    ),
}


@pytest.mark.parametrize("kind", LARGE)
def test_what_reads_too_much_is_refitted_unit_by_unit_and_still_gains(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, shape, _ = LARGE[kind]
    model, x = made(make, *shape)
    x = x + x.mean(-1, keepdim=True) * 3  # units that go can then be told from the others
    monkeypatch.setattr(fits, "MOST_FEATURES", 8)
    plain, cut = (remove(model, x[:2], units={"0": [1, 4]}, calibration=data) for data in (None, x))
    error, plain_error = (float(((called(net, x) - called(model, x)) ** 2).mean()) for net in (cut, plain))
    assert error < 0.8 * plain_error


@pytest.mark.usefixtures("tiny_ridge")
@pytest.mark.parametrize("kind", LARGE)
def test_unit_by_unit_the_old_units_are_least_squares_of_those_left(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    make, shape, path = LARGE[kind]
    model, x = made(make, *shape)
    monkeypatch.setattr(fits, "MOST_FEATURES", 8)
    cut = remove(model, x[:2], units={"0": [1, 4]}, calibration=x)
    after, before = (
        seen(net, "1", x)[0][1].flatten(2).transpose(1, 2).reshape(-1, size).numpy()
        for net, size in ((cut, 4), (model, 6))
    )
    layer: Any = cut.get_submodule(path)
    old: Any = model.get_submodule(path)
    shifts = layer.bias is not None and kind != "padded convolution"
    mix = least_squares(after, before, bias=shifts)
    columns = old.weight.detach().reshape(4, 6, -1).numpy()
    fitted = numpy.einsum("onk,nm->omk", columns, mix[:, :4])
    numpy.testing.assert_allclose(layer.weight.detach().reshape(4, 4, -1).numpy(), fitted, atol=1e-6)
    if layer.bias is not None:
        moved = numpy.einsum("onk,n->o", columns, mix[:, 4]) if shifts else 0.0
        numpy.testing.assert_allclose(layer.bias.detach().numpy(), old.bias.detach().numpy() + moved, atol=1e-6)


def test_a_layer_of_very_many_units_is_refitted_as_long_as_memory_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), *(30, 4))
    whole = remove(model, x[:2], units={"0": [0, 1]}, calibration=x)
    monkeypatch.setattr(fits, "MOST_FEATURES", 3)
    alike = remove(model, x[:2], units={"0": [0, 1]}, calibration=x)
    torch.testing.assert_close(alike.state_dict(), whole.state_dict(), rtol=0, atol=0)
    monkeypatch.setattr(fits, "LARGEST_SOLVED", 5)
    with pytest.raises(ModelError, match=r"^'2' reads 6 values, more than can be refitted: leave out the calibration"):
        remove(model, x[:2], units={"0": [0, 1]}, calibration=x)


def test_the_network_and_its_modes_are_left_as_they_were() -> None:
    model, example = NETWORKS["residual"](0)
    model.train()
    model.get_submodule("first_norm").eval()
    state = deepcopy(model.state_dict())
    modes = {name: module.training for name, module in model.named_modules()}
    x = more(example, 40)
    data = x.clone()
    cut = remove(model, example, units={"stem": [1], "first": [2]}, calibration=x)
    assert all(torch.equal(values, state[name]) for name, values in model.state_dict().items())
    assert {name: module.training for name, module in model.named_modules()} == modes
    assert {name: module.training for name, module in cut.named_modules()} == modes
    assert torch.equal(x, data)
    for network in (model, cut):
        assert not any(module._forward_hooks or module._forward_pre_hooks for module in network.modules())
        assert all(parameter.grad is None for parameter in network.parameters())


def test_frozen_layers_are_refitted_and_stay_frozen() -> None:
    model, example = NETWORKS["frozen"](0)
    cut = remove(model, example, units={"trunk.0": [1], "trunk.3": [2, 3]}, calibration=more(example, 40))
    flags = {name: parameter.requires_grad for name, parameter in model.named_parameters()}
    assert {name: parameter.requires_grad for name, parameter in cut.named_parameters()} == flags


def test_single_precision_networks_stay_single_precision() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(6, 9), nn.ReLU(), nn.Linear(9, 3)), *(400, 6))
    single = remove(deepcopy(model).float(), x[:2], units={"0": [1]}, calibration=x)
    double = remove(model, x[:2], units={"0": [1]}, calibration=x)
    assert all(values.dtype == torch.float32 for values in single.state_dict().values())
    torch.testing.assert_close(called(single, x.float()).double(), called(double, x), atol=1e-5, rtol=0)


def test_removing_no_unit_changes_nothing_even_with_data() -> None:
    model, example = NETWORKS["residual"](0)
    assert_close(remove(model, example, units={"stem": []}, calibration=more(example, 20)), model, 0.0)


@pytest.mark.parametrize(
    ("units", "multiple_of", "width"), [([7, 1, 3], 1, 5), ([7, 1, 3], 4, 8), ([7, 1, 3, 2, 0], 4, 4), ([1], 3, 8)]
)
def test_units_named_last_stay_until_the_width_is_a_multiple(units: list[int], multiple_of: int, width: int) -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), *(5, 4))
    cut: Any = remove(model, x, units={"0": units}, multiple_of=multiple_of)
    assert torch.equal(cut[0].weight, model[0].weight[without(8, units[: 8 - width])])


@pytest.mark.parametrize("verb", [widen, grow])
@pytest.mark.parametrize(("by", "multiple_of", "width"), [(1, 1, 9), (1, 4, 12), (4, 4, 12), (5, 4, 16), (1, 9, 9)])
def test_widths_grow_to_the_next_multiple(verb: Any, by: int, multiple_of: int, width: int) -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), *(5, 4))
    wide = verb(model, x, space="0", by=by, multiple_of=multiple_of, generator=generator(0))
    assert wide[0].out_features == wide[2].in_features == width
    torch.testing.assert_close(called(wide, x), called(model, x), atol=1e-12, rtol=0)


@pytest.mark.parametrize("multiple_of", [0, -4])
def test_a_multiple_of_nothing_is_refused(multiple_of: int) -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), *(5, 4))
    with pytest.raises(SettingsError, match="multiple_of must be at least 1"):
        remove(model, x, units={"0": [1]}, multiple_of=multiple_of)
    for verb in (widen, grow):
        with pytest.raises(SettingsError, match="multiple_of must be at least 1"):
            verb(model, x, space="0", by=1, multiple_of=multiple_of, generator=generator(0))


def test_a_layer_whose_units_are_all_dead_stays_finite() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), *(50, 4))
    model[0].bias.data.fill_(-1000.0)
    cut = remove(model, x[:2], units={"0": [1]}, calibration=x)
    torch.testing.assert_close(called(cut, x), called(model, x))


def test_one_sample_is_enough_to_stay_finite() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), *(50, 4))
    cut = remove(model, x[:2], units={"0": [1]}, calibration=x[:1])
    torch.testing.assert_close(called(cut, x[:1]), called(model, x[:1]))


def test_large_images_are_fitted_on_all_columns() -> None:
    model, x = made(lambda: nn.Sequential(nn.Conv2d(2, 6, 1), nn.ReLU(), nn.Conv2d(6, 3, 1)), *(20, 2, 16, 16))
    x[:, :, :, ::2] = 0.0
    plain, cut = (remove(model, x[:2], units={"0": [1, 4]}, calibration=data) for data in (None, x))
    odd = (slice(None), slice(None), slice(None), slice(1, None, 2))
    error, plain_error = (float(((called(net, x) - called(model, x))[odd] ** 2).mean()) for net in (cut, plain))
    assert error < 0.8 * plain_error


def test_a_layer_that_is_called_by_name_is_refitted() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 6)
            self.second = nn.Linear(6, 2)

        def forward(self, x: Tensor) -> Tensor:
            given: Tensor = self.second(input=torch.relu(self.first(x)))
            return given

    model, x = made(Named, 50, 4)
    remove(model, x[:2], units={"first": [1]}, calibration=x)
