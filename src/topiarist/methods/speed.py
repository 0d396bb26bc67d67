"""Whether a smaller network would be faster, before it is made."""

from collections.abc import Mapping

from torch import nn

from topiarist.measurement.runtimes import network_call, time_together
from topiarist.measurement.tables.prediction import skeleton
from topiarist.methods.job import Request
from topiarist.models.copying import copied
from topiarist.models.evaluation import numbers_of

FASTER = 0.98  # times as long as the whole network, or less: the clock tells no smaller difference
ROUNDS = 4  # for one line


def not_faster(request: Request, widths: Mapping[str, int]) -> tuple[str, ...]:
    """Return one line that says so where a network of some widths takes as long as the one at hand; else none.

    A network of that shape, without trained weights, is timed beside it; only where latency is measured at all.
    """
    job, free = request.job, request.anatomy.free
    if not job.times_latency or all(widths.get(name, space.size) >= space.size for name, space in free.items()):
        return ()
    small = skeleton(request.model, request.anatomy, widths)
    if small is None:
        return ()
    whole_ms, small_ms = _timed(request, small)
    if small_ms <= FASTER * whole_ms:
        return ()
    where = f"{job.runtime}, {job.threads} thread{'' if job.threads == 1 else 's'}"
    times = f"a network of these widths takes {small_ms:.3g} ms per sample, this one {whole_ms:.3g} ms"
    return (f"smaller but not faster: {times} ({where})",)


def _timed(request: Request, small: nn.Module) -> tuple[float, float]:
    job = request.job
    calls = [
        network_call(network, job.sample, runtime=job.runtime, threads=job.threads)
        for network in (copied(request.model), small)
    ]
    device = numbers_of(small).device.type if job.runtime == "torch" else "cpu"
    whole_ms, small_ms = time_together(calls, threads=job.threads, device=device, rounds=ROUNDS)
    return whole_ms, small_ms
