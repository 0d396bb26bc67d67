"""Dates and times: in which form a column writes them, and the numbers that a network reads of them.

Clock time is taken as it is written: an offset from UTC is left aside, so that 8 o'clock is 8 o'clock in summer too.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.date_words import in_english
from topiarist.data.columns.texts import Texts
from topiarist.errors import DataError

if TYPE_CHECKING:
    import pandas

Moments = NDArray[numpy.datetime64]

ISO = "ISO8601"  # as pandas calls it
CLOCKS = ("%H:%M", "%H:%M:%S", "%I:%M %p", "%I:%M:%S %p")
EPOCHS: dict[str, Literal["s", "ms"]] = {"seconds": "s", "milliseconds": "ms"}  # since 1970, as programs write moments
_EPOCH_YEARS = {"seconds": (1e8, 4.2e9), "milliseconds": (1e11, 4.2e12)}  # 1973 to 2103
NEVER = numpy.datetime64("NaT", "us")
_TIME = r"(?:[T, ]+\d{1,2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?: ?[AaPp]\.?[Mm]\.?)?)?"
_ISO = re.compile(rf"\d{{4}}-\d{{2}}-\d{{2}}{_TIME}")
_ZONE = re.compile(  # also by name: CET, Europe/Berlin; and the word for o'clock
    r"(?:(?<=:\d\d)|(?<=T\d{6}))(\.\d+)?\s*"
    r"(?:Z|(?!AM$|PM$)[A-Z]{2,5}|(?:(?:UTC|GMT)?[-+]\d{2}(?::?\d{2})?)?(?:\[?[A-Z][a-z]+/[A-Za-z_/]+\]?)?|Uhr|uhr)$"
)
_NUMERIC = re.compile(rf"\d{{1,4}}([-/.])\d{{1,2}}\1\d{{1,4}}{_TIME}")
_NAMED = re.compile(rf"(?:\d{{1,2}}\.?[-/ ])?[A-Za-z]{{3,9}}\.?[-/ ]\d{{1,4}}(?:,? \d{{4}})?{_TIME}")
_CLOCK = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?: ?[AaPp][Mm])?")
_ANY = re.compile(".*", re.DOTALL)
_COMPACT = re.compile(r"(?:19|20)\d{6}")
_LONG = re.compile(r"(?:19|20)\d{6}T?\d{6}")
_MONTHLY = re.compile(r"(?:19|20)\d{2}[-/]\d{1,2}|\d{1,2}[-/](?:19|20)\d{2}")
_JOINED = re.compile(r"\d{1,2}(?P<mark>/?)[A-Za-z]{3}(?P=mark)\d{2,4}(?::\d{2}:\d{2}:\d{2})?")
_LAST_YEAR = re.compile(r"[A-Za-z]{3,9} +\d{1,2} \d{1,2}:\d{2}:\d{2} \d{4}")  # as the clock of Unix writes it
_NUMERIC_DAYS = (
    *("%Y/%m/%d", "%Y.%m.%d", "%d.%m.%Y", "%d.%m.%y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d/%m/%y", "%m/%d/%y", "%d-%m-%y", "%m-%d-%y"),
)
_NAMED_DAYS = (  # a month in short: whole ones become so before they are read
    *("%d %b %Y", "%d-%b-%Y", "%b %d, %Y", "%b %d %Y", "%d-%b-%y", "%d %b %y", "%d. %b %Y", "%d/%b/%Y"),
    *("%b %Y", "%b-%y", "%b-%Y"),
)
_OTHERS = {
    "monthly": ("%Y-%m", "%Y/%m", "%m/%Y", "%m-%Y"),
    "joined": ("%d%b%Y", "%d%b%y", "%d%b%Y:%H:%M:%S", "%d%b%y:%H:%M:%S", "%d/%b/%Y:%H:%M:%S"),
    "last year": ("%b %d %H:%M:%S %Y",),
    "compact": ("%Y%m%d",),
    "long": ("%Y%m%d%H%M%S", "%Y%m%dT%H%M%S"),
    "clock": CLOCKS,
}
_DAYS = {"numeric": _NUMERIC_DAYS, "named": _NAMED_DAYS}
_TIMES = ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p", "T%H:%M:%S", ", %H:%M", ", %H:%M:%S")
_TRIED = 20  # words on which all forms are tried
_LEAST_TRIED = 0.8  # of them, for a form to be tried on all
_FEWEST_COMPACT = 5  # words like 20240131 that are all dates: numbers are with a probability of 0.04 each
_EPOCH, _DAY = numpy.datetime64("1970-01-01", "us"), numpy.timedelta64(1, "D")


@dataclass(frozen=True, kw_only=True)
class DateEvidence:
    """The forms in which most words of a column are dates, and how many cells each reads; the best first.

    Two are left only where they read the same cells as different days.
    """

    formats: tuple[str, ...]
    cells: int


def find_formats(texts: Texts, *, share: float = _LEAST_TRIED) -> DateEvidence | None:
    """Return the forms that read the most cells as dates; None where fewer than a share of words look like dates."""
    least = max(1.0, share * len(texts.words[:_TRIED]))
    kinds = _kinds(texts.words[:_TRIED], least)
    if not kinds or ({"compact", "long"} & kinds and len(texts.words) < _FEWEST_COMPACT):
        return None
    tried = [form for form in _forms(kinds) if (~numpy.isnat(read_dates(texts.words[:_TRIED], form))).sum() >= least]
    found = {form: read_dates(texts.words, form) for form in tried}
    cells = {form: int(texts.counts[~numpy.isnat(moments)].sum()) for form, moments in found.items()}
    best = max(cells.values(), default=0)
    kept: list[str] = []
    for form, count in cells.items():
        if count == best and not any(_same(found[form], found[other]) for other in kept):
            kept.append(form)
    return DateEvidence(formats=tuple(kept), cells=best) if best else None


def _kinds(words: NDArray[Any], least: float) -> set[str]:
    patterns = {"iso": _ISO, "numeric": _NUMERIC, "named": _NAMED, "clock": _CLOCK, "compact": _COMPACT, "long": _LONG}
    patterns |= {"monthly": _MONTHLY, "joined": _JOINED, "last year": _LAST_YEAR}
    plain = [_plain(word) for word in words]
    rest = [word for word in plain if not _ISO.fullmatch(word)]
    if not rest or len(plain) - len(rest) >= least:
        return {"iso"}
    least -= len(plain) - len(rest)  # dates in ISO form are read beside any other
    return {kind for kind, each in patterns.items() if sum(map(bool, map(each.fullmatch, rest))) >= least}


def _plain(word: str) -> str:
    """Return a date as it reads on a clock, in English."""
    return in_english(_ZONE.sub(r"\1", word))


def _forms(kinds: set[str]) -> list[str]:
    days = [day for kind in ("numeric", "named") if kind in kinds for day in _DAYS[kind]]
    forms = [day + time for day in days for time in _TIMES]
    others = [form for kind, more in _OTHERS.items() if kind in kinds for form in more]
    return [*([ISO] if "iso" in kinds else []), *forms, *others]


def _same(first: Moments, second: Moments) -> bool:
    both = ~(numpy.isnat(first) | numpy.isnat(second))
    return bool((first[both] == second[both]).all())


def choose_format(evidence: DateEvidence, *, leaning: int) -> str:
    """Return the form of a column.

    Where day and month cannot be told apart, `leaning` decides: how many columns of the file write the day first, less
    those that write the month first. Without a hint, the month is first in 1/2/2024, as most programs read it, and the
    day in 1.2.2024 and 1-2-2024.
    """
    if len(evidence.formats) == 1:
        return evidence.formats[0]
    day_first = [form for form in evidence.formats if is_day_first(form)]
    month_first = [form for form in evidence.formats if not is_day_first(form)]
    slashes = "/" in evidence.formats[0]
    chosen = day_first if leaning > 0 or (leaning == 0 and not slashes) else month_first
    return (chosen or list(evidence.formats))[0]


def is_day_first(form: str) -> bool:
    """Return whether a form writes the day before the month, in numbers."""
    return "%m" in form and form.find("%d") < form.find("%m") and not form.startswith(("%Y", ISO))


def is_month_first(form: str) -> bool:
    """Return whether a form begins with the month, in numbers."""
    return form.startswith("%m")


def shown_format(form: str) -> str:
    """Return a form in words: day.month.year."""
    words = {"%Y": "year", "%y": "year", "%m": "month", "%d": "day", "%b": "month", "%B": "month", "%H": "hour"}
    words |= {
        "%I": "hour",
        "%A": "weekday",
        "%a": "weekday",
        "%M": "minute",
        "%S": "second",
        "%f": "fraction",
        "%p": "am/pm",
        ISO: "year-month-day",
    }
    if form in EPOCHS:
        return f"{form} since 1970"
    return re.sub(r"ISO8601|%[A-Za-z]", lambda found: words.get(found[0], found[0]), form)


def read_dates(words: NDArray[Any], form: str) -> Moments:
    """Return each word as a moment, NaT for what is none, in that form or in that of ISO 8601."""
    found = _in_form(words, form)
    unread = numpy.isnat(found)
    if form != ISO and unread.any():
        found = found.copy()
        found[unread] = _in_form(words[unread], ISO)
    return found


def _in_form(words: NDArray[Any], form: str) -> Moments:
    import pandas  # noqa: PLC0415  # see the top of the package

    if form in EPOCHS:
        numbers = pandas.to_numeric(pandas.Series(words, dtype=object), errors="coerce")
        return moments(pandas.to_datetime(numbers, unit=EPOCHS[form], errors="coerce"))
    asked = _ISO if form == ISO else _CLOCK if form in CLOCKS else _ANY  # pandas takes 2024 and 16:9 for dates as well
    as_written = "%a" in form.lower()  # whoever names a form with weekdays means them
    plain = [_ZONE.sub(r"\1", word) if as_written else _plain(word) for word in words]
    right = pandas.Series([word if asked.fullmatch(word) else None for word in plain], dtype=object)
    used = form if as_written else form.replace("%B", "%b")
    return moments(pandas.to_datetime(right, format=used, errors="coerce"))


def find_epoch(values: NDArray[numpy.float64]) -> str | None:
    """Return the unit in which numbers may count the time since 1970; None where they lie elsewhere."""
    known = values[numpy.isfinite(values)]
    found = (
        unit
        for unit, (least, most) in _EPOCH_YEARS.items()
        if len(known) and least <= known.min() <= known.max() <= most
    )
    return next(found, None)


def moments(values: "pandas.Series[Any]") -> Moments:
    """Return a column of dates as they read on a clock, without a zone."""
    if getattr(values.dtype, "tz", None) is not None:
        values = values.dt.tz_localize(None)
    return values.to_numpy(dtype="datetime64[us]")


def plainly_typed(values: "pandas.Series[Any]") -> "pandas.Series[Any]":
    """Return time spans as days, as a spreadsheet writes them, and periods as the moments that they begin with.

    All else is returned as it is; complex numbers, of which half would be lost, are refused.
    """
    import pandas  # noqa: PLC0415  # see the top of the package

    if getattr(values.dtype, "kind", "O") == "m":
        try:
            days: pandas.Series[Any] = values.astype("timedelta64[ns]") / pandas.Timedelta(days=1)
        except pandas.errors.OutOfBoundsTimedelta as error:
            raise DataError(f"column '{values.name}' holds time spans of more than 292 years: {error}") from error
        return days
    if isinstance(values.dtype, pandas.PeriodDtype):
        moments_begun: pandas.Series[Any] = values.dt.to_timestamp()
        return moments_begun
    if getattr(values.dtype, "kind", "O") == "c":
        raise DataError(f"column '{values.name}' holds complex numbers: give their parts as two columns")
    return values


CYCLES = ("month", "weekday", "hour")
DATE_PARTS = ("elapsed days", "year", *(f"{name} {wave}" for name in CYCLES for wave in ("sine", "cosine")))


def date_parts(values: Moments) -> tuple[str, ...]:
    """Return the parts of dates that tell rows apart."""
    known = values[~numpy.isnat(values)]
    if not len(known):
        return ()
    varies = {name: len(numpy.unique(each)) > 1 for name, each in _fields(known).items()}
    parts = [name for name in ("elapsed days", "year") if varies[name]]
    if known.max() - known.min() < _DAY:
        parts = []
    cycles = [name for name in CYCLES if varies[name]]
    return (*parts, *(f"{name} {wave}" for name in cycles for wave in ("sine", "cosine")))


def date_numbers(values: Moments, parts: Sequence[str]) -> NDArray[numpy.float64]:
    """Return some parts of dates (n_samples, n_parts), NaN where there is no date.

    A month, a weekday and an hour are points on a circle, sin(2πx/period) and cos(2πx/period): 23 o'clock is next to 0.
    """
    missing = numpy.isnat(values)
    fields = _fields(numpy.where(missing, _EPOCH, values))
    periods = {"month": 12.0, "weekday": 7.0, "hour": 24.0}
    columns = []
    for part in parts:
        name, _, wave = part.partition(" ")
        turn = 2 * numpy.pi * fields[name] / periods[name] if name in periods else fields[part]
        found = {"sine": numpy.sin, "cosine": numpy.cos}[wave](turn) if name in periods else turn
        columns.append(numpy.where(missing, numpy.nan, found))
    return numpy.stack(columns, axis=1) if columns else numpy.empty((len(values), 0))


def _fields(values: Moments) -> dict[str, NDArray[numpy.float64]]:
    days = values.astype("datetime64[D]")
    months = values.astype("datetime64[M]").astype(numpy.int64)
    return {
        "elapsed days": (values - _EPOCH) / _DAY,
        "year": numpy.floor(months / 12) + 1970.0,
        "month": (months % 12).astype(float),
        "weekday": ((days.astype(numpy.int64) + 3) % 7).astype(float),  # 1 January 1970 was a Thursday; Monday is 0
        "hour": (values - days) / numpy.timedelta64(1, "h"),
    }


def is_cyclic(part: str) -> bool:
    """Return whether a part of a date is a point on a circle, which needs no scaling."""
    return part.endswith(("sine", "cosine"))
