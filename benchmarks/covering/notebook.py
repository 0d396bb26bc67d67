"""A record that is written to a file whenever it changes, so that what was measured outlives its process."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

from benchmarks.covering.outputs import one_line
from benchmarks.covering.records import DONE, Attempt
from topiarist.files import write_atomically

Written = TypeVar("Written", bound=Attempt)


class Notebook(Generic[Written]):
    """An attempt in the making, and the file that it is kept in."""

    def __init__(self, attempt: Written, place: Path) -> None:
        self.attempt, self.place = attempt, place
        self.started = time.perf_counter()

    def note(self, **findings: object) -> None:
        """Write down what was found."""
        self.attempt = self.attempt.model_copy(update=findings)
        write_atomically(self.place, self.attempt.model_dump_json().encode())

    def begin(self, stage: str) -> None:
        """Write down what is tried next."""
        self.note(stage=stage)

    @contextmanager
    def explaining(self) -> Iterator[None]:
        """Write down why the block ended: an error becomes the reason, and nothing is raised."""
        try:
            yield
        except Exception as error:  # any error of any network is a finding of this benchmark
            self.note(reason=one_line(error), seconds=time.perf_counter() - self.started)
        else:
            self.note(stage=DONE, seconds=time.perf_counter() - self.started)
