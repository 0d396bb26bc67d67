"""`topiarist predict`: the class of each sample with its probability, numbers in the units of training, or labels."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topiarist.cli.options import AsJson, DataLocation, Device, Into, ModelFile, Target
from topiarist.cli.output import emit, say, say_table
from topiarist.errors import SettingsError
from topiarist.files import JsonObject

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas
    from torch import Tensor


def predict_command(
    model: ModelFile,
    data: DataLocation,
    target: Target = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The CSV file to write, instead of standard output.")
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add a column per class or label with its probability.")
    ] = False,
    monte_carlo: Annotated[
        int | None,
        typer.Option(
            "--monte-carlo", min=2, metavar="PASSES", help="Monte-Carlo dropout: mean and spread of this many passes."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of Monte-Carlo dropout.")] = 0,
    into: Into = None,
    device: Device = None,
    as_json: AsJson = False,
) -> None:
    """Predict every sample, in the order of the data: its class, its numbers or its labels; no labels are needed.

    Example: topiarist predict flowers.safetensors new.csv --out predictions.csv

    For a folder of images or sound, each row has the name of its file. In the CSV, a class whose name a spreadsheet
    would take for a formula (=1+2) has an apostrophe before it; with --json, names are as they are.
    """
    from topiarist.cli.loading import features_for, files_of, load_network
    from topiarist.files import check_place, write_atomically
    from topiarist.report.formulas import without_formulas

    if out is not None:
        check_place(out, inputs=(model, data))
    network = load_network(model, into, device)
    x = features_for(network, data, target=target)
    table = prediction_table(network, x, probabilities=probabilities, passes=monte_carlo, seed=seed)
    files = files_of(data, target=target)
    if len(files) == len(table):
        table.insert(0, "file", files)
    text = without_formulas(table).to_csv(index=False)
    if out is not None:
        write_atomically(out, text.encode())
    result = {
        "model": str(model),
        "data": data,
        "samples": len(table),
        "out": None if out is None else str(out),
        **predicted(table),
    }

    def show(result: JsonObject) -> None:
        if out is None:
            say_table(text)
        else:
            say(f"{result['samples']} predictions written to {out}")

    emit(result, as_json=as_json, show=show)


def predicted(table: "pandas.DataFrame") -> JsonObject:
    """Return a table of predictions as plain lists."""
    if "prediction" in table.columns:
        others = [name for name in table.columns if name != "prediction"]
        return {"predictions": table["prediction"].tolist(), "columns": {name: table[name].tolist() for name in others}}
    return {"columns": {name: table[name].tolist() for name in table.columns}}


def prediction_table(network: Any, x: Any, *, probabilities: bool, passes: int | None, seed: int) -> "pandas.DataFrame":
    """Return one row per sample, as the task of the network has it, with the spread over passes where there are any."""
    import pandas

    from topiarist.models import card_of
    from topiarist.tasks import Classification
    from topiarist.training import monte_carlo
    from topiarist.training.inference import predict_logits

    task, spread = card_of(network).task, None
    if passes is None:
        outputs = predict_logits(network, x)
        mean = outputs.softmax(dim=1) if task is None else task.answers(outputs)
    else:
        stochastic = monte_carlo(network, x, passes=passes, seed=seed)
        mean, spread = stochastic.mean, stochastic.spread
    task = task or Classification(tuple(str(number) for number in range(mean.shape[1])))
    columns = {"classes": class_columns, "numbers": number_columns, "labels": label_columns}[task.kind]
    return pandas.DataFrame(columns(task.names, mean, spread, probabilities))


def class_columns(names: "Sequence[str]", mean: "Tensor", spread: "Tensor | None", probabilities: bool) -> JsonObject:
    """Return the class of each sample and its probability."""
    chosen = mean.argmax(dim=1)
    columns: dict[str, Any] = {
        "prediction": [names[number] for number in chosen.tolist()],
        "probability": mean.gather(1, chosen[:, None])[:, 0].tolist(),
    }
    if spread is not None:
        columns["spread"] = spread.gather(1, chosen[:, None])[:, 0].tolist()
    if probabilities:
        columns |= {f"p({name})": mean[:, number].tolist() for number, name in enumerate(names)}
    return columns


def number_columns(names: "Sequence[str]", mean: "Tensor", spread: "Tensor | None", probabilities: bool) -> JsonObject:
    """Return the numbers in the units of the training data: `prediction`, or a column per target for several."""
    if probabilities:
        raise SettingsError("--probabilities is for classes and labels; the network predicts numbers")
    several = len(names) > 1
    columns = {name if several else "prediction": mean[:, number].tolist() for number, name in enumerate(names)}
    if spread is not None:
        columns |= {
            f"spread({name})" if several else "spread": spread[:, number].tolist() for number, name in enumerate(names)
        }
    return columns


def label_columns(names: "Sequence[str]", mean: "Tensor", spread: "Tensor | None", probabilities: bool) -> JsonObject:
    """Return 1 or 0 for each label, and its probability where asked for."""
    columns: dict[str, Any] = {name: (mean[:, number] > 0.5).int().tolist() for number, name in enumerate(names)}
    if probabilities:
        columns |= {f"p({name})": mean[:, number].tolist() for number, name in enumerate(names)}
    if spread is not None:
        columns |= {f"spread({name})": spread[:, number].tolist() for number, name in enumerate(names)}
    return columns
