"""A network as it is exported, and samples to try the export on."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from topiarist.data import Data
from topiarist.errors import ModelError
from topiarist.models import card_for, card_of
from topiarist.models.copying import copied
from topiarist.storage.deployable import Deployable
from topiarist.storage.export_samples import Samples, find_samples
from topiarist.storage.input_form import InputForm, Inputs, as_inputs, form_of
from topiarist.training.inference import predict_logits


@dataclass(frozen=True, kw_only=True)
class Trial:
    """`inputs` are samples as the file reads them; `logits` (n_samples, n_classes) are what torch answers.

    Torch computes in float32, after `Preprocessing` itself. `labels` and `calibration`, samples to learn ranges from,
    are None where there are no data; `origin` says where the samples are from.
    """

    module: Deployable
    form: InputForm
    classes: tuple[str, ...] | None
    inputs: Inputs
    logits: Tensor
    labels: Tensor | None
    calibration: Inputs | None
    origin: str


def make_trial(model: nn.Module, data: Data | None, samples: Samples | None) -> Trial:
    """Copy a network in float32 and evaluation mode, and ask it for its answers; the network is left as it was."""
    card = card_of(model) if data is None else card_for(model, data)
    found, preprocessing = find_samples(model, card, data, samples), card.preprocessing
    inputs = as_inputs(found.compared, preprocessing)
    network = copied(model).cpu().float().eval().requires_grad_(False)
    logits = predict_logits(network, preprocessing(found.compared) if preprocessing else torch.from_numpy(inputs))
    if not logits.isfinite().all():
        raise ModelError("the network gives numbers that are not finite: an export cannot be compared with it")
    return Trial(
        module=Deployable(network, preprocessing).eval(),
        form=form_of(inputs, preprocessing),
        classes=card.classes,
        inputs=inputs,
        logits=logits,
        labels=found.labels,
        calibration=None if found.calibrating is None else as_inputs(found.calibrating, preprocessing),
        origin=found.origin,
    )
