"""The example input of a command: shapes in words, or what the network itself says that it reads.

`--example 3x224x224` is one tensor of random numbers, `--example input_ids=16:int:1000` whole numbers by name.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import typer

from topiarist.cli.options import parse_shape
from topiarist.errors import ModelError, SettingsError

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from topiarist.tracing import Inputs

Kind = Literal["float", "int", "ones", "zeros", "bool"]
KINDS: tuple[Kind, ...] = get_args(Kind)
SAMPLES = 2  # a batch of one would hide what depends on the number of samples
BELOW = 2  # of whole numbers without a limit: 0 and 1 are a token, a class or a mask nearly everywhere
MOST_BELOW = 2**63 - 1
WRITTEN = re.compile(r"(?:(?P<name>[^=:]+)=)?(?P<shape>[^=:]*)(?::(?P<kind>[^=:]+))?(?::(?P<below>[^=:]+))?")

ExampleShapes = Annotated[
    list[str] | None,
    typer.Option(
        "--example",
        metavar="[NAME=]SHAPE[:KIND[:MAX]]",
        help="The shape of one sample, such as 3x224x224; a batch of two is made of it. KIND is float (random numbers, "
        "the default), int (random whole numbers from 0 to below MAX, or 0 and 1), ones, zeros, or bool (all true). "
        "For several inputs, repeat the option or write commas; all have the NAME of an argument of forward, or none.  "
        "[default: what the network itself says that it reads]",
    ),
]


@dataclass(frozen=True)
class ExampleTensor:
    """One input: the shape of a sample, what it is filled with, and the limit of whole numbers."""

    name: str | None
    shape: tuple[int, ...]
    kind: Kind = "float"
    below: int = BELOW

    def make(self, random: "torch.Generator") -> "Tensor":
        """Return a batch of samples."""
        import torch

        shape = (SAMPLES, *self.shape)
        match self.kind:
            case "float":
                return torch.randn(shape, generator=random)
            case "int":
                return torch.randint(self.below, shape, generator=random)
            case "bool":
                return torch.ones(shape, dtype=torch.bool)
            case _:
                return torch.full(shape, int(self.kind == "ones"))


def parse_example(texts: Sequence[str]) -> list[ExampleTensor]:
    """Read the inputs that stand in a call; all of them have names, or none has."""
    found = [_parse_one(text.strip()) for several in texts for text in several.split(",")]
    names = [each.name for each in found]
    if None in names and any(names):
        raise SettingsError(f"--example: name all inputs or none; found {', '.join(map(str, texts))}")
    twice = next((name for name in names if name is not None and names.count(name) > 1), None)
    if twice is not None:
        raise SettingsError(f"--example names '{twice}' twice")
    return found


def _parse_one(text: str) -> ExampleTensor:
    read = WRITTEN.fullmatch(text)
    if read is None or not text:
        raise SettingsError(f"--example is written like 3x224x224 or input_ids=16:int:1000; found '{text}'")
    kind = read["kind"] or "float"
    if kind not in KINDS:
        raise SettingsError(f"--example: the kind of an input is one of {', '.join(KINDS)}; found '{kind}' in '{text}'")
    if read["below"] is not None and kind != "int":
        raise SettingsError(f"--example: only an input of the kind int has a limit; found '{text}'")
    below = BELOW if read["below"] is None else _parse_limit(read["below"], text)
    return ExampleTensor(read["name"], _parse_sample(read["shape"], text), kind, below)


def _parse_sample(shape: str, text: str) -> tuple[int, ...]:
    """Read the shape of a sample; none, as in `step=:int:1000`, is one number per sample."""
    from topiarist.surgery.edits.examples import MOST_ELEMENTS

    if not shape:
        return ()
    try:
        sizes = parse_shape(shape) or ()
    except SettingsError as error:
        raise SettingsError(f"--example: {error}") from error
    if SAMPLES * math.prod(sizes) > MOST_ELEMENTS:
        raise SettingsError(f"--example: an input has at most {MOST_ELEMENTS:,} elements; found '{text}'")
    return sizes


def _parse_limit(limit: str, text: str) -> int:
    if not limit.isdecimal() or len(limit) > len(str(MOST_BELOW)) or not 0 < int(limit) <= MOST_BELOW:
        raise SettingsError(f"--example: a limit is a whole number above 0; found '{limit}' in '{text}'")
    return int(limit)


def make_inputs(tensors: Sequence[ExampleTensor], seed: int) -> "Inputs":
    """Return an example input: a tensor, several in a row, or several by name."""
    from topiarist.randomness import generator

    random = generator(seed, "example input")
    made = [(each.name, each.make(random)) for each in tensors]
    if all(name is not None for name, _ in made):
        return {str(name): tensor for name, tensor in made}
    return made[0][1] if len(made) == 1 else [tensor for _, tensor in made]


def find_inputs(network: "nn.Module", seed: int) -> "Inputs":
    """Return an example input for a network that says what it reads.

    It may have an attribute `example_input`, be of transformers, or come from a file with the shape of a sample or of
    the example that it was cut with.
    """
    from torch import Tensor

    from topiarist.models.ensemble import facts
    from topiarist.storage.hub import hub_example, is_of_hub
    from topiarist.surgery import plan_of
    from topiarist.surgery.edits.examples import make_example

    own = getattr(network, "example_input", None)
    if isinstance(own, (Tensor, tuple, list, Mapping)):
        return own
    if is_of_hub(network):
        try:
            return hub_example(network, seed=seed)
        except ModelError as error:
            raise SettingsError(f"{error}: name it, as in --example NAME=SHAPE") from error
    known, cut = facts(network), plan_of(network).example
    if known.input_shape is None and cut is not None:
        return make_example(cut)
    shape = known.input_shape or (known.number_of_inputs and (known.number_of_inputs,))
    if not shape:
        kind = type(network).__name__
        raise SettingsError(f"{kind} does not say what it reads: name the shape of a sample, as --example 3x224x224")
    return make_inputs([ExampleTensor(None, tuple(shape))], seed)


def record_inputs(inputs: "Inputs") -> Any:
    """Return shapes and types of an example input as plain values: of one tensor, of a list, or by name."""
    from pydantic import TypeAdapter

    from topiarist.surgery.edits.examples import Example, shape_of

    return TypeAdapter(Example | None).dump_python(shape_of(inputs), mode="json", exclude_none=True)


def shown_inputs(inputs: "Inputs") -> str:
    """Return an example input in words, as 'input_ids 2x16 int64'."""
    from topiarist.surgery.edits.examples import ExampleShape, shape_of

    found = shape_of(inputs)
    if found is None:
        return "what a function makes"
    shapes = [found] if isinstance(found, ExampleShape) else list(found.values() if isinstance(found, dict) else found)
    names = [f"{name} " for name in found] if isinstance(found, dict) else [""] * len(shapes)
    words = [f"{'x'.join(map(str, each.shape))} {each.dtype}" for each in shapes]
    return ", ".join(f"{name}{word}" for name, word in zip(names, words, strict=True))
