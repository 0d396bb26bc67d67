"""The clock of a rightsizing: seconds by stage, and how far the job is."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

MEASURING = 0.07  # of the time, for measuring the result
OnProgress = Callable[[float, str], None]


@dataclass
class Clock:
    """Seconds since the beginning, by stage; `on_progress` is told the share of the work that is done, and what.

    `measuring` are seconds that answering large parts takes in the end.
    """

    limit: float
    measuring: float = 0.0
    on_progress: OnProgress = lambda share, what: None
    stages: dict[str, float] = field(default_factory=dict)
    begun: float = field(default_factory=time.perf_counter)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.begun

    @property
    def left(self) -> float:
        """Seconds until the end, but for those that measuring takes."""
        return (1 - MEASURING) * self.limit - self.measuring - self.elapsed

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the seconds of a block to a stage."""
        start = self.elapsed
        try:
            yield
        finally:
            self.stages[name] = self.stages.get(name, 0.0) + self.elapsed - start

    def tell(self, share: float, what: str) -> None:
        """Report how far the job is."""
        self.on_progress(min(max(share, 0.0), 1.0), what)
