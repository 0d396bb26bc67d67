"""Texts and records as users give them, made fit for any document."""

import math
import re
from typing import Any

from topiarist.errors import DataError
from topiarist.files import JsonObject

# What no XML document may contain: control characters and halves of surrogate pairs.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def replace_forbidden(text: str) -> str:
    """Return the text with U+FFFD for every character that a document must not contain."""
    return _FORBIDDEN.sub("\ufffd", text)


def clean(text: object) -> str:
    """Return the text in one line, with single spaces and no forbidden character."""
    return " ".join(replace_forbidden(str(text)).split())


def capitalised(text: str) -> str:
    """Return a text that begins with a capital letter, and is otherwise as it is."""
    return text[:1].upper() + text[1:]


def shorten(text: object, limit: int = 32) -> str:
    """Return the clean text, with an ellipsis where it is longer than `limit` characters."""
    whole = clean(text)
    return whole if len(whole) <= limit else whole[: limit - 1].rstrip() + "…"


def required(record: JsonObject, name: str) -> Any:
    """Return a field of a record, or raise a DataError in one line that it is missing."""
    if name not in record:
        raise DataError(f"a record needs the field '{name}': it has {', '.join(map(repr, record)) or 'none'}")
    return record[name]


def as_number(value: Any) -> float:
    """Return a number, NaN where there is no finite one."""
    try:
        number = math.nan if value is None else float(value)
    except (TypeError, ValueError) as error:
        raise DataError(f"a figure needs numbers: found {value!r}") from error
    return number if math.isfinite(number) else math.nan
