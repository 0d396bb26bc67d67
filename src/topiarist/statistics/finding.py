"""What a test found."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A test's name, statistic and p, the size of the effect, and what the reader must know to believe it."""

    test: str
    statistic: float
    p: float
    effect: float | None = None
    effect_name: str | None = None
    notes: tuple[str, ...] = ()
