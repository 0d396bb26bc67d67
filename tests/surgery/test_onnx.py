"""Networks that surgery changed are exported like any other; ONNX Runtime computes what torch computes."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.networks import NETWORKS, outputs
from tests.surgery.strategies import SMALL
from topiarist import surgery
from topiarist.errors import ModelError
from topiarist.randomness import generator
from topiarist.tracing import Inputs, anatomy

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
onnxruntime: Any = pytest.importorskip("onnxruntime")

Edit = Callable[[nn.Module, Inputs], nn.Module]


def exported(model: nn.Module, inputs: tuple[Tensor, ...], path: Path, *, dynamo: bool) -> Path:
    """Write a network as ONNX; the exporters' warnings of what will change in torch are not ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, inputs, path, dynamo=dynamo, verbose=False, external_data=False)
    return path


def assert_exported(model: nn.Module, example: Inputs, path: Path, *, dynamo: bool = False) -> None:
    """Assert that ONNX Runtime gives what torch gives, in single precision."""
    assert isinstance(example, Tensor | tuple)
    inputs = (example,) if isinstance(example, Tensor) else example
    single = tuple(tensor.float() if tensor.is_floating_point() else tensor for tensor in inputs)
    written = exported(model.float(), single, path / "m.onnx", dynamo=dynamo)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(written, settings, providers=["CPUExecutionProvider"])
    taken = {place.name: tensor.numpy() for place, tensor in zip(session.get_inputs(), single, strict=True)}
    for given, expected in zip(session.run(None, taken), outputs(model, single), strict=True):
        torch.testing.assert_close(torch.from_numpy(given), expected, rtol=0, atol=1e-5)


def exportable(name: str) -> tuple[nn.Module, Inputs]:
    """Return a network without the adaptive pooling that no exporter knows; the same windows are written out."""
    model, example = NETWORKS[name](0)
    if name == "grouped sequence":
        model.pool = nn.MaxPool1d(5, stride=4)
    return model, example


def halved(model: nn.Module, example: Inputs) -> nn.Module:
    """Return a network without a random half of the units of every space."""
    random = generator(0, "half")
    free = anatomy(model, example).free
    units = {name: torch.randperm(space.size, generator=random)[: space.size // 2] for name, space in free.items()}
    return surgery.remove(model, example, units=units)


def widened(model: nn.Module, example: Inputs, space: str) -> nn.Module | None:
    """Return a network with a space wider; None where that is refused."""
    try:
        return surgery.widen(model, example, space=space, by=3, generator=generator(0, "wider"))
    except ModelError:
        return None


def rebuilt(model: nn.Module, example: Inputs) -> nn.Module:
    """Return a network with a space wider, a layer more where there are several, and the last layer in two."""
    found = anatomy(model, example)
    layers = [name for name in found.calls if isinstance(model.get_submodule(name), (nn.Linear, nn.Conv1d, nn.Conv2d))]
    after = found.calls[layers[0]]
    wider = next(network for space in found.free if (network := widened(model, example, space)) is not None)
    deeper = wider
    if len(layers) > 1:
        deeper = surgery.deepen(wider, example, after=layers[0], batch_norm=after.axis == 1 - len(after.shape))
    return surgery.factorise(deeper, layer=layers[-1], rank=1)


QUICK = [name for name in SMALL if name != "frozen"]  # whose pooling only the newer exporter, which is slow, knows


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_a_network_of_half_its_width_is_exported(name: str, tmp_path: Path) -> None:
    model, example = exportable(name)
    assert_exported(halved(model, example), example, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_a_wider_deeper_and_factorised_network_is_exported(name: str, tmp_path: Path) -> None:
    model, example = exportable(name)
    assert_exported(rebuilt(model, example), example, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "edit"), [("frozen", halved), ("residual", halved), ("inception", rebuilt)])
def test_the_exporter_of_torch_export_takes_them_too(name: str, edit: Edit, tmp_path: Path) -> None:
    model, example = exportable(name)
    assert_exported(edit(model, example), example, tmp_path, dynamo=True)
