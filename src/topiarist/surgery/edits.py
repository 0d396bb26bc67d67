"""Edits as data: what changes in a network's structure, printable and JSON-able."""

from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, SerializerFunctionWrapHandler, model_serializer

from topiarist.settings import Settings

Unit = NonNegativeInt
Count = Annotated[int, Field(ge=1, le=2**20)]


class RemoveUnits(Settings):
    """Units that go, by space.

    `refit`: the layers that read them are refitted. `biased`: layers into whose biases units move that are constant.
    """

    kind: Literal["remove"] = "remove"
    units: dict[str, tuple[Unit, ...]]
    refit: bool = False
    biased: tuple[str, ...] = ()

    def __str__(self) -> str:
        spaces = ", ".join(f"{len(units)} of '{space}'" for space, units in self.units.items())
        return f"remove {spaces or 'nothing'}{' and refit' if self.refit else ''}"


class Merge(Settings):
    """One unit expressed by another: h_unit ≈ scale · h_into + shift. A complement has scale -1 and shift 1."""

    unit: Unit
    into: Unit
    scale: float = 1.0
    shift: float = 0.0


class MergeUnits(Settings):
    """Units of a space that go, each expressed by one that stays."""

    kind: Literal["merge"] = "merge"
    space: str
    merges: tuple[Merge, ...]

    def __str__(self) -> str:
        return f"merge {len(self.merges)} of '{self.space}' into others"


class WidenSpace(Settings):
    """Copies of units, whose outgoing weights are split unevenly; the seed decides which units and which shares.

    `even`: split into equal shares, as published; the copies then get equal gradients, and stay equal in training.
    """

    kind: Literal["widen"] = "widen"
    space: str
    by: Count
    seed: NonNegativeInt
    even: bool = False

    def __str__(self) -> str:
        return f"widen '{self.space}' by {self.by}{' in equal shares' if self.even else ''}"

    @model_serializer(mode="wrap")
    def dump(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Give the edit as it was before shares could be equal, unless they are: other versions can read it."""
        record: dict[str, Any] = write(self)
        return record if self.even else {name: value for name, value in record.items() if name != "even"}


class GrowSpace(Settings):
    """Fresh units with zero outgoing weights; the seed decides their incoming ones."""

    kind: Literal["grow"] = "grow"
    space: str
    by: Count
    seed: NonNegativeInt

    def __str__(self) -> str:
        return f"grow '{self.space}' by {self.by}"


class ProjectSpace(Settings):
    """Fewer units: the first singular directions of the layer that writes a space, whatever its activation."""

    kind: Literal["project"] = "project"
    space: str
    to: PositiveInt

    def __str__(self) -> str:
        return f"project '{self.space}' to {self.to}"


class DeepenNetwork(Settings):
    """An identity layer after a layer, with batch norm or not."""

    kind: Literal["deepen"] = "deepen"
    after: str
    batch_norm: bool = False

    def __str__(self) -> str:
        return f"deepen after '{self.after}'{' with batch norm' if self.batch_norm else ''}"


class FoldLayer(Settings):
    """A layer multiplied into the next. `linearise`: an activation between them is dropped; `refit`: made up for."""

    kind: Literal["fold"] = "fold"
    layer: str
    linearise: bool = False
    refit: bool = False

    def __str__(self) -> str:
        return f"fold '{self.layer}'{' and refit' if self.refit else ''}"


class FactoriseLayer(Settings):
    """A layer as the product of two thinner ones, each with the roots of the singular values.

    Not `balanced`: the first has all of them and the second none, as the published code of the Surgeon does.
    """

    kind: Literal["factorise"] = "factorise"
    layer: str
    rank: PositiveInt
    balanced: bool = True

    def __str__(self) -> str:
        return f"factorise '{self.layer}' to rank {self.rank}"

    @model_serializer(mode="wrap")
    def dump(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return the record without `balanced` where it is usual: versions that do not know it can read it."""
        record: dict[str, Any] = write(self)
        return {name: value for name, value in record.items() if name != "balanced"} if self.balanced else record


Edit = Annotated[
    RemoveUnits | MergeUnits | WidenSpace | GrowSpace | ProjectSpace | DeepenNetwork | FoldLayer | FactoriseLayer,
    Field(discriminator="kind"),
]


def complement(unit: int, into: int) -> Merge:
    """Give the merge of a unit that is one minus another, as two sigmoid units with opposite weights are."""
    return Merge(unit=unit, into=into, scale=-1.0, shift=1.0)
