"""A network as an ONNX file that needs no Python: raw samples in; logits and probabilities, or numbers, out.

The packages of the extra `onnx` are imported where they are used.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from topiarist.data import Data
from topiarist.data.extras import import_extra
from topiarist.errors import DataError, ModelError, SettingsError, first_line
from topiarist.models.copying import copied
from topiarist.storage.cells import CODE, Cells, cell_inputs, with_cells
from topiarist.storage.deployable import Inputs
from topiarist.storage.exporting import Export, place_for, quietly, some_inputs, trace, write_compared
from topiarist.storage.flat import INPUT, FlatNetwork, single_argument
from topiarist.storage.trial import RawSamples, Trial, make_trial

LAYERS, DENSE = ["Conv", "Gemm", "MatMul"], ["Gemm", "MatMul"]
CALIBRATION_BATCH = 64
ERRORS_ARE_RAISED = 4  # and not shown as well


def export_onnx(
    model: nn.Module,
    path: str | Path,
    *,
    data: Data | None = None,
    samples: RawSamples | None = None,
    int8: bool = False,
) -> Export:
    """Write a network with its preprocessing as one `.onnx` file, after its answers were compared with torch's.

    Parameters
    ----------
    model
        A network whose forward depends neither on values nor on how many samples there are; it is left as it was. One
        that returns (n_samples, n_outputs) gets a file of logits and probabilities, or numbers. Of any other, the file
        returns every tensor in the tuples, lists and mappings that forward returns, by the keys there, or as
        `output_0`, `output_1`, …
    path
        The file, which ends in `.onnx`.
    data
        Where classes and preprocessing come from; without it, they are those on the network's card. The answers
        compared are those for its test part.
    samples
        Raw samples (n_samples, …) to compare answers on instead; without them and without data, random numbers are.
        Of a network of several inputs: a tuple of tensors, one per argument, or a mapping by name; nested ones, too.
        The file's inputs are called like the arguments. Tensors of unlike lengths are one sample as a whole.
    int8
        Layers compute in 8 bits, with ranges from the training part or from `samples`.

    Returns
    -------
    Export
        The file's size, its input, and how far its answers are from torch's.

    Raises
    ------
    MissingExtraError
        If the packages of the extra `onnx` are not installed.
    ModelError
        If the network cannot be exported, or the export does not compute what torch does; nothing is written then.
    DataError
        If the samples cannot be read, or `int8` has none to learn ranges from.

    Examples
    --------
    >>> import tempfile
    >>> from topiarist import export_onnx, models
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_onnx(models.mlp([4, 8, 3]), f"{folder}/model.onnx").agreement
    1.0
    """
    place = place_for(path, ".onnx")
    for tool in ("onnx", "onnxscript", "onnxruntime"):
        onnx_tool(tool)
    trial, bits = make_trial(model, data, samples), 8 if int8 else 32
    if int8 and trial.calibration is None:
        raise DataError("8 bits need real samples to learn ranges from: give data or samples")
    module = trial.module
    if isinstance(module, FlatNetwork):
        inputs = module.arguments.names if trial.answers is not None and trial.answers.batched else ()
        axes = (*inputs, *module.per_sample)
        graph = graph_of(trace(trial), module.outputs, inputs=module.arguments.names, per_sample=axes)
    else:
        graph = graph_of(trace(trial), module.outputs)
    if trial.calibration is not None and int8:
        graph = to_int8(graph, trial.calibration)
    if trial.cells is not None:
        graph = with_cells(graph, trial.columns, old=INPUT)
        form = replace(trial.form, kind="cells", columns=(), inputs=cell_inputs(trial.columns))
        trial = replace(trial, form=form)
    content = _serialised(graph, trial, bits)
    session, given = Session(content), trial.inputs if trial.cells is None else trial.cells
    return write_compared(
        lambda rows: session(some_inputs(given, rows)), trial, place=place, content=content, bits=bits
    )


def onnx_content(model: nn.Module, sample: Tensor, *, int8: bool = False) -> bytes:
    """Return a network alone, without preprocessing, as the content of an ONNX file; to be timed rather than kept.

    In 8 bits, ranges are those that the sample (1, …) shows.
    """
    network = copied(model).cpu().float().eval().requires_grad_(False)
    example = sample.new_zeros((2, *sample.shape[1:]))
    flat = FlatNetwork(network, single_argument(network))
    flat.learn_outputs([example], batched=True)
    with quietly("torch.export cannot follow the network"):
        program = torch.export.export(flat, (example,), dynamic_shapes=(({0: Dim.DYNAMIC},),))
    graph = graph_of(program, flat.outputs, per_sample=(INPUT, *flat.per_sample))
    content: bytes = (to_int8(graph, sample.numpy()) if int8 else graph).SerializeToString()
    return content


def graph_of(
    program: ExportedProgram,
    outputs: Sequence[str],
    *,
    inputs: Sequence[str] = (INPUT,),
    per_sample: Sequence[str] | None = None,
) -> Any:
    """Return a traced network as an ONNX graph; batch norm is folded into the layer before it.

    The first axis of inputs and outputs that have a row `per_sample`, which all have unless they are named, is called
    so.
    """
    with quietly("the network cannot be exported"):
        converted = torch.onnx.export(
            program, dynamo=True, verbose=False, external_data=False, input_names=inputs, output_names=outputs
        )
        assert converted is not None
        model = _trimmed(converted.model_proto)
    for place in (*model.graph.input, *model.graph.output):
        if per_sample is None or place.name in per_sample:
            place.type.tensor_type.shape.dim[0].dim_param = "samples"
    return model


def onnx_tool(module: str) -> Any:
    """Import one of `onnx`, `onnxscript` and `onnxruntime`, or of their parts."""
    return import_extra(module, what="ONNX export", extra="onnx")


def _trimmed(model: Any) -> Any:
    """Leave out where each number was computed in whose source file, which no runtime needs."""
    graph = model.graph
    for described in (*graph.node, *graph.input, *graph.output, *graph.initializer, graph):
        described.ClearField("metadata_props")
        described.ClearField("doc_string")
    graph.ClearField("value_info")
    return model


def _serialised(model: Any, trial: Trial, bits: int) -> bytes:
    """Return the file's content: the graph, and as metadata what goes in and what comes out, as far as it is known."""
    form = trial.form
    lists: dict[str, Any] = {"preprocessing": form.preprocessing, "columns": form.columns, "classes": trial.classes}
    lists["inputs"] = [asdict(each) for each in form.inputs]
    if trial.task is not None and trial.classes is None:
        lists["task"] = trial.task.to_record()
    notes = {"input": form.kind} | {name: json.dumps(found) for name, found in lists.items() if found}
    if any(each.reads in ("date parts", "text place") for each in form.inputs):
        notes["code"] = CODE
    model.producer_name, model.producer_version = "topiarist", version("topiarist")
    onnx_tool("onnx.helper").set_model_props(model, notes | {"bits": str(bits)})
    content: bytes = model.SerializeToString(deterministic=True)
    return content


def to_int8(model: Any, samples: Inputs | Cells) -> Any:
    """Return a graph that computes its convolutions and dense layers in 8 bits.

    Weights use 7 of them, with one scale per channel, and activations the ranges that real samples show; ONNX Runtime
    does it after Jacob et al., Quantization and training of neural networks for efficient integer-arithmetic-only
    inference (2018). Dense layers answer in float32, so that close classes stay apart; preprocessing, in float64, is
    left alone. A processor without VNNI adds two products in 16 bits, which the eighth bit would overflow: the file is
    to give the same answers everywhere.
    """
    tools, onnx = onnx_tool("onnxruntime.quantization"), onnx_tool("onnx")
    # ONNX Runtime makes products with stacked matrices with a scale per channel, and cannot run them.
    stacked = {each.name for each in model.graph.initializer if len(each.dims) > 2}
    products = [node for node in model.graph.node if node.op_type == "MatMul" and stacked.intersection(node.input)]
    with TemporaryDirectory() as folder, quietly("the network cannot be quantised"):
        place = Path(folder) / "int8.onnx"
        tools.quantize_static(
            model,
            place,
            CalibrationReader(samples),
            quant_format=tools.QuantFormat.QDQ,
            op_types_to_quantize=LAYERS,
            nodes_to_exclude=[node.name for node in products],
            per_channel=True,
            reduce_range=True,
            activation_type=tools.QuantType.QUInt8,
            weight_type=tools.QuantType.QInt8,
            extra_options={"OpTypesToExcludeOutputQuantization": DENSE},
        )
        quantised = _trimmed(onnx.load(place))
    if not any(node.op_type == "QuantizeLinear" for node in quantised.graph.node):
        raise ModelError("the network has no layer that ONNX Runtime computes in 8 bits")
    return quantised


class CalibrationReader:
    """Samples batch by batch, in the way that ONNX Runtime asks for them."""

    def __init__(self, samples: Inputs | Cells) -> None:
        given = {INPUT: samples} if isinstance(samples, numpy.ndarray) else samples
        counts = {len(x) if x.ndim else 0 for x in given.values()}
        most = max(counts) if len(counts) == 1 else 1  # of unlike lengths: one sample as a whole
        step = CALIBRATION_BATCH if len(counts) == 1 else None
        starts = range(0, most, step or 1)
        self.rest = iter([some_inputs(given, slice(start, step and start + step)) for start in starts])

    def get_next(self) -> Inputs | Cells | None:
        """Return a batch by the names of the graph's inputs, None at the end."""
        return next(self.rest, None)


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
            name = str(file) if isinstance(file, Path) else "the export"
            raise ModelError(f"ONNX Runtime cannot read {name}: {first_line(error)}") from error
        self.inputs = self.session.get_inputs()

    def __call__(self, samples: Inputs | Cells) -> list[Inputs]:
        """Return the outputs for a batch of samples: one array, or one per column where the file reads cells."""
        given = {self.inputs[0].name: samples} if isinstance(samples, numpy.ndarray) else samples
        try:
            outputs: list[Inputs] = self.session.run(None, given)
        except Exception as error:
            count = len(next(iter(given.values())))
            raise ModelError(f"ONNX Runtime cannot run {count} samples: {first_line(error)}") from error
        return outputs

    @property
    def sample(self) -> Inputs | Cells:
        """Return a sample of zeros (1, *shape), or of gaps in text, of the types that the file asks for."""
        types: dict[str, Any] = {"tensor(float)": numpy.float32, "tensor(double)": numpy.float64}
        types |= {"tensor(string)": object, "tensor(bool)": bool, "tensor(int32)": numpy.int32}
        zeros = {
            each.name: numpy.full(
                [size if isinstance(size, int) else 1 for size in each.shape],
                "" if "string" in each.type else 0,
                types.get(each.type, "i8"),
            )
            for each in self.inputs
        }
        return next(iter(zeros.values())) if len(zeros) == 1 else zeros
