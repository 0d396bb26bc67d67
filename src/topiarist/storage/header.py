"""What a model file says of its network besides the weights, and the digest that guards both.

The metadata of the `.safetensors` file has one entry, `topiarist`: JSON with sorted keys and no time stamp.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError
from torch import Tensor, uint8

from topiarist.data import Preprocessing, SplitRule
from topiarist.errors import ModelError
from topiarist.models import Card
from topiarist.surgery import Plan

KEY = "topiarist"
FORMAT = 1


class Version(BaseModel):
    """The part of a header that every format has."""

    model_config = ConfigDict(frozen=True, strict=True, ser_json_inf_nan="constants")

    format: int = FORMAT
    library: str = version("topiarist")


class Header(Version, extra="forbid"):
    """A card and what it takes to load the weights.

    `edits` are those that surgery made, and `example` is the shape of the input that they were made with.
    `aliases` gives, for each name that is not stored, the name of the tensor it is tied to. `digest` is the SHA-256 of
    the rest of the header, of the tensors' names, types and shapes, and of their bytes.
    """

    spec: dict[str, Any] | None
    classes: tuple[str, ...] | None
    input_shape: tuple[int, ...] | None
    preprocessing: dict[str, Any] | None
    rule: SplitRule | None
    training: dict[str, Any] | None = None
    edits: tuple[dict[str, Any], ...]
    example: Any = None
    aliases: dict[str, str]
    digest: str = ""

    def to_text(self) -> str:
        """Give the text that stands in the file."""
        return canonical(self.model_dump(mode="json"))


AnyHeader = TypeVar("AnyHeader", bound=Header)


def make_header(card: Card, plan: Plan, aliases: dict[str, str]) -> Header:
    """Describe a network that has this card and this plan; it is not signed yet."""
    record = plan.to_record()
    return Header(
        spec=card.spec,
        classes=card.classes,
        input_shape=card.input_shape,
        preprocessing=None if card.preprocessing is None else card.preprocessing.to_json(),
        rule=card.rule,
        training=card.training,
        edits=tuple(record["edits"]),
        example=record["example"],
        aliases=aliases,
    )


def sign(header: AnyHeader, tensors: Mapping[str, Tensor]) -> AnyHeader:
    """Give a header with the digest of itself and of the tensors that stand in its file."""
    return header.model_copy(update={"digest": digest(header, tensors)})


def parse_header(text: str) -> Header:
    """Read what `to_text` gave; the text may come from anyone."""
    with readable():
        check_format(Version.model_validate_json(text), FORMAT)
        return Header.model_validate_json(text)


def check_format(found: Version, asked: int) -> None:
    """Refuse a file of another format than its tensors say."""
    if found.format > asked:
        raise ModelError(f"written by a newer version of topiarist, {found.library}: upgrade to read it")
    if found.format < asked:
        raise ModelError(f"format {asked} was asked, format {found.format} found: the file is damaged")


@contextmanager
def readable() -> Iterator[None]:
    """Turn whatever is wrong with a record into one line."""
    try:
        yield
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ModelError(f"the file is damaged: its header cannot be read ({where}: {first['msg']})") from error


def card_in(header: Header) -> Card:
    """Give the card that the network had when it was saved."""
    record = header.preprocessing
    try:
        preprocessing = None if record is None else Preprocessing.from_json(record)
    except (LookupError, TypeError, ValueError) as error:
        raise ModelError(f"the file is damaged: its preprocessing cannot be read ({error!r})") from error
    return Card(
        spec=header.spec,
        classes=header.classes,
        input_shape=header.input_shape,
        preprocessing=preprocessing,
        rule=header.rule,
        training=header.training,
    )


def plan_in(header: Header) -> Plan:
    """Give the edits that made the network what it was when it was saved."""
    return Plan.from_record({"edits": header.edits, "example": header.example})


def digest(header: Header, tensors: Mapping[str, Tensor]) -> str:
    """Give the SHA-256 of all that has a meaning in the file; the tensors are dense and in main memory."""
    names = sorted(tensors)
    described = [[name, str(tensors[name].dtype), list(tensors[name].shape)] for name in names]
    absent = {name for name in ("example", "training") if getattr(header, name) is None}  # as in files without them
    rest = header.model_dump(mode="json", exclude={"digest"} | absent)
    hasher = hashlib.sha256(canonical([rest, described]).encode())
    for name in names:
        hasher.update(tensors[name].reshape(-1).view(uint8).numpy().data)
    return hasher.hexdigest()


def canonical(record: object) -> str:
    """Give one JSON text for one meaning."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"))
