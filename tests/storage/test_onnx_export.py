"""An exported file computes what torch computes, of samples as they come, and says what it reads."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy
import pandas
import pytest
import torch
from torch import Tensor, nn

from tests.networks import NETWORKS
from topiarist import Data, TrainConfig, export_onnx, load_data, surgery, train
from topiarist.errors import DataError, MissingExtraError, ModelError, TopiaristError
from topiarist.measurement.latency import time_onnx
from topiarist.models import Ensemble, mlp, vgg
from topiarist.randomness import array_generator, generator
from topiarist.storage import Export, export_program
from topiarist.storage.onnx_export import Session, to_int8
from topiarist.tracing import anatomy
from topiarist.training.inference import part_logits, predict_logits

pytestmark = pytest.mark.slow

onnx: Any = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")


def answers(path: Path, samples: Any) -> tuple[Tensor, Tensor]:
    """Return what ONNX Runtime alone answers; all that it knows stands in the file."""
    logits, probabilities = Session(path)(samples)
    return torch.from_numpy(logits), torch.from_numpy(probabilities)


def notes_in(path: Path) -> dict[str, Any]:
    """Return the metadata of a file."""
    found = {each.key: each.value for each in onnx.load(path).metadata_props}
    return {name: value if name == "input" else json.loads(value) for name, value in found.items()}


def assert_same(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def digits() -> Data:
    return load_data("digits", scaling="zscore")


@pytest.fixture(scope="module")
def network(digits: Data) -> nn.Module:
    """Return a network of batch norm and dropout, trained for a moment."""
    model = mlp([64, 16, 10], batch_norm=True, dropout=0.2)
    train(model, digits, TrainConfig(epochs=3))
    return model


@pytest.fixture(scope="module")
def exported(network: nn.Module, digits: Data, tmp_path_factory: pytest.TempPathFactory) -> Export:
    """Return the network as a file that is alone in its folder."""
    return export_onnx(network, tmp_path_factory.mktemp("exported") / "m.onnx", data=digits)


def test_raw_digits_in_one_file(network: nn.Module, digits: Data, exported: Export) -> None:
    assert list(exported.path.parent.iterdir()) == [exported.path]
    assert digits.source is not None and digits.split is not None
    raw = numpy.asarray(digits.source.features)[digits.split.test].astype(numpy.float32)
    expected, _ = part_logits(network, digits.test)
    for count in (1, 2, 100):
        logits, probabilities = answers(exported.path, raw[:count])
        assert_same(logits, expected[:count])
        assert_same(probabilities, expected[:count].softmax(dim=1))
    assert time_onnx(exported.path, raw[:1], repeats=5).median_ms > 0


def test_the_settings_of_batch_norm_and_leaky_relu_go_into_the_file(digits: Data, tmp_path: Path) -> None:
    model = mlp([64, 16, 10], "leaky_relu", True, batch_norm_epsilon=0.5, leaky_slope=0.4)
    train(model, digits, TrainConfig(epochs=1))
    path = export_onnx(model, tmp_path / "m.onnx", data=digits).path
    assert digits.source is not None and digits.split is not None
    raw = numpy.asarray(digits.source.features)[digits.split.test].astype(numpy.float32)
    expected, _ = part_logits(model, digits.test)
    assert_same(answers(path, raw)[0], expected)
    other = mlp([64, 16, 10], "leaky_relu", True)
    other.load_state_dict(model.state_dict())
    assert (part_logits(other.eval(), digits.test)[0] - expected).abs().max() > 0.01


def test_an_export_says_what_it_is_worth(digits: Data, exported: Export) -> None:
    record = json.loads(json.dumps(exported.to_json()))
    assert (record["samples"], record["compared_on"], record["bits"]) == (len(digits.test), "test part", 32)
    assert record["agreement"] == 1 and record["largest_difference"] < 1e-4
    assert record["accuracy"] == record["accuracy_in_torch"] > 0.3
    assert record["file_kb"] == exported.path.stat().st_size / 1024
    assert record["input"]["kind"] == "raw"


def test_a_file_says_what_it_reads_and_nothing_of_the_machine(digits: Data, exported: Export) -> None:
    told = {"input": "raw", "preprocessing": ["zscore"], "classes": list(digits.classes), "bits": 32}
    assert notes_in(exported.path) == told
    assert onnx.load(exported.path).producer_name == "topiarist"
    assert b"site-packages" not in exported.path.read_bytes()


def test_the_same_network_gives_the_same_bytes_and_is_left_alone(
    network: nn.Module, digits: Data, exported: Export, tmp_path: Path
) -> None:
    network.train()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    assert digits.source is not None
    given = export_onnx(network, tmp_path / "m.onnx", data=digits, samples=digits.source.features[:9])
    assert (given.compared_on, given.samples, given.accuracy) == ("samples given", 9, None)
    assert given.path.read_bytes() == exported.path.read_bytes()
    assert all(module.training for module in network.modules())
    assert all(torch.equal(before[name], now) for name, now in network.state_dict().items())


def table() -> tuple[pandas.DataFrame, Any]:
    """Return a table with gaps and a column far from zero; the classes follow from it."""
    random = array_generator(0, "table")
    labels = random.integers(0, 2, 120)
    columns = {
        "width": labels + random.normal(size=120),
        "time": 1.7e9 + 3 * labels + random.normal(size=120),
        "count": random.integers(0, 9, 120),
    }
    made = pandas.DataFrame(columns)
    made.loc[::7, "width"] = numpy.nan
    return made, labels


def test_a_table_of_numbers_is_read_with_its_gaps(tmp_path: Path) -> None:
    raw, labels = table()
    data = Data.from_arrays(raw, labels, scaling="zscore")
    model = mlp([3, 8, 2])
    export = export_onnx(model, tmp_path / "m.onnx", data=data)
    assert (export.input.kind, export.input.type, export.largest_difference < 1e-5) == ("raw", "float64", True)
    assert export.input.preprocessing == ("fill", "zscore")
    assert notes_in(tmp_path / "m.onnx")["columns"] == [{"column": name} for name in raw.columns]
    assert data.preprocessing is not None and raw.isna().any().any()
    logits, _ = answers(tmp_path / "m.onnx", raw.to_numpy(float))
    assert_same(logits, predict_logits(model, data.preprocessing(raw)))


def test_a_projection_stays_in_double_where_layers_have_8_bits(tmp_path: Path) -> None:
    random = array_generator(0, "projection")
    data = Data.from_arrays(
        random.normal(size=(90, 12)), random.integers(0, 2, 90), projection=((8, 3), (4, 2)), scaling="zscore"
    )
    export = export_onnx(mlp([5, 64, 2]), tmp_path / "m.onnx", data=data, int8=True)
    assert (export.bits, export.input.shape, export.input.preprocessing) == (8, (12,), ("projection", "zscore"))
    assert 0 < export.largest_difference < 0.1 and (export.agreement or 0.0) > 0.9
    kinds = {each.name: each.data_type for each in onnx.load(tmp_path / "m.onnx").graph.initializer}
    assert all(kind == onnx.TensorProto.DOUBLE for name, kind in kinds.items() if name.startswith("preparation."))
    weights = [kind for name, kind in kinds.items() if name.endswith("weight_quantized")]
    assert weights == [onnx.TensorProto.INT8] * 2


def test_stacked_matrices_are_not_computed_in_8_bits() -> None:
    samples = numpy.ones((2, 3, 1, 4), numpy.float32)
    kernels = onnx.numpy_helper.from_array(numpy.ones((3, 4, 5), numpy.float32), "kernels")
    places = [
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["samples", 3, 1, size])
        for name, size in (("input", 4), ("logits", 5))
    ]
    node = onnx.helper.make_node("MatMul", ["input", "kernels"], ["logits"], name="product")
    graph = onnx.helper.make_graph([node], "stack", places[:1], places[1:], [kernels])
    opsets = [onnx.helper.make_opsetid("", 20)]
    with pytest.raises(ModelError, match="no layer that ONNX Runtime computes in 8 bits"):
        to_int8(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10), samples)


@pytest.fixture(scope="module")
def images() -> tuple[nn.Module, Data]:
    """Return a convolutional network for digits, trained for a moment."""
    data = load_data("digits", input_shape=(1, 8, 8))
    model = vgg(1, 0, 1, 1, input_shape=(1, 8, 8), classes=10, dropout=0.0)
    train(model, data, TrainConfig(epochs=3, learning_rate=0.01))
    return model, data


def test_a_convolutional_network_in_8_bits_is_smaller_and_nearly_as_right(
    images: tuple[nn.Module, Data], tmp_path: Path
) -> None:
    model, data = images
    whole = export_onnx(model, tmp_path / "m.onnx", data=data)
    assert whole.input.shape == (64,) and whole.agreement == 1
    small = export_onnx(model, tmp_path / "int8.onnx", data=data, int8=True)
    assert {path.name for path in tmp_path.iterdir()} == {"m.onnx", "int8.onnx"}
    assert small.file_kb < 0.75 * whole.file_kb
    assert (small.agreement or 0.0) > 0.95 and small.accuracy is not None and whole.accuracy is not None
    assert small.accuracy > whole.accuracy - 0.03 > 0.5


def test_an_ensemble_of_a_users_networks_one_of_them_cut_in_float64(tmp_path: Path) -> None:
    whole, example = NETWORKS["input residual"](0)
    free = anatomy(whole, example).free
    cut = surgery.remove(whole, example, units={name: [0, 1] for name in free})
    model = Ensemble([whole, cut], weights=[1, 2])
    assert isinstance(example, Tensor)
    random = torch.randn((100, *example.shape[1:]), generator=generator(0, "samples"), dtype=torch.float64)
    export = export_onnx(model, tmp_path / "m.onnx", samples=random[:5])
    assert (export.input.kind, export.accuracy) == ("preprocessed", None)
    assert export_program(model, tmp_path / "m.pt2", samples=random[:5]).agreement == 1
    assert {path.name for path in tmp_path.iterdir()} == {"m.onnx", "m.pt2"}
    assert all(parameter.dtype == torch.float64 for parameter in model.parameters())
    loaded = torch.export.load(tmp_path / "m.pt2").module()
    for count in (1, 2, 100):
        x = random[:count].float()
        for logits in (answers(export.path, x.numpy())[0], loaded(x)[0]):
            assert_same(logits.double(), predict_logits(model, random[:count]))


def test_a_program_reads_raw_samples(network: nn.Module, digits: Data, tmp_path: Path) -> None:
    exported = export_program(network, tmp_path / "m.pt2", data=digits)
    assert (exported.input.kind, exported.agreement, exported.compared_on) == ("raw", 1.0, "test part")


class Odd(nn.Module):
    """Answers otherwise in an export than in torch, or cannot be followed."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.head, self.how = nn.Linear(4, 2), how

    def forward(self, x: Tensor) -> Tensor:
        given: Tensor = self.head(x)
        if self.how == "deceives":
            return given + float(torch.compiler.is_exporting())
        if self.how == "looks":
            return given if x.sum() > 0 else -given
        if self.how == "counts":
            return torch.stack(list(given))
        return given * torch.inf


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("deceives", "the export does not compute what torch does: logits by 1, probabilities by"),
        ("looks", "must not depend on values nor on how many samples there are: Could not guard"),
        ("counts", "must not depend on values nor on how many samples there are"),
        ("explodes", "the network gives numbers that are not finite"),
    ],
)
def test_what_cannot_be_exported_leaves_no_file(
    how: str, said: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "old.pt2").write_bytes(b"old")
    samples = torch.randn((3, 4), generator=generator(0, "samples"))
    with pytest.raises(ModelError, match=said):
        export_program(Odd(how), tmp_path / "old.pt2", samples=samples)
    if how == "deceives":
        with pytest.raises(ModelError, match=said):
            export_onnx(Odd(how), tmp_path / "m.onnx", samples=samples)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"old.pt2": b"old"}
    assert capfd.readouterr() == ("", "")


def test_wrong_places_and_samples(network: nn.Module, digits: Data, tmp_path: Path) -> None:
    for path, said in {
        "m.bin": r"must end in .onnx; found 'm.bin'",
        "absent/m.onnx": "there is no folder",
    }.items():
        with pytest.raises(TopiaristError, match=said):
            export_onnx(network, tmp_path / path, data=digits)
    with pytest.raises(DataError, match="8 bits need real samples"):
        export_onnx(network, tmp_path / "m.onnx", int8=True)
    with pytest.raises(ModelError, match="does not say what it reads"):
        export_onnx(nn.Linear(2, 2), tmp_path / "m.onnx")
    with pytest.raises(DataError, match="1 or more; found"):
        export_onnx(nn.Linear(2, 2), tmp_path / "m.onnx", samples=numpy.zeros((0, 2)))
    with pytest.raises(ModelError, match="cannot read samples of shape"):
        export_onnx(nn.Linear(2, 2), tmp_path / "m.onnx", samples=numpy.zeros((3, 5)))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["onnx", "onnxscript", "onnxruntime"])
def test_a_missing_extra_is_named(
    package: str, network: nn.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"ONNX export needs the extra 'onnx': pip install"):
        export_onnx(network, tmp_path / "m.onnx")
    assert not list(tmp_path.iterdir())


def test_no_file_that_onnx_runtime_cannot_read_is_timed(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(b"no graph")
    with pytest.raises(ModelError, match="ONNX Runtime cannot read"):
        time_onnx(tmp_path / "m.onnx")
