"""Options derived from settings: their names, types, defaults, limits and help are those of the settings themselves.

A field `learning_rate: float = Field(default=0.001, gt=0, description="Initial rate.")` becomes
`--learning-rate FLOAT  Initial rate.  [default: 0.001]`; nested settings follow with the field's name before theirs, as
`--schedule-warmup`. What is not given in the call is not passed on, so that settings keep their own defaults.
"""

import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from itertools import filterfalse
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import typer
from pydantic.fields import FieldInfo

from topiarist.errors import SettingsError
from topiarist.settings import Settings

Parse = Callable[[Any], Any]
CallValues = Mapping[str, Any]  # the values of a call, by the names of its parameters
S = TypeVar("S", bound=Settings)
WIDEST_CHOICE = 36  # characters in the column of types; more choices than fit are listed in the text of the help


@dataclass(frozen=True)
class DerivedOption:
    """One option: the setting that it stands for, as a path, its parameter, and how its value is read."""

    path: tuple[str, ...]
    parameter: inspect.Parameter
    words: tuple[str, ...]
    parse: Parse

    @property
    def option(self) -> str:
        """The option as it stands in the call, of those with two names; the first name where it does not."""
        called = {word.partition("=")[0] for word in sys.argv}
        return next((word for word in self.words if word in called), self.words[0])


@dataclass(frozen=True)
class DerivedOptions(Generic[S]):
    """The options of one kind of settings."""

    kind: type[S]
    options: tuple[DerivedOption, ...]

    def values(self, given: CallValues) -> dict[str, Any]:
        """Return the settings that stand in the call, nested where they are nested."""
        found: dict[str, Any] = {}
        for each in self.options:
            value = given.get(each.parameter.name)
            if value is None:
                continue
            inner = found
            for part in each.path[:-1]:
                inner = inner.setdefault(part, {})
            try:
                inner[each.path[-1]] = each.parse(value)
            except SettingsError as error:
                raise SettingsError(f"{each.option}: {error}") from error
        return found

    def make(self, given: CallValues, **others: Any) -> S:
        """Return the settings; raise SettingsError that names the option at fault."""
        values = self.values(given)
        with naming(self.names):
            return self.kind(**values, **others)

    def change(self, settings: S, given: CallValues, **others: Any) -> S:
        """Return settings with what stands in the call; raise SettingsError that names the option at fault."""
        values = self.values(given)
        with naming(self.names):
            return settings.changed(**values, **others)

    def given(self, values: CallValues) -> list[str]:
        """Return the options that stand in the call."""
        return [each.option for each in self.options if values.get(each.parameter.name) is not None]

    @property
    def names(self) -> dict[str, str]:
        """The option of each setting, by its dotted path."""
        return {".".join(each.path): each.option for each in self.options}


@contextmanager
def naming(options: Mapping[str, str]) -> Iterator[None]:
    """Name options in place of settings in an error: 'TrainConfig: learning_rate must …' becomes '--lr must …'."""
    try:
        yield
    except SettingsError as error:
        text = str(error).partition(": ")[2] or str(error)
        unknown = error.setting and re.sub(r"(\.\d+)+$", "", error.setting) not in options
        if error.setting and unknown:
            text = text.replace(error.setting, f"--{error.setting.replace('_', '-')}", 1)
        for setting, option in sorted(options.items(), key=lambda pair: -len(pair[0])):
            # A plain word may stand for itself later in the line.
            anywhere = "_" in setting or "." in setting
            pattern = rf"(?<![\w-]){re.escape(setting)}\b" if anywhere else rf"^{re.escape(setting)}\b"
            text = re.sub(rf"{pattern}(\.\d+\b)?", option, text)  # of several values, the value itself is shown
        raise SettingsError(text) from error


def derive(
    kind: type[S],
    panel: str,
    *,
    only: tuple[str, ...] | None = None,
    without: tuple[str, ...] = (),
    spelled: Mapping[str, str] | None = None,
    read: Mapping[str, tuple[str, Parse | None]] | None = None,
    defaults: Mapping[str, str] | None = None,
    prefix: str = "",
) -> DerivedOptions[S]:
    """Return the options of settings, in a panel of the help.

    By the dotted path of a setting: `spelled` gives options other names, "--lr --learning-rate"; `read` states how a
    value is written (its metavar) and how that is parsed, None for as usual; `defaults` are shown in place of those of
    the settings, none for "".
    """
    style = _Style(panel, spelled or {}, read or {}, defaults or {}, prefix)
    chosen = [
        each
        for each in _options_of(kind, style, ())
        if (only is None or each.path[0] in only) and each.path[0] not in without
    ]
    return DerivedOptions(kind, tuple(chosen))


@dataclass(frozen=True)
class _Style:
    """How options are named, read and shown: what `derive` takes."""

    panel: str
    spelled: Mapping[str, str]
    read: Mapping[str, tuple[str, Parse | None]]
    defaults: Mapping[str, str]
    prefix: str


def _options_of(kind: type[Settings], style: _Style, path: tuple[str, ...]) -> Iterator[DerivedOption]:
    for name, field in kind.model_fields.items():
        place = (*path, name)
        bare = _without_none(field.annotation)
        if isinstance(bare, type) and issubclass(bare, Settings):
            yield from _options_of(bare, style, place)
        elif field.description is not None and (option := _option_of(place, field, bare, style)) is not None:
            yield option


def _option_of(place: tuple[str, ...], field: FieldInfo, bare: Any, style: _Style) -> DerivedOption | None:
    """Return the option of one setting; None where no word on a command line can stand for its value."""
    dotted = ".".join(place)
    words = style.spelled.get(dotted, f"--{style.prefix}{'-'.join(place).replace('_', '-')}").split()
    metavar, parse = style.read.get(dotted, (None, None))
    shape = (str, parse) if parse is not None else _shape_of(bare)
    if shape is None:
        return None
    choices = _choices_of(bare) if metavar is None else ()
    long = len("|".join(choices)) > WIDEST_CHOICE
    text = f"{str(field.description).removesuffix('.')}: {', '.join(choices)}." if long else field.description
    default = style.defaults.get(dotted, _shown_default(field))
    option = typer.Option(
        *words,
        metavar="NAME" if long else metavar or _metavar_of(bare),
        rich_help_panel=style.panel,
        help=f"{text}  [default: {default}]" if default else text,
        show_default=False,
    )
    parameter = inspect.Parameter(
        "_".join((*([style.prefix.strip("-")] if style.prefix else []), *place)).replace("-", "_"),
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[shape[0] | None, option],
    )
    return DerivedOption(place, parameter, tuple(part for word in words for part in word.split("/")), shape[1])


def _without_none(annotation: Any) -> Any:
    parts = [part for part in get_args(annotation) if part is not NoneType]
    if get_origin(annotation) in (Union, UnionType) and len(parts) < len(get_args(annotation)):
        return parts[0] if len(parts) == 1 else Union[tuple(parts)]  # noqa: UP007  # it is made at run time
    return annotation


def _shape_of(annotation: Any) -> tuple[Any, Parse] | None:
    """Return the type of an option, and how its value becomes that of the setting; None where there is none."""
    if get_origin(annotation) is Annotated:
        return _shape_of(get_args(annotation)[0])
    if annotation in (bool, int, float, str, Path):
        return annotation, lambda value: value
    arguments = get_args(annotation)
    if get_origin(annotation) is Literal:
        by_text = {str(value): value for value in arguments if not isinstance(value, bool)}
        return Literal[tuple(by_text)], by_text.__getitem__
    if get_origin(annotation) is tuple and arguments[-1:] == (Ellipsis,):
        return list[str], lambda texts: tuple(part.strip() for text in texts for part in text.split(","))
    if get_origin(annotation) is tuple:
        return str, _parse_pair
    if get_origin(annotation) in (Union, UnionType):
        return str, _word_or_number
    return None


def _parse_pair(text: str) -> tuple[int, int]:
    first, _, second = text.partition(":")
    if not (first.isdecimal() and second.isdecimal()):
        raise SettingsError(f"two numbers are written like 2:4; found '{text}'")
    return int(first), int(second)


def _word_or_number(text: str) -> str | float:
    try:
        return float(text)
    except ValueError:
        return text


def _choices_of(annotation: Any) -> tuple[str, ...]:
    if get_origin(annotation) is not Literal:
        return ()
    return tuple(str(value) for value in get_args(annotation) if not isinstance(value, bool))


def _metavar_of(annotation: Any) -> str | None:
    if get_origin(annotation) is tuple:
        return "A,B,…" if get_args(annotation)[-1:] == (Ellipsis,) else "N:M"
    return None


def _shown_default(field: FieldInfo) -> str:
    return "" if field.is_required() else shown_value(field.get_default(call_default_factory=True))


def shown_value(value: Any) -> str:
    """Return a value as an option would be given it; nothing for what no option has to be given for."""
    if value is None or value is False or isinstance(value, Settings):
        return ""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _without_panel(parameter: inspect.Parameter) -> bool:
    found = getattr(parameter.annotation, "__metadata__", ())
    return all(getattr(each, "rich_help_panel", None) is None for each in found)


def with_options(*derived: DerivedOptions[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of settings to those of a command; it takes them as `**options`.

    In the help, the command's own options come first, but those in a panel of their own last.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        own = [
            each.replace(annotation=hints.get(each.name, each.annotation), kind=inspect.Parameter.KEYWORD_ONLY)
            for each in inspect.signature(command).parameters.values()
            if each.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        derived_parameters = [option.parameter for each in derived for option in each.options]
        parameters = [*filter(_without_panel, own), *derived_parameters, *filterfalse(_without_panel, own)]

        @wraps(command)
        def run(**values: Any) -> None:
            command(**values)

        run.__signature__ = inspect.Signature(parameters, return_annotation=None)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorate
