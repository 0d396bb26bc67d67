"""Networks of several inputs, and of outputs that are no logits, are exported with every tensor by its name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn

from topiarist import export_int8, export_onnx
from topiarist.errors import DataError, ModelError
from topiarist.randomness import generator, isolated
from topiarist.storage import export_program
from topiarist.storage.flat import arguments_of, tensors_by_name
from topiarist.storage.onnx_export import Session, onnx_content

pytest.importorskip("onnx")
pytest.importorskip("onnxscript")
pytest.importorskip("onnxruntime")


class UNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.down, self.middle = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(4, 4, 3, padding=1, stride=2)
        self.up, self.head = nn.ConvTranspose2d(4, 4, 2, 2), nn.Conv2d(8, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        wide = self.down(x).relu()
        found: Tensor = self.head(torch.cat([wide, self.up(self.middle(wide).relu())], 1))
        return found


class Coder(nn.Module):
    """Returns a reconstruction and what it was made from, in some form."""

    def __init__(self, form: Callable[[Tensor, Tensor], Any]) -> None:
        super().__init__()
        self.encode, self.decode, self.form = nn.Linear(6, 4), nn.Linear(4, 6), form

    def forward(self, x: Tensor) -> Any:
        code = self.encode(x)
        return self.form(self.decode(code), code)


class Masked(nn.Module):
    """Reads tokens and a mask, and a number that is none of its tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.head = nn.Embedding(10, 4), nn.Linear(4, 3)

    def forward(self, tokens: Tensor, mask: Tensor, scale: float = 1.0) -> Tensor:
        found: Tensor = self.head((self.embedding(tokens) * mask[..., None]).mean(1)) * scale
        return found


class OfBatch(nn.Module):
    """Reads one mapping."""

    def __init__(self) -> None:
        super().__init__()
        self.masked = Masked()

    def forward(self, batch: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"scores": self.masked(batch["tokens"], batch["mask"])}


class Graph(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        return torch.zeros(len(nodes), 3).index_add(0, edges[1], self.linear(nodes)[edges[0]])


def made(kind: Callable[[], nn.Module]) -> nn.Module:
    with isolated(0):
        return kind()


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=generator(0, "samples"))


ROWS = random(20, 6)
TOKENS, MASK = torch.randint(0, 10, (12, 7), generator=generator(0, "tokens")), random(12, 7)


def run(path: Path, **inputs: Tensor) -> dict[str, Tensor]:
    """Return what ONNX Runtime alone answers, by the names in the file."""
    session = Session(path)
    found = session({name: tensor.numpy() for name, tensor in inputs.items()})
    names = [each.name for each in session.session.get_outputs()]
    return {name: torch.as_tensor(each) for name, each in zip(names, found, strict=True)}


def assert_close(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted.detach(), rtol=1e-4, atol=1e-5)


def test_a_u_net_takes_any_number_of_images(tmp_path: Path) -> None:
    model, images = made(UNet), random(5, 3, 8, 8)
    export = export_onnx(model, tmp_path / "m.onnx", samples=images)
    assert (export.samples, export.agreement, export.accuracy) == (5, None, None)
    assert [each.name for each in export.outputs] == ["output"]
    assert export.largest_difference == export.outputs[0].largest_difference < 1e-5 < export.outputs[0].largest_value
    assert export.to_json()["outputs"]
    for count in (1, 2, 5):
        assert_close(run(tmp_path / "m.onnx", input=images[:count])["output"], model(images[:count]))
    assert export_program(model, tmp_path / "m.pt2", samples=images).largest_difference < 1e-5
    assert torch.export.load(tmp_path / "m.pt2").module()(images[:3])[0].shape == (3, 2, 8, 8)


@pytest.mark.parametrize(
    ("form", "names"),
    [
        (lambda made, code: (made, code), ["output_0", "output_1"]),
        (lambda made, code: {"x": made, "codes": [code, {"half": code / 2}]}, ["output_x", "codes_0", "codes_1_half"]),
        (lambda made, code: (made, None, code.argmax(1), code > 0, code.sum()), [f"output_{n}" for n in (0, 2, 3, 4)]),
    ],
    ids=["tuple", "mapping", "types"],
)
def test_every_tensor_is_named_and_compared(form: Callable[..., Any], names: list[str], tmp_path: Path) -> None:
    model = made(lambda: Coder(form))
    export = export_onnx(model, tmp_path / "m.onnx", samples=(ROWS,))
    assert [each.name for each in export.outputs] == names
    wanted = tensors_by_name(model(ROWS), ["x"])
    for name, found in run(tmp_path / "m.onnx", x=ROWS).items():
        assert_close(found, wanted[name])
    whole = {each.name for each in export.outputs if each.same == 1.0}
    assert whole == {name for name, tensor in wanted.items() if not tensor.is_floating_point()}


@pytest.mark.parametrize(
    "samples", [(TOKENS, MASK, 2.0), {"mask": MASK, "tokens": TOKENS.numpy(), "scale": 2.0}], ids=["places", "names"]
)
def test_several_inputs_are_called_like_the_arguments(samples: Any, tmp_path: Path) -> None:
    model = made(Masked)
    export = export_onnx(model, tmp_path / "m.onnx", samples=samples)
    assert {(each.name, each.shape, each.type) for each in export.input.tensors} == {
        ("tokens", (7,), "int64"),
        ("mask", (7,), "float32"),
    }
    for count in (1, 12):
        found = run(tmp_path / "m.onnx", tokens=TOKENS[:count], mask=MASK[:count])
        assert_close(found["output"], model(TOKENS[:count], MASK[:count], 2.0))


@pytest.mark.slow
def test_one_mapping_in_and_one_out_also_in_8_bits(tmp_path: Path) -> None:
    model, samples = made(OfBatch), {"tokens": TOKENS, "mask": MASK}
    found = export_int8(model, tmp_path / "m.onnx", samples=samples)
    assert found.int8.bits == 8 and 0 < found.int8.largest_difference < 0.1
    assert "from torch in 12 samples: 'scores' by" in str(found)
    wanted = model(samples)["scores"]
    assert (run(tmp_path / "m.onnx", **samples)["scores"] - wanted).abs().max() < 0.1


def test_tensors_of_unlike_lengths_are_one_sample(tmp_path: Path) -> None:
    model, nodes = made(Graph), random(9, 4)
    edges = torch.randint(0, 9, (2, 20), generator=generator(0, "edges"))
    export = export_onnx(model, tmp_path / "m.onnx", samples=(nodes, edges))
    assert export.samples == 1
    assert_close(run(tmp_path / "m.onnx", nodes=nodes, edges=edges)["output"], model(nodes, edges))


def _deceiving(rebuilt: Tensor, code: Tensor) -> Any:
    return rebuilt, code + 0.5 * float(torch.compiler.is_exporting())


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (lambda made, code: (made, "text"), "an export returns tensors, and the network returns a str as 'output_1'"),
        (lambda made, code: None, "an export returns tensors, and the network returns none: NoneType"),
        (
            lambda made, code: {"f": torch.fft.fft(code)},
            "returns real numbers, and 'f' of the network is",
        ),
        (lambda made, code: (made, code / 0), "numbers that are not finite in 'output_1'"),
        (lambda made, code: (made, made + torch.randn_like(made)), "asked again, as 'output_1' shows: it draws random"),
        (_deceiving, r"does not compute what torch does: 'output_1' by 0\.5 \(numbers up to"),
        (lambda made, code: {str(len(made)): made}, "other outputs for one sample than for two"),
    ],
)
def test_what_cannot_be_exported_is_one_line(form: Callable[..., Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=said) as raised:
        export_onnx(made(lambda: Coder(form)), tmp_path / "m.onnx", samples=ROWS)
    assert "\n" not in str(raised.value) and not list(tmp_path.iterdir())


def test_samples_that_do_not_fit() -> None:
    model = made(Masked)
    with pytest.raises(ModelError, match=r"do not fit Masked\.forward: missing a required argument: 'mask'"):
        arguments_of(model, (TOKENS,))
    with pytest.raises(ModelError, match=r"the samples do not fit Masked\.forward"):
        arguments_of(model, {"tokens": TOKENS, "masks": MASK})
    with pytest.raises(DataError, match="hold at least one tensor, and none without numbers"):
        arguments_of(model, (TOKENS[:0], MASK))


def test_a_network_of_several_outputs_can_be_timed() -> None:
    content = onnx_content(made(lambda: Coder(lambda rebuilt, code: (rebuilt, code.sum()))), ROWS[:1])
    found = Session(content)(numpy.ones((1, 6), numpy.float32))
    assert [each.shape for each in found] == [(1, 6), ()]
