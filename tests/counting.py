"""Counts what is costly: traces of a network, copies of it, and proofs; what a proof takes is not counted again."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from topiarist.models import copying
from topiarist.surgery import applying, proving
from topiarist.surgery.choice import choosing
from topiarist.tracing import finding


def count_calls(monkeypatch: pytest.MonkeyPatch, counted: Counter[str], home: Any, name: str, what: str) -> None:
    """Count the calls of a function, unless counting is paused."""
    original: Callable[..., Any] = getattr(home, name)

    def count(*args: Any, **options: Any) -> Any:
        counted[what] += not counted["paused"]
        return original(*args, **options)

    monkeypatch.setattr(home, name, count)


def count_costs(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Count "traces", "copies" and "proofs" from now on; proofs trace and copy besides, which is their business."""
    counted: Counter[str] = Counter()
    count_calls(monkeypatch, counted, finding, "run_traced", "traces")
    count_calls(monkeypatch, counted, copying, "deepcopy", "copies")
    prove, ensure_proven = proving.prove, proving.ensure_proven

    def count_proof(*args: Any, **options: Any) -> Any:
        counted["proofs"] += 1
        return prove(*args, **options)

    def pause(*args: Any, **options: Any) -> Any:
        counted["paused"] += 1
        try:
            return ensure_proven(*args, **options)
        finally:
            counted["paused"] -= 1

    monkeypatch.setattr(proving, "prove", count_proof)
    for home in (proving, applying, choosing):
        monkeypatch.setattr(home, "ensure_proven", pause)
    return counted
