"""Numbers as people write them: 1,234.5 and 1.234,5, 5 %, € 1,200, (30), $(30), 45,- €, <0.5, 3.2M.

Which of comma and point is the decimal mark is decided for a whole column: '1,234' alone can be either. Cells that only
the other reading makes a number of are read so: '1,5' beside '2.5' is 1.5.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy
from numpy.typing import NDArray

from topiarist.data.columns.texts import Texts

if TYPE_CHECKING:
    from topiarist.data.columns.texts import Cells

Decimal = Literal[".", ","]
Numbers = NDArray[numpy.float64]

_SYMBOLS = "€$£¥₹₽₩₺₪฿₫₱₴₦¢"
_CODES = (
    "USD EUR GBP CHF JPY CNY INR AUD CAD NZD SEK NOK DKK PLN CZK HUF RON BRL MXN ZAR RUB TRY KRW SGD HKD"
    " Euros Euro kr zł Kč Ft Fr Rs Rp RM лв руб"
)
_CURRENCY = rf"(?:(?:US|R|C|A|NZ|HK|S)?[{_SYMBOLS}]|(?i:{'|'.join(_CODES.split())})\.?)"
_BOUNDS = "<>≤≥~≈"  # '<0.5' is what a laboratory writes for less than it can measure: the bound is the best there is
_UNIT = re.compile(r"(?P<number>.*\d[.,]?)\s*(?P<unit>[^\W\d_][^\d,;:()%‰<>*+-]{0,14}|°[CFK]?)")
_GROUPED = r"[1-9]\d{{0,2}}(?P<mark>[{marks}])\d{{3}}(?:(?P=mark)\d{{3}})*"
_INDIAN = r"|[1-9]\d?(?:,\d{2})+,\d{3}"  # 12,34,567
_SHARES = {"%": 100.0, "‰": 1000.0}
_SCALES = {"k": 1e3, "K": 1e3, "Tsd": 1e3, "M": 1e6, "Mio": 1e6, "B": 1e9, "bn": 1e9, "Mrd": 1e9}
_SHORTEST_PLURAL = 2  # letters before an s: 'kgs' are kg, and 'ms' are not m
_DAY_DIGITS = (8, 14)  # of 20240131 and 20240131235959
_TRIED = 1000  # words in which a column of plain numbers shows its decimal point
_OTHER: dict[Decimal, Decimal] = {".": ",", ",": "."}


def _pattern(decimal: Decimal) -> re.Pattern[str]:
    grouped = _GROUPED.format(marks=_OTHER[decimal] + r"\s'’") + (_INDIAN if decimal == "." else "")
    mark = re.escape(decimal)
    plain = rf"(?:\d+(?:{mark}\d*)?|{mark}\d+)(?:[eE][-+]?\d+)?"  # an exponent never stands with thousands
    body = rf"(?:(?:{grouped})(?:{mark}\d*)?|{plain})"
    before = rf"(?P<bound>[{_BOUNDS}]=?)?\s*(?P<open>\()?\s*(?P<sign>[-+−])?\s*(?P<currency>{_CURRENCY})?\s*"
    before += r"(?P<of>[%‰](?!.*[%‰]))?\s*"  # as in Turkish
    before += r"(?P<inside>\()?\s*(?P<inner>[-+−])?\s*"
    whole = rf"(?:(?<={mark})[-–—]{{1,2}})?"  # '45,-' has no cents
    whole += rf"\s*(?:(?P<scale>{'|'.join(_SCALES)})\.?)?"
    after = rf"{whole}\s*(?P<share>[%‰])?\s*(?P<coin>{_CURRENCY})?\s*(?P<after>-)?(?P<close>\))?(?P<note>\*{{1,3}})?"
    return re.compile(rf"{before}(?P<body>{body}){after}")


_PATTERNS: dict[Decimal, re.Pattern[str]] = {".": _pattern("."), ",": _pattern(",")}
_NOTHING = re.compile(rf"{_CURRENCY}\s*[-–—]{{1,2}}|[-–—]{{1,2}}\s*{_CURRENCY}")  # zero, as spreadsheets keep accounts


@dataclass(frozen=True, eq=False, kw_only=True)
class NumberEvidence:
    """What the words of a column are as numbers, by decimal point and by decimal comma; NaN where they are none.

    `only_point` and `only_comma` count the cells that are a number in one reading alone.
    """

    by_point: Numbers
    by_comma: Numbers
    only_point: int
    only_comma: int

    @property
    def share(self) -> NDArray[numpy.bool_]:
        """Which words are numbers at all."""
        return ~(numpy.isnan(self.by_point) & numpy.isnan(self.by_comma))

    @property
    def ambiguous(self) -> bool:
        """Whether both readings are possible and mean different numbers."""
        differ = self.by_point != self.by_comma
        return not self.only_point and not self.only_comma and bool((differ & self.share).any())


def weigh(texts: Texts) -> NumberEvidence:
    """Read the words of a column both ways."""
    by_point = read_numbers(texts.words, ".", other=False)
    unread, sure = numpy.isnan(by_point), False
    if not unread.any():  # a decimal point that is no thousands mark, early on, saves the second reading
        sure = bool(numpy.isnan(read_numbers(texts.words[:_TRIED], ",", other=False)).any())
    by_comma = numpy.full(len(texts.words), numpy.nan) if sure else read_numbers(texts.words, ",", other=False)
    return NumberEvidence(
        by_point=by_point,
        by_comma=by_comma,
        only_point=int(texts.counts[~unread & numpy.isnan(by_comma)].sum()),
        only_comma=int(texts.counts[unread & ~numpy.isnan(by_comma)].sum()),
    )


def choose_decimal(evidence: NumberEvidence, words: Iterable[str], *, leaning: int, semicolons: bool) -> Decimal:
    """Return the decimal mark of a column.

    What is a number in one reading alone decides. Where all can be read both ways, `leaning` does: how many columns of
    the file show a decimal comma, less those that show a point. Without a hint, '1,234' is 1234, unless semicolons part
    the columns, as where the comma is taken; and '1.234' is what every program reads.
    """
    if evidence.only_point != evidence.only_comma:
        return "," if evidence.only_comma > evidence.only_point else "."
    if not evidence.ambiguous:
        return "."
    commas = any("," in word for word in words)
    return "," if leaning > 0 or (leaning == 0 and commas and semicolons) else "."


def read_numbers(words: NDArray[Any], decimal: Decimal, *, other: bool = True) -> Numbers:
    """Return each word as a number, NaN for what is none; with `other`, by the other decimal mark where need be."""
    found = numpy.full(len(words), numpy.nan)
    if decimal == ".":
        found = _parsed_by_pandas(words)
    for mark in (decimal, _OTHER[decimal]) if other else (decimal,):
        for place in numpy.flatnonzero(numpy.isnan(found)):
            found[place] = _read(words[place], mark)
    return found


def _parsed_by_pandas(words: NDArray[Any]) -> Numbers:
    """Return plain numbers at once, NaN for all else; for all, where one has too many digits for pandas."""
    import pandas  # noqa: PLC0415  # see the top of the package

    try:
        return numpy.array(pandas.to_numeric(pandas.Series(words, dtype=object), errors="coerce"), dtype=float)
    except OverflowError:
        return numpy.full(len(words), numpy.nan)


def _read(word: str, decimal: Decimal) -> float:
    read = _PATTERNS[decimal].fullmatch(word)
    if read is None:
        return 0.0 if _NOTHING.fullmatch(word) else numpy.nan
    brackets = bool(read["open"]) + bool(read["inside"])
    if brackets != bool(read["close"]):
        return numpy.nan
    body = "".join(each for each in read["body"] if each.isdecimal() or each in "eE+-" or each == decimal)
    value = float(body.replace(decimal, ".")) * _SCALES.get(read["scale"] or "", 1.0)
    value /= _SHARES.get(read["share"] or read["of"] or "", 1.0)
    minus = sum(read[name] in ("-", "−") for name in ("sign", "inner", "after")) + brackets
    return -value if minus % 2 else value


def find_unit(texts: Texts) -> str:
    """Return the unit that stands behind most numbers of a column, such as 'km'; "" where there is none.

    'year' and 'years' are one unit. Cells without one are taken to have it too.
    """
    found = [(_unit_of(word), count) for word, count in zip(texts.words, texts.counts.tolist(), strict=True)]
    sizes: dict[str, int] = {}
    for unit, count in found:
        sizes[unit] = sizes.get(unit, 0) + count
    best = max(sizes, key=lambda unit: sizes[unit], default="")
    return best if 2 * sizes.get(best, 0) > texts.filled else ""


def without_unit(words: NDArray[Any], unit: str) -> NDArray[Any]:
    """Return words without that unit behind them."""
    if not unit:
        return words
    return numpy.array([_number_of(word) if _unit_of(word) == unit else word for word in words], dtype=object)


def _unit_of(word: str) -> str:
    read = _UNIT.fullmatch(word)
    unit = read["unit"].rstrip(". ") if read else ""
    return unit[:-1] if len(unit) > _SHORTEST_PLURAL and unit.endswith("s") else unit


def _number_of(word: str) -> str:
    read = _UNIT.fullmatch(word)
    return read["number"] if read else word


def plain_numbers(values: "Cells") -> Numbers | None:
    """Return a column of text whose cells all are plain numbers or blank, read at once; None for any other.

    A large table of plain numbers is read ten times as fast as word by word.
    """
    import pandas  # noqa: PLC0415  # see the top of the package

    if not pandas.api.types.is_string_dtype(values.dtype):
        return None
    for cells in (values.iloc[:_TRIED], values):  # most columns of words are known by their first cells
        try:
            found = numpy.array(pandas.to_numeric(cells, errors="coerce"), dtype=float)
            blank = numpy.asarray((cells == "") | cells.isna(), dtype=bool)
        except (OverflowError, ValueError):  # hundreds of digits; lists in cells
            return None
        if (numpy.isnan(found) & ~blank).any() or blank.all():
            return None
    return found


def shows_point(values: "Cells") -> bool | None:
    """Return whether plain numbers have a decimal point that is no thousands mark; None where more must be known.

    Whole numbers with leading zeros may be codes, those of eight or fourteen digits dates, and '1.234' may be 1234.
    """
    head = [word.strip() for word in values.iloc[:_TRIED] if isinstance(word, str) and word.strip()]
    if any(_PATTERNS[","].fullmatch(word) is None for word in head):
        return True
    if any("." in word for word in head) or all(len(word) in _DAY_DIGITS for word in head):
        return None
    return (
        None if bool(values.str.match(r"\s*0\d").any()) or bool(values.str.contains(".", regex=False).any()) else False
    )


def signs_in(texts: Texts) -> dict[str, int]:
    """Count the cells with a sign beside the number: per cent, a currency, K for thousands, < or a star."""
    found: dict[str, int] = {}
    for word, count in zip(texts.words, texts.counts.tolist(), strict=True):
        if word[-1:].isdigit() and word[:1].isdigit():
            continue
        read = _PATTERNS["."].fullmatch(word) or _PATTERNS[","].fullmatch(word)
        for sign in filter(
            None, read.group("bound", "scale", "of", "share", "currency", "coin", "note") if read else ()
        ):
            found[sign] = found.get(sign, 0) + count
    return found


def are_codes(texts: Texts) -> bool:
    """Return whether the words are codes and no numbers: digits of one length, some with a leading zero."""
    words = texts.words
    if len(words) < 2 or len(words[0]) < 2 or not any(word.startswith("0") for word in words):
        return False
    return len({len(word) for word in words}) == 1 and all(word.isdecimal() for word in words)
