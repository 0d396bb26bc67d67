"""The points of a figure of size against quality."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topiarist.report.wording import as_number, required


@dataclass(frozen=True, kw_only=True)
class Point:
    """One network: its size, its score, and whether no other is both smaller and better."""

    name: str
    size: float
    score: float
    spread: float
    front: bool
    knee: bool


def read_point(record: Mapping[str, Any]) -> Point:
    """Read one record."""
    size, score = as_number(required(record, "size")), as_number(required(record, "score"))
    front, knee = bool(required(record, "front")), bool(record.get("knee", False))
    spread = as_number(record.get("spread"))
    return Point(name=str(required(record, "name")), size=size, score=score, spread=spread, front=front, knee=knee)


def front_of(points: Sequence[Point]) -> list[Point]:
    """Give the points of the front, from small to large."""
    return sorted((point for point in points if point.front), key=lambda point: point.size)


def places(points: Sequence[Point]) -> tuple[list[float], list[float]]:
    """Give the coordinates of the points."""
    return [point.size for point in points], [point.score for point in points]
