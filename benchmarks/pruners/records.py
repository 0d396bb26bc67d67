"""What is written down of each network: typed, and plain values in JSON."""

from benchmarks.paging.records import Measurement
from topiarist.settings import Record

Key = tuple[str, int, int, str, int]


class PrunedRow(Record):
    """One network, cut by one pruner to so many times fewer parameters, and trained with labels for some epochs.

    Accuracies are of the test samples, in per cent. The latency is that of one sample in torch on one thread, that of
    the whole network measured in turn with it. Seconds are the processor's, of the cut and of the epochs.
    """

    problem: str
    seed: int
    ratio: int
    pruner: str
    epochs: int
    dense_accuracy: float
    dense_parameters: int
    dense_macs: int
    accuracy: float | None = None
    parameters: int | None = None
    macs: int | None = None
    latency_ms: float | None = None
    dense_latency_ms: float | None = None
    seconds: float | None = None
    reason: str = ""  # why there is no result

    @property
    def key(self) -> Key:
        """What makes a row the only one of its kind."""
        return (self.problem, self.seed, self.ratio, self.pruner, self.epochs)


class PruningResults(Measurement):
    """A run of the benchmark: when, on what and with which versions, and the rows so far."""

    rows: tuple[PrunedRow, ...] = ()
