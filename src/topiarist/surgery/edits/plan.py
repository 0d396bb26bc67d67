"""A plan: the edits that made a network what it is, in order; as JSON, they are replayed on a fresh network."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict, TypeVar

from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from topiarist.errors import ModelError, SettingsError
from topiarist.models import Ensemble
from topiarist.surgery.edits.examples import Example, ExampleShape, read_example
from topiarist.surgery.edits.kinds import (
    Edit,
    GrowSpace,
    MergeUnits,
    ProjectSpace,
    RemoveBlock,
    RemoveUnits,
    SettleNetwork,
    WidenSpace,
)

ATTRIBUTE = "_topiarist_plan"
Numbers = Mapping[str, Tensor]
Rename = Callable[[str], str | None]
Value = TypeVar("Value")


class EditPlanRecord(TypedDict):
    """A plan as what JSON is made of."""

    edits: list[Any]
    example: Any


@dataclass(frozen=True)
class Plan:
    """Edits in order, to print, to store as JSON, and to replay with `apply`.

    Parameters
    ----------
    edits : tuple[Edit, ...]
        The edits.
    example : Example, optional
        The shape of the example input that they were made with.
    numbers : tuple[Mapping[str, Tensor], ...]
        For each edit, the tensors that cannot be computed again without the calibration data of a refit. They are not
        part of the JSON.

    Examples
    --------
    >>> plan = Plan((GrowSpace(space="hidden0", by=4, seed=0),))
    >>> print(plan)
    1. grow 'hidden0' by 4
    >>> Plan.from_json(plan.to_json()) == plan
    True
    """

    edits: tuple[Edit, ...] = ()
    example: Example | None = None
    numbers: tuple[Numbers, ...] = field(default=(), compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.edits)

    def __str__(self) -> str:
        return "\n".join(f"{number}. {edit}" for number, edit in enumerate(self.edits, 1)) or "no edits"

    def __iter__(self) -> Iterator[Edit]:
        return iter(self.edits)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Plan":
        return self

    def steps(self) -> Iterator[tuple[Edit, Numbers]]:
        """Return each edit with its numbers."""
        padded = (*self.numbers, *({} for _ in range(len(self.edits) - len(self.numbers))))
        return zip(self.edits, padded, strict=True)

    def then(self, edit: Edit, numbers: Numbers | None = None, example: Example | None = None) -> "Plan":
        """Return the plan with one edit more."""
        known = tuple(values for _, values in self.steps())
        return Plan((*self.edits, edit), self.example or example, (*known, numbers or {}))

    def widths_after(self, widths: Mapping[str, int]) -> dict[str, int] | None:
        """Return what widths of spaces become; None where an edit of depth makes spaces anew."""
        after = dict(widths)
        for edit in self.edits:
            match edit:
                case RemoveUnits():
                    after |= {name: after[name] - len(set(units)) for name, units in edit.units.items()}
                case MergeUnits():
                    after[edit.space] -= len(edit.merges)
                case WidenSpace() | GrowSpace():
                    after[edit.space] += edit.by
                case ProjectSpace():
                    after[edit.space] = edit.to
                case SettleNetwork():
                    pass
                case _:
                    return None
        return after

    def renamed(self, rename: Rename) -> "Plan":
        """Return the plan with other names of spaces and layers; what gets none is left out."""
        left: list[tuple[Edit, Numbers]] = []
        for edit, numbers in self.steps():
            named, values = renamed_edit(edit, rename), _renamed(numbers, rename)
            elsewhere = isinstance(edit, SettleNetwork) and (not left or (numbers and not values))
            if named is not None and not elsewhere:
                left.append((named, values))
        edits = tuple(edit for edit, _ in left)
        return Plan(edits, self.example if edits else None, tuple(numbers for _, numbers in left))

    def to_json(self) -> str:
        """Return the structure as JSON, without the numbers of refits."""
        return json.dumps(self.to_record(), sort_keys=True)

    def to_record(self) -> EditPlanRecord:
        """Return the structure as what JSON is made of."""
        example = TypeAdapter(Example | None).dump_python(self.example, mode="json", exclude_none=True)
        return {"edits": [edit.model_dump(mode="json") for edit in self.edits], "example": example}

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """Read what `to_json` returned."""
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"the plan cannot be read: {error}") from error
        if not isinstance(record, dict):
            raise ModelError(f"a plan is a JSON object; found a {type(record).__name__}")
        return cls.from_record(record)

    @classmethod
    def from_record(cls, record: Mapping[str, object]) -> "Plan":
        """Read what `to_record` returned."""
        if set(record) != {"edits", "example"}:
            raise ModelError(f"a plan has edits and an example; found {', '.join(map(str, record)) or 'nothing'}")
        try:
            edits = TypeAdapter(tuple[Edit, ...]).validate_python(record["edits"])
            return cls(edits, read_example(record["example"]))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ModelError(f"the plan cannot be read ({where}: {first['msg']})") from error
        except (SettingsError, TypeError, AttributeError) as error:
            raise ModelError(f"the plan cannot be read: {error}") from error


def plan_of(model: nn.Module) -> Plan:
    """Return the edits that made a network what it is.

    Parameters
    ----------
    model : nn.Module
        Any network.

    Returns
    -------
    Plan
        An empty plan where nothing was changed; that of an ensemble has the edits of its members, in the order in
        which they were made as far as the ensemble knows.
    """
    found = getattr(model, ATTRIBUTE, None)
    plan = found if isinstance(found, Plan) else Plan()
    own = {prefix: plan_of(member) for prefix, member in _members_of(model).items()}
    if all(plan.renamed(_within(prefix)) == edits for prefix, edits in own.items()):
        return plan
    parts = [edits.renamed(prefix.__add__) for prefix, edits in own.items()]
    steps = [step for part in parts for step in part.steps()]
    example = next((part.example for part in parts if part.example is not None), None)
    if example is not None and not isinstance(example, ExampleShape):  # the one tensor that all members read
        example = next(iter(example.values() if isinstance(example, dict) else example))
    return Plan(tuple(edit for edit, _ in steps), example, tuple(numbers for _, numbers in steps))


def attach_plan(model: nn.Module, plan: Plan) -> None:
    """Let a network carry its plan, in the place of the one it had, and the members of an ensemble their part of it."""
    object.__setattr__(model, ATTRIBUTE, plan)
    for prefix, member in _members_of(model).items():
        attach_plan(member, plan.renamed(_within(prefix)))


def parted(plan: Plan, model: nn.Module) -> dict[str, Plan]:
    """Return the networks that edits can be made in one by one, by path, with their edits.

    They are the members of an ensemble, which is much quicker to follow by parts, where they share nothing and no edit
    is of a member itself; else the network as a whole.
    """
    members = _members_of(model)
    modules = [module for member in members.values() for module in member.modules()]
    inside = all(any(renamed_edit(edit, _within(prefix)) for prefix in members) for edit in plan.edits)
    if not members or not inside or len(set(modules)) < len(modules):
        return {"": plan}
    return {prefix.removesuffix("."): plan.renamed(_within(prefix)) for prefix in members}


def renamed_edit(edit: Edit, rename: Rename) -> Edit | None:
    """Return an edit with new names of its spaces and layers; None where nothing of it is left."""
    if isinstance(edit, RemoveUnits):
        units = _renamed(edit.units, rename)
        biased = tuple(_renamed(dict.fromkeys(edit.biased), rename))
        return edit.model_copy(update={"units": units, "biased": biased}) if units else None
    if isinstance(edit, RemoveBlock):
        blocks = _renamed(edit.blocks, rename)
        return edit.model_copy(update={"blocks": blocks}) if blocks else None
    if isinstance(edit, SettleNetwork):
        return edit
    (setting,) = {"space", "after", "layer"} & set(type(edit).model_fields)
    name = rename(getattr(edit, setting))
    return None if name is None else edit.model_copy(update={setting: name})


def _renamed(values: Mapping[str, Value], rename: Rename) -> dict[str, Value]:
    pairs = ((rename(name), value) for name, value in values.items())
    return {name: value for name, value in pairs if name is not None}


def _members_of(model: nn.Module) -> dict[str, nn.Module]:
    """Return the members of an ensemble by what their names begin with; none of any other network."""
    held = model.members if isinstance(model, Ensemble) else ()
    return {f"members.{number}.": member for number, member in enumerate(held)}


def _within(prefix: str) -> Rename:
    """Name what a held network has as that network does; what lies outside it gets no name."""
    return lambda name: name.removeprefix(prefix) if name.startswith(prefix) else None
