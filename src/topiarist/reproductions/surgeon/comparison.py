"""Runs the studies of the Surgeon, and compares the networks of each seed."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from topiarist.evolution.lineage import Lineage
from topiarist.files import sha256
from topiarist.reproductions.findings import file_stem
from topiarist.reproductions.surgeon.data import DataSet, PartName
from topiarist.reproductions.surgeon.options import Setting, SurgeonScope, Topology
from topiarist.reproductions.surgeon.study import (
    FIRST,
    KINDS,
    PLAIN,
    Kind,
    final_labels,
    final_study,
    first_study,
    hidden_layers,
    label_of,
)
from topiarist.storage import load
from topiarist.study.results import Results, read_history
from topiarist.study.study import Study

OnRun = Callable[[int, int], None]
Labels = Mapping[tuple[Topology, Setting, Kind], str]  # the configuration of a study that trains each network


@dataclass(frozen=True, kw_only=True)
class TrainedNetwork:
    """The results of one network of the comparison, and what its training took.

    `sample_macs` are samples trained on times the multiply-accumulates of a forward pass, `curve` the validation
    accuracy after each epoch of plain training, `lineage` the Surgeon's evolution; None of plain training.
    """

    data: str
    topology: Topology
    setting: Setting
    kind: Kind
    seed: int
    accuracy: Mapping[PartName, float]
    test_log_loss: float
    parameters: int
    seconds: float
    epochs: int
    trained_epochs: float
    sample_macs: float
    curve: Sequence[tuple[float, float]]
    lineage: Lineage | None

    @property
    def evolution(self) -> Lineage:
        """The lineage of a Surgeon."""
        assert self.lineage is not None, f"{self.kind} has no lineage"
        return self.lineage


def run_studies(
    scope: SurgeonScope,
    data_sets: Sequence[DataSet],
    folder: Path,
    *,
    seed: int,
    workers: int | None = 1,
    cluster: str | None = None,
    device: str | None = None,
    on_run: OnRun | None = None,
) -> tuple[list[TrainedNetwork], list[Results]]:
    """Run what is left to do, and return the networks of the cells that ended well, and all studies.

    Cells that failed are tried again. The folder of a study is named by its declaration, so that another scope, or a
    Surgeon that ends well when it is tried again, never meets a study of other cells.
    """
    starts, seeds = list(product(scope.topologies, scope.settings)), scope.seeds_from(seed)
    done, total = 0, len(data_sets) * len(starts) * len(seeds) * len(KINDS)
    networks: list[TrainedNetwork] = []
    studies: list[Results] = []

    def run(study: Study, name: str, data: DataSet, labels: Labels) -> Results:
        results = study.run(
            folder / f"{file_stem(name)}-{sha256(json.dumps(study.to_json()).encode())[:8]}",
            data={data.name: data.source},
            workers=workers,
            cluster=cluster,
            device=device,
            retry_failed=True,
            on_progress=None if on_run is None else lambda now: on_run(done + now.done + now.failed, total),
        )
        studies.append(results)
        rows = [row for row in results.rows if row["state"] == "done"]
        for key, label in labels.items():
            networks.extend(_read_network(results, row, data.name, *key) for row in rows if row["label"] == label)
        return results

    for data in data_sets:
        labels: Labels = {(*start, kind): label_of(*start, kind) for start in starts for kind in FIRST}
        first = run(first_study(scope, data.name, seed=seed), data.name, data, labels)
        done += len(labels) * len(seeds)
        for number in seeds:
            rows = {row["label"]: row for row in first.rows if row["seed"] == number and row["state"] == "done"}
            surgeons = {start: rows.get(label_of(*start, "surgeon")) for start in starts}
            ends = {start: hidden_layers(load(first.model_path(row))) for start, row in surgeons.items() if row}
            if ends:
                study = final_study(scope, data.name, ends, seed=number, split_seed=seed)
                labels = {(*start, "final"): label for start, label in final_labels(ends).items()}
                run(study, f"{data.name} final {number}", data, labels)
            done += len(starts)
    return networks, studies


def _read_network(
    results: Results, row: Mapping[str, Any], data: str, topology: Topology, setting: Setting, kind: Kind
) -> TrainedNetwork:
    figures = json.loads(row["result"])
    history = read_history(results.history_path(row))
    epochs = figures["epochs"] + figures["retraining_epochs"]
    lineage = Lineage.from_record(history["lineage"]) if "lineage" in history else None
    work = float(epochs * figures["train_samples"] * figures["macs"]) if lineage is None else lineage.sample_macs
    points = [(float(epoch["number"]), epoch["validation_accuracy"]) for epoch in history["epochs"]]
    return TrainedNetwork(
        data=data,
        topology=topology,
        setting=setting,
        kind=kind,
        seed=row["seed"],
        accuracy={"validation": figures["validation_accuracy"], "test": figures["accuracy"]},
        test_log_loss=figures["log_loss"],
        parameters=figures["parameters"],
        seconds=row["seconds"],
        epochs=epochs,
        trained_epochs=epochs if lineage is None else lineage.trained_epochs,
        sample_macs=work,
        curve=[point for point in points if point[1] is not None],
        lineage=lineage,
    )


@dataclass(frozen=True)
class Comparison:
    """The networks of one data set, topology and setting: for each seed, by kind; all but "final" are always there."""

    data: DataSet
    topology: Topology
    setting: Setting
    seeds: tuple[Mapping[Kind, TrainedNetwork], ...]

    @property
    def baseline(self) -> Kind:
        """The optimizer of plain training that has the better mean accuracy on the validation part."""
        return max(PLAIN, key=lambda kind: sum(run.accuracy["validation"] for run in self.runs(kind)))

    @property
    def parameters_before(self) -> int:
        """The size of the network that all but "final" begin with."""
        return self.seeds[0]["sgd"].parameters

    @property
    def changes(self) -> list[float]:
        """By how many per cent the Surgeon changed the number of parameters, seed by seed."""
        return [100 * (run.parameters / self.parameters_before - 1) for run in self.runs("surgeon")]

    @property
    def typical(self) -> Mapping[Kind, TrainedNetwork]:
        """The networks of the seed in which the Surgeon has its median test accuracy, the lower of two."""
        ranked = sorted(self.seeds, key=lambda kinds: kinds["surgeon"].accuracy["test"])
        return ranked[(len(ranked) - 1) // 2]

    def runs(self, kind: Kind) -> list[TrainedNetwork]:
        """Return the networks of a kind, of the seeds that have one."""
        return [kinds[kind] for kinds in self.seeds if kind in kinds]

    def pairs(self, first: Kind, second: Kind) -> list[tuple[TrainedNetwork, TrainedNetwork]]:
        """Return the networks of two kinds, seed by seed."""
        return [(kinds[first], kinds[second]) for kinds in self.seeds if first in kinds and second in kinds]

    def gains(self, first: Kind, second: Kind, part: PartName) -> list[float]:
        """Return by how much the first kind is more accurate than the second, seed by seed."""
        return [one.accuracy[part] - other.accuracy[part] for one, other in self.pairs(first, second)]

    def at_chance(self, kind: Kind, part: PartName = "test") -> list[bool]:
        """Return for each seed whether a network ended where one answer for all samples would."""
        return [self.data.parts[part].is_at_chance(run.accuracy[part]) for run in self.runs(kind)]


def comparisons_of(
    networks: Sequence[TrainedNetwork], scope: SurgeonScope, data_sets: Sequence[DataSet]
) -> list[Comparison]:
    """Group networks; a comparison has at least one seed in which plain training and the Surgeon ended well."""
    found = []
    for data, topology, setting in product(data_sets, scope.topologies, scope.settings):
        seeds: dict[int, dict[Kind, TrainedNetwork]] = {}
        for each in networks:
            if (each.data, each.topology, each.setting) == (data.name, topology, setting):
                seeds.setdefault(each.seed, {})[each.kind] = each
        whole = tuple(kinds for _, kinds in sorted(seeds.items()) if set(FIRST) <= set(kinds))
        if whole:
            found.append(Comparison(data, topology, setting, whole))
    return found
