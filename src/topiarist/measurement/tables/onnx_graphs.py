"""ONNX graphs of one layer each, in float32 or with the 8 bits of `export_onnx(int8=True)`."""

from typing import Any

import numpy
from numpy.typing import NDArray

from topiarist.measurement.tables.geometry import Geometry
from topiarist.storage.onnx_export import onnx_tool

OPSET, IR = 18, 9
SCALE, WEIGHT_SCALE, LARGEST = 0.02, 0.01, 63  # steps for numbers of about 1; weights have 7 bits
Array = NDArray[Any]


def input_shape(geometry: Geometry, inputs: int) -> tuple[int, ...]:
    """Return the shape of what a layer reads: rows of several positions are those of one sample."""
    if geometry.kind == "convolution":
        return (1, inputs, *geometry.size)
    rows = geometry.size[0]
    return (1, inputs) if rows == 1 else (1, rows, inputs)


def layer_graph(geometry: Geometry, inputs: int, outputs: int, *, int8: bool) -> bytes:
    """Return a graph of one layer as a file's content."""
    made = _Graph()
    operator, settings, shape, axis = _layer(geometry, inputs, outputs)
    weight = numpy.random.default_rng(0).standard_normal(shape, dtype=numpy.float32)
    biased = geometry.bias and operator != "MatMul"
    if int8:
        taken = made.quantised("x")
        kernel = made.weight_in_8_bits("weight", weight, axis)
        bias = [made.bias_in_32_bits("bias", outputs)] if biased else []
    else:
        taken, kernel = "x", made.constant("weight", weight)
        bias = [made.constant("bias", numpy.zeros(outputs, numpy.float32))] if biased else []
    ends_in_8_bits = int8 and geometry.kind == "convolution"  # dense layers answer in float32
    made.add(operator, [taken, kernel, *bias], "answer", **settings)
    made.add("Identity", [made.quantised("answer")] if ends_in_8_bits else ["answer"], "y")
    return made.content(input_shape(geometry, inputs))


def _layer(geometry: Geometry, inputs: int, outputs: int) -> tuple[str, dict[str, Any], tuple[int, ...], int]:
    """Return the operator, its settings, the shape of its weight and the axis of its outputs there."""
    if geometry.kind == "linear":
        if geometry.size[0] == 1:
            return "Gemm", {"transB": 1}, (outputs, inputs), 0
        return "MatMul", {}, (inputs, outputs), 1
    groups = geometry.groups_at(outputs)
    settings = {
        "kernel_shape": geometry.kernel,
        "strides": geometry.stride,
        "pads": (*geometry.padding, *geometry.padding),
        "dilations": geometry.dilation,
        "group": groups,
    }
    if geometry.transposed:
        shape = (inputs, outputs // groups, *geometry.kernel)
        return "ConvTranspose", {**settings, "output_padding": geometry.output_padding}, shape, 1
    return "Conv", settings, (outputs, inputs // groups, *geometry.kernel), 0


class _Graph:
    """Nodes and constants so far."""

    def __init__(self) -> None:
        self.helper, self.arrays = onnx_tool("onnx.helper"), onnx_tool("onnx.numpy_helper")
        self.float32 = onnx_tool("onnx").TensorProto.FLOAT
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, operator: str, inputs: list[str], output: str, **settings: Any) -> str:
        self.nodes.append(self.helper.make_node(operator, inputs, [output], name=output, **settings))
        return output

    def constant(self, name: str, values: Array) -> str:
        self.constants.append(self.arrays.from_array(values, name))
        return name

    def quantised(self, name: str) -> str:
        """Round to 8 bits and back, which the runtime makes a kernel of 8 bits of."""
        scale = self.constant(f"{name} scale", numpy.array(SCALE, numpy.float32))
        zero = self.constant(f"{name} zero", numpy.array(128, numpy.uint8))
        rounded = self.add("QuantizeLinear", [name, scale, zero], f"{name} rounded")
        return self.add("DequantizeLinear", [rounded, scale, zero], f"{name} back")

    def weight_in_8_bits(self, name: str, values: Array, axis: int) -> str:
        codes = numpy.clip(values / WEIGHT_SCALE, -LARGEST, LARGEST).astype(numpy.int8)
        return self._per_channel(name, codes, axis, WEIGHT_SCALE)

    def bias_in_32_bits(self, name: str, outputs: int) -> str:
        return self._per_channel(name, numpy.zeros(outputs, numpy.int32), 0, SCALE * WEIGHT_SCALE)

    def _per_channel(self, name: str, codes: Array, axis: int, step: float) -> str:
        count = codes.shape[axis]
        parts = [
            self.constant(f"{name} codes", codes),
            self.constant(f"{name} scale", numpy.full(count, step, numpy.float32)),
            self.constant(f"{name} zero", numpy.zeros(count, codes.dtype)),
        ]
        return self.add("DequantizeLinear", parts, name, axis=axis)

    def content(self, shape: tuple[int, ...]) -> bytes:
        helper = self.helper
        x = helper.make_tensor_value_info("x", self.float32, shape)
        y = helper.make_tensor_value_info("y", self.float32, None)
        graph = helper.make_graph(self.nodes, "layer", [x], [y], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
        written: bytes = model.SerializeToString()
        return written
