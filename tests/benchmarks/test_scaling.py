"""The benchmark of scaling: jobs run at their smallest sizes, and a time that doubles with the size is linear."""

import pytest

from benchmarks.scaling import EXPERIMENTS, ScalingResults, ScalingRow, write_markdown


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_job_runs(name: str) -> None:
    EXPERIMENTS[name].prepare(EXPERIMENTS[name].sizes[0] // 2)()


def test_the_table_has_the_exponent() -> None:
    row = ScalingRow(name="j", title="a job", counted="samples", sizes=(1, 2, 4), seconds=(0.5, 1.0, 2.0))
    written = write_markdown(ScalingResults(date="2026-01-01", processor="p", packages={"torch": "2"}, rows=(row,)))
    assert "| a job | samples | 1, 4 | 0.5, 2 | 1.00 |" in written
