"""Images brought to another size and number of channels, for networks that read others than the data hold."""

from dataclasses import replace
from typing import Any

import numpy
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import interpolate

from topiarist.data.limits import check_size
from topiarist.data.source import Source, is_table
from topiarist.errors import DataError

# How bright the eye sees red, green and blue: ITU-R BT.601, as Pillow turns colour into grey.
_LUMA = (0.299, 0.587, 0.114)
_AT_ONCE = 1024  # images: 1.2 GB of float64 at 224 × 224 in colour


def resized(source: Source, shape: tuple[int, ...]) -> Source:
    """Return the samples of a source as images (channels, height, width) of another shape, with a note of it.

    Grey becomes colour by repeating it, colour becomes grey by brightness; sizes change by bilinear interpolation that
    averages where it makes images smaller. Pixels keep their type: whole numbers are rounded.
    """
    features = source.features
    if is_table(features) or features.ndim != 4 or len(shape) != 3:
        found = "a table" if is_table(features) else f"samples of shape {features.shape[1:]}"
        raise DataError(f"only images can be resized, to {_in_words(shape)}; found {found}")
    before = features.shape[1:]
    if before[0] != shape[0] and {before[0], shape[0]} != {1, 3}:
        raise DataError(
            f"images of {_in_words(before)} cannot become {_in_words(shape)}: only grey (1 channel) and colour (3)"
            " can be made of each other"
        )
    check_size(f"{len(features)} images of {_in_words(shape)}", len(features) * int(numpy.prod(shape)))
    made = numpy.empty((len(features), *shape), dtype=features.dtype)
    for start in range(0, len(features), _AT_ONCE):
        made[start : start + _AT_ONCE] = _resize_some(features[start : start + _AT_ONCE], shape)
    note = f"images of {_in_words(before)} resized to {_in_words(shape)}, which the network reads"
    return replace(source, features=made, notes=(*source.notes, note))


def _resize_some(images: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a batch of images of the shape asked for, in the type that they came in."""
    x: Tensor = torch.from_numpy(numpy.ascontiguousarray(images)).double()
    if x.shape[1] == 3 and shape[0] == 1:
        x = torch.einsum("nchw,c->nhw", x, x.new_tensor(_LUMA)).unsqueeze(1)
    if tuple(x.shape[2:]) != shape[1:]:
        x = interpolate(x, size=shape[1:], mode="bilinear", antialias=True, align_corners=False)
    if x.shape[1] != shape[0]:
        x = x.expand(-1, shape[0], -1, -1)
    whole = numpy.issubdtype(images.dtype, numpy.integer)
    numbers: NDArray[Any] = (x.round() if whole else x).numpy().astype(images.dtype)
    return numbers


def _in_words(shape: tuple[int, ...]) -> str:
    return " × ".join(map(str, shape))
