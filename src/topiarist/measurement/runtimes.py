"""A network in a runtime: torch, or ONNX Runtime in float32 or in 8 bits; run and timed on some threads."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.measurement.budget import Runtime
from topiarist.measurement.cost import runner
from topiarist.measurement.latency import REPEATS, Latency, time_calls, time_sample
from topiarist.measurement.tables.timing import Call, clock_for, in_bursts
from topiarist.models.evaluation import evaluating, numbers_of
from topiarist.storage.onnx_export import Session, onnx_content
from topiarist.threads import torch_threads
from topiarist.tracing import Inputs

ROUNDS, BURST_SECONDS, MOST_CALLS = 12, 0.02, 1000  # of one network


def time_network(
    model: nn.Module,
    example: Inputs,
    *,
    runtime: Runtime = "torch",
    repeats: int = REPEATS,
    threads: int = 1,
    rounds: int = 1,
) -> Latency:
    """Time a network in a runtime on an example of one sample, as `time_calls` does; of rounds the fastest counts."""
    if runtime == "torch":
        found = [time_sample(model, example, repeats=repeats, threads=threads) for _ in range(rounds)]
    else:
        call = onnx_call(model, example, runtime=runtime, threads=threads)
        found = [time_calls(call, clock_for(threads), repeats=repeats) for _ in range(rounds)]
    return min(found, key=lambda timed: timed.median_ms)


def network_call(model: nn.Module, example: Inputs, *, runtime: Runtime = "torch", threads: int = 1) -> Call:
    """Return a function that runs a network, put in evaluation mode, in a runtime on an example of one sample."""
    if runtime != "torch":
        return onnx_call(model, example, runtime=runtime, threads=threads)
    run, device = runner(model.eval(), example), numbers_of(model).device

    def call() -> None:
        run()
        if device.type != "cpu":  # a device works on its own: wait for it
            torch.accelerator.synchronize(device)

    return call


def time_together(calls: Sequence[Call], *, threads: int = 1, device: str = "cpu", rounds: int = ROUNDS) -> list[float]:
    """Return the milliseconds of several networks, timed in turn in short rounds; the fastest round counts."""
    with torch_threads(threads), torch.no_grad():
        clock = clock_for(threads, device)
        found = in_bursts(calls, clock, rounds=rounds, burst_seconds=BURST_SECONDS, most=MOST_CALLS)
    return [1000 * seconds for seconds in found]


def onnx_call(model: nn.Module, example: Inputs, *, runtime: Runtime, threads: int) -> Call:
    """Return a function that runs a network in ONNX Runtime; in 8 bits, ranges are those of the example.

    Ranges change the answers, not the time.
    """
    if not isinstance(example, Tensor):
        raise ModelError(f"a latency in {runtime} is for networks that read one tensor; this one reads several")
    sample = example[:1].detach().cpu()
    with evaluating(model):
        session = Session(onnx_content(model, sample, int8=runtime == "onnx-int8"), threads=threads)
    x = sample.numpy()
    return lambda: session(x)
