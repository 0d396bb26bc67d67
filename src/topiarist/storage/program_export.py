"""A network as a `.pt2` file of `torch.export`, which torch runs without the code of its class.

The comparison loads what it has just written, in memory; no such file of others is ever loaded.
"""

import json
from dataclasses import asdict
from io import BytesIO
from pathlib import Path

import torch
from torch import nn

from topiarist.data import Data
from topiarist.files import write_atomically
from topiarist.storage.export_record import Export, compared, place_for
from topiarist.storage.export_samples import Samples
from topiarist.storage.input_form import Inputs
from topiarist.storage.traced import quietly, trace
from topiarist.storage.trial import make_trial

NOTES = "topiarist.json"


def export_program(
    model: nn.Module, path: str | Path, *, data: Data | None = None, samples: Samples | None = None
) -> Export:
    """Write a network with its preprocessing as one `.pt2` file, compared with torch as `export_onnx` does.

    `torch.export.load(path).module()` reads samples as the ONNX file does and gives logits and probabilities.
    """
    place = place_for(path, ".pt2")
    trial = make_trial(model, data, samples)
    known = asdict(trial.form) | {"classes": trial.classes}
    program, stream = trace(trial.module, trial.inputs), BytesIO()
    with quietly("the network cannot be exported"):
        torch.export.save(program, stream, extra_files={NOTES: json.dumps(known)})
        stream.seek(0)
        loaded = torch.export.load(stream).module()

    def run(inputs: Inputs) -> list[Inputs]:
        with torch.no_grad():
            return [output.numpy() for output in loaded(torch.from_numpy(inputs))]

    export = compared(run, trial, place=place, content=stream.getvalue(), bits=32)
    write_atomically(place, stream.getvalue())
    return export
