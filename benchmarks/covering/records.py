"""What is written down of each network: typed, and plain values in JSON."""

from benchmarks.paging.records import Measurement
from topiarist.settings import Record

USEFUL_SHARE = 0.25  # of the parameters: a cut of half the units that takes less has missed most of the network
DONE = "done"


class Check(Record):
    """A question about a cut network: answered with yes or no, or not asked (None); `note` says why or how closely."""

    passed: bool | None = None
    note: str = "not reached"


class Attempt(Record):
    """What one tool made of one network: how far it came, why it ended there, and what was cut."""

    stage: str = "start"
    reason: str = ""
    seconds: float | None = None
    parameters_before: int | None = None
    parameters_after: int | None = None
    shapes_kept: bool | None = None

    @property
    def share_gone(self) -> float | None:
        """Return the share of parameters that are gone, None where nothing was cut."""
        if self.parameters_before is None or self.parameters_after is None:
            return None
        return 1 - self.parameters_after / self.parameters_before

    @property
    def useful(self) -> bool:
        """Return whether the cut network runs, keeps the shapes of its outputs and lost a quarter of its parameters."""
        return bool(self.shapes_kept) and (self.share_gone or 0.0) >= USEFUL_SHARE


class OurAttempt(Attempt):
    """What we made of a network. Seconds are those of `anatomy` and of `surgery.remove`, once each, on one thread.

    `felt` is the smallest share by which what a proof compares changes when half of one space alone is gone.
    """

    anatomy_seconds: float | None = None
    free_spaces: int | None = None
    fixed_spaces: int | None = None
    reloaded: Check = Check()
    onnx: Check = Check()
    reference: Check = Check()
    felt: float | None = None


class RivalAttempt(Attempt):
    """What torch-pruning made of a network; `ignored` names the layers that it was told to leave alone.

    `reference` asks whether the cut network is the original without the weights that are gone.
    """

    ignored: tuple[str, ...] = ()
    reference: Check = Check()


class Row(Record):
    """One network: what both tools made of it."""

    name: str
    group: str
    ours: OurAttempt
    torch_pruning: RivalAttempt


class Results(Measurement):
    """A run of the benchmark: the versions it ran with, the time limit of each attempt, and a row per network."""

    limit_seconds: float
    rows: tuple[Row, ...] = ()
