"""What the study of the faces found, as tidy tables: one for each table and figure of the paper, and for ours."""

from collections.abc import Mapping
from typing import Any

import pandas
from sklearn.svm import SVC

from topiarist.data import Data, Part
from topiarist.randomness import child_seed
from topiarist.reproductions.faces import paper
from topiarist.reproductions.faces.claims import Verdict
from topiarist.reproductions.faces.study import SCALINGS, Plan
from topiarist.study.results import Results

Frame = pandas.DataFrame
FIGURES = {"accuracy": "accuracy", "train_accuracy": "training accuracy", "units": "units left"}


def cells_of(plan: Plan, results: Results, part: str) -> Frame:
    """Return one row per network of each configuration of a part: keys, accuracies in per cent, and units left."""
    done = dict(list(results.done.groupby("configuration")))
    rows = []
    for keys, label in plan.rows(part):
        for cell in done[label].to_dict("records") if label in done else ():
            figures = {name: cell[figure] for figure, name in FIGURES.items()}
            figures |= {name: 100 * figures[name] for name in ("accuracy", "training accuracy")}
            rows.append({**keys, "configuration": label, "seed": cell["seed"], "fold": cell["fold"], **figures})
    return pandas.DataFrame(rows)


def means_of(cells: Frame, by: list[str]) -> Frame:
    """Return means over repeats and folds, and the standard deviation of the test accuracy."""
    grouped = cells.groupby(by, sort=False)
    means = grouped[["accuracy", "training accuracy", "units left"]].mean()
    means.insert(1, "sd", grouped["accuracy"].std())
    return means.reset_index()


def table_1(cells: Frame, *, testable: bool) -> Frame:
    """Return accuracies by learning rate and size, beside the paper's where the data are the paper's."""
    means = means_of(cells, ["learning rate", "units"])
    columns = ["learning rate", "units", "accuracy", "sd", "training accuracy"]
    if testable:
        places = zip(means["learning rate"], means["units"], strict=True)
        means["paper"] = [paper.TABLE_1[rate].get(size) for rate, size in places]
        columns.insert(4, "paper")
    return means[columns]


def verdict_table(verdicts: list[Verdict]) -> Frame:
    """Return the verdicts as a page shows them."""
    return pandas.DataFrame(
        {
            "claim": verdict.claim.name,
            "verdict": verdict.answer,
            "the paper, on its data": signed(verdict.claim.number),
            "ours": signed(f"{verdict.ours.mean:.1f}"),
            "95 % interval": signed(f"{verdict.ours.low:.1f} to {verdict.ours.high:.1f}") if verdict.ours.half else "–",
            "note": verdict.note or "–",
        }
        for verdict in verdicts
    )


def signed(number: str) -> str:
    """Return a number in words with a true minus sign."""
    return number.replace("-", "−")


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
    """Return a fraction in per cent."""
    return None if value is None else 100 * value


def svm_cells(data: Data, *, projection: Any, folds: int, repeats: int, seed: int) -> Frame:
    """Judge a support vector machine on the same samples, for each scaling, in two folds and in as many as ours."""
    rows = []
    for scaling in SCALINGS:
        scaled = Data.from_source(whole(data), scaling=scaling, projection=projection, seed=seed)
        for count in sorted({2, folds}):
            for repeat in range(repeats):
                dealt = scaled.folds(count, seed=child_seed(seed, "folds", repeat) % 2**32)
                rows += [{"scaling": scaling, "folds": count, "accuracy": svm_accuracy(fold)} for fold in dealt]
    return pandas.DataFrame(rows)


def svm_table(cells: Frame, *, testable: bool) -> Frame:
    """Return the means of the support vector machine, beside the paper's where the data are the paper's."""
    grouped = cells.groupby(["scaling", "folds"], sort=False)["accuracy"]
    table = pandas.DataFrame({"accuracy": grouped.mean(), "sd": grouped.std()}).reset_index()
    if testable:
        table["paper"] = [paper.SVM_ACCURACY if count == 2 else None for count in table["folds"]]
    return table


def whole(data: Data) -> Any:
    """Return the samples before any split."""
    assert data.source is not None
    return data.source


def svm_accuracy(fold: Data) -> float:
    """Train scikit-learn's machine with its own defaults on a fold; return its test accuracy in per cent."""
    assert isinstance(fold.train, Part)
    assert isinstance(fold.test, Part)
    machine = SVC().fit(fold.train.x.numpy(), fold.train.y.numpy())
    return 100 * float(machine.score(fold.test.x.numpy(), fold.test.y.numpy()))
