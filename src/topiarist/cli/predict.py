"""`topiarist predict`: the class of each sample, with its probability."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topiarist.cli.options import AsJson, DataLocation, Into, ModelFile, Target
from topiarist.cli.output import emit, say, say_table
from topiarist.files import JsonObject

if TYPE_CHECKING:
    import pandas


def predict_command(
    model: ModelFile,
    data: DataLocation,
    target: Target = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="The CSV file to write, instead of standard output.")
    ] = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Add a column per class with its probability.")
    ] = False,
    monte_carlo: Annotated[
        int | None,
        typer.Option(
            "--monte-carlo", min=2, metavar="PASSES", help="Monte-Carlo dropout: mean and spread of this many passes."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of Monte-Carlo dropout.")] = 0,
    into: Into = None,
    as_json: AsJson = False,
) -> None:
    """Predict the class of every sample, in the order of the data; no labels are needed.

    Example: topiarist predict flowers.safetensors new.csv --out predictions.csv

    In the CSV, a class whose name a spreadsheet would take for a formula (=1+2) has an apostrophe before it; with
    --json, names are as they are.
    """
    from topiarist.cli.loading import features_for, load_network
    from topiarist.files import check_place, write_atomically
    from topiarist.report.formulas import without_formulas

    if out is not None:
        check_place(out, inputs=(model, data))
    network = load_network(model, into)
    x = features_for(network, data, target=target)
    table = prediction_table(network, x, probabilities=probabilities, passes=monte_carlo, seed=seed)
    text = without_formulas(table).to_csv(index=False)
    if out is not None:
        write_atomically(out, text.encode())
    result = {
        "model": str(model),
        "data": data,
        "samples": len(table),
        "out": None if out is None else str(out),
        "predictions": table["prediction"].tolist(),
        "columns": {name: table[name].tolist() for name in table.columns if name != "prediction"},
    }

    def show(result: JsonObject) -> None:
        if out is None:
            say_table(text)
        else:
            say(f"{result['samples']} predictions written to {out}")

    emit(result, as_json=as_json, show=show)


def prediction_table(network: Any, x: Any, *, probabilities: bool, passes: int | None, seed: int) -> "pandas.DataFrame":
    """Return one row per sample: prediction, probability, spread over passes, and all probabilities where asked for."""
    import pandas

    from topiarist.models import card_of
    from topiarist.training import monte_carlo
    from topiarist.training.inference import predict_logits

    spread = None
    if passes is None:
        mean = predict_logits(network, x).softmax(dim=1)
    else:
        stochastic = monte_carlo(network, x, passes=passes, seed=seed)
        mean, spread = stochastic.mean, stochastic.spread
    chosen = mean.argmax(dim=1)
    classes = card_of(network).classes or tuple(str(number) for number in range(mean.shape[1]))
    columns: dict[str, Any] = {
        "prediction": [classes[number] for number in chosen.tolist()],
        "probability": mean.gather(1, chosen[:, None])[:, 0].tolist(),
    }
    if spread is not None:
        columns["spread"] = spread.gather(1, chosen[:, None])[:, 0].tolist()
    if probabilities:
        columns |= {f"p({name})": mean[:, number].tolist() for number, name in enumerate(classes)}
    return pandas.DataFrame(columns)
