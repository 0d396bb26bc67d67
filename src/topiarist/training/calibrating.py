"""Temperature scaling of a trained network: its probabilities come to mean what they say."""

from dataclasses import replace

from torch import nn

from topiarist.data import Data
from topiarist.models.card import attach, card_for
from topiarist.tasks.probabilities import ProbabilityTask
from topiarist.training.inference import part_logits, weights_of


def calibrate(model: nn.Module, data: Data) -> float:
    """Fit the temperature of a network on the validation part, and write it on its card.

    `save`, `export_onnx`, `predict` and `measure` then give probabilities of logits / temperature; the network itself
    is not changed. Training it again sets the temperature back to 1.

    Parameters
    ----------
    model : nn.Module
        A network that returns logits of classes or labels; one of numbers has no temperature.
    data : Data
        Its validation part is what the log loss is least on.

    Returns
    -------
    float
        The temperature, with four digits; 1 where the samples do not tell, or there are none.

    Examples
    --------
    >>> from topiarist import TrainConfig, load_data, models, train
    >>> data, model = load_data("iris"), models.mlp([4, 8, 3])
    >>> _ = train(model, data, TrainConfig(epochs=2))
    >>> 0.01 <= calibrate(model, data) <= 100
    True
    """
    card = card_for(model, data)
    if card.task is not None and len(data.validation):
        found = part_logits(model, data.validation)
        card = replace(card, task=card.task.calibrated(*found, weights_of(data.validation)))
    attach(model, card)
    return card.task.temperature if isinstance(card.task, ProbabilityTask) else 1.0
