"""A plan: the edits that made a network what it is, in order; as JSON, they are replayed on a fresh network."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from topiarist.errors import ModelError, SettingsError
from topiarist.surgery.edits import Edit
from topiarist.surgery.examples import Example, read_example

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
    """Give the edits that made a network what it is; an empty plan where nothing was changed."""
    plan = getattr(model, ATTRIBUTE, None)
    return plan if isinstance(plan, Plan) else Plan()


def attach_plan(model: nn.Module, plan: Plan) -> None:
    """Let a network carry its plan, in the place of the one it had."""
    object.__setattr__(model, ATTRIBUTE, plan)
