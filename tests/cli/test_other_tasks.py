"""Numbers and labels on the command line: trained, predicted, measured and resized; wrong combinations end with 2."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import numpy
import pandas
import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a table with a price in whole numbers, a grade, two labels, weights, and targets that cannot be learned."""
    random = numpy.random.default_rng(0)
    x = random.normal(size=(200, 3))
    frame = pandas.DataFrame({"a": x[:, 0], "b": x[:, 1], "c": x[:, 2]})
    frame["price"] = (250_000 + 40_000 * x[:, 0] + 10_000 * x[:, 1] ** 2).round(-2).astype(int)
    frame["red"], frame["ripe"] = (x[:, 0] > 0).astype(int), numpy.where(x[:, 1] > 0.5, "yes", "no")
    frame["weight"], frame["negative"] = random.uniform(1, 2, 200), numpy.where(numpy.arange(200) == 3, -1.0, 1.0)
    frame["same"], frame["endless"] = 5, numpy.where(numpy.arange(200) == 7, numpy.inf, x[:, 0])
    path = tmp_path_factory.mktemp("tables") / "homes.csv"
    frame.to_csv(path, index=False)
    return path


ALONE = [word for name in ("red", "ripe", "weight", "negative", "same", "endless") for word in ("--drop", name)]


@pytest.mark.slow
def test_a_number_from_training_to_a_smaller_network(command: Run, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "price.safetensors"
    code, text, err = command(
        "train", table, "--target", "price", *ALONE, "--epochs", 60, "--lr", 0.01, "--hidden", 24, "--out", out
    )
    assert code == 0 and "price is read as a number" in err
    assert "RMSE" in text and "accuracy" not in text and "a number: price" in text
    code, text, _ = command("predict", out, table)
    frame, found = pandas.read_csv(table), pandas.read_csv(io.StringIO(text))
    assert code == 0 and list(found.columns) == ["prediction"]
    errors = (found["prediction"] - frame["price"]).abs().mean()
    assert errors < 0.3 * frame["price"].std()
    code, text, _ = command("measure", out, table, "--part", "all", "--json")
    assert code == 0 and json.loads(text)["mae"] == pytest.approx(errors, rel=1e-4)
    code, text, _ = command("resize", "distinctiveness", out, table, "--max-parameters", 80)
    assert code == 0 and "RMSE" in text and "accuracy" not in text


def test_labels_and_their_probabilities(command: Run, table: Path, tmp_path: Path) -> None:
    out, alone = tmp_path / "fruit.safetensors", ["--drop", "price", "--drop", "endless"]
    named = ["--target", "ripe,red", "--weight", "weight"]
    code, _, err = command("train", table, *named, *alone, "--epochs", 30, "--lr", 0.02, "--out", out)
    assert code == 0 and "ripe, red: read as labels" in err
    code, text, _ = command("predict", out, table, "--probabilities")
    found = pandas.read_csv(io.StringIO(text))
    assert code == 0 and list(found.columns) == ["ripe", "red", "p(ripe)", "p(red)"]
    assert (found["red"] == pandas.read_csv(table)["red"]).mean() > 0.9
    code, _, err = command("measure", out, table, "--target", "price")
    assert (code, err) == (2, "topiarist: the network predicts ripe, red; found --target price\n")
    code, text, _ = command("data", "show", table, *named, *alone)
    assert code == 0 and "ripe" in text and "%" in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--target", "price", "--monitor", "accuracy"],
            "'accuracy' is a metric of classes and labels; metrics of numbers are rmse",
        ),
        (["--target", "red", "--monitor", "rmse"], "'rmse' is a metric of numbers; metrics of classes are accuracy"),
        (["--target", "red", "--loss", "huber"], "the loss huber is for numbers, and these are classes"),
        (
            ["--target", "price", "--weight", "negative"],
            "weights must be at least 0, and one of them above 0; found -1",
        ),
        (["--target", "red,price", "--task", "labels"], "labels must be 0 or 1, there or not; found"),
        (["--target", "endless"], "1 values of the target endless are infinite: replace them"),
        (["--target", "same", "--task", "numbers"], "the target same is always 5: there is nothing to learn"),
        (["--target", "same"], "at least two classes are needed, found only the class 5"),
    ],
)
def test_wrong_combinations_are_one_line_and_end_with_2(
    command: Run, table: Path, options: list[str], message: str
) -> None:
    code, _, err = command("train", table, *options)
    line = next(line for line in err.splitlines() if "note:" not in line)
    assert code == 2 and message in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--target", "red", "--metric", "rmse"], "'rmse' is a metric of numbers; metrics of classes are accuracy"),
        (["--target", "price", "--metric", "f1"], "'f1' is a metric of classes and labels; metrics of numbers are"),
        (["--target", "red", "--metric", "calibration_error"], "calibration_error has no test that holds its level"),
        (["--target", "price", "--weight", "negative"], "weights must be at least 0, and one of them above 0"),
        (["--target", "red,price", "--task", "labels"], "labels must be 0 or 1, there or not; found"),
        (["--target", "endless"], "1 values of the target endless are infinite: replace them"),
        (["--target", "same", "--task", "numbers"], "the target same is always 5: there is nothing to learn"),
    ],
)
def test_wrong_combinations_are_refused_before_any_rightsizing(
    command: Run, table: Path, tmp_path: Path, options: list[str], message: str
) -> None:
    code, _, err = command("rightsize", table, *options, "--out", tmp_path / "out")
    line = next(line for line in err.splitlines() if message in line)
    assert code == 2 and line.startswith("topiarist: ") and not (tmp_path / "out").exists()


def test_a_study_of_numbers_is_judged_by_their_metric(command: Run, table: Path, tmp_path: Path) -> None:
    declared = f"""folds = 2
training.epochs = 1
grid.model.hidden = [[5], [4]]
[data]
location = "{table}"
target = "price"
drop = ["endless", "negative"]
weight = "weight"
metric = "mae"
"""
    (tmp_path / "prices.toml").write_text(declared)
    assert command("study", "run", tmp_path / "prices.toml", "--workers", 1)[0] == 0
    code, text, _ = command("study", "results", tmp_path / "prices")
    assert code == 0 and "mae" in text.splitlines()[0] and "accuracy" not in text
    code, text, _ = command("study", "results", tmp_path / "prices", "--format", "json", "--table", "cells")
    cells = json.loads(text)
    assert all({"mae", "rmse", "r2", "train_mae"} <= set(cell) and cell["mae"] > 0 for cell in cells)
