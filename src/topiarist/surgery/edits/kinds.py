"""The kinds of edits, printable and JSON-able."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field, NonNegativeInt, PositiveInt, SerializerFunctionWrapHandler, model_serializer

from topiarist.files import JsonObject
from topiarist.settings import Settings

Unit = NonNegativeInt
Count = Annotated[int, Field(ge=1, le=2**20)]  # a file must not ask for more units than any network has


class _Edit(Settings):
    added: ClassVar[tuple[str, ...]] = ()  # settings that versions before them can read an edit without

    @model_serializer(mode="wrap")
    def _dump(self, write: SerializerFunctionWrapHandler) -> JsonObject:
        usual = {name: type(self).model_fields[name].default for name in self.added}
        return {name: value for name, value in write(self).items() if name not in usual or value != usual[name]}


class RemoveUnits(_Edit):
    """Units that go.

    Parameters
    ----------
    units, refit : dict[str, tuple[int, ...]], bool
        The numbers of the units, by space, and whether the layers that read them are refitted.
    biased : tuple[str, ...]
        Layers into whose biases units move that are constant.
    """

    kind: Literal["remove"] = "remove"
    units: dict[str, tuple[Unit, ...]]
    refit: bool = False
    biased: tuple[str, ...] = ()

    def __str__(self) -> str:
        spaces = ", ".join(f"{len(units)} of '{space}'" for space, units in self.units.items())
        return f"remove {spaces or 'nothing'}{' and refit' if self.refit else ''}"


class Merge(Settings):
    """One unit expressed by another: h_unit ≈ scale · h_into + shift.

    Parameters
    ----------
    unit, into, scale, shift : int, int, float, float
        The unit that goes, the one that stands for it, and how; a complement has scale -1 and shift 1.
    """

    unit: Unit
    into: Unit
    scale: float = 1.0
    shift: float = 0.0


class MergeUnits(_Edit):
    """Units of a space that go, each expressed by one that stays.

    Parameters
    ----------
    space, merges : str, tuple[Merge, ...]
        The space, and for each unit that goes what stands for it.
    """

    kind: Literal["merge"] = "merge"
    space: str
    merges: tuple[Merge, ...]

    def __str__(self) -> str:
        return f"merge {len(self.merges)} of '{self.space}' into others"


class WidenSpace(_Edit):
    """Copies of units, whose outgoing weights are split.

    Parameters
    ----------
    space, by, seed : str, int, int
        The space, the number of copies, and what decides which units are copied, and the shares.
    even : bool
        Split into equal shares, as published: equal copies get equal gradients, and stay equal in training.
    """

    added = ("even",)
    kind: Literal["widen"] = "widen"
    space: str
    by: Count
    seed: NonNegativeInt
    even: bool = False

    def __str__(self) -> str:
        return f"widen '{self.space}' by {self.by}{' in equal shares' if self.even else ''}"


class GrowSpace(_Edit):
    """Fresh units with zero outgoing weights.

    Parameters
    ----------
    space, by, seed : str, int, int
        The space, the number of units, and what decides their incoming weights.
    """

    kind: Literal["grow"] = "grow"
    space: str
    by: Count
    seed: NonNegativeInt

    def __str__(self) -> str:
        return f"grow '{self.space}' by {self.by}"


class ProjectSpace(_Edit):
    """Fewer units: the first singular directions of the layer that writes a space, whatever its activation.

    Parameters
    ----------
    space, to : str, int
        The space, and its new number of units.
    """

    kind: Literal["project"] = "project"
    space: str
    to: PositiveInt

    def __str__(self) -> str:
        return f"project '{self.space}' to {self.to}"


class DeepenNetwork(_Edit):
    """An identity layer after a layer.

    Parameters
    ----------
    after, batch_norm : str, bool
        The layer, and whether a batch norm follows the new one.
    """

    kind: Literal["deepen"] = "deepen"
    after: str
    batch_norm: bool = False

    def __str__(self) -> str:
        return f"deepen after '{self.after}'{' with batch norm' if self.batch_norm else ''}"


class FoldLayer(_Edit):
    """A layer multiplied into the next.

    Parameters
    ----------
    layer, linearise, refit : str, bool, bool
        The layer, whether an activation between the two is dropped, and whether a refit makes up for that.
    """

    kind: Literal["fold"] = "fold"
    layer: str
    linearise: bool = False
    refit: bool = False

    def __str__(self) -> str:
        return f"fold '{self.layer}'{' and refit' if self.refit else ''}"


class FactoriseLayer(_Edit):
    """A layer as the product of two thinner ones.

    Parameters
    ----------
    layer, rank : str, int
        The layer, and the number of units between the two.
    balanced : bool
        Each has the roots of the singular values; otherwise the first has all of them and the second none, as in the
        published code of the Surgeon.
    """

    added = ("balanced",)
    kind: Literal["factorise"] = "factorise"
    layer: str
    rank: PositiveInt
    balanced: bool = True

    def __str__(self) -> str:
        return f"factorise '{self.layer}' to rank {self.rank}"


class Passage(Settings):
    """How what a block is given becomes what stands in its place returns.

    Parameters
    ----------
    takes : tuple[str, ...]
        The names of forward's first arguments, as many as are passed on.
    form : {"argument", "tuple", "list", "dict"}
        The first argument as it is, or a container.
    gives : dict[str, str | None]
        What a container holds, in order, by key or by number: an argument by its name, or None.
    kept : tuple[str, ...]
        Norms that stay, by their names in the block: those that the input passes behind the last addition.
    """

    takes: tuple[str, ...] = ("input",)
    form: Literal["argument", "tuple", "list", "dict"] = "argument"
    gives: dict[str, str | None] = Field(default_factory=dict)
    kept: tuple[str, ...] = ()


class RemoveBlock(_Edit):
    """Residual blocks that go: what stands in their place passes its input on.

    Parameters
    ----------
    blocks, refit : dict[str, Passage], bool
        The blocks by name, and whether the layers that read what changed are refitted.
    """

    kind: Literal["remove_block"] = "remove_block"
    blocks: dict[str, Passage]
    refit: bool = False

    def __str__(self) -> str:
        named = ", ".join(f"'{name}'" for name in self.blocks)
        several = "blocks" if len(self.blocks) > 1 else "block"
        return f"remove the {several} {named or 'none'}{' and refit' if self.refit else ''}"


MOST_SETTLING_STEPS = 2**20  # hours for any network that settling is for


class SettleNetwork(_Edit):
    """All parameters moved towards the answers that the network gave before its last edits, without labels.

    Parameters
    ----------
    steps, seed : int, int
        The number of steps, and what decides the order of the samples and which of them judge.
    edits : int
        How many edits before this one it makes up for.
    """

    added = ("edits",)
    kind: Literal["settle"] = "settle"
    steps: Annotated[int, Field(ge=1, le=MOST_SETTLING_STEPS)]
    seed: NonNegativeInt = 0
    edits: PositiveInt = 1

    def __str__(self) -> str:
        return f"settle in {self.steps} steps"


Edit = Annotated[
    RemoveUnits
    | MergeUnits
    | WidenSpace
    | GrowSpace
    | ProjectSpace
    | DeepenNetwork
    | FoldLayer
    | FactoriseLayer
    | RemoveBlock
    | SettleNetwork,
    Field(discriminator="kind"),
]


def complement(unit: int, into: int) -> Merge:
    """Return the merge of a unit that is one minus another, as two sigmoid units with opposite weights are.

    Parameters
    ----------
    unit, into : int
        The unit that goes, and the one that stands for it.

    Returns
    -------
    Merge

    Examples
    --------
    >>> complement(3, 1).scale
    -1.0
    """
    return Merge(unit=unit, into=into, scale=-1.0, shift=1.0)
