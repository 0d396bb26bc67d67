"""Edits of a network as edits of one that holds it, and the other way round: only names change."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from topiarist.surgery.edits import DeepenNetwork, Edit, GrowSpace, MergeUnits, ProjectSpace, RemoveUnits, WidenSpace

Value = TypeVar("Value")
Rename = Callable[[str], str | None]


def held_at(prefix: str) -> Rename:
    """Name what a network has as the network that holds it does."""
    return lambda name: f"{prefix}{name}"


def within(prefix: str) -> Rename:
    """Name what a held network has as that network does; what lies outside it gets no name."""
    return lambda name: name.removeprefix(prefix) if name.startswith(prefix) else None


def renamed(values: Mapping[str, Value], rename: Rename) -> dict[str, Value]:
    """Give values by their new names; those without one are left out."""
    pairs = ((rename(name), value) for name, value in values.items())
    return {name: value for name, value in pairs if name is not None}


def renamed_edit(edit: Edit, rename: Rename) -> Edit | None:
    """Give an edit with the new names of its spaces and layers; None where nothing of it is left."""
    match edit:
        case RemoveUnits():
            units = renamed(edit.units, rename)
            biased = tuple(renamed(dict.fromkeys(edit.biased), rename))
            return edit.model_copy(update={"units": units, "biased": biased}) if units else None
        case MergeUnits() | WidenSpace() | GrowSpace() | ProjectSpace():
            space = rename(edit.space)
            return None if space is None else edit.model_copy(update={"space": space})
        case DeepenNetwork():
            after = rename(edit.after)
            return None if after is None else edit.model_copy(update={"after": after})
    layer = rename(edit.layer)
    return None if layer is None else edit.model_copy(update={"layer": layer})
