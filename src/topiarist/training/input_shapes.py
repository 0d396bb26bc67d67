"""What a trained network reads, found by asking it, so that other data can be brought to it."""

import math

import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.models import card_of
from topiarist.models.copying import copied
from topiarist.models.evaluation import numbers_of

LARGEST = 299  # pixels: the largest input of networks in common use (Inception-v3; most others read 224)


def shape_to_read(model: nn.Module, found: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape in which a network can read samples of the shape `found`: that one, or one of images.

    A network that reads the samples as they are is left to it. Otherwise the shape on its card is taken, or, of images,
    the square nearest in size that the network reads, in grey or in colour. The network is asked without computing
    anything: on torch's meta device, where only shapes are followed.
    """
    shapes_only = copied(model).to("meta").eval()
    if reads(shapes_only, found):
        return found
    known = card_of(model).input_shape
    if known is not None and reads(shapes_only, known) and can_become(found, known):
        return known
    if len(found) == 3:
        for size in sorted(range(1, LARGEST + 1), key=lambda size: (abs(size - found[1]), size)):
            for channels in dict.fromkeys((found[0], 3, 1)):
                if can_become(found, (channels, size, size)) and reads(shapes_only, (channels, size, size)):
                    return channels, size, size
    asked = "" if known is None else f": it was trained on samples of shape {known}"
    raise ModelError(
        f"the network cannot read samples of shape {found}, nor can they be resized to what it reads{asked}"
    )


def can_become(found: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Return whether samples can be seen as, or resized to, another shape."""
    if math.prod(found) == math.prod(shape):
        return True
    return len(found) == len(shape) == 3 and (found[0] == shape[0] or {found[0], shape[0]} == {1, 3})


def reads(model: nn.Module, shape: tuple[int, ...]) -> bool:
    """Return whether a network, on the meta device, takes two samples of a shape."""
    try:
        with torch.no_grad():
            return isinstance(model(numbers_of(model).new_empty(2, *shape)), Tensor)
    except Exception:  # whatever a network says to samples that it cannot read
        return False
