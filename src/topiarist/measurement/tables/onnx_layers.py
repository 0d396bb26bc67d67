"""One layer in ONNX Runtime, to be timed: its kernel alone, as the runtime's own profile has it.

A graph of one layer also changes layouts and types at its ends, which a whole network does once; the profile tells the
kernel apart from these. It counts whole microseconds, and drops what is left of one.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy

from topiarist.errors import ModelError
from topiarist.measurement.tables.geometry import Geometry
from topiarist.measurement.tables.onnx_graphs import input_shape, layer_graph
from topiarist.measurement.tables.timing import BURST_SECONDS, ROUNDS, burst
from topiarist.measurement.tables.torch_layers import Point
from topiarist.storage.onnx_export import ERRORS_ARE_RAISED, onnx_tool

AT_THE_ENDS = (
    "ReorderInput",
    "ReorderOutput",
    "Transpose",
    "QuantizeLinear",
    "DequantizeLinear",
    "Reshape",
    "Identity",
)
HALF_A_MICROSECOND = 0.5  # is what dropping the rest of one takes away on average
MICROSECONDS = 1_000_000  # in a second
SESSIONS = 64  # that are open at once


class OnnxLayers:
    """Times layers in ONNX Runtime on some threads, in float32 or in 8 bits."""

    def __init__(self, threads: int, *, int8: bool = False) -> None:
        self.threads, self.int8 = threads, int8

    def seconds(self, points: Sequence[Point]) -> list[float]:
        """Return how long the kernels of layers with so many inputs and outputs take."""
        parts = [points[start : start + SESSIONS] for start in range(0, len(points), SESSIONS)]
        return [found for part in parts for found in self._together(part)]

    def _together(self, points: Sequence[Point]) -> list[float]:
        with TemporaryDirectory() as folder:
            sessions = [
                ProfiledLayer(*point, Path(folder) / str(number), threads=self.threads, int8=self.int8)
                for number, point in enumerate(points)
            ]
            for _ in range(ROUNDS):
                for session in sessions:
                    burst(session, BURST_SECONDS)
            return [session.seconds() for session in sessions]


class ProfiledLayer:
    """A graph of one layer, which the runtime profiles as it runs."""

    def __init__(self, geometry: Geometry, inputs: int, outputs: int, place: Path, *, threads: int, int8: bool) -> None:
        runtime = onnx_tool("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, ERRORS_ARE_RAISED
        options.enable_profiling, options.profile_file_prefix = True, str(place)
        content = layer_graph(geometry, inputs, outputs, int8=int8)
        try:
            self.session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime has a class of its own for each
            raise ModelError(f"ONNX Runtime cannot time a {geometry.kind}: {str(error).splitlines()[0]}") from error
        shape = input_shape(geometry, inputs)
        self.x = numpy.random.default_rng(0).standard_normal(shape, dtype=numpy.float32)

    def __call__(self) -> None:
        """Run it once."""
        self.session.run(None, {"x": self.x})

    def seconds(self) -> float:
        """Return how long its kernels take, each as the mean of the faster half of its runs; it cannot run again."""
        runs: defaultdict[str, list[int]] = defaultdict(list)
        for event in json.loads(Path(self.session.end_profiling()).read_text(encoding="utf-8")):
            kernel = event.get("cat") == "Node" and event["name"].endswith("_kernel_time")
            if kernel and event["args"]["op_name"] not in AT_THE_ENDS:
                runs[event["name"]].append(event["dur"])
        fast = [sorted(each)[: max(1, len(each) // 2)] for each in runs.values()]
        return sum(sum(each) / len(each) + HALF_A_MICROSECOND for each in fast) / MICROSECONDS
