"""How long the two thin layers of a factorisation take in the place of one."""

from dataclasses import replace

from topiarist.measurement.tables.layer_times import LayerTimes
from topiarist.measurement.tables.network_layers import NetworkLayer


def thin_milliseconds(layer: NetworkLayer, inputs: int, outputs: int, rank: int, table: LayerTimes) -> float:
    """Return the time of `narrow`, which reads what the layer read, and of `wide`, which stands at one position."""
    geometry = layer.geometry
    most = min(inputs, outputs)
    narrow = table.surface(replace(geometry, bias=False), inputs, most, free=(False, True))
    ones = (1,) * len(geometry.kernel)
    at_one_position = replace(
        geometry,
        size=layer.places,
        kernel=ones,
        stride=ones,
        dilation=ones,
        padding=(0,) * len(ones),
    )
    wide = table.surface(at_one_position, most, outputs, free=(True, False))
    seconds = float(narrow.at(inputs, rank)) + float(wide.at(rank, outputs))
    return 1000 * layer.times * seconds
