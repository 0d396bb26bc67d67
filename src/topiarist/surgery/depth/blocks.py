"""Finds residual blocks: modules that return their input, with something added, and that a network runs without."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.files import JsonObject
from topiarist.models.evaluation import count_parameters
from topiarist.surgery.depth.containers import parent_of
from topiarist.surgery.edits.kinds import Passage, RemoveBlock
from topiarist.tracing import ExampleInput
from topiarist.tracing.streams import Link, ModuleCall, Streams, follow_streams, ways
from topiarist.tracing.trace import tensors_in


class NoBlockError(ModelError):
    """A module that looks like a residual block, and cannot be removed as one."""


@dataclass(frozen=True)
class Block:
    """A residual block: y = x + f(x), perhaps with a norm or an activation behind the sum.

    Parameters
    ----------
    name : str
        Its path in the network.
    parameters, macs : int
        What goes with it: parameters that nothing else uses, and multiply-accumulates for one sample.
    passage : Passage
        How its input becomes what stands in its place returns.
    reason : str
        Why it cannot be removed; nothing where it can.
    """

    name: str
    parameters: int
    macs: int
    passage: Passage = field(default_factory=Passage, repr=False)
    reason: str = ""

    def to_json(self) -> JsonObject:
        """Return plain text and numbers."""
        kept = list(self.passage.kept)
        numbers: JsonObject = {"name": self.name, "parameters": self.parameters, "macs": self.macs}
        return {**numbers, "kept": kept, "reason": self.reason or None}


@dataclass(frozen=True)
class Blocks(Mapping[str, Block]):
    """The residual blocks of a network by name, in the order in which they run; `blocks` finds them.

    Parameters
    ----------
    found : Mapping[str, Block]
        The blocks, those that cannot be removed included.
    """

    found: Mapping[str, Block]

    @property
    def removable(self) -> dict[str, Block]:
        """Return the blocks that can be removed."""
        return {name: block for name, block in self.found.items() if not block.reason}

    def __getitem__(self, name: str) -> Block:
        if name not in self.found:
            known = ", ".join(self.found) or "none"
            raise ModelError(f"there is no residual block '{name}': known are {known}")
        return self.found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)

    def __contains__(self, name: object) -> bool:
        return name in self.found

    def __str__(self) -> str:
        if not self.found:
            return "no residual blocks"
        rows = [("block", "parameters", "MACs", ""), *(_row(block) for block in self.found.values())]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        lines = (
            f"{name:<{widths[0]}}  {parameters:>{widths[1]}}  {macs:>{widths[2]}}  {note}".rstrip()
            for name, parameters, macs, note in rows
        )
        return "\n".join(lines)


def _row(block: Block) -> tuple[str, str, str, str]:
    kept = ", ".join(f"'{name}'" for name in block.passage.kept)
    note = f"stays: {block.reason}" if block.reason else f"{kept} stays" if kept else ""
    return block.name, f"{block.parameters:,}", f"{block.macs:,}", note


def blocks(model: nn.Module, example_input: ExampleInput) -> Blocks:
    """Find the residual blocks of a network, by running it once.

    A block is a module that returns its input with something added, in the same shape. Those that look like one and
    cannot be removed are listed with the reason. A module that only runs other blocks in a row is not listed.

    Parameters
    ----------
    model, example_input
        The network, which is left as it is, and a batch that it reads.

    Returns
    -------
    Blocks
        To print, to look up by name, and `.removable`.

    Raises
    ------
    ModelError
        The network does not run on the example.

    Examples
    --------
    >>> layer = nn.TransformerEncoderLayer(8, 2, 16, norm_first=True)
    >>> encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
    >>> list(blocks(encoder, torch.zeros(3, 1, 8)).removable)
    ['layers.0', 'layers.1']
    """
    streams = follow_streams(model, example_input)
    found = {name: block for name in streams.calls if name and (block := _block(model, name, streams)) is not None}
    order = {name: number for number, (name, _) in enumerate(model.named_modules())}
    names = sorted(found, key=lambda name: order.get(name, len(order)))
    listed = {name: found[name] for name in names if not _only_runs_others(name, found)}
    whole = [f"{name}." for name, block in listed.items() if not block.reason]
    return Blocks({name: each for name, each in listed.items() if not (each.reason and name.startswith(tuple(whole)))})


def check_removable(model: nn.Module, example_input: ExampleInput, edit: RemoveBlock) -> None:
    """Raise ModelError where an edit removes what is no residual block, or one that cannot be removed so."""
    known = blocks(model, example_input)
    for name, passage in edit.blocks.items():
        found = removable_block(known, name)
        if found.passage != passage:
            raise ModelError(f"cannot remove '{name}': its input becomes its result in another way ({found.passage})")
        inside = next((other for other in edit.blocks if other.startswith(f"{name}.")), None)
        if inside is not None:
            raise ModelError(f"'{inside}' lies in '{name}': name one of them")


def removable_block(known: Blocks, name: str) -> Block:
    """Return a block that can be removed, or raise an error that says why it cannot."""
    found = known[name]
    if found.reason:
        raise ModelError(f"cannot remove the block '{name}': {found.reason}")
    return found


def _only_runs_others(name: str, found: Mapping[str, Block]) -> bool:
    """Return whether all multiplications of a block are those of blocks inside it, as with a sequence of blocks."""
    inside = [other for other in found if other.startswith(f"{name}.")]
    outermost = [other for other in inside if not any(other.startswith(f"{each}.") for each in inside)]
    return bool(inside) and sum(found[other].macs for other in outermost) >= found[name].macs


def _block(model: nn.Module, name: str, streams: Streams) -> Block | None:
    """Return a module as a block, with a reason where it only looks like one; None for any other module."""
    calls = streams.calls[name]
    if not all(_adds(name, each) for each in calls):
        return None
    macs = sum(each.macs for each in calls) // max(streams.samples, 1)
    block = Block(name, _own_parameters(model, name), macs)
    try:
        parent_of(model, name)
        if len(calls) > 1:
            raise NoBlockError(f"it runs {len(calls)} times")
        passage = _passage(name, calls[0])
    except ModelError as error:
        return replace(block, reason=str(error))
    kept = sum(count_parameters(model.get_submodule(f"{name}.{each}")) for each in passage.kept)
    return replace(block, passage=passage, parameters=block.parameters - kept)


def _adds(name: str, call: ModuleCall) -> bool:
    """Return whether a module multiplies, and returns its input with something added, or a sum that its code makes."""
    if call.taken is None or call.given is None or not call.macs:
        return False
    found = ways(call.given, call.taken)
    if found:
        return any(link.kind == "added" for way in found for link in way)
    node = call.given
    while len(node.links) == 1 and node.links[0].kind != "added":
        node = node.links[0].source
    return len(node.links) == 2 and node.module == name  # its shortcut is not its input as it is


def _own_parameters(model: nn.Module, name: str) -> int:
    """Return how many parameters a module has that nothing else uses."""
    inside = {id(each) for each in model.get_submodule(name).modules()}
    others = {id(own) for each in model.modules() if id(each) not in inside for own in each.parameters(recurse=False)}
    return sum(own.numel() for own in model.get_submodule(name).parameters() if id(own) not in others)


def _passage(name: str, call: ModuleCall) -> Passage:
    """Return how a block's input becomes what stands in its place returns; raise NoBlockError where it cannot."""
    assert call.taken is not None and call.given is not None
    if call.given_shape != call.taken_shape:
        raise NoBlockError(f"it reads {_shown(call.taken_shape)} and returns {_shown(call.given_shape)} per sample")
    found = ways(call.given, call.taken)
    if not found:
        raise NoBlockError("its shortcut is not its input as it is")
    if len(found) > 1:
        raise NoBlockError("its input is in its result more than once")
    way = found[0]
    if not _is_unmoved(way, call.taken_shape):
        raise NoBlockError("its input is in its result at other positions")
    kept = [link.name.removeprefix(f"{name}.") for link in way if link.kind == "norm"][-1:]
    for link in way:
        if link.kind == "activation":
            _check_activation(link, call, kept)
    return _container(call, tuple(kept))


def _shown(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape[1:])) or "one number"


def _is_unmoved(way: tuple[Link, ...], shape: tuple[int, ...]) -> bool:
    """Return whether all moves on a way together leave every number where it is."""
    numbers = torch.arange(torch.Size(shape).numel()).reshape(shape)
    moved = numbers
    try:
        for link in way:
            moved = moved if link.move is None else link.move(moved)
    except RuntimeError:  # a view that only a layout in memory allows
        return False
    return moved.shape == numbers.shape and bool((moved == numbers).all())


def _check_activation(link: Link, call: ModuleCall, kept: list[str]) -> None:
    """Refuse a block with an activation behind its sum, unless its input has come through the same one."""
    assert call.taken is not None
    came = any(each.kind == "activation" and each.name == link.name for each in call.taken.links)
    if kept or not (came or (link.name == "relu" and call.is_positive)):
        raise NoBlockError(f"'{link.name}' follows its addition, which what it reads has not come through")


def _container(call: ModuleCall, kept: tuple[str, ...]) -> Passage:
    """Return the container that a block returns its result in, made of what it is given."""
    names = list(call.arguments)
    first, result = call.arguments[names[0]], call.result
    if isinstance(result, Tensor) and isinstance(first, Tensor):
        return Passage(takes=(names[0],), kept=kept)
    if not isinstance(first, Tensor):
        if kept or not _same_but_first(first, result):
            raise NoBlockError("it returns another container than it is given")
        return Passage(takes=(names[0],))
    forms: dict[type, str] = {tuple: "tuple", list: "list", dict: "dict"}
    if type(result) not in forms:
        raise NoBlockError(f"it returns a {type(result).__name__}")
    items = result if isinstance(result, dict) else {str(number): value for number, value in enumerate(result)}
    gives: dict[str, str | None] = {}
    for number, (key, value) in enumerate(items.items()):
        gives[str(key)] = names[0] if number == 0 else _source(value, call.arguments)
    last = max(names.index(name) for name in gives.values() if name is not None)
    return Passage.model_validate(
        {"takes": tuple(names[: last + 1]), "form": forms[type(result)], "gives": gives, "kept": kept}
    )


def _source(value: Any, arguments: Mapping[str, Any]) -> str | None:
    """Return the argument that a block returns beside its result; None for None."""
    if value is None:
        return None
    for name, given in arguments.items():
        if given is value:
            return name
    raise NoBlockError("it returns more than its input with something added")


def _same_but_first(first: Any, result: Any) -> bool:
    """Return whether a container comes out as it went in, but for its first tensor."""
    if type(first) is not type(result):
        return False
    one, other = tensors_in(first), tensors_in(result)
    return len(one) == len(other) and all(a is b for a, b in zip(one[1:], other[1:], strict=True))
