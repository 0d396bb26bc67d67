"""From a declared grid to configurations: every combination of variants, values and methods."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from topiarist.errors import SettingsError
from topiarist.study.settings import SECTIONS, CellSettings, Table

OTHER_AXES = ("variant", "method")


@dataclass(frozen=True)
class AxisChoice:
    """One value of an axis of the grid: what it is called, what it sets, and the key that declared it."""

    label: str
    values: Mapping[str, Any]
    key: str


@dataclass(frozen=True)
class Configuration:
    """One combination: its label names the choices, its settings are complete and checked."""

    label: str
    choices: Mapping[str, str]
    settings: CellSettings


def configurations(sections: Mapping[str, Table], axes: Mapping[str, Sequence[AxisChoice]]) -> list[Configuration]:
    """Return all combinations in the order declared, the last axis running fastest."""
    found = []
    for combination in product(*axes.values()):
        settings = settle(sections, combination)
        chosen = {axis: choice.label for axis, choice in zip(axes, combination, strict=True)}
        label = " · ".join(described(axis, text) for axis, text in chosen.items()) or "as declared"
        found.append(Configuration(label, chosen, settings))
    check_different(found)
    return found


def described(axis: str, text: str) -> str:
    """Return the name of a choice; variants and methods need no axis before them."""
    return text if axis in OTHER_AXES else f"{axis} {text}"


def check_different(found: Sequence[Configuration]) -> None:
    """Raise SettingsError for two configurations that are the same, or that have one name."""
    seen: dict[str, str] = {}
    for configuration in found:
        text = configuration.settings.model_dump_json()
        if text in seen:
            raise SettingsError(f"two configurations are the same: '{seen[text]}' and '{configuration.label}'")
        if configuration.label in seen.values():
            raise SettingsError(f"two configurations are both called '{configuration.label}': name them apart")
        seen[text] = configuration.label


def settle(sections: Mapping[str, Table], choices: Sequence[AxisChoice]) -> CellSettings:
    """Put the choices of one combination into the sections, and check what comes out."""
    merged: dict[str, Any] = {name: dict(values) for name, values in sections.items()}
    origins: dict[str, str] = {}
    for choice in choices:
        for path, value in choice.values.items():
            place(merged, path.split("."), value, key=choice.key)
            origins[path] = f"{choice.key}.{path}" if choice.key.startswith("variants.") else choice.key
    checked = {}
    for name, values in merged.items():
        try:
            checked[name] = SECTIONS[name](**values)
        except SettingsError as error:
            raise at_fault(error, name, origins) from error
    return CellSettings(**checked)


def place(merged: dict[str, Any], path: Sequence[str], value: Any, *, key: str) -> None:
    """Set the value at a path such as training.schedule.name; the first part must be a section."""
    if path[0] not in SECTIONS or (len(path) < 2 and not isinstance(value, Mapping)):
        known = ", ".join(SECTIONS)
        raise SettingsError(f"{key}: '{'.'.join(path)}' names no setting of a section: {known}", setting=key)
    if len(path) == 1:
        merged[path[0]] = {**merged.get(path[0], {}), **value}
        return
    inner = merged.setdefault(path[0], {})
    for part in path[1:-1]:
        inner[part] = dict(inner[part]) if isinstance(inner.get(part), Mapping) else {}
        inner = inner[part]
    inner[path[-1]] = value


def at_fault(error: SettingsError, section: str, origins: Mapping[str, str]) -> SettingsError:
    """Return the error with the key of the declaration that is at fault."""
    path = f"{section}.{error.setting}" if error.setting else section
    if not error.setting:  # two settings clash: the choice that was made last is the one to look at
        chosen = [origin for known, origin in origins.items() if known.partition(".")[0] == section]
        return SettingsError(f"{(chosen or [path])[-1]}: {said_of(error)}", setting=(chosen or [path])[-1])
    holding = (known for known in origins if path == known or path.startswith(f"{known}."))
    origin = next((origins[known] + path.removeprefix(known) for known in holding), None)
    if origin is None:
        last = path.rpartition(".")[2]
        origin = next((origins[known] for known in origins if error.setting and known.endswith(f".{last}")), path)
    return SettingsError(f"{origin}: {said_of(error)}", setting=origin)


def said_of(error: SettingsError) -> str:
    """Return the text of an error without the names of class and setting."""
    said = str(error).partition(": ")[2]
    return said.removeprefix(f"{error.setting}: ").removeprefix(error.setting).strip()


def grid_axes(grid: Table) -> dict[str, list[AxisChoice]]:
    """Return one axis per setting of the grid, called by its last name where that is clear."""
    lists: dict[str, Any] = {}
    for path, values in flat(grid):
        if path in lists:
            raise SettingsError(f"grid.{path}: is declared twice", setting=f"grid.{path}")
        lists[path] = values
    for path, values in lists.items():
        if not isinstance(values, Sequence) or isinstance(values, str) or not values:
            raise SettingsError(
                f"grid.{path}: must list the values to compare; found {values!r}", setting=f"grid.{path}"
            )
    last = [path.rpartition(".")[2] for path in lists]
    clear = {path: last.count(short) == 1 and short not in OTHER_AXES for path, short in zip(lists, last, strict=True)}
    names = {path: short if clear[path] else path for path, short in zip(lists, last, strict=True)}
    return {
        names[path]: [AxisChoice(shown(value), {path: value}, f"grid.{path}") for value in values]
        for path, values in lists.items()
    }


def flat(tree: Table, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested tables by their dotted paths."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def shown(value: Any) -> str:
    """Write a value as a label: hidden layers as 100-50, the rest as one expects."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "-".join(shown(part) for part in value) or "none"
    if isinstance(value, Mapping):
        return " ".join(shown(part) if name == "name" else f"{name} {shown(part)}" for name, part in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
