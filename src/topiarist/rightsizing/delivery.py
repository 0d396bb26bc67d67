"""Writes what came of a rightsizing: the networks, as files of ours and as ONNX, timed where it will be used."""

from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from topiarist.errors import MissingExtraError, ModelError
from topiarist.measurement.latency import in_turn
from topiarist.measurement.onnx_latency import time_onnx
from topiarist.rightsizing.known import BASELINE
from topiarist.rightsizing.record import ratio
from topiarist.rightsizing.rightsize import Rightsizing
from topiarist.rightsizing.wording import sentence
from topiarist.storage import export_onnx, save

MODEL_FILE, BASELINE_FILE, ONNX_FILE = "model.safetensors", "baseline.safetensors", "model.onnx"


def deliver(result: Rightsizing, folder: str | Path, *, onnx: bool = True) -> dict[str, Any]:
    """Save the network and the baseline in a folder, export the network, and give the record with what is known then.

    Where the extra for ONNX is missing, or the network cannot be exported, the record says so among its notes.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    save(result.baseline, place / BASELINE_FILE, data=result.data)
    save(result.model, place / MODEL_FILE, data=result.data)
    record = deepcopy(result.record)
    record["exports"] |= {"model": MODEL_FILE, "baseline": BASELINE_FILE}
    if onnx:
        try:
            add_onnx(record, result, place)
        except (MissingExtraError, ModelError) as error:
            record["plan"]["notes"].append(f"no ONNX file: {error}")
    return record


def add_onnx(record: dict[str, Any], result: Rightsizing, place: Path) -> None:
    """Export both networks, keep the file of the new one, and add sizes and times to the record."""
    after = export_onnx(result.model, place / ONNX_FILE, data=result.data)
    with TemporaryDirectory() as elsewhere:
        unused = Path(elsewhere) / ONNX_FILE
        before = export_onnx(result.baseline, unused, data=result.data)
        files = {BASELINE: unused, record["verdict"]["chosen"]: after.path}
        timed = in_turn({name: partial(time_onnx, path) for name, path in files.items()})
    times = {name: latency.median_ms for name, latency in timed.items()}
    sizes = {BASELINE: before.file_kb, record["verdict"]["chosen"]: after.file_kb}
    for network in record["networks"]:
        if network["id"] in times:
            network |= {"onnx_latency_ms": times[network["id"]], "onnx_kb": sizes[network["id"]]}
    record["exports"] |= {
        "onnx": ONNX_FILE,
        "onnx_difference": after.largest_difference,
        "onnx_samples": after.samples,
    }
    record["gains"] |= gains_in_onnx(times, sizes, record["verdict"]["chosen"])
    record["verdict"]["sentence"] = sentence(record)


def gains_in_onnx(times: Mapping[str, float], sizes: Mapping[str, float], chosen: str) -> dict[str, float | None]:
    """Give how many times faster and smaller the network is as ONNX."""
    return {
        "onnx_latency": ratio(times[BASELINE], times[chosen]),
        "onnx_size": ratio(sizes[BASELINE], sizes[chosen]),
    }
