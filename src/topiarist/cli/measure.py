"""`topiarist measure`: the quality, size and speed of a saved network."""

from typing import Annotated, Literal

import typer

from topiarist.cli.options import AsJson, DataLocation, Device, Group, Into, MetricOption, ModelFile, Target, Weight
from topiarist.cli.output import emit, measurement_rows, print_rows
from topiarist.files import JsonObject


def measure_command(
    model: ModelFile,
    data: DataLocation,
    target: Target = None,
    group: Group = None,
    weight: Weight = None,
    metric: MetricOption = None,
    part: Annotated[
        Literal["train", "validation", "test", "all"],
        typer.Option("--part", help="The part of the data to measure on."),
    ] = "test",
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, help="Seed of the split.  [default: that of the training]"),
    ] = None,
    threads: Annotated[int, typer.Option("--threads", min=1, help="Number of threads for the latency.")] = 1,
    into: Into = None,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Measure accuracy and log loss, or the metrics of another task; parameters, size, MACs and latency.

    Example: topiarist measure digits.safetensors digits

    The data are split as in training, so that the test part is the one that training never saw.
    """
    from topiarist.cli.loading import load_for, load_network
    from topiarist.measurement import measure

    network = load_network(model, into, device)
    samples = load_for(network, data, target=target, group=group, part=part, seed=seed, weight=weight)
    measured = measure(network, samples, threads=threads, path=model, metric=metric).to_json()
    result = {"model": str(model), "data": data, "part": part, **measured}
    emit(result, as_json=as_json, show=show_measurement)


def show_measurement(result: JsonObject) -> None:
    """Print a measurement as a table."""
    print_rows(
        {"model": result["model"], "data": f"{result['data']}, {result['part']} part", **measurement_rows(result)}
    )
