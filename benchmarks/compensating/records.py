"""What is written down of each cut: typed, and plain values in JSON."""

from pydantic import Field

from benchmarks.paging.records import Measurement
from topiarist.settings import Record


class Outcome(Record):
    """One network, cut to given widths in one way.

    Accuracies are of the test samples, in per cent: of the whole network, as cut, after the refit, after settling, and
    after training with labels; None where a way has no such stage. Seconds are the processor's: those of allotting the
    widths (None where they are a plain share), of the choice and the refit, of settling, and of one forward pass of the
    calibration data through the whole network.
    """

    experiment: str
    setting: str
    method: str
    seed: int
    parameters: int | None = None
    macs: int | None = None
    widths: dict[str, int] = Field(default_factory=dict)
    dense: float
    cut: float | None = None
    refitted: float | None = None
    settled: float | None = None
    labelled: float | None = None
    allotting_seconds: float | None = None
    cut_seconds: float | None = None
    settling_seconds: float | None = None
    forward_seconds: float | None = None
    reason: str = ""  # why there is no result


class Timing(Record):
    """Processor seconds of a refit and of a forward pass of the same images, and how deep the network is."""

    network: str
    parameters: int
    layers: int
    images: int
    forward_seconds: float
    refit_seconds: float
    choice_seconds: float | None = None  # choice and refit, where that was measured


class Results(Measurement):
    """A run of the benchmark: the versions it ran with, and what it found."""

    outcomes: tuple[Outcome, ...] = ()
    timings: tuple[Timing, ...] = ()
