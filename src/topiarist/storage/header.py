"""What a model file says of its network besides the weights, the digest that guards both, and a signature.

The metadata of the `.safetensors` file has one entry, `topiarist`: JSON with sorted keys and no time stamp. A file that
was saved with a key has another, `topiarist-signature`: the HMAC-SHA256 of the digest. The digest notices accidents;
whoever changes a file can make its digest anew. Only who has the key can make the signature.
"""

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor, uint8

from topiarist.data import Preprocessing, SplitRule
from topiarist.data.preprocessing import check_shape
from topiarist.errors import DataError, ModelError
from topiarist.files import JsonObject, canonical_json
from topiarist.models import Card
from topiarist.surgery import Plan
from topiarist.tasks import Classification, Task, task_from_record

KEY, SIGNATURE = "topiarist", "topiarist-signature"
SHORTEST_KEY = 16  # bytes: 128 bits cannot be guessed
FORMAT = 1


class Version(BaseModel):
    """The part of a header that every format has."""

    model_config = ConfigDict(frozen=True, strict=True, ser_json_inf_nan="constants")

    format: int = FORMAT
    library: str = version("topiarist")


class Header(Version, extra="forbid"):
    """A card and what it takes to load the weights.

    `task` is what is predicted where that is not one of `classes`. `edits` are those that surgery made, and `example`
    is the shape of the input that they were made with.
    `aliases` holds, for each name that is not stored, the name of the tensor it is tied to. `digest` is the SHA-256 of
    the rest of the header, of the tensors' names, types and shapes, and of their bytes.
    """

    spec: JsonObject | None
    classes: tuple[str, ...] | None
    task: JsonObject | None = None
    input_shape: tuple[int, ...] | None
    preprocessing: JsonObject | None
    rule: SplitRule | None
    training: JsonObject | None = None
    edits: tuple[JsonObject, ...]
    example: Any = None
    aliases: dict[str, str]
    digest: str = ""

    def to_text(self) -> str:
        """Return the text that stands in the file."""
        return canonical_json(self.model_dump(mode="json", exclude=self.unsaid), only_ascii=True)

    @property
    def unsaid(self) -> set[str]:
        """What is not written where there is none, as in files of before it."""
        return {"task"} if self.task is None else set()

    def card(self) -> Card:
        """Return the card that the network had when it was saved."""
        try:
            check_shape(self.input_shape or ())
        except ValueError as error:
            raise ModelError(f"the file is damaged: {error}") from error
        try:
            preprocessing = None if self.preprocessing is None else Preprocessing.from_json(self.preprocessing)
        except (LookupError, TypeError, ValueError, OverflowError, AttributeError, RecursionError) as error:
            raise ModelError(f"the file is damaged: its preprocessing cannot be read ({error!r})") from error
        return Card(
            spec=self.spec,
            task=self.known_task(),
            input_shape=self.input_shape,
            preprocessing=preprocessing,
            rule=self.rule,
            training=self.training,
        )

    def known_task(self) -> Task | None:
        """Return what the network predicts, as far as the file says so."""
        if self.task is None:
            return None if self.classes is None else Classification(self.classes)
        try:
            if self.classes is not None:  # their names stand in the file once
                return Classification(self.classes, **self.task)
            return task_from_record(self.task)
        except (LookupError, TypeError, ValueError, DataError) as error:
            raise ModelError(f"the file is damaged: its task cannot be read ({error!r})") from error

    def plan(self) -> Plan:
        """Return the edits that made the network what it was when it was saved."""
        return Plan.from_record({"edits": self.edits, "example": self.example})


AnyHeader = TypeVar("AnyHeader", bound=Header)


def make_header(card: Card, plan: Plan, aliases: dict[str, str]) -> Header:
    """Describe a network that has this card and this plan; it is not signed yet."""
    record = plan.to_record()
    return Header(
        spec=card.spec,
        classes=card.classes,
        task=None if card.task is None else _task_record(card.task),
        input_shape=card.input_shape,
        preprocessing=None if card.preprocessing is None else card.preprocessing.to_json(),
        rule=card.rule,
        training=card.training,
        edits=tuple(record["edits"]),
        example=record["example"],
        aliases=aliases,
    )


def _task_record(task: Task) -> JsonObject | None:
    """Return a task as plain values; of classes, whose names have a place of their own, only what was chosen."""
    return (task.chosen or None) if isinstance(task, Classification) else task.to_record()


def sign(header: AnyHeader, tensors: Mapping[str, Tensor]) -> AnyHeader:
    """Return a header with the digest of itself and of the tensors that stand in its file."""
    return header.model_copy(update={"digest": digest(header, tensors)})


def digest(header: Header, tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of all that has a meaning in the file; the tensors are dense and in main memory."""
    names = sorted(tensors)
    described = [[name, str(tensors[name].dtype), list(tensors[name].shape)] for name in names]
    absent = {
        name for name in ("example", "training", "task") if getattr(header, name) is None
    }  # as in files without them
    rest = header.model_dump(mode="json", exclude={"digest"} | absent)
    hasher = hashlib.sha256(canonical_json([rest, described], only_ascii=True).encode())
    for name in names:
        hasher.update(tensors[name].reshape(-1).view(uint8).numpy().data)
    return hasher.hexdigest()


def signature(key: bytes, digest: str) -> str:
    """Return what only who has the key can make for a file of this digest."""
    if len(key) < SHORTEST_KEY:
        raise ModelError(f"a key to sign with has at least {SHORTEST_KEY} bytes; found {len(key)}")
    return hmac.new(key, digest.encode(), "sha256").hexdigest()


def parse_header(text: str) -> Header:
    """Read what `to_text` wrote; the text may come from anyone."""
    with readable():
        check_format(text, FORMAT)
        return Header.model_validate_json(text)


def check_format(text: str, expected: int) -> None:
    """Refuse a header of another format than the tensors of its file."""
    found = Version.model_validate_json(text)
    if found.format > expected:
        raise ModelError(f"written by a newer version of topiarist, {found.library}: upgrade to read it")
    if found.format < expected:
        raise ModelError(f"the file is damaged: its header is of format {found.format}, its tensors of {expected}")


@contextmanager
def readable() -> Iterator[None]:
    """Turn whatever is wrong with a record into an error of one line."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ModelError(f"the file is damaged: its header cannot be read ({where}: {first['msg']})") from error
