"""Windows that slide over an image, taken apart into columns and put together again."""

import math

import numpy

from topiarist.tracing.operation import Operation, rule_for
from topiarist.tracing.remedies import CHANNELS

_ALONG = "windows slide along them"


@rule_for("im2col")
def take_apart(operation: Operation) -> None:
    """List the positions of windows channel by channel: 3 × 3 of (…, 8, height, width) are (…, 8 · 9, windows)."""
    *outer, channels, height, width = operation.axes(operation.inputs[0])
    operation.fix(height, _ALONG, CHANNELS)
    operation.fix(width, _ALONG, CHANNELS)
    positions = math.prod(operation.arguments["kernel_size"])
    operation.give([*outer, None if channels is None else numpy.repeat(channels, positions, axis=0), None])


@rule_for("col2im")
def put_together(operation: Operation) -> None:
    """Add up what windows have at each place of an image, channel by channel."""
    *outer, columns, windows = operation.axes(operation.inputs[0])
    operation.fix(windows, _ALONG, CHANNELS)
    positions = math.prod(operation.arguments["kernel_size"])
    channels, within = operation.split(columns, [operation.inputs[0].shape[-2] // positions, positions])
    operation.fix(within, "they are the positions of a window", CHANNELS)
    operation.give([*outer, channels, None, None])


@rule_for("grid_sampler_2d", "grid_sampler_3d", "_grid_sampler_2d_cpu_fallback", "cudnn_grid_sampler")
def sample_at(operation: Operation) -> None:
    """Read images between their places, where a grid says: each channel by itself, at the same places."""
    (samples, channels, *places), grid = map(operation.axes, operation.inputs[:2])
    for vector in places:
        operation.fix(vector, "a grid says where they are read", CHANNELS)
    operation.fix(grid[-1], "they say where an image is read")
    operation.tie(samples, grid[0])
    operation.give([samples, channels, *grid[1:-1]])
