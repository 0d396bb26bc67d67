"""The results of a study: one row per cell, one row per configuration, and the tests between configurations."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import pandas
from pandas.api.types import is_numeric_dtype

from topiarist.errors import SettingsError, TopiaristError, first_line
from topiarist.files import JsonObject, parse_json
from topiarist.notebooks import html_table
from topiarist.statistics import SmallestDecision, metrics_of, smallest_not_worse, summarise
from topiarist.study.comparison import ParetoFront, Scores, TestName, compare, pareto_front
from topiarist.study.ledger import Ledger, StudyProgress
from topiarist.tasks.losses import KINDS

CONTENT_NAME = re.compile("[0-9a-f]{64}")  # a SHA-256
SMALLER_IS_BETTER = frozenset(
    metric.name for kind in KINDS for metric in metrics_of(kind) if not metric.higher_is_better
)
SIZES = ("parameters", "nonzero", "memory_kb", "file_kb", "macs", "latency_ms")


class Results:
    """The results in a study's folder, as far as the study has come."""

    def __init__(self, folder: Path, facts: JsonObject, rows: list[JsonObject], progress: StudyProgress) -> None:
        self.folder, self.facts, self.rows, self.progress = folder, facts, rows, progress

    @classmethod
    def read(cls, folder: Path | str) -> Self:
        """Read a folder, also while its study runs."""
        place = Path(folder)
        with Ledger.to_read(place) as ledger:
            facts = ledger.facts()
            if not facts:
                raise TopiaristError(f"the study in {place} has not begun: run it again from its file")
            rows = ledger.rows()
            if not rows:
                raise TopiaristError(f"the ledger in {place} is damaged: it has no cells")
            return cls(place, facts, rows, ledger.progress())

    @cached_property
    def cells(self) -> pandas.DataFrame:
        """One row per cell: its configuration, fold, seed and state, and its figures where it is done.

        A choice that is called like another column is called by what it is, "grid seed".
        """
        figures = {name for row in self.rows if row["result"] is not None for name in json.loads(row["result"])}
        taken = {"configuration", "fold", "seed", "state", "seconds", "reason"} | figures
        return pandas.DataFrame(
            {
                "configuration": row["label"],
                **{
                    f"grid {axis}" if axis in taken else axis: text for axis, text in json.loads(row["choices"]).items()
                },
                "fold": row["fold"],
                "seed": row["seed"],
                "state": row["state"],
                **({} if row["result"] is None else json.loads(row["result"])),
                "seconds": row["seconds"],
                "reason": row["reason"],
            }
            for row in self.rows
        )

    @property
    def done(self) -> pandas.DataFrame:
        """The cells that have figures."""
        return self.cells[self.cells["state"] == "done"]

    @property
    def labels(self) -> list[str]:
        """The configurations, in the order declared."""
        return list(dict.fromkeys(row["label"] for row in self.rows))

    @property
    def test_to_train(self) -> float | None:
        """Test samples to training samples of a fold, as the corrected t-test wants it; None without folds."""
        if self.rows[0]["fold"] is None:
            return None
        for name in ("samples", "train_samples"):
            if name not in self.done or not is_numeric_dtype(self.done[name]):
                raise TopiaristError(f"the ledger in {self.folder} is damaged: not every cell says its {name}")
        return float(self.done["samples"].mean() / self.done["train_samples"].mean())

    @property
    def primary(self) -> str:
        """The metric that the task is judged by: accuracy of classes, RMSE of numbers, ROC AUC of labels."""
        named = self.done["primary"].dropna().tolist() if "primary" in self.done else []
        return str(named[0]) if named else "accuracy"

    def scores(self, metric: str | None = None) -> Scores:
        """Return the scores of each configuration: by fold, the mean over seeds; without folds, by seed.

        Where each seed has folds of its own, there is a score per seed and fold.
        """
        metric = metric or self.primary
        done = self.done
        figures = [str(name) for name in done.select_dtypes("number") if name not in ("fold", "seed", "seconds")]
        if metric not in figures:
            known = f"known are {', '.join(figures)}" if figures else "no cell is done yet"
            raise SettingsError(f"no figure is called '{metric}': {known}")
        by = ["seed"] if self.test_to_train is None else ["fold"]
        if self.facts.get("declaration", {}).get("new_folds_per_seed"):
            by = ["seed", "fold"]
        means = done.groupby(["configuration", *by])[metric].mean().dropna()
        return {label: means[label] for label in self.labels if label in means.index.get_level_values(0)}

    def sizes(self, name: str = "parameters") -> dict[str, float]:
        """Return the mean size of each configuration."""
        if self.done.empty:
            raise SettingsError("no size is known: no cell is done yet")
        if name not in SIZES or name not in self.done or self.done[name].isna().all():
            hint = "declare latency = true" if name == "latency_ms" else f"choose among {', '.join(SIZES)}"
            raise SettingsError(f"no size '{name}' was measured: {hint}")
        if not is_numeric_dtype(self.done[name]):
            raise TopiaristError(f"the ledger in {self.folder} is damaged: the {name} of a cell is no number")
        return {str(label): float(mean) for label, mean in self.done.groupby("configuration")[name].mean().items()}

    def summary(self, metric: str | None = None, *, confidence: float = 0.95) -> pandas.DataFrame:
        """One row per configuration: mean, SD and bootstrap interval of the mean, and what its network costs."""
        measured = [name for name in SIZES if name in self.done and self.done[name].notna().any()]
        sizes = {name: self.sizes(name) for name in measured}
        return pandas.DataFrame(
            {
                "configuration": label,
                **asdict(summarise(scores.to_numpy(), confidence=confidence)),
                **{name: size[label] for name, size in sizes.items()},
            }
            for label, scores in self.scores(metric).items()
        )

    def compare(
        self,
        baseline: str | None = None,
        metric: str | None = None,
        *,
        test: TestName = "auto",
        among: Sequence[str] | None = None,
    ) -> pandas.DataFrame:
        """Compare every configuration, or those named, with the baseline, by default the first.

        p is given as it is and with Holm's correction over the comparisons made here.
        """
        known = self.scores(metric)
        scores = known if among is None else {label: known[label] for label in among if label in known}
        return compare(scores, self._known(baseline, scores), test=test, test_to_train=self.test_to_train)

    def smallest(
        self,
        margin: float,
        baseline: str | None = None,
        metric: str | None = None,
        *,
        size: str = "parameters",
        alpha: float = 0.05,
    ) -> SmallestDecision:
        """Find the smallest configuration that is proven not to be worse than the baseline by more than `margin`.

        The baseline is, unless named, the largest. Configurations that lack a fold or seed are left out.
        """
        sign = -1.0 if (metric or self.primary) in SMALLER_IS_BETTER else 1.0
        scores, sizes = self.scores(metric), self.sizes(size)
        reference = max(scores, key=lambda label: sizes[label]) if baseline is None else self._known(baseline, scores)
        whole = {
            label: sign * series for label, series in scores.items() if series.index.equals(scores[reference].index)
        }
        return smallest_not_worse(
            {label: series.tolist() for label, series in whole.items()},
            {label: sizes[label] for label in whole},
            baseline=reference,
            margin=margin,
            design="runs" if self.test_to_train is None else "folds",
            test_to_train=self.test_to_train or 0.0,
            alpha=alpha,
        )

    def front(self, metric: str | None = None, *, sizes: Sequence[str] = ("parameters",)) -> ParetoFront:
        """Return the Pareto front of score against one size or several."""
        found, metric = {name: self.sizes(name) for name in sizes}, metric or self.primary
        return pareto_front(self.scores(metric), found, metric=metric, smaller_is_better=metric in SMALLER_IS_BETTER)

    def history(self, row: JsonObject) -> list[JsonObject]:
        """Return the epochs of a cell that is done."""
        epochs: list[JsonObject] = read_history(self.history_path(row))["epochs"]
        return epochs

    def history_path(self, row: Mapping[str, Any]) -> Path:
        """Return the file of the history of a cell that is done."""
        return self.folder / "histories" / f"{_content_name(row['history'])}.json"

    def model_path(self, row: JsonObject) -> Path:
        """Return the file of the network of a cell that is done."""
        if row["model"] is None:
            raise SettingsError("the study kept no networks: declare it with models = true")
        return self.folder / "models" / f"{_content_name(row['model'])}.safetensors"

    def _repr_html_(self) -> str:
        done, cells = self.progress.done, self.progress.cells
        notes = [f"{done:,} of {cells:,} cells are done."] if done < cells else []
        if self.done.empty:
            return html_table([], heading=self.folder.name, notes=notes)
        rows = [
            {
                "configuration": str(row["configuration"]),
                f"mean {self.primary}": f"{row['mean']:.4f}",
                "SD": "" if pandas.isna(row["sd"]) else f"{row['sd']:.4f}",
                "95 % interval": "" if pandas.isna(row["low"]) else f"{row['low']:.4f} – {row['high']:.4f}",
                "parameters": f"{row['parameters']:,.0f}",
            }
            for row in self.summary().to_dict("records")
        ]
        return html_table(rows, heading=self.folder.name, notes=notes)

    def _known(self, name: str | None, scores: Scores) -> str:
        if name is not None and name not in scores:
            raise SettingsError(f"no configuration with results is called '{name}': known are {'; '.join(scores)}")
        return next(iter(scores)) if name is None else name


def _content_name(name: object) -> str:
    """Return the name of a file that is named by its content; a ledger from anyone may name other files."""
    if not isinstance(name, str) or not CONTENT_NAME.fullmatch(name):
        raise TopiaristError(f"the ledger is damaged: it names a file {name!r}")
    return name


def read_history(place: Path) -> JsonObject:
    """Return what a study kept of the training of a cell; raise TopiaristError where the file is gone or damaged."""
    try:
        found: JsonObject = parse_json(place.read_text(encoding="utf-8"))
        if all(isinstance(epoch, dict) for epoch in found["epochs"]):
            return found
        raise ValueError("its epochs are no records")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TopiaristError(f"cannot read {place}: {first_line(error)}; run the study anew") from error
