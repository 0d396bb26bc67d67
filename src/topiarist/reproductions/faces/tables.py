"""What the study of the faces found, as tidy tables: one for each table and figure of the paper, and for ours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean

import pandas
from sklearn.svm import SVC

from topiarist.data import Data, Part
from topiarist.randomness import child_seed
from topiarist.reproductions.claims import NOT_REPRODUCED, REPRODUCED, claims_frame, verdict_counts
from topiarist.reproductions.faces import paper
from topiarist.reproductions.faces.claims import FacesClaim, FacesJudge, absolute_table, all_claims, variant_claims
from topiarist.reproductions.faces.data import FaceSamples
from topiarist.reproductions.faces.study import READINGS, SCALING_NAMES, FacesPlan, FacesReading
from topiarist.study.results import Results

Frame = pandas.DataFrame
Epochs = Mapping[str, Sequence[Sequence[float | None]]]
OF_PAPER = "the paper, on its data"
PARTS = (
    *("table 1", "angles", "penalties", "variants", "readings"),
    *("pair orders", "search readings", "ours", "searches"),
)
CURVES = {"training": "train", "held out": "validation"}
_TICKS = {REPRODUCED: " ✓", NOT_REPRODUCED: " ✗"}


@dataclass(frozen=True)
class ReadingMatch:
    """The claims on the four variants in one reading."""

    reading: FacesReading
    claims: tuple[FacesClaim, ...]

    @property
    def reproduced(self) -> int:
        """How many claims came out."""
        return verdict_counts(self.claims)[REPRODUCED]

    @property
    def distance(self) -> float:
        """The mean distance from the paper's numbers: what decides between equal counts."""
        return fmean(claim.distance for claim in self.claims)


@dataclass(frozen=True, kw_only=True)
class FacesFindings:
    """Everything that the page shows: the cells of each part, tables, the long training by epochs, claims, readings."""

    faces: FaceSamples
    tables: Mapping[str, Frame]
    cells: Mapping[str, Frame]
    losses: Epochs
    accuracies: Epochs
    claims: tuple[FacesClaim, ...]
    matches: tuple[ReadingMatch, ...]

    @property
    def testable(self) -> bool:
        """Whether the samples are the paper's, so that its numbers can be compared."""
        return self.faces.papers_data

    @property
    def best(self) -> ReadingMatch | None:
        """The reading that matches the paper best; None on other data."""
        return best_match(self.matches) if self.testable else None


def faces_findings(plan: FacesPlan, results: Results, faces: FaceSamples) -> FacesFindings:
    """Bring what was found into tables, and judge it."""
    cells = {part: _cells_of(plan, results, part) for part in PARTS}
    testable = faces.papers_data
    judge = FacesJudge(results.test_to_train or 0.0, testable)
    machine = _svm_cells(plan, faces)
    claims, matches = all_claims(cells, machine, judge), match_readings(cells["readings"], judge)
    tables = {
        "verdicts": claims_frame(claims, paper=OF_PAPER),
        "table1": _table_1(cells["table 1"], testable=testable),
        "svm": _svm_table(machine, testable=testable),
        "angles": _means_of(cells["angles"], "angle"),
        "penalties": _means_of(cells["penalties"], "fitness", "units", "penalty"),
        "equation6": absolute_table(cells["penalties"], judge),
        "variants": _compared_with_unpruned(plan, results, "variants"),
        "side-by-side": side_by_side(matches, testable=testable),
        "readings": _means_of(cells["readings"], "length", "scaling", "units", "variant"),
        "pair-orders": _means_of(cells["pair orders"], "order", "units", "variant"),
        "search-readings": _means_of(cells["search readings"], "reading", "units", "search"),
        "ours": _compared_with_unpruned(plan, results, "ours"),
        "searches": _means_of(cells["searches"], "variant", "units"),
    }
    return FacesFindings(
        faces=faces,
        tables=tables | ({"nearest": nearest_readings(matches)} if testable else {}),
        cells=cells,
        losses=_long_epochs(plan, results, "loss"),
        accuracies=_long_epochs(plan, results, "accuracy"),
        claims=tuple(claims),
        matches=tuple(matches),
    )


def _keys_of(plan: FacesPlan, part: str) -> Frame:
    return pandas.DataFrame([{**keys, "configuration": label} for keys, label in plan.rows(part)])


def _cells_of(plan: FacesPlan, results: Results, part: str) -> Frame:
    """Return one row per network of each configuration of a part: keys, accuracies in per cent, and units left."""
    done = results.done[["configuration", "seed", "fold", "accuracy", "train_accuracy", "units"]]
    done = done.rename(columns={"train_accuracy": "training accuracy", "units": "units left"})
    done[["accuracy", "training accuracy"]] *= 100
    return _keys_of(plan, part).merge(done, on="configuration")


def _means_of(cells: Frame, *by: str) -> Frame:
    """Return means over repeats and folds, and the standard deviation of the test accuracy."""
    grouped = cells.groupby(list(by), sort=False)
    means = grouped[["accuracy", "training accuracy", "units left"]].mean()
    means.insert(1, "sd", grouped["accuracy"].std())
    return means.reset_index()


def _table_1(cells: Frame, *, testable: bool) -> Frame:
    """Return accuracies by learning rate and size, beside the paper's where the data are the paper's."""
    means = _means_of(cells, "learning rate", "units").drop(columns="units left")
    if testable:
        places = zip(means["learning rate"], means["units"], strict=True)
        means.insert(4, "paper", [paper.TABLE_1[rate].get(size) for rate, size in places])
    return means


def _compared_with_unpruned(plan: FacesPlan, results: Results, part: str) -> Frame:
    """Test every variant of a part against the unpruned network of the same size; p corrected by Holm within a size.

    The first variant of each size is the unpruned one. What could not be trained is a row without figures.
    """
    keys, means = _keys_of(plan, part), _means_of(_cells_of(plan, results, part), "configuration")
    by_size = keys.groupby("units", sort=False)["configuration"]
    tests = pandas.concat([results.compare(labels.iloc[0], among=labels.tolist()) for _, labels in by_size])
    tests = tests.reindex(columns=["configuration", "difference", "low", "high", "holm_p"])
    tests[["difference", "low", "high"]] *= 100
    table = keys.merge(means, how="left").merge(tests.rename(columns={"holm_p": "p"}), how="left")
    return table[["units", "variant", "units left", "accuracy", "sd", "difference", "low", "high", "p"]]


def _svm_cells(plan: FacesPlan, faces: FaceSamples) -> Frame:
    """Judge a support vector machine on the same samples, for each scaling, in two folds and in as many as ours."""
    seed, scope, rows = plan.study.seeds[0], plan.scope, []
    for scaling in SCALING_NAMES:
        scaled = Data.from_source(faces.source, scaling=scaling, projection=faces.projection, seed=seed)
        for count, repeat in product(sorted({2, scope.folds}), range(scope.repeats)):
            dealt = scaled.folds(count, seed=child_seed(seed, "folds", repeat) % 2**32)
            rows += [{"scaling": scaling, "folds": count, "accuracy": _svm_accuracy(fold)} for fold in dealt]
    return pandas.DataFrame(rows)


def _svm_accuracy(fold: Data) -> float:
    """Return the test accuracy, in per cent, of scikit-learn's machine with its own defaults."""
    assert isinstance(fold.train, Part)
    assert isinstance(fold.test, Part)
    machine = SVC().fit(fold.train.x.numpy(), fold.train.y.numpy())
    return 100 * float(machine.score(fold.test.x.numpy(), fold.test.y.numpy()))


def _svm_table(cells: Frame, *, testable: bool) -> Frame:
    """Return the means of the support vector machine, beside the paper's where the data are the paper's."""
    table = cells.groupby(["scaling", "folds"], sort=False)["accuracy"].agg(accuracy="mean", sd="std").reset_index()
    return table.assign(paper=table["folds"].map({2: paper.SVM_ACCURACY})) if testable else table


def _long_epochs(plan: FacesPlan, results: Results, figure: str) -> Epochs:
    """Return a figure of the long training, epoch by epoch, one run per network."""
    ((_, label),) = plan.rows("long training")
    histories = [results.history(row) for row in results.rows if row["label"] == label and row["state"] == "done"]
    return {name: [[epoch[f"{part}_{figure}"] for epoch in run] for run in histories] for name, part in CURVES.items()}


def match_readings(cells: Frame, judge: FacesJudge) -> list[ReadingMatch]:
    """Judge every reading by the claims on the four variants, those that all readings can be judged by."""
    by_reading = {
        reading: variant_claims(
            cells[(cells["length"] == reading.length) & (cells["scaling"] == reading.scaling)], judge
        )
        for reading in READINGS
    }
    common = set.intersection(*({claim.claim for claim in claims} for claims in by_reading.values()))
    return [
        ReadingMatch(reading, tuple(claim for claim in claims if claim.claim in common))
        for reading, claims in by_reading.items()
    ]


def best_match(matches: Sequence[ReadingMatch]) -> ReadingMatch:
    """Return the reading with most claims reproduced; of equals, the nearest."""
    return max(matches, key=lambda match: (match.reproduced, -match.distance))


def side_by_side(matches: Sequence[ReadingMatch], *, testable: bool) -> Frame:
    """Return one row per claim and one column per reading; a tick where it is reproduced on the paper's data."""
    first = matches[0].claims
    columns = {"claim": [claim.claim for claim in first]}
    columns |= {"paper": [claim.published for claim in first]} if testable else {}
    for match in matches:
        columns[match.reading.name] = [claim.ours + _TICKS.get(claim.verdict, "") for claim in match.claims]
    return pandas.DataFrame(columns).replace(r"^-", "−", regex=True)


def nearest_readings(matches: Sequence[ReadingMatch]) -> Frame:
    """Return for each claim the reading that is nearest, and those that reproduce it."""
    rows = []
    for claims in zip(*(match.claims for match in matches), strict=True):
        named = dict(zip((match.reading.name for match in matches), claims, strict=True))
        ticked = [name for name, claim in named.items() if claim.verdict == REPRODUCED]
        nearest = min(named, key=lambda name: named[name].distance)
        rows.append({"claim": claims[0].claim, "nearest": nearest, "reproduced by": "; ".join(ticked) or "none"})
    return pandas.DataFrame(rows)
