"""`topiarist anatomy`: the units of a network, which of them can go, and what holds the others."""

from typing import TYPE_CHECKING, Annotated

import typer

from topiarist.cli.examples import ExampleShapes, find_inputs, make_inputs, parse_example, record_inputs, shown_inputs
from topiarist.cli.options import AsJson, Device, Into, Seed
from topiarist.cli.output import console, emit, say, waiting

if TYPE_CHECKING:
    from topiarist.tracing.record import AnatomyRecord

ModelWord = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Your code that builds the network (MODULE:FUNCTION), a .safetensors file, such as `train` writes, or a "
        "Hugging Face folder with config.json and .safetensors files.",
    ),
]


Proof = Annotated[
    bool,
    typer.Option(
        "--proof/--no-proof",
        help="Prove on random weights that the network's own code computes the same when units go. Takes four runs of "
        "the network.",
    ),
]


def anatomy_command(
    model: ModelWord,
    example: ExampleShapes = None,
    into: Into = None,
    device: Device = None,
    proof: Proof = True,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Show the units of a network: what writes and reads them, which can go, and what holds the others.

    Example: topiarist anatomy digits.safetensors

    Example: topiarist anatomy networks:make --example 3x224x224

    Example: topiarist anatomy bert/ --example input_ids=16:int:1000 --example attention_mask=16:ones

    Nothing is changed, written or downloaded, and no code of a Hugging Face folder is run. A file of `train` and a
    Hugging Face folder say themselves what they read; so does a network with an attribute `example_input`.
    """
    from topiarist.cli.loading import find_network, on_device
    from topiarist.surgery import blocks, proven
    from topiarist.tracing import anatomy
    from topiarist.tracing.record import record_anatomy
    from topiarist.tracing.table import COLUMNS, render

    tensors = parse_example(example or [])
    with waiting(f"looking at {model}"):
        network = on_device(find_network(model, into), device)
        inputs = make_inputs(tensors, seed) if tensors else find_inputs(network, seed)
        found = proven(network, inputs) if proof else anatomy(network, inputs)
        record, residual = record_anatomy(found), blocks(network, inputs)
    kind = type(network).__name__
    result = {"model": model, "network": kind, "example": record_inputs(inputs), **record.to_json()}
    result["blocks"] = [each.to_json() for each in residual.values()]
    table = render(found.spaces, found.shapes, found.notes, columns=max(console().width, COLUMNS))
    text = f"{kind} of {model}, {share_of(record)}; example input {shown_inputs(inputs)}\n\n{table}"
    text += f"\n\nResidual blocks:\n{residual}" if residual else ""
    emit(result, as_json=as_json, show=lambda _: say(text))


def share_of(record: "AnatomyRecord") -> str:
    """Return how many parameters there are, and which share of them can go, in words."""
    share = record.removable / record.parameters if record.parameters else 0.0
    return f"{record.parameters:,} parameters, of which {share:.1%} can go"
