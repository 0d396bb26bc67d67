"""Folded layers compute what they computed; what cannot fold is refused in one line."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils import parametrizations

from topiarist.errors import ModelError, TopiaristError
from topiarist.randomness import isolated
from topiarist.surgery import fold

Maker = Callable[[], nn.Module]
ROWS, IMAGES, SEQUENCES = (40, 4), (3, 2, 9, 8), (5, 2, 13)


def made(make: Maker, shape: tuple[int, ...]) -> tuple[Any, Tensor]:
    with isolated(0):
        model = make().double().eval()
        x = torch.randn(shape, dtype=torch.float64)
        for module in model.modules():
            if isinstance(module, _BatchNorm) and module.running_mean is not None and module.running_var is not None:
                module.running_mean.normal_()
                module.running_var.uniform_(0.5, 2.0)
                for parameter in module.parameters():
                    parameter.data.uniform_(0.5, 1.5)
    return model, x


def called(model: nn.Module, x: Tensor) -> Tensor:
    with torch.no_grad():
        given: Tensor = model(x)
    return given


# name: (network, input shape, layer to fold, names of the layers that are left)
EXACT: dict[str, tuple[Maker, tuple[int, ...], str, list[str]]] = {
    "linear into linear": (lambda: nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 3)), ROWS, "0", ["1"]),
    "linear into linear without bias": (
        lambda: nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 3, bias=False)),
        *(ROWS, "0", ["1"]),
    ),
    "neither with a bias": (
        lambda: nn.Sequential(nn.Linear(4, 6, bias=False), nn.Linear(6, 3, bias=False)),
        *(ROWS, "0", ["1"]),
    ),
    "through dropout, identity and batch norms": (
        lambda: nn.Sequential(
            *(nn.Linear(4, 6), nn.Dropout(0.5), nn.BatchNorm1d(6), nn.Identity(), nn.BatchNorm1d(6, affine=False)),
            *(nn.Dropout(0.1), nn.Linear(6, 3), nn.ReLU(), nn.Linear(3, 2)),
        ),
        *(ROWS, "0", ["6", "7", "8"]),
    ),
    "rows of a sequence": (lambda: nn.Sequential(nn.Linear(13, 6), nn.Linear(6, 3)), SEQUENCES, "0", ["1"]),
    "batch norm into linear": (
        lambda: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 2)),
        *(ROWS, "1", ["0", "2", "3"]),
    ),
    "batch norm into a convolution without bias": (
        lambda: nn.Sequential(nn.Conv2d(2, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU()),
        *(IMAGES, "1", ["0", "2"]),
    ),
    "batch norm without affine": (
        lambda: nn.Sequential(nn.Conv2d(2, 6, 3), nn.BatchNorm2d(6, affine=False), nn.ReLU()),
        *(IMAGES, "1", ["0", "2"]),
    ),
    "batch norm into a grouped convolution": (
        lambda: nn.Sequential(nn.Conv2d(2, 6, 3, groups=2), nn.BatchNorm2d(6), nn.ReLU()),
        *(IMAGES, "1", ["0", "2"]),
    ),
    "batch norm into a convolution of sequences": (
        lambda: nn.Sequential(nn.Conv1d(2, 6, 3, stride=2), nn.BatchNorm1d(6), nn.ReLU()),
        *(SEQUENCES, "1", ["0", "2"]),
    ),
    "k×k into 1×1": (
        lambda: nn.Sequential(nn.Conv2d(2, 5, (3, 2), padding=(1, 0)), nn.Conv2d(5, 3, 1)),
        *(IMAGES, "0", ["1"]),
    ),
    "k×k into 1×1, strides and dilation": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 5, 3, stride=(1, 2), padding=2, dilation=(2, 1), bias=False), nn.Conv2d(5, 3, 1, stride=(2, 3))
        ),
        *(IMAGES, "0", ["1"]),
    ),
    "k×k, batch norm and dropout into 1×1": (
        lambda: nn.Sequential(
            *(nn.Conv2d(2, 5, 3, padding=1), nn.BatchNorm2d(5), nn.Dropout2d(0.3), nn.Conv2d(5, 3, 1, bias=False)),
        ),
        *(IMAGES, "0", ["3"]),
    ),
    "circular k×k into 1×1": (
        lambda: nn.Sequential(nn.Conv2d(2, 5, 3, padding=1, padding_mode="circular"), nn.Conv2d(5, 3, 1, stride=2)),
        *(IMAGES, "0", ["1"]),
    ),
    "k×k 'same' into 1×1": (
        lambda: nn.Sequential(nn.Conv2d(2, 5, 3, padding="same", dilation=2), nn.Conv2d(5, 3, 1)),
        *(IMAGES, "0", ["1"]),
    ),
    "1×1 into k×k, unpadded with bias": (
        lambda: nn.Sequential(nn.Conv2d(2, 5, 1), nn.Conv2d(5, 3, (3, 2), stride=(2, 1), dilation=2)),
        *(IMAGES, "0", ["1"]),
    ),
    "1×1 into k×k, padded without bias": (
        lambda: nn.Sequential(nn.Conv2d(2, 5, 1, bias=False), nn.Conv2d(5, 3, 3, padding=1)),
        *(IMAGES, "0", ["1"]),
    ),
    "1×1 into k×k, 'valid' with bias": (
        lambda: nn.Sequential(nn.Conv2d(2, 5, 1), nn.Conv2d(5, 3, 3, padding="valid")),
        *(IMAGES, "0", ["1"]),
    ),
    "1×1 into circular k×k, with bias": (
        lambda: nn.Sequential(nn.Conv2d(2, 5, 1), nn.Conv2d(5, 3, 3, padding=1, padding_mode="circular")),
        *(IMAGES, "0", ["1"]),
    ),
    "1×1 into 1×1": (
        lambda: nn.Sequential(nn.Conv2d(2, 5, 1, stride=2), nn.Conv2d(5, 3, 1, stride=2)),
        *(IMAGES, "0", ["1"]),
    ),
    "sequences, k into 1": (
        lambda: nn.Sequential(nn.Conv1d(2, 5, 4, stride=2, padding=3), nn.Conv1d(5, 3, 1, stride=2)),
        *(SEQUENCES, "0", ["1"]),
    ),
    "sequences, 1 into k": (
        lambda: nn.Sequential(nn.Conv1d(2, 5, 1), nn.BatchNorm1d(5), nn.Conv1d(5, 3, 4, stride=3)),
        *(SEQUENCES, "0", ["2"]),
    ),
}


@pytest.mark.parametrize("kind", EXACT)
def test_a_folded_network_computes_the_same_with_fewer_layers(kind: str) -> None:
    make, shape, layer, left = EXACT[kind]
    model, x = made(make, shape)
    folded = fold(model, x, layer=layer)
    assert [name for name, _ in folded.named_children()] == left
    torch.testing.assert_close(called(folded, x), called(model, x), atol=1e-10, rtol=0)


@pytest.mark.parametrize("kind", EXACT)
def test_the_settings_of_a_folded_layer_are_those_of_its_weights(kind: str) -> None:
    make, shape, layer, _ = EXACT[kind]
    model, x = made(make, shape)
    for module in fold(model, x, layer=layer).modules():
        if isinstance(module, nn.Linear):
            assert module.weight.shape == (module.out_features, module.in_features)
        if isinstance(module, (nn.Conv1d, nn.Conv2d)):
            columns = module.in_channels // module.groups
            assert module.weight.shape == (module.out_channels, columns, *module.kernel_size)


def test_layers_without_a_bias_fold_into_one_without() -> None:
    make, shape, layer, _ = EXACT["neither with a bias"]
    model, x = made(make, shape)
    assert fold(model, x, layer=layer).get_submodule("1").bias is None


class Own(nn.Module):
    """Layers that the class's own forward calls."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 6)
        self.norm = nn.BatchNorm1d(6)
        self.drop = nn.Dropout(0.5)
        self.act = nn.ReLU()
        self.second = nn.Linear(6, 5)
        self.third = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.third(self.act(self.second(self.drop(self.norm(self.first(x))))))
        return given


def test_in_a_class_of_its_own_folded_layers_become_identities() -> None:
    model, x = made(Own, ROWS)
    folded = fold(model, x, layer="first")
    kinds = {name: type(module).__name__ for name, module in folded.named_children()}
    assert kinds == {
        **{"first": "Identity", "norm": "Identity", "drop": "Identity"},
        **{"act": "ReLU", "second": "Linear", "third": "Linear"},
    }
    torch.testing.assert_close(called(folded, x), called(model, x), atol=1e-10, rtol=0)
    normless = fold(model, x, layer="norm")
    assert type(normless.get_submodule("norm")) is nn.Identity
    torch.testing.assert_close(called(normless, x), called(model, x), atol=1e-10, rtol=0)


def test_folds_follow_one_another() -> None:
    model, x = made(
        lambda: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 5), nn.Linear(5, 7), nn.Linear(7, 3)),
        ROWS,
    )
    folded = model
    for layer in ("1", "0", "2", "3"):
        folded = fold(folded, x, layer=layer)
    assert [name for name, _ in folded.named_children()] == ["4"]
    torch.testing.assert_close(called(folded, x), called(model, x), atol=1e-10, rtol=0)


def test_the_network_and_its_modes_are_left_as_they_were() -> None:
    model, x = made(Own, ROWS)
    model.train()
    state = deepcopy(model.state_dict())
    folded = fold(model, x, layer="first")
    assert all(torch.equal(values, state[name]) for name, values in model.state_dict().items())
    assert all(module.training for module in model.modules())
    assert folded.get_submodule("second").training
    torch.testing.assert_close(called(folded.eval(), x), called(model.eval(), x), atol=1e-10, rtol=0)


def test_what_was_trained_is_trained_and_what_was_frozen_is_frozen() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 3, bias=False)), ROWS)
    assert all(parameter.requires_grad for parameter in fold(model, x, layer="0").parameters())
    model[1].requires_grad_(False)
    assert not any(parameter.requires_grad for parameter in fold(model, x, layer="0").parameters())


class Twice(nn.Module):
    """A layer with two readers, one that runs twice, and a function between two."""

    def __init__(self) -> None:
        super().__init__()
        self.forked = nn.Linear(4, 4)
        self.left = nn.Linear(4, 4)
        self.shared = nn.Linear(4, 4)
        self.last = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = self.forked(x)
        h = h + self.left(h)
        h = self.shared(torch.relu(self.shared(torch.relu(h))))
        given: Tensor = self.last(h)
        return given


class IntoShared(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.shared = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.shared(torch.relu(self.shared(self.first(x))))
        return given


REFUSED: dict[str, tuple[Maker, tuple[int, ...], str, str]] = {
    "an activation between": (
        lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)),
        *(ROWS, "0", r"'1' \(ReLU\) lies between it and the next layer; linearise=True drops it$"),
    ),
    "pooling between": (
        lambda: nn.Sequential(nn.Conv2d(2, 5, 3), nn.MaxPool2d(2), nn.Conv2d(5, 3, 1)),
        *(IMAGES, "0", r"'1' \(MaxPool2d\) lies between it and the next layer$"),
    ),
    "a bias that is padded over": (
        lambda: nn.Sequential(nn.Conv2d(2, 5, 1), nn.Conv2d(5, 3, 3, padding=1)),
        *(IMAGES, "0", "no bias padded over$"),
    ),
    "a shift that is padded over": (
        lambda: nn.Sequential(nn.Conv2d(2, 5, 1, bias=False), nn.BatchNorm2d(5), nn.Conv2d(5, 3, 3, padding="same")),
        *(IMAGES, "0", "no bias padded over$"),
    ),
    "two large kernels": (
        lambda: nn.Sequential(nn.Conv2d(2, 5, 3), nn.Conv2d(5, 3, 3)),
        *(IMAGES, "0", "one of two convolutions must be 1×1"),
    ),
    "a stride before a large kernel": (
        lambda: nn.Sequential(nn.Conv2d(2, 5, 1, stride=2), nn.Conv2d(5, 3, 3)),
        *(IMAGES, "0", "one of two convolutions must be 1×1"),
    ),
    "a 1×1 that is padded": (
        lambda: nn.Sequential(nn.Conv2d(2, 5, 3), nn.Conv2d(5, 3, 1, padding=1)),
        *(IMAGES, "0", "one of two convolutions must be 1×1"),
    ),
    "groups": (
        lambda: nn.Sequential(nn.Conv2d(2, 6, 3), nn.Conv2d(6, 6, 1, groups=2)),
        *(IMAGES, "0", "'0' cannot fold: Conv2d into Conv2d is not one layer$"),
    ),
    "other kinds of layers": (
        lambda: nn.Sequential(nn.Conv1d(2, 6, 3), nn.Linear(11, 3)),
        *(SEQUENCES, "0", "'0' cannot fold: Conv1d into Linear is not one layer$"),
    ),
    "two readers": (Twice, ROWS, "forked", "what 'forked' returns is not read by one layer alone$"),
    "a layer that runs twice": (Twice, ROWS, "shared", "what 'shared' returns is not read by one layer alone$"),
    "a reader that runs twice": (IntoShared, ROWS, "first", "cannot fold into 'shared', which runs more than once$"),
    "the last layer": (Twice, ROWS, "last", "'last' cannot fold: the network's output comes before the next layer$"),
    "an activation": (
        lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)),
        *(ROWS, "1", "'1' cannot fold: ReLU into Linear is not one layer$"),
    ),
    "a batch norm with nothing before it": (
        lambda: nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 3)),
        *(ROWS, "0", "'0' cannot fold: no layer comes right before it that it alone reads$"),
    ),
    "a batch norm behind an activation": (
        lambda: nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.BatchNorm1d(6), nn.Linear(6, 3)),
        *(ROWS, "2", "'2' cannot fold: no layer comes right before it that it alone reads$"),
    ),
    "a batch norm without statistics": (
        lambda: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6, track_running_stats=False), nn.Linear(6, 3)),
        *(ROWS, "0", "^a batch norm without statistics of its own cannot fold$"),
    ),
    "an unknown layer": (Twice, ROWS, "middle", "^the network has no layer 'middle'$"),
    "a container": (
        lambda: nn.Sequential(nn.Sequential(nn.Linear(4, 6)), nn.Linear(6, 3)),
        *(ROWS, "0", "'0' does not run as one layer"),
    ),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_fold_is_refused_in_one_line(kind: str) -> None:
    make, shape, layer, message = REFUSED[kind]
    model, x = made(make, shape)
    with pytest.raises(ModelError, match=message) as caught:
        fold(model, x, layer=layer)
    assert "\n" not in str(caught.value)


def activated() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 3))


def test_without_data_linearising_just_drops_the_activation() -> None:
    model, x = made(activated, ROWS)
    folded = fold(model, x, layer="0", linearise=True)
    assert [name for name, _ in folded.named_children()] == ["4"]
    linear = deepcopy(model)
    linear[1] = nn.Identity()
    torch.testing.assert_close(called(folded, x), called(linear, x), atol=1e-10, rtol=0)


def test_with_data_linearising_gives_the_least_squares_of_what_the_layers_gave() -> None:
    model, x = made(activated, (400, 4))
    folded: Any = fold(model, x[:2], layer="0", linearise=True, calibration=x)
    full = numpy.hstack([x.numpy(), numpy.ones((len(x), 1))])
    targets = called(model, x).numpy()
    best = full @ numpy.linalg.lstsq(full, targets, rcond=None)[0]
    error, least = (((given - targets) ** 2).mean() for given in (called(folded, x).numpy(), best))
    assert least <= error <= least * 1.001 + 1e-7
    dropped = called(fold(model, x[:2], layer="0", linearise=True), x).numpy()
    assert error < ((dropped - targets) ** 2).mean()


def test_linearised_convolutions_are_refitted_on_what_they_read_now() -> None:
    model, x = made(
        lambda: nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 3, 1, stride=2)), (20, *IMAGES[1:])
    )
    plain = fold(model, x, layer="0", linearise=True)
    refitted = fold(model, x, layer="0", linearise=True, calibration=x)
    assert called(plain, x).shape == called(refitted, x).shape == called(model, x).shape
    errors = [float((called(net, x) - called(model, x)).pow(2).mean()) for net in (refitted, plain)]
    assert errors[0] < 0.8 * errors[1]


def test_where_nothing_lies_between_data_change_nothing_that_can_be_seen() -> None:
    model, x = made(lambda: nn.Sequential(nn.Linear(4, 6), nn.Linear(6, 3)), ROWS)
    folded = fold(model, x, layer="0", calibration=x)
    torch.testing.assert_close(called(folded, x), called(model, x), atol=1e-10, rtol=0)


def check_sound(make: Maker, shape: tuple[int, ...], layer: str) -> None:
    """See that a fold is exact or refused."""
    model, x = made(make, shape)
    try:
        folded = fold(model, x, layer=layer)
    except TopiaristError:
        return
    assert called(folded, x).shape == called(model, x).shape
    torch.testing.assert_close(called(folded, x), called(model, x), atol=1e-10, rtol=0)


# name: (network, input shape, layer to fold): each must be exact or a clear error
UNSOUND: dict[str, tuple[Maker, tuple[int, ...], str]] = {
    "wrong: a batch norm over rows, not units": (
        lambda: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 3)),
        *((5, 6, 4), "0"),
    ),
    "wrong: a batch norm over rows folds into the layer before": (
        lambda: nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 3)),
        *((5, 6, 4), "1"),
    ),
    "wrong: a batch norm behind a transposed convolution": (
        lambda: nn.Sequential(nn.ConvTranspose2d(2, 2, 3), nn.BatchNorm2d(2)),
        *(IMAGES, "1"),
    ),
    "wrong: a 1×1 with circular padding takes a k×k in": (
        lambda: nn.Sequential(nn.Conv2d(2, 5, 3), nn.Conv2d(5, 3, 1, padding=1, padding_mode="circular")),
        *(IMAGES, "0"),
    ),
    "wrong: a 1×1 with circular padding goes into a k×k": (
        lambda: nn.Sequential(nn.Conv2d(2, 5, 1, padding=1, padding_mode="circular"), nn.Conv2d(5, 3, 3)),
        *(IMAGES, "0"),
    ),
    "wrong: a transposed convolution into 1×1": (
        lambda: nn.Sequential(nn.ConvTranspose2d(2, 2, 3), nn.Conv2d(2, 2, 1)),
        *(IMAGES, "0"),
    ),
    "crash: into a layer with computed weights": (
        lambda: nn.Sequential(nn.Linear(4, 5), parametrizations.weight_norm(nn.Linear(5, 3))),
        *(ROWS, "0"),
    ),
    "crash: a batch norm into a layer with computed weights": (
        lambda: nn.Sequential(parametrizations.weight_norm(nn.Linear(4, 5)), nn.BatchNorm1d(5)),
        *(ROWS, "1"),
    ),
}


@pytest.mark.parametrize("kind", UNSOUND)
def test_a_fold_is_exact_or_refused(kind: str) -> None:
    check_sound(*UNSOUND[kind])


def test_a_convolution_with_the_padding_same_folds_into_a_1x1_with_a_stride() -> None:
    model, x = made(lambda: nn.Sequential(nn.Conv2d(2, 5, 3, padding="same"), nn.Conv2d(5, 3, 1, stride=2)), IMAGES)
    torch.testing.assert_close(called(fold(model, x, layer="0"), x), called(model, x), atol=1e-10, rtol=0)


def test_a_function_between_is_named() -> None:
    class Functional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 5)
            self.second = nn.Linear(5, 2)

        def forward(self, x: Tensor) -> Tensor:
            given: Tensor = self.second(torch.relu(self.first(x)))
            return given

    model, x = made(Functional, ROWS)
    with pytest.raises(ModelError, match="relu"):
        fold(model, x, layer="first")
