"""The clock of a rightsizing: seconds by stage, how far the job is, how long it may still take. It decides nothing.

Unless the user sets a limit: then work that is not done by the deadline is not done at all.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from topiarist.memory import return_freed

TRUSTED = 0.1  # share of the work after which what it took says more than the estimate
OnProgress = Callable[[float, str], None]


class OutOfTimeError(Exception):
    """The deadline of the user has passed; what was being made is given up."""


@dataclass(frozen=True)
class Deadline:
    """A moment of the system's clock, which workers know too; None for never."""

    moment: float | None = None

    @property
    def passed(self) -> bool:
        """Whether the moment has passed."""
        return self.moment is not None and time.time() >= self.moment

    def check(self, *_: object) -> None:
        """Raise OutOfTimeError where the moment has passed; trainings call it after every epoch."""
        if self.passed:
            raise OutOfTimeError


@dataclass
class Clock:
    """Seconds since the beginning, by stage; `on_progress` is told the share of the work that is done, and what.

    `limit` are the seconds that the user allows, None for as many as it takes; `estimate` those that it may take. With
    `frees`, the memory that a stage freed goes back to the system when it ends.
    """

    limit: float | None = None
    estimate: float | None = None
    frees: bool = False
    on_progress: OnProgress = lambda share, what: None
    stages: dict[str, float] = field(default_factory=dict)
    begun: float = field(default_factory=time.perf_counter)
    deadline: Deadline = field(init=False)

    def __post_init__(self) -> None:
        self.deadline = Deadline(None if self.limit is None else time.time() + self.limit)

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return time.perf_counter() - self.begun

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Count the seconds of a block to a stage."""
        start = self.elapsed
        try:
            yield
        finally:
            if self.frees:
                return_freed()
            self.stages[name] = self.stages.get(name, 0.0) + self.elapsed - start

    def tell(self, share: float, what: str) -> None:
        """Report how far the job is, and how long it may still take."""
        done = min(max(share, 0.0), 1.0)
        left = self.left(done)
        self.on_progress(done, what if left is None else f"{what}; {duration_words(left)} left at most")

    def left(self, share: float) -> float | None:
        """Return the seconds that the rest of the work may take: by the estimate, then by what the first part took."""
        total = self.elapsed / share if share >= TRUSTED else self.estimate
        if total is None or share >= 1:
            return None
        return max(total * (1 - share), 0.0)


def duration_words(seconds: float) -> str:
    """Return a duration in words.

    Examples
    --------
    >>> duration_words(42), duration_words(150), duration_words(7000)
    ('42 s', '2.5 min', '1.9 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.2g} min" if seconds < 5400 else f"{seconds / 3600:.2g} h"
