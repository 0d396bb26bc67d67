"""Fast tests of methods settle in few steps: what they are about does not hang on the number."""

import pytest

from topiarist.surgery.settling import work

FEW_STEPS = 60


@pytest.fixture(autouse=True)
def few_steps(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let networks settle in few steps where nobody says how many, but in slow tests."""
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr(work, "MOST_STEPS", FEW_STEPS)
