"""A traced network as an ONNX graph in one piece, with all that its user must know beside it."""

import json
from importlib.metadata import version
from typing import Any

import torch
from torch.export import ExportedProgram

from topiarist.storage.input_form import InputForm
from topiarist.storage.onnx_tools import onnx_tool
from topiarist.storage.traced import quietly

INPUT, OUTPUTS = "input", ("logits", "probabilities")


def convert(program: ExportedProgram) -> Any:
    """Give the graph of a traced network; batch norm is folded into the layer before it."""
    onnx_tool("onnx")
    onnx_tool("onnxscript")
    with quietly("the network cannot be exported"):
        converted = torch.onnx.export(
            program, dynamo=True, verbose=False, external_data=False, input_names=[INPUT], output_names=OUTPUTS
        )
        assert converted is not None
        return trimmed(converted.model_proto)


def trimmed(model: Any) -> Any:
    """Leave out where each number was computed in whose source file, which no runtime needs."""
    graph = model.graph
    for described in (*graph.node, *graph.input, *graph.output, *graph.initializer, graph):
        described.ClearField("metadata_props")
        described.ClearField("doc_string")
    graph.ClearField("value_info")
    for place in (*graph.input, *graph.output):
        place.type.tensor_type.shape.dim[0].dim_param = "samples"
    return model


def notes(form: InputForm, classes: tuple[str, ...] | None) -> dict[str, str]:
    """Give what goes in and what comes out, in words and as JSON lists: what is not known is left out."""
    lists = {"preprocessing": form.preprocessing, "columns": form.columns, "classes": classes}
    return {"input": form.kind} | {name: json.dumps(found) for name, found in lists.items() if found}


def serialised(model: Any, form: InputForm, classes: tuple[str, ...] | None, bits: int) -> bytes:
    """Give the file's content: the graph, and as metadata what goes in and what comes out."""
    model.producer_name, model.producer_version = "topiarist", version("topiarist")
    onnx_tool("onnx.helper").set_model_props(model, notes(form, classes) | {"bits": str(bits)})
    content: bytes = model.SerializeToString(deterministic=True)
    return content
