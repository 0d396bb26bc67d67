"""What a network takes, whatever it is worth: parameters, bytes, arithmetic, time. What is tied is counted once."""

import math
from dataclasses import asdict, dataclass
from itertools import chain

from torch import nn

from topiarist.data import Data
from topiarist.files import BYTES_PER_KB, JsonObject
from topiarist.measurement.budget import Runtime
from topiarist.measurement.cost import count_macs
from topiarist.measurement.latency import REPEATS
from topiarist.measurement.runtimes import time_network
from topiarist.models.evaluation import count_parameters
from topiarist.storage import serialise
from topiarist.tracing import Inputs


@dataclass(frozen=True, kw_only=True)
class Footprint:
    """Size in KB of 1024 bytes; multiply-accumulates and milliseconds for one sample.

    Latency is the median over repeats in a `runtime` on `threads` threads, its spread the interquartile range; both are
    None where it was not timed. `file_kb` is NaN where no one asked for it.
    """

    parameters: int
    nonzero: int
    memory_kb: float
    file_kb: float
    macs: int
    latency_ms: float | None = None
    latency_spread_ms: float | None = None
    threads: int = 1
    runtime: Runtime = "torch"

    def to_json(self) -> JsonObject:
        """Return plain numbers; one that is not finite, as the loss of a network that diverged, becomes None."""
        return {
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in asdict(self).items()
        }


def footprint(
    model: nn.Module,
    example: Inputs,
    *,
    data: Data | None = None,
    latency: bool = False,
    repeats: int = REPEATS,
    threads: int = 1,
    runtime: Runtime = "torch",
    rounds: int = 1,
    file_bytes: float | None = None,
) -> Footprint:
    """Weigh a network on an example input of one sample; its file is, unless given, the one that `save` would write.

    Of several rounds of timing, the fastest counts.
    """
    timed = None
    if latency:
        timed = time_network(model, example, runtime=runtime, repeats=repeats, threads=threads, rounds=rounds)
    return Footprint(
        parameters=count_parameters(model),
        nonzero=sum(int(parameter.detach().count_nonzero()) for parameter in model.parameters()),
        memory_kb=sum(tensor.nbytes for tensor in chain(model.parameters(), model.buffers())) / BYTES_PER_KB,
        file_kb=(len(serialise(model, data=data)) if file_bytes is None else file_bytes) / BYTES_PER_KB,
        macs=count_macs(model, example),
        latency_ms=None if timed is None else timed.median_ms,
        latency_spread_ms=None if timed is None else timed.spread_ms,
        threads=threads,
        runtime=runtime,
    )
