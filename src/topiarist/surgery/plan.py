"""A plan: the edits that made a network what it is, in order; as JSON, they are replayed on a fresh network."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from topiarist.errors import ModelError, SettingsError
from topiarist.models import Ensemble
from topiarist.surgery.edits import Edit
from topiarist.surgery.examples import Example, Shape, read_example
from topiarist.surgery.renaming import Rename, held_at, renamed, renamed_edit, within

ATTRIBUTE = "_topiarist_plan"
Numbers = Mapping[str, Tensor]


@dataclass(frozen=True)
class Plan:
    """Edits in order, with the shape of the example input that they were made with.

    `numbers` has, for each edit, the tensors that cannot be computed again without the calibration data of a refit;
    they are not part of the JSON.
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
        """Give each edit with its numbers."""
        padded = (*self.numbers, *({} for _ in range(len(self.edits) - len(self.numbers))))
        return zip(self.edits, padded, strict=True)

    def then(self, edit: Edit, numbers: Numbers | None = None, example: Example | None = None) -> "Plan":
        """Give the plan with one edit more."""
        known = tuple(values for _, values in self.steps())
        return Plan((*self.edits, edit), self.example or example, (*known, numbers or {}))

    def renamed(self, rename: Rename) -> "Plan":
        """Give the plan with other names of spaces and layers; what gets none is left out."""
        steps = [(renamed_edit(edit, rename), renamed(numbers, rename)) for edit, numbers in self.steps()]
        left = [(edit, numbers) for edit, numbers in steps if edit is not None]
        edits = tuple(edit for edit, _ in left)
        return Plan(edits, self.example if edits else None, tuple(numbers for _, numbers in left))

    def to_json(self) -> str:
        """Give the structure as JSON, without the numbers of refits."""
        return json.dumps(self.to_record(), sort_keys=True)

    def to_record(self) -> dict[str, Any]:
        """Give the structure as what JSON is made of."""
        example = TypeAdapter(Example | None).dump_python(self.example, mode="json")
        return {"edits": [edit.model_dump(mode="json") for edit in self.edits], "example": example}

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """Read what `to_json` gave."""
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ModelError(f"the plan cannot be read: {error}") from error
        if not isinstance(record, dict):
            raise ModelError(f"a plan is a JSON object; found a {type(record).__name__}")
        return cls.from_record(record)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "Plan":
        """Read what `to_record` gave."""
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
    """Give the edits that made a network what it is; an empty plan where nothing was changed.

    Those of an ensemble are those of its members, in the order in which they were made as far as the ensemble knows.
    """
    found = getattr(model, ATTRIBUTE, None)
    plan = found if isinstance(found, Plan) else Plan()
    own = {prefix: plan_of(member) for prefix, member in members_of(model).items()}
    known = all(plan.renamed(within(prefix)) == edits for prefix, edits in own.items())
    return plan if known else joined([edits.renamed(held_at(prefix)) for prefix, edits in own.items()])


def attach_plan(model: nn.Module, plan: Plan) -> None:
    """Let a network carry its plan, in the place of the one it had, and the members of an ensemble their part of it."""
    object.__setattr__(model, ATTRIBUTE, plan)
    for prefix, member in members_of(model).items():
        attach_plan(member, plan.renamed(within(prefix)))


def members_of(model: nn.Module) -> dict[str, nn.Module]:
    """Give the members of an ensemble by what their names begin with; none of any other network."""
    held = model.members if isinstance(model, Ensemble) else ()
    return {f"members.{number}.": member for number, member in enumerate(held)}


def joined(plans: Sequence[Plan]) -> Plan:
    """Give the plans of networks that read the same single input as one."""
    steps = [step for plan in plans for step in plan.steps()]
    example = next((only_input(plan.example) for plan in plans if plan.example is not None), None)
    return Plan(tuple(edit for edit, _ in steps), example, tuple(numbers for _, numbers in steps))


def only_input(example: Example) -> Shape:
    """Give the one tensor of an example, which may stand in a sequence, or in a mapping under its name."""
    if isinstance(example, Shape):
        return example
    return next(iter(example.values() if isinstance(example, dict) else example))


def parted(plan: Plan, model: nn.Module) -> dict[str, Plan]:
    """Give the networks that edits can be made in one by one, by path, with their edits.

    They are the members of an ensemble, which is much quicker to follow by parts, where they share nothing and no edit
    is of a member itself; else the network as a whole.
    """
    members = members_of(model)
    parts = {prefix: plan.renamed(within(prefix)) for prefix in members}
    modules = [module for member in members.values() for module in member.modules()]
    inside = all(any(renamed_edit(edit, within(prefix)) for prefix in members) for edit in plan.edits)
    if not members or not inside or len(set(modules)) < len(modules):
        return {"": plan}
    return {prefix.removesuffix("."): part for prefix, part in parts.items()}
