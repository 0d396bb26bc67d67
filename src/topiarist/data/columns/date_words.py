"""The words in dates: months of several languages in short English, as `%b` reads them; weekdays are left aside."""

import re

_MONTHS = {  # German, French, Spanish, Italian, Portuguese and Dutch, whole and in short
    "Jan": "january januar jänner jän janvier janv enero ene gennaio gen janeiro januari",
    "Feb": "february februar feber februari février fevrier févr fév fev febrero febbraio fevereiro",
    "Mar": "march märz maerz mär mrz mars marzo março marco maart mrt",
    "Apr": "avril avr abril abr aprile april",
    "May": "mai mayo maggio mag maio mei maj",
    "Jun": "june juni juin junio giugno giu junho",
    "Jul": "july juli juillet juil julio luglio lug julho",
    "Aug": "august août aout aoû agosto ago augustus augusti",
    "Sep": "september sept septembre septiembre settembre set setembro",
    "Oct": "october oktober okt octobre octubre ottobre ott outubro out",
    "Nov": "november novembre noviembre novembro",
    "Dec": "dezember dez décembre decembre déc diciembre dic dicembre dezembro december",
}
_ENGLISH = {word: month for month, words in _MONTHS.items() for word in words.split()}
_WEEKDAY = re.compile(
    r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun"
    r"|(?:Mon|Diens|Donners|Frei|Sams|Sonn)tag|Mittwoch|Mo|Di|Mi|Do|Fr|Sa|So"
    r"|lundi|mardi|mercredi|jeudi|vendredi|samedi|dimanche)\.?,?\s+(?=\S*\d|[^\W\d]+\.?\s+\d)",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[^\W\d_]{3,}\.?")
_BETWEEN = re.compile(r"\s+de[l]?\s+", re.IGNORECASE)  # 14 de mayo de 2024
_WRITTEN = re.compile(r"[^\W\d_]{2}")


def in_english(word: str) -> str:
    """Return a date with its month in short English, and without its weekday.

    Examples
    --------
    >>> [in_english(word) for word in ("14. März 2024", "Sunday, May 14, 2023", "1er août 2024", "2024-05-14")]
    ['14. Mar 2024', 'May 14, 2023', '1 Aug 2024', '2024-05-14']
    """
    if not _WRITTEN.search(word):
        return word
    plain = _BETWEEN.sub(" ", _WEEKDAY.sub("", word, count=1))
    plain = re.sub(r"(?<=\d)(?:st|nd|rd|th|er|º)(?=\s)", "", plain)
    return _LETTERS.sub(lambda found: _ENGLISH.get(found[0].rstrip(".").lower(), found[0]), plain)
