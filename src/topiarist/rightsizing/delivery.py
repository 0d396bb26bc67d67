"""Writes the result of a rightsizing: the networks, as model files and as ONNX, timed where it will be used."""

from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from topiarist.errors import MissingExtraError, ModelError
from topiarist.measurement.latency import in_turn, time_onnx
from topiarist.memory import return_freed
from topiarist.rightsizing.record import BASELINE, NetworkRecord, RightsizingRecord
from topiarist.rightsizing.recording import ratio, with_sentence
from topiarist.rightsizing.references import LINEAR
from topiarist.rightsizing.result import Rightsizing
from topiarist.storage import export_onnx, save
from topiarist.storage.deployable import InputForm

MODEL_FILE, BASELINE_FILE, ONNX_FILE = "model.safetensors", "baseline.safetensors", "model.onnx"
LINEAR_FILE = "linear.safetensors"


def deliver(result: Rightsizing, folder: str | Path, *, onnx: bool = True) -> RightsizingRecord:
    """Save the network and the baseline in a folder, and export the network as ONNX.

    Where the network without hidden units is as good and smaller, it is saved beside them.

    Parameters
    ----------
    result : Rightsizing
    folder : path
        Made where it is not there.
    onnx : bool
        Whether to export. Where the extra for ONNX is missing, or the network cannot be exported, a note says so.

    Returns
    -------
    RightsizingRecord
        The record with the files, their sizes, and the times in ONNX Runtime.
    """
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    return_freed(cycles=True)  # of the folds and their networks, before what exports networks is loaded
    save(result.baseline, place / BASELINE_FILE, data=result.data)
    save(result.model, place / MODEL_FILE, data=result.data)
    for offer in result.record.verdict.offered:
        save(result.networks[offer.network], place / offer.file, data=result.data)
    exports = result.record.exports.model_copy(update={"model": MODEL_FILE, "baseline": BASELINE_FILE})
    if result.linear_will_do:
        save(result.networks[LINEAR], place / LINEAR_FILE, data=result.data)
        exports = exports.model_copy(update={"linear": LINEAR_FILE})
    record = result.record.model_copy(update={"exports": exports})
    if not onnx:
        return record
    try:
        return _with_onnx(record, result, place)
    except (MissingExtraError, ModelError) as error:
        return record.with_note(f"no ONNX file: {error}")


def encoding_notes(form: InputForm) -> tuple[str, ...]:
    """Return which columns of a table an ONNX file does not read as they are written, and how to encode them."""
    words = {"date parts": "the parts of dates", "text place": "the places of texts"}
    found = [f"{words[each.reads]} in '{each.name}'" for each in form.inputs if each.reads in words]
    if not found:
        return ()
    return (f"{ONNX_FILE} reads {', '.join(found)}: its metadata has the Python code that computes them ('code')",)


def _with_onnx(record: RightsizingRecord, result: Rightsizing, place: Path) -> RightsizingRecord:
    """Export both networks, keep the file of the new one, and add sizes and times to the record."""
    chosen = record.verdict.chosen
    after = export_onnx(result.model, place / ONNX_FILE, data=result.data)
    with TemporaryDirectory() as elsewhere:
        unused = Path(elsewhere) / ONNX_FILE
        before = export_onnx(result.baseline, unused, data=result.data)
        timed = in_turn({BASELINE: partial(time_onnx, unused), chosen: partial(time_onnx, after.path)})
    times = {name: latency.median_ms for name, latency in timed.items()}
    sizes = {BASELINE: before.file_kb, chosen: after.file_kb}
    figures = {"onnx": ONNX_FILE, "onnx_difference": after.largest_difference, "onnx_samples": after.samples}
    gains = {
        "onnx_latency": ratio(times[BASELINE], times[chosen]),
        "onnx_size": ratio(sizes[BASELINE], sizes[chosen]),
    }

    def with_figures(network: NetworkRecord) -> NetworkRecord:
        if network.id not in times:
            return network
        return network.model_copy(update={"onnx_latency_ms": times[network.id], "onnx_kb": sizes[network.id]})

    for note in encoding_notes(after.input):
        record = record.with_note(note)
    return with_sentence(
        record.model_copy(
            update={
                "networks": tuple(map(with_figures, record.networks)),
                "exports": record.exports.model_copy(update=figures),
                "gains": record.gains.model_copy(update=gains),
            }
        )
    )
