"""A network as an ONNX file that needs no Python: raw samples in, logits and probabilities out."""

from pathlib import Path

from torch import nn

from topiarist.data import Data
from topiarist.errors import DataError
from topiarist.files import write_atomically
from topiarist.storage.export_record import Export, compared, place_for
from topiarist.storage.export_samples import Samples
from topiarist.storage.onnx_graph import convert, serialised
from topiarist.storage.onnx_int8 import quantise
from topiarist.storage.onnx_tools import Session, onnx_tool
from topiarist.storage.traced import trace
from topiarist.storage.trial import make_trial


def export_onnx(
    model: nn.Module,
    path: str | Path,
    *,
    data: Data | None = None,
    samples: Samples | None = None,
    int8: bool = False,
) -> Export:
    """Write a network with its preprocessing as one `.onnx` file, after its answers were compared with torch's.

    Classes and preprocessing are those of `data`, or of the network's card. The answers compared are those for
    `samples`, which are raw, for the test part of `data`, or for random numbers where neither is given. With `int8`,
    layers compute in 8 bits, with ranges from the training part or from `samples`. The network is left as it was.
    """
    place = place_for(path, ".onnx")
    for tool in ("onnx", "onnxscript", "onnxruntime"):
        onnx_tool(tool)
    trial, bits = make_trial(model, data, samples), 8 if int8 else 32
    if int8 and trial.calibration is None:
        raise DataError("8 bits need real samples to learn ranges from: give data or samples")
    graph = convert(trace(trial.module, trial.inputs))
    if trial.calibration is not None and int8:
        graph = quantise(graph, trial.calibration)
    content = serialised(graph, trial.form, trial.classes, bits)
    export = compared(Session(content), trial, place=place, content=content, bits=bits)
    write_atomically(place, content)
    return export
