"""How long tests let networks settle and be timed: a moment, where what they are about hangs on neither."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from topiarist.measurement import latency
from topiarist.surgery.settling import work

ALL_STEPS = work.MOST_STEPS


def hurry() -> None:
    """Let networks settle in the fewest steps where nobody says how many, and be timed for a millisecond."""
    work.MOST_STEPS = work.FEWEST_STEPS
    latency.WARM_UP_SECONDS = latency.MOST_SECONDS = 0.001


@contextmanager
def all_steps_taken() -> Iterator[None]:
    """Let networks settle in as many steps as for users, and as in processes of their own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "MOST_STEPS", ALL_STEPS)
        yield
