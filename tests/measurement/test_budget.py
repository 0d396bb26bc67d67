"""A budget: what it takes, what exceeds it, and sizes as people write them."""

from typing import Any

import pytest
import torch

from topiarist.errors import ModelError, SettingsError
from topiarist.measurement import Budget, BudgetError, measure
from topiarist.measurement.budget import Excess, Footprint, footprint, parse_kb
from topiarist.models import mlp


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("500kB", 500.0),
        ("500 KB", 500.0),
        ("500KiB", 500.0),
        ("1.5 MB", 1536.0),
        ("1.5mib", 1536.0),
        ("20000 B", 20000 / 1024),
        ("0.5GB", 524288.0),
        ("12", 12.0),
        (" 12 ", 12.0),
        (".5kB", 0.5),
    ],
)
def test_sizes_are_read_as_people_write_them(text: str, size: float) -> None:
    assert parse_kb(text) == pytest.approx(size)


@pytest.mark.parametrize(
    "text", ["", "kB", "-5kB", "5 TB", "5 kB 3", "five", "1,5 MB", "1e3", "nan", "inf", "0x10", "5%"]
)
def test_what_is_no_size_is_one_line(text: str) -> None:
    with pytest.raises(SettingsError, match=r"a size is written like 500kB or 1\.5MB; found"):
        parse_kb(text)


@pytest.mark.parametrize(
    "limits",
    [
        {"file_kb": 0},
        {"file_kb": -1.0},
        {"file_kb": float("nan")},
        {"file_kb": float("inf")},
        {"parameters": 0},
        {"parameters": 1.5},
        {"macs": 0},
        {"latency_ms": 0},
        {"max_drop": -0.01},
        {"max_drop": 1},
        {"size": 3},
    ],
)
def test_limits_that_make_no_sense_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        Budget(**limits)


def test_a_budget_knows_whether_it_limits_size() -> None:
    assert not Budget().limits_size
    assert not Budget(max_drop=0.0).limits_size
    for limit in ({"file_kb": 1.0}, {"parameters": 1}, {"macs": 1}, {"latency_ms": 0.1}):
        given: dict[str, Any] = limit
        assert Budget(**given).limits_size
        assert Budget(**given, max_drop=0.1).limits_size


TAKEN = Footprint(parameters=1000, file_kb=5.5, macs=900, latency_ms=0.2)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, None),
        ({"parameters": 1000, "file_kb": 5.5, "macs": 900, "latency_ms": 0.2}, None),
        ({"parameters": 999}, Excess("parameters", 1000, 999)),
        ({"file_kb": 5.4}, Excess("KB on disk", 5.5, 5.4)),
        ({"macs": 100, "parameters": 900}, Excess("multiply-accumulates", 900, 100)),
        ({"macs": 800, "parameters": 100}, Excess("parameters", 1000, 100)),
        ({"latency_ms": 0.1}, Excess("ms a sample", 0.2, 0.1)),
        ({"max_drop": 0.0}, None),
    ],
)
def test_the_worst_excess_is_found(limits: dict[str, Any], expected: Excess | None) -> None:
    assert Budget(**limits).excess(TAKEN) == expected


def test_what_was_not_timed_exceeds_no_latency() -> None:
    unknown = Footprint(parameters=1, file_kb=1.0, macs=1, latency_ms=None)
    assert Budget(latency_ms=0.001).excess(unknown) is None


def test_an_excess_says_what_was_found_and_what_was_asked() -> None:
    assert str(Excess("parameters", 12345, 1000)) == "12,345 parameters, the budget is 1,000"
    assert str(Excess("KB on disk", 2048.6, 12.5)) == "2,049 KB on disk, the budget is 12.5"


def test_a_footprint_is_what_measuring_finds() -> None:
    model = mlp([6, 5, 3])
    sample = torch.zeros(1, 6)
    found = footprint(model, sample)
    measured = measure(model, part(), latency=False)
    assert (found.parameters, found.macs) == (measured.parameters, measured.macs) == (53, 45)
    assert (found.file_kb, found.latency_ms) == (measured.file_kb, None)
    timed = footprint(model, sample, latency=True).latency_ms
    assert timed is not None and 0 < timed < 1000


def part() -> Any:
    from topiarist.data import Part

    return Part(torch.zeros(4, 6), torch.zeros(4, dtype=torch.int64))


def test_a_budget_that_cannot_be_met_is_an_error_of_the_model() -> None:
    assert issubclass(BudgetError, ModelError)
