"""A budget: what it takes, what exceeds it, and sizes and times as people write them."""

import math
from typing import Any

import pytest

from topiarist.errors import ModelError, SettingsError
from topiarist.measurement import Budget, BudgetError
from topiarist.measurement.budget import Excess, parse_kb, parse_ms
from topiarist.measurement.footprint import Footprint


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
    ("text", "milliseconds"),
    [("2ms", 2.0), ("2 MS", 2.0), ("500us", 0.5), ("500 µs", 0.5), ("0.01 s", 10.0), ("3", 3.0), (" .5ms ", 0.5)],
)
def test_times_are_read_as_people_write_them(text: str, milliseconds: float) -> None:
    assert parse_ms(text) == pytest.approx(milliseconds)


@pytest.mark.parametrize("text", ["", "ms", "-2ms", "2 min", "2ms 3", "two", "1,5 ms", "nan", "5kB"])
def test_what_is_no_time_is_one_line(text: str) -> None:
    with pytest.raises(SettingsError, match="a time is written like 2ms or 500us; found"):
        parse_ms(text)


@pytest.mark.parametrize(
    "limits",
    [
        {"file_kb": 0},
        {"file_kb": -1.0},
        {"file_kb": float("nan")},
        {"file_kb": float("inf")},
        {"memory_kb": 0},
        {"memory_kb": float("nan")},
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
    for limit in ({"file_kb": 1.0}, {"memory_kb": 1.0}, {"parameters": 1}, {"macs": 1}, {"latency_ms": 0.1}):
        given: dict[str, Any] = limit
        assert Budget(**given).limits_size
        assert Budget(**given, max_drop=0.1).limits_size
        assert Budget(**given, max_drop=0.1).sizes == Budget(**given)


TAKEN = Footprint(parameters=1000, nonzero=990, memory_kb=4.0, file_kb=5.5, macs=900, latency_ms=0.2)


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ({}, None),
        ({"parameters": 1000, "file_kb": 5.5, "memory_kb": 4.0, "macs": 900, "latency_ms": 0.2}, None),
        ({"parameters": 999}, Excess("parameters", 1000, 999)),
        ({"file_kb": 5.4}, Excess("file_kb", 5.5, 5.4)),
        ({"memory_kb": 3.9}, Excess("memory_kb", 4.0, 3.9)),
        ({"macs": 100, "parameters": 900}, Excess("macs", 900, 100)),
        ({"macs": 800, "parameters": 100}, Excess("parameters", 1000, 100)),
        ({"latency_ms": 0.1}, Excess("latency_ms", 0.2, 0.1)),
        ({"max_drop": 0.0}, None),
    ],
)
def test_the_worst_excess_is_found(limits: dict[str, Any], expected: Excess | None) -> None:
    assert Budget(**limits).excess(TAKEN) == expected


def test_what_was_not_timed_or_weighed_exceeds_nothing() -> None:
    unknown = Footprint(parameters=1, nonzero=1, memory_kb=1.0, file_kb=math.nan, macs=1, latency_ms=None)
    assert Budget(latency_ms=0.001).excess(unknown) is None
    assert Budget(file_kb=0.001).excess(unknown) is None


@pytest.mark.parametrize(
    ("excess", "text"),
    [
        (Excess("parameters", 12345, 1000), "12,345 parameters, the budget is 1,000"),
        (Excess("file_kb", 2048.6, 12.5), "2,049 KB on disk, the budget is 12.5"),
        (Excess("memory_kb", 3.00001, 2.0), "3.001 KB in memory, the budget is 2"),
        (Excess("macs", 900, 100), "900 multiply-accumulates, the budget is 100"),
        (Excess("latency_ms", 0.25, 0.1), "0.25 ms per sample, the budget is 0.1"),
    ],
)
def test_an_excess_names_what_was_found_and_what_was_asked(excess: Excess, text: str) -> None:
    assert str(excess) == text


def test_a_budget_that_cannot_be_met_is_an_error_of_the_model() -> None:
    assert issubclass(BudgetError, ModelError)
