"""Weights in 8 bits, of which 7 are used, one scale a channel, and activations whose ranges real samples show.

ONNX Runtime does it after Jacob et al., Quantization and training of neural networks for efficient
integer-arithmetic-only inference (2018). Dense layers answer in float32, so that close classes stay apart;
ONNX Runtime leaves preprocessing alone, which is in float64. A processor without VNNI adds two products in 16 bits,
which the eighth bit would overflow: the file is to give the same answers everywhere.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from topiarist.errors import ModelError
from topiarist.storage.input_form import Inputs
from topiarist.storage.onnx_graph import INPUT, trimmed
from topiarist.storage.onnx_tools import onnx_tool
from topiarist.storage.traced import quietly

LAYERS, DENSE = ["Conv", "Gemm", "MatMul"], ["Gemm", "MatMul"]
BATCH = 64


def quantise(model: Any, samples: Inputs) -> Any:
    """Give a graph that computes its convolutions and dense layers in 8 bits."""
    tools, onnx = onnx_tool("onnxruntime.quantization"), onnx_tool("onnx")
    with TemporaryDirectory() as folder, quietly("the network cannot be quantised"):
        place = Path(folder) / "int8.onnx"
        tools.quantize_static(
            model,
            place,
            Batches(samples),
            quant_format=tools.QuantFormat.QDQ,
            op_types_to_quantize=LAYERS,
            nodes_to_exclude=stacked_products(model),
            per_channel=True,
            reduce_range=True,
            activation_type=tools.QuantType.QUInt8,
            weight_type=tools.QuantType.QInt8,
            extra_options={"OpTypesToExcludeOutputQuantization": DENSE},
        )
        quantised = trimmed(onnx.load(place))
    if not any(node.op_type == "QuantizeLinear" for node in quantised.graph.node):
        raise ModelError("the network has no layer that ONNX Runtime computes in 8 bits")
    return quantised


def stacked_products(model: Any) -> list[str]:
    """Name the products with stacked matrices: ONNX Runtime makes them with a scale a channel, and cannot run them."""
    stacked = {each.name for each in model.graph.initializer if len(each.dims) > 2}
    return [node.name for node in model.graph.node if node.op_type == "MatMul" and stacked.intersection(node.input)]


class Batches:
    """Samples batch by batch, in the way that ONNX Runtime asks for them."""

    def __init__(self, samples: Inputs) -> None:
        self.rest = batches(samples)

    def get_next(self) -> dict[str, Inputs] | None:
        """Give a batch, None at the end."""
        return next(self.rest, None)


def batches(samples: Inputs) -> Iterator[dict[str, Inputs]]:
    """Split samples into batches by the name of the graph's input."""
    for start in range(0, len(samples), BATCH):
        yield {INPUT: samples[start : start + BATCH]}
