"""Frozen, keyword-only configuration objects, checked where they are made."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from topiarist.errors import SettingsError
from topiarist.files import JsonObject

LARGEST_WHOLE = 2**64  # what torch and numpy can count with
LONGEST_FOUND = 100  # characters of a value that is quoted
_INSIDE: ContextVar[bool] = ContextVar("inside another configuration", default=False)


class Settings(BaseModel):
    """A configuration that cannot be changed or misspelt; a bad value is one clear line."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @model_validator(mode="after")
    def _numbers_are_of_this_world(self) -> Self:
        for name, value in self:
            if isinstance(value, int) and abs(value) >= LARGEST_WHOLE:
                raise ValueError(f"{name} must be below 2^64; found a number of {len(str(abs(value)))} digits")
        return self

    def changed(self, **values: Any) -> Self:
        """Return the settings with other values, checked again; None changes nothing, a dict what it names."""
        return type(self)(**_merged(self, values))

    def __init__(self, /, **values: Any) -> None:
        with _in_one_line(type(self).__name__):
            super().__init__(**values)

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Return the configuration that a mapping describes; a bad value is the same line as in a call."""
        with _in_one_line(cls.__name__):
            return super().model_validate(obj, **options)


@contextmanager
def _in_one_line(name: str) -> Iterator[None]:
    """Turn what pydantic complains of into one line, unless in another configuration, which will say where."""
    if _INSIDE.get():
        yield
        return
    token = _INSIDE.set(True)
    try:
        yield
    except ValidationError as error:
        refuse(name, error)
    finally:
        _INSIDE.reset(token)


class Record(BaseModel):
    """A record that is written, read and drawn: typed, and plain numbers, texts and lists in JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> JsonObject:
        """Return plain values."""
        return self.model_dump(mode="json")


def refuse(name: str, error: ValidationError) -> NoReturn:
    """Raise the first complaint of pydantic as one line that names the setting and the value found."""
    first = error.errors(include_url=False)[0]
    setting = ".".join(str(part) for part in first["loc"])
    found = "" if first["type"] == "missing" or not first["loc"] else f"; found {repr(first['input'])[:LONGEST_FOUND]}"
    message = first["msg"].removeprefix("Value error, ")
    message = "there is no such setting" if first["type"] == "extra_forbidden" else message
    text = f"{name}: {setting}: {message}" if setting else f"{name}: {message}"
    raise SettingsError(text.replace(": Input should", " must") + found, setting=setting) from error


def _merged(settings: Settings, values: dict[str, Any]) -> dict[str, Any]:
    """Return what was given to settings, with other values; what is left out keeps following the defaults."""
    merged = {name: getattr(settings, name) for name in settings.model_fields_set}
    for name, value in values.items():
        inner = getattr(settings, name, None)
        if isinstance(inner, Settings) and isinstance(value, dict):
            merged[name] = _merged(inner, value)
        elif value is not None:
            merged[name] = value
    return merged
