"""Devices by name, and structural work on the meta device, which has shapes and no values."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from tests.cli.conftest import invoke
from tests.networks import NETWORKS
from topiarist import anatomy, models, surgery
from topiarist.data import load_data
from topiarist.devices import find_device, in_float64
from topiarist.errors import ModelError, SettingsError
from topiarist.measurement.cost import count_macs
from topiarist.randomness import generator
from topiarist.surgery import plan_of
from topiarist.surgery.replaying import rebuild
from topiarist.tracing.rules.cells import gru_cell, lstm_cell
from topiarist.training import TrainConfig, train

ABSENT = "cuda" if not torch.cuda.is_available() else "abacus"
Verb = Callable[[nn.Module, Tensor], nn.Module]


def test_auto_is_the_accelerator_or_the_cpu() -> None:
    expected = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
    assert find_device("auto") == expected
    assert in_float64(torch.ones(2)).dtype == torch.float64


@pytest.mark.parametrize("name", [ABSENT, "abacus", "meta", "cpu:x"])
def test_a_device_that_cannot_be_used_is_one_line(name: str) -> None:
    with pytest.raises(SettingsError, match=f"the device '{name}' cannot be used: .") as refused:
        find_device(name)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "words",
    [
        ("train", "iris", "--epochs", 1),
        ("rightsize", "iris"),
        ("measure", "MODEL", "iris"),
        ("predict", "MODEL", "iris"),
        ("recommend", "MODEL", "iris"),
        ("anatomy", "MODEL"),
        ("resize", "distinctiveness", "MODEL", "iris", "--keep", 0.5),
        ("study", "run", "STUDY"),
    ],
)
def test_every_command_that_computes_has_a_device(
    words: tuple[object, ...], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("device")
    model, study = folder / "model.safetensors", folder / "study.toml"
    assert invoke("train", "iris", "--epochs", 1, "--hidden", 4, "--out", model)[0] == 0
    study.write_text('seeds = [0]\n[data]\nlocation = "iris"\n[training]\nepochs = 1\n')
    places = {"MODEL": model, "STUDY": study}
    code, out, err = invoke(*(places.get(str(word), word) for word in words), "--device", ABSENT)
    assert (code, out) == (2, "")
    assert err.startswith(f"topiarist: the device '{ABSENT}' cannot be used: ") and err.count("\n") == 1
    assert sorted(folder.iterdir()) == [model, study]


def test_a_network_is_trained_where_it_is_and_remembers_no_device() -> None:
    model = models.mlp([4, 4, 3])
    train(model, load_data("iris"), TrainConfig(epochs=1, device="cpu"))
    training = models.card_of(model).training
    assert training is not None and "device" not in training


@pytest.mark.parametrize("name", ["residual", "inception"])
def test_structure_needs_no_values(name: str) -> None:
    model, x = NETWORKS[name](0)
    space = next(name for name, space in anatomy(model, x).spaces.items() if space.reason is None)
    verbs: dict[str, Verb] = {
        "remove": lambda network, batch: surgery.remove(network, batch, units={space: [0]}),
        "widen": lambda network, batch: surgery.widen(
            network, batch, space=space, by=2, generator=generator(0, "wide")
        ),
        "grow": lambda network, batch: surgery.grow(network, batch, space=space, by=2, generator=generator(0, "grown")),
    }
    empty, batch = NETWORKS[name](0)[0].to("meta"), x.to("meta")
    assert str(anatomy(empty, batch)) == str(anatomy(model, x))
    assert count_macs(empty, batch[:1]) == count_macs(model, x[:1])
    for verb in verbs.values():
        made = verb(model, x)
        for found in (verb(empty, batch), rebuild(plan_of(made), empty)):
            assert {name: value.shape for name, value in found.state_dict().items()} == {
                name: value.shape for name, value in made.state_dict().items()
            }
            assert all(value.is_meta for value in found.state_dict().values())


def test_depth_needs_no_values() -> None:
    layers = nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 6), nn.Linear(6, 3)
    model, x = nn.Sequential(*layers).to("meta").eval(), torch.empty(3, 4, device="meta")
    assert len([*surgery.deepen(model, x, after="2").children()]) == 7
    assert len([*surgery.fold(model, x, layer="1").children()]) == 4
    assert surgery.factorise(model, layer="3", rank=2).get_parameter("3.narrow.weight").is_meta
    with pytest.raises(ModelError, match="compacting needs the values of weights"):
        surgery.compact(model, x)
    with pytest.raises(ModelError, match="a projection needs the values of weights"):
        surgery.project(model, x, space="3", to=4)


def test_cells_of_accelerators_written_out_compute_what_torch_does() -> None:
    x, state, memory = (torch.randn(5, 3, generator=generator(0, name)) for name in ("x", "state", "memory"))
    lstm, gru = nn.LSTMCell(3, 3), nn.GRUCell(3, 3)
    for cell, written, given in ((lstm, lstm_cell, memory), (gru, gru_cell, state)):
        read, carried = x @ cell.weight_ih.T, state @ cell.weight_hh.T
        found = written(read, carried, given, cell.bias_ih, cell.bias_hh)[0]
        expected = lstm(x, (state, memory))[0] if cell is lstm else gru(x, state)
        torch.testing.assert_close(found, expected)
