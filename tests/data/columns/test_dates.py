"""Dates and times: their forms, and the numbers that are read of them."""

import datetime

import numpy
import pandas
import pytest
from hypothesis import given, settings, strategies

from topiarist.data.columns.choices import ColumnChoices
from topiarist.data.columns.dates import date_numbers, date_parts
from topiarist.data.columns.deciding import read_columns
from topiarist.data.columns.decisions import ColumnDecision
from topiarist.data.columns.forms import read_cells

MOMENTS = strategies.datetimes(datetime.datetime(1950, 1, 1), datetime.datetime(2080, 1, 1))


def read(*cells: object, **others: list[object]) -> tuple[list[str], ColumnDecision]:
    """Return a column as moments in ISO form, and what was decided for it."""
    found = read_columns("t", pandas.DataFrame({"c": pandas.Series(cells, dtype=object), **others}))
    assert found.decisions[0].read_as == "date", found.decisions[0]
    return [str(moment)[:16] for moment in found.frame["c"]], found.decisions[0]


@pytest.mark.parametrize(
    ("cells", "expected", "said"),
    [
        (["2024-01-31", "2023-12-01"], ["2024-01-31", "2023-12-01"], "year-month-day"),
        (["2024-01-31T10:05:00Z", "2023-12-01 23:00"], ["2024-01-31 10:05", "2023-12-01 23:00"], "year-month-day"),
        (["2024-01-31T10:05:00+02:00", "2024-02-01T00:00:00.5-0500"], ["2024-01-31 10:05", "2024-02-01 00:00"],
         "year-month-day"),
        (["31.01.2024", "1.12.2023"], ["2024-01-31", "2023-12-01"], "day.month.year"),
        (["31/01/2024", "01/12/2023"], ["2024-01-31", "2023-12-01"], "day/month/year"),
        (["01/31/2024", "12/01/2023"], ["2024-01-31", "2023-12-01"], "month/day/year"),
        (["31-01-24", "01-12-23"], ["2024-01-31", "2023-12-01"], "day-month-year"),
        (["2024/01/31", "2023/12/01"], ["2024-01-31", "2023-12-01"], "year/month/day"),
        (["1/31/24 10:30 PM", "12/1/23 1:05 AM"], ["2024-01-31 22:30", "2023-12-01 01:05"],
         "month/day/year hour:minute am/pm"),
        (["31.01.2024 22:30", "01.12.2023 01:05"], ["2024-01-31 22:30", "2023-12-01 01:05"],
         "day.month.year hour:minute"),
        (["31 Jan 2024", "1 Dec 2023"], ["2024-01-31", "2023-12-01"], "day month year"),
        (["January 31, 2024", "December 1, 2023"], ["2024-01-31", "2023-12-01"], "month day, year"),
        (["20240131", "20231201", "20200229", "20200301", "19991231"],
         ["2024-01-31", "2023-12-01", "2020-02-29", "2020-03-01", "1999-12-31"], "yearmonthday"),
        (["20240131235959", "20231201000000", "20200229120000", "20200301000000", "19991231000001"],
         ["2024-01-31 23:59", "2023-12-01 00:00", "2020-02-29 12:00", "2020-03-01 00:00", "1999-12-31 00:00"],
         "yearmonthdayhourminutesecond"),
        (["2024-01", "2023-12"], ["2024-01-01", "2023-12-01"], "year-month"),
        (["01/2024", "12/2023"], ["2024-01-01", "2023-12-01"], "month/year"),
        (["31JAN2024", "01DEC2023"], ["2024-01-31", "2023-12-01"], "daymonthyear"),
        (["31. Januar 2024", "1. Dezember 2023", "3. März 2023"], ["2024-01-31", "2023-12-01", "2023-03-03"],
         "day. month year"),
        (["31 janv. 2024", "1er décembre 2023", "3 août 2023"], ["2024-01-31", "2023-12-01", "2023-08-03"],
         "day month year"),
        (["31 de enero de 2024", "1 de diciembre de 2023"], ["2024-01-31", "2023-12-01"], "day month year"),
        (["Wednesday, January 31, 2024", "Friday, December 1, 2023"], ["2024-01-31", "2023-12-01"], "month day, year"),
        (["Wed Jan 31 22:30:00 2024", "Fri Dec 01 01:05:00 2023"], ["2024-01-31 22:30", "2023-12-01 01:05"],
         "month day hour:minute:second year"),
        (["Wed, 31 Jan 2024 22:30:00 +0000", "Fri, 01 Dec 2023 01:05:00 GMT"], ["2024-01-31 22:30", "2023-12-01 01:05"],
         "day month year hour:minute:second"),
        (["31.01.2024", "2023-12-01", "1.2.2023"], ["2024-01-31", "2023-12-01", "2023-02-01"], "day.month.year"),
        (["2024-01-31 22:30:00 CET", "2023-12-01 01:05:00 CEST"], ["2024-01-31 22:30", "2023-12-01 01:05"],
         "year-month-day"),
        (["2024-01-31T22:30:00+01:00[Europe/Berlin]", "2023-12-01 01:05:00+02", "2023-12-02 01:05 America/New_York"],
         ["2024-01-31 22:30", "2023-12-01 01:05", "2023-12-02 01:05"], "year-month-day"),
        (["31.01.2024 22:30 Uhr", "01.12.2023 01:05 Uhr"], ["2024-01-31 22:30", "2023-12-01 01:05"],
         "day.month.year hour:minute"),
        (["20240131T223000Z", "20231201T010500Z", "20200229T120000Z", "20200301T000000Z", "19991231T000001Z"],
         ["2024-01-31 22:30", "2023-12-01 01:05", "2020-02-29 12:00", "2020-03-01 00:00", "1999-12-31 00:00"],
         "yearmonthdayThourminutesecond"),
        (["31/Jan/2024:22:30:00 +0000", "01/Dec/2023:01:05:00 +0000"], ["2024-01-31 22:30", "2023-12-01 01:05"],
         "day/month/year:hour:minute:second"),
        (["22:30", "01:05"], ["1900-01-01 22:30", "1900-01-01 01:05"], "hour:minute"),
    ],
)  # fmt: skip
def test_forms_of_dates(cells: list[str], expected: list[str], said: str) -> None:
    found, decision = read(*cells)
    assert found == [moment if " " in moment else f"{moment} 00:00" for moment in expected]
    assert decision.said == [said]


def test_what_cannot_be_told_is_said() -> None:
    found, decision = read("01/02/2024", "03/04/2023")
    assert found == ["2024-01-02 00:00", "2023-03-04 00:00"]
    assert decision.remarks == ("read as month/day/year, could be day/month/year: --date c=%d/%m/%Y says so",)
    assert read("01-02-2024", "03-04-2023")[0] == ["2024-02-01 00:00", "2023-04-03 00:00"]


def test_a_clear_column_tells_the_order_of_another() -> None:
    assert read("01/02/2024", "03/04/2023", other=["31/12/2020", "01/01/2021"])[0][0] == "2024-02-01 00:00"
    assert read("01/02/2024", "03/04/2023", other=["12/31/2020", "01/01/2021"])[0][0] == "2024-01-02 00:00"
    assert read("01/02/2024", "03/04/2023", other=["1,5", "2,25"])[0][0] == "2024-02-01 00:00"


def test_seconds_since_1970_are_dates_where_asked_for() -> None:
    table = pandas.DataFrame({"created_at": ["1706740200", "1701392700"], "size": ["1706740200", "1701392700"]})
    found = read_columns("t", table)
    assert [decision.read_as for decision in found.decisions] == ["number", "number"]
    said = "kept as a number; may be seconds since 1970: --date created_at reads them so"
    assert found.decisions[0].said == [said] and found.decisions[1].said == []
    for choice in ("created_at", "created_at=seconds"):
        asked = read_columns("t", table, choices=ColumnChoices(date=(choice,)))
        assert [str(moment)[:16] for moment in asked.frame["created_at"]] == ["2024-01-31 22:30", "2023-12-01 01:05"]
        assert asked.decisions[0].said == ["seconds since 1970", "as asked"]
    milliseconds = table.assign(created_at=table["created_at"] + "000")
    asked = read_columns("t", milliseconds, choices=ColumnChoices(date=("created_at",)))
    assert str(asked.frame["created_at"][0])[:16] == "2024-01-31 22:30"


def test_a_form_that_names_weekdays_is_followed() -> None:
    choice = ColumnChoices(date=("c=%A %d %B %Y",))
    found = read_columns(
        "t", pandas.DataFrame({"c": ["Wednesday 31 January 2024", "Friday 01 December 2023"]}), choices=choice
    )
    assert [str(moment)[:10] for moment in found.frame["c"]] == ["2024-01-31", "2023-12-01"]


def test_typed_dates_are_dates_whatever_their_zone() -> None:
    zoned = pandas.to_datetime(["2024-01-31 10:00", "2024-07-31 10:00"]).tz_localize("Europe/Berlin")
    frame = pandas.DataFrame({"c": zoned, "d": [datetime.date(2024, 1, 31), None]})
    found = read_columns("t", frame)
    assert [decision.read_as for decision in found.decisions] == ["date", "date"]
    assert [str(moment)[:16] for moment in found.frame["c"]] == ["2024-01-31 10:00", "2024-07-31 10:00"]
    assert found.frame["d"].isna().tolist() == [False, True]


def test_moments_of_several_zones_and_periods_are_dates() -> None:
    zoned = [
        pandas.Timestamp("2024-01-31 10:00", tz="UTC"),
        pandas.Timestamp("2024-07-31 10:00", tz="US/Eastern"),
        None,
    ]
    periods = pandas.Series(pandas.PeriodIndex(["2024Q1", "2023Q4", None], freq="Q"))
    found = read_columns("t", pandas.DataFrame({"c": pandas.Series(zoned, dtype=object), "d": periods}))
    assert [decision.read_as for decision in found.decisions] == ["date", "date"]
    assert [str(moment)[:16] for moment in found.frame["c"]] == ["2024-01-31 10:00", "2024-07-31 10:00", "NaT"]
    assert [str(moment)[:10] for moment in found.frame["d"]] == ["2024-01-01", "2023-10-01", "NaT"]
    form = found.decisions[1].form
    assert form is not None and (read_cells(periods, form)[:2] == found.frame["d"].to_numpy()[:2]).all()


def test_a_date_that_never_comes_is_a_gap() -> None:
    found, decision = read("31.12.9999", "01.02.2024", "9999-12-31", "31.01.2024")
    assert found == ["NaT", "2024-02-01 00:00", "NaT", "2024-01-31 00:00"]
    assert dict(decision.gaps) == {"31.12.9999": 1, "9999-12-31": 1}


@pytest.mark.parametrize(
    "cells",
    [
        ["16:9", "4:3", "16:10"],
        ["1.2.3", "1.2.4"],
        ["2019", "2020", "2020"],
        ["12345678", "87654321"],
        ["5/7", "3/7"],
        ["2019-20", "2020-21", "2021-22"],
        ["May", "June"],
        ["12.2019", "11.2020"],
    ],
)
def test_what_is_no_date(cells: list[str]) -> None:
    (decision,) = read_columns("t", pandas.DataFrame({"c": [*cells, cells[0]]})).decisions
    assert decision.read_as != "date"


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(strategies.lists(MOMENTS, min_size=1, max_size=20))
def test_parts_are_those_of_python(moments: list[datetime.datetime]) -> None:
    values = numpy.array(moments, dtype="datetime64[us]")
    names = ("elapsed days", "year", "month sine", "month cosine", "weekday sine", "weekday cosine")
    found = date_numbers(values, (*names, "hour sine", "hour cosine"))
    for row, moment in zip(found, moments, strict=True):
        day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
        turns = ((moment.month - 1) / 12, moment.weekday() / 7, (moment - day) / datetime.timedelta(days=1))
        waves = [wave(2 * numpy.pi * turn) for turn in turns for wave in (numpy.sin, numpy.cos)]
        elapsed = (moment - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1)
        numpy.testing.assert_allclose(row, [elapsed, moment.year, *waves], rtol=1e-9, atol=1e-9)


def test_only_parts_that_differ_are_read() -> None:
    def parts(*moments: str) -> tuple[str, ...]:
        return date_parts(numpy.array(moments, dtype="datetime64[us]"))

    assert parts("2024-01-01", "2024-01-08", "NaT") == ("elapsed days",)
    assert parts("2024-01-01", "2024-01-02") == ("elapsed days", "weekday sine", "weekday cosine")
    assert parts("1900-01-01T10:00", "1900-01-01T11:00") == ("hour sine", "hour cosine")
    assert parts("NaT") == ()
    years = parts("2023-01-02", "2024-01-01")
    assert years == ("elapsed days", "year")
