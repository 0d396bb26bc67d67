"""What the study of the faces found, as tidy tables: one for each table and figure of the paper, and for ours."""

import math
from collections.abc import Mapping
from typing import Any

import pandas
from sklearn.svm import SVC

from topiarist.data import Data, Part
from topiarist.recipes import faces_paper as paper
from topiarist.recipes.faces import SCALINGS, Plan
from topiarist.study.results import Results

Frame = pandas.DataFrame
FIGURES = {"accuracy": "accuracy", "train_accuracy": "training accuracy", "units": "units left"}


def cells_of(plan: Plan, results: Results, part: str) -> Frame:
    """Give one row a fold of each configuration of a part: its keys, accuracies in per cent, and units left."""
    done = dict(list(results.done.groupby("configuration")))
    rows = []
    for keys, label in plan.rows(part):
        for cell in done[label].to_dict("records") if label in done else ():
            figures = {name: cell[figure] for figure, name in FIGURES.items()}
            figures |= {name: 100 * figures[name] for name in ("accuracy", "training accuracy")}
            rows.append({**keys, "configuration": label, "fold": cell["fold"], **figures})
    return pandas.DataFrame(rows)


def means_of(cells: Frame, by: list[str]) -> Frame:
    """Give means over folds, and the standard deviation of the test accuracy."""
    grouped = cells.groupby(by, sort=False)
    means = grouped[["accuracy", "training accuracy", "units left"]].mean()
    means.insert(1, "sd", grouped["accuracy"].std())
    return means.reset_index()


def table_1(cells: Frame) -> Frame:
    """Put accuracies by learning rate and size beside the paper's."""
    means = means_of(cells, ["learning rate", "units"])
    means["paper"] = [
        paper.TABLE_1[rate].get(size) for rate, size in zip(means["learning rate"], means["units"], strict=True)
    ]
    return means[["learning rate", "units", "accuracy", "sd", "paper", "training accuracy"]]


def table_3(cells: Frame) -> Frame:
    """Put the sizes left at 15° and 45° beside the paper's, for each scaling."""
    means = means_of(cells[cells["variant"] != "unpruned"], ["scaling", "units", "variant"])
    sizes = means.pivot(index="units", columns=["variant", "scaling"], values="units left")
    rows = []
    for size in sizes.index:
        row: dict[str, Any] = {"units": size, "paper, 15°": paper.TABLE_3.get(int(size))}
        row |= {f"{scaling}, 15°": sizes.loc[size, ("15°", scaling)] for scaling in SCALINGS}
        row |= {"paper, 45°": "20 to 30"}
        row |= {f"{scaling}, 45°": sizes.loc[size, ("45°", scaling)] for scaling in SCALINGS}
        rows.append(row)
    return pandas.DataFrame(rows)


def distance_from_paper(cells: Frame) -> dict[str, float]:
    """Say how far the sizes of each scaling are from the paper's: the mean factor, over 15° and 45°."""
    means = means_of(cells[cells["variant"] != "unpruned"], ["scaling", "units", "variant"])
    low, high = paper.LEFT_AT_45_DEGREES
    factors: dict[str, list[float]] = {}
    for row in means.to_dict("records"):
        left = max(row["units left"], 0.1)
        wanted = paper.TABLE_3[row["units"]] if row["variant"] == "15°" else min(max(left, low), high, row["units"])
        factors.setdefault(row["scaling"], []).append(abs(math.log(left / wanted)))
    return {scaling: math.exp(sum(found) / len(found)) for scaling, found in factors.items()}


def compared_with_unpruned(plan: Plan, results: Results, part: str) -> Frame:
    """Test every variant of a part against the unpruned network of the same size; p corrected by Holm within a size."""
    by_size: dict[int, dict[str, str]] = {}
    for keys, label in plan.rows(part):
        by_size.setdefault(keys["units"], {})[keys["variant"]] = label
    means = means_of(cells_of(plan, results, part), ["units", "variant"])
    figures = {(row["units"], row["variant"]): row for row in means.to_dict("records")}
    rows = []
    for size, labels in by_size.items():
        tested = results.compare(labels["unpruned"], among=list(labels.values())).to_dict("records")
        tests: Mapping[str, Any] = {test["configuration"]: test for test in tested}
        for variant, label in labels.items():
            test = tests.get(label, {})
            found = figures.get((size, variant), {})
            rows.append(
                {
                    "units": size,
                    "variant": variant,
                    "units left": found.get("units left"),
                    "accuracy": found.get("accuracy"),
                    "sd": found.get("sd"),
                    "difference": percent(test.get("difference")),
                    "low": percent(test.get("low")),
                    "high": percent(test.get("high")),
                    "p": test.get("holm_p"),
                }
            )
    return pandas.DataFrame(rows)


def percent(value: float | None) -> float | None:
    """Give a fraction in per cent."""
    return None if value is None else 100 * value


def svm_table(data: Data, *, projection: Any, folds: int, seed: int) -> Frame:
    """Judge a support vector machine on the same samples, for each scaling, in two folds and in as many as ours."""
    rows = []
    for scaling in SCALINGS:
        scaled = Data.from_source(whole(data), scaling=scaling, projection=projection, seed=seed)
        for count in sorted({2, folds}):
            scores = [svm_accuracy(fold) for fold in scaled.folds(count, seed=seed)]
            mean, spread = float(pandas.Series(scores).mean()), float(pandas.Series(scores).std())
            published = paper.SVM_ACCURACY if count == 2 else None
            rows.append({"scaling": scaling, "folds": count, "accuracy": mean, "sd": spread, "paper": published})
    return pandas.DataFrame(rows)


def whole(data: Data) -> Any:
    """Give the samples before any split."""
    assert data.source is not None
    return data.source


def svm_accuracy(fold: Data) -> float:
    """Train scikit-learn's machine with its own defaults on a fold; give its accuracy on the test part in per cent."""
    assert isinstance(fold.train, Part)
    assert isinstance(fold.test, Part)
    machine = SVC().fit(fold.train.x.numpy(), fold.train.y.numpy())
    return 100 * float(machine.score(fold.test.x.numpy(), fold.test.y.numpy()))
