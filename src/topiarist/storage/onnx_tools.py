"""The packages of the extra `onnx`, imported where they are used, and a file as ONNX Runtime runs it."""

from pathlib import Path
from typing import Any

import numpy

from topiarist.data.extras import import_extra
from topiarist.errors import ModelError, SettingsError
from topiarist.storage.input_form import Inputs

ERRORS_ARE_RAISED = 4  # and not shown as well


def onnx_tool(module: str) -> Any:
    """Import one of `onnx`, `onnxscript` and `onnxruntime`, or of their parts."""
    return import_extra(module, what="ONNX export", extra="onnx")


class Session:
    """A file in ONNX Runtime, on the CPU."""

    def __init__(self, file: bytes | Path, *, threads: int = 1) -> None:
        if threads < 1:
            raise SettingsError(f"threads must be at least 1; found {threads}")
        runtime = onnx_tool("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = ERRORS_ARE_RAISED
        try:
            self.session = runtime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime has a class of its own for each
            raise ModelError(f"ONNX Runtime cannot read {place_of(file)}: {first_line(error)}") from error
        self.input = self.session.get_inputs()[0]

    def __call__(self, inputs: Inputs) -> list[Inputs]:
        """Give the outputs for a batch of samples."""
        try:
            outputs: list[Inputs] = self.session.run(None, {self.input.name: inputs})
        except Exception as error:
            raise ModelError(f"ONNX Runtime cannot run {len(inputs)} samples: {first_line(error)}") from error
        return outputs

    @property
    def sample(self) -> Inputs:
        """Give a sample of zeros (1, *shape) of the type that the file asks for."""
        types = {"tensor(float)": numpy.float32, "tensor(double)": numpy.float64}
        return numpy.zeros((1, *self.input.shape[1:]), types.get(self.input.type, numpy.int64))


def place_of(file: bytes | Path) -> str:
    """Name a file in words."""
    return str(file) if isinstance(file, Path) else "the export"


def first_line(error: Exception) -> str:
    """Give the first line of what ONNX Runtime says."""
    return str(error).split("\n")[0]
