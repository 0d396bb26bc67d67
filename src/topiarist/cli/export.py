"""`topiarist export`: a saved network as a file for ONNX Runtime or for torch alone."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topiarist.cli.options import DATA_FORMS, AsJson, Group, Into, ModelFile, Target
from topiarist.cli.output import emit, metric_word, print_rows, shown_metric, waiting
from topiarist.files import JsonObject

if TYPE_CHECKING:
    from torch import nn

OF_DATA = f"{DATA_FORMS} Its samples check the file; without DATA, random numbers do."
READS = {
    "raw": "raw samples",
    "encoded": "columns of a table, text as 0 and 1 for each category, dates as their parts",
    "cells": "the cells of a table, one input per column: text as text, numbers as numbers",
    "preprocessed": "preprocessed samples",
}


def export_command(
    model: ModelFile,
    data: Annotated[str | None, typer.Argument(metavar="DATA", help=OF_DATA)] = None,
    onnx: Annotated[Path | None, typer.Option("--onnx", help="The .onnx file to write.")] = None,
    int8: Annotated[
        bool, typer.Option("--int8", help="Compute in 8 bits in the .onnx file; needs DATA for the ranges of values.")
    ] = False,
    torch: Annotated[
        Path | None, typer.Option("--torch", help="The .pt2 file to write, for torch.export.load.")
    ] = None,
    target: Target = None,
    group: Group = None,
    into: Into = None,
    as_json: AsJson = False,
) -> None:
    """Write a network with its preprocessing as a file that needs neither topiarist nor its code.

    Example: topiarist export digits.safetensors digits --onnx digits.onnx

    The file reads raw samples, any number at once, and returns logits and probabilities, or numbers in the units of
    the training data. Before it is written, its
    answers are compared with those of torch on the test part of DATA, or on random numbers.
    """
    check_options(model, data, onnx, torch, int8=int8)
    from topiarist.cli.loading import load_network, task_for
    from topiarist.measurement import export_int8
    from topiarist.measurement.latency import time_onnx
    from topiarist.storage import export_onnx, export_program

    network = load_network(model, into)
    task = None if data is None else task_for(network, data, target=target, group=group)
    result: JsonObject = {"model": str(model), "data": data}
    if onnx is not None:
        with waiting("ONNX"):
            if int8:
                result["onnx"] = export_int8(network, onnx, data=task).to_json()
            else:
                result["onnx"] = export_onnx(network, onnx, data=task).to_json()
                result["onnx"]["latency_ms"] = time_onnx(onnx).median_ms
    if torch is not None:
        with waiting("torch.export"):
            result["torch"] = export_program(network, torch, data=task).to_json()
    result["latency_ms"] = torch_latency(network)
    emit(result, as_json=as_json, show=show_exports)


def check_options(model: Path, data: str | None, onnx: Path | None, torch: Path | None, *, int8: bool) -> None:
    """Refuse a call that asks for no file, or for a file that cannot be made."""
    from topiarist.errors import SettingsError
    from topiarist.files import check_place

    if onnx is None and torch is None:
        raise SettingsError("name a file to write: --onnx FILE.onnx, --torch FILE.pt2, or both")
    if int8 and onnx is None:
        raise SettingsError("--int8 belongs to the ONNX file: name it with --onnx")
    if int8 and data is None:
        raise SettingsError("--int8 needs DATA, whose training part shows the ranges of values")
    for option, place, suffix in (("--onnx", onnx, ".onnx"), ("--torch", torch, ".pt2")):
        if place is not None and place.suffix != suffix:
            raise SettingsError(f"{option} must end in {suffix}; found '{place}'")
        if place is not None:
            check_place(place, inputs=(model, *(() if data is None else (data,))))


def torch_latency(network: "nn.Module") -> float:
    """Time the network alone in torch, as `measure` does."""
    from torch import zeros

    from topiarist.measurement.latency import time_sample
    from topiarist.models import card_of
    from topiarist.storage.trial import input_shape

    return time_sample(network, zeros(1, *input_shape(network, card_of(network)))).median_ms


def show_exports(result: JsonObject) -> None:
    """Print the files and how they compare with torch, as a table."""
    rows = {"model": result["model"], "data": result["data"] or "none"}
    for name, label in (("onnx", "ONNX"), ("torch", "torch.export")):
        if name in result:
            rows |= export_rows(result[name], label)
    latency = f"{result['latency_ms']:.3f} ms per sample for the network in torch"
    if "onnx" in result:
        latency += f", {result['onnx']['latency_ms']:.3f} ms for the file in ONNX Runtime"
    print_rows(rows | {"latency": f"{latency} (1 thread)"})


def export_rows(export: JsonObject, label: str) -> dict[str, str]:
    """Return a file in words."""
    form, shape = export["input"], " x ".join(map(str, export["input"]["shape"]))
    rows = {
        label: f"{export['path']}, {export['file_kb']:.1f} KB, {export['bits']} bits",
        f"{label} reads": f"{READS[form['kind']]}, each {shape} of {form['type']}",
        f"{label} compared on": f"{export['samples']} samples: {export['compared_on']}",
        f"{label} against torch": agreement_line(export),
    }
    if export.get("quality") is not None:
        name = export["metric"]
        values = [shown_metric(name, export[side]) for side in ("quality", "quality_in_torch")]
        rows[f"{label} {metric_word(name)}"] = f"{values[0]}, in torch {values[1]}"
    if export.get("accuracy") is not None:
        rows[f"{label} accuracy"] = f"{export['accuracy']:.2%}, in torch {export['accuracy_in_torch']:.2%}"
    if "float32" in export:
        plain = export["float32"]
        rows["beside float32"] = f"{plain['file_kb']:.1f} KB and {plain['latency_ms']:.3f} ms in ONNX Runtime"
    return rows


def agreement_line(export: JsonObject) -> str:
    """Return how far a file is from torch, in words."""
    largest = f"{export['largest_difference']:.2g}"
    if export["agreement"] is None:
        return f"numbers differ by at most {largest} deviations of the training targets"
    what = "labels" if export.get("metric", "accuracy") != "accuracy" else "class"
    return f"the same {what} for {export['agreement']:.2%}, logits differ by at most {largest}"
