"""Errors and warnings: one line each, what was asked, what was found, what to do."""


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
        super().__init__(f"{what} needs the extra '{extra}': pip install 'topiarist[{extra}]'")


class TopiaristWarning(UserWarning):
    """Something was decided on the user's behalf, and this says what."""


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says; its kind where it says nothing."""
    return str(error).split("\n")[0] or type(error).__name__
