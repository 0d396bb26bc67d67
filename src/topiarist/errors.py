"""Errors and warnings: one line each, what was asked, what was found, what to do."""

import re

# Control characters but tab and line feed; line and paragraph separators; marks that turn the direction of text around.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class TopiaristError(Exception):
    """Any error that the caller can correct. Its text is one line."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class DataError(TopiaristError):
    """The data cannot be used as asked."""


class SettingsError(TopiaristError, ValueError):
    """A setting, named where it is known, has a value that makes no sense."""

    def __init__(self, message: str, *, setting: str = "") -> None:
        super().__init__(message)
        self.setting = setting


class ModelError(TopiaristError):
    """A network or a model file cannot be used as asked."""


class MissingExtraError(TopiaristError):
    """An optional dependency is not installed."""

    def __init__(self, *, what: str, extra: str) -> None:
        super().__init__(f"{what} needs the extra '{extra}': pip install \"topiarist[{extra}]\"")


class TopiaristWarning(UserWarning):
    """Something was decided on the user's behalf, and this says what."""


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says; its kind where it says nothing."""
    return str(error).split("\n")[0] or type(error).__name__


def escaped(text: str) -> str:
    """Return a text that does nothing to a terminal: control characters of names in files are written out.

    Examples
    --------
    >>> print(escaped("a\\x1b[2Jb\\x00"))
    a\\x1b[2Jb\\x00
    """
    return _UNPRINTABLE.sub(lambda found: ascii(found[0])[1:-1], text)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that memory was asked for and not given, in Python's words or in torch's."""
    said = str(error)
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and ("can't allocate memory" in said or "out of memory" in said)
    )
