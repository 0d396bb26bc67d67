"""A trained network to go on from, and data in the shape that it reads."""

import warnings
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

    from topiarist.data import Data


def as_base_reads(network: "nn.Module", task: "Data", **how: Any) -> "Data":
    """Return the data as the base reads them: images of another size or number of channels are resized.

    `how` is as in `Data.from_source`. Where the base reads the samples as they are, so are the data.
    """
    import math

    from topiarist.data import Data
    from topiarist.data.resizing import resized
    from topiarist.errors import TopiaristWarning
    from topiarist.training.transfer import shape_to_read

    shape = shape_to_read(network, task.input_shape)
    if shape == task.input_shape or task.source is None:
        return task
    if math.prod(shape) == math.prod(task.input_shape):
        source, how = task.source, {**how, "input_shape": shape}
    else:
        source, how = resized(task.source, shape), {**how, "input_shape": None}
        warnings.warn(source.notes[-1], TopiaristWarning, stacklevel=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TopiaristWarning)  # all else was said when the data were read
        return Data.from_source(source, **how)
