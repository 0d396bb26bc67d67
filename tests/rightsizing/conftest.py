from collections.abc import Iterator

import pytest

from tests.rightsizing.tasks import use_small_plan


@pytest.fixture(scope="module")
def small_plan() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        use_small_plan(patch)
        yield
