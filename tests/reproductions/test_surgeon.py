"""The Surgeon reproduced: on digits and on the paper's data in the forms that are read; resumable, and all shown."""

import json
import struct
import sys
import warnings
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pandas
import pytest
import scipy.io
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import nn

from topiarist import measure, train
from topiarist.cli import main
from topiarist.data import Data
from topiarist.errors import DataError, SettingsError
from topiarist.evolution.lineage import Decision, Fate, Lineage, Node
from topiarist.methods import Surgeon, resize
from topiarist.methods.surgeon.surgeon import SurgeonMethod
from topiarist.models import mlp
from topiarist.randomness import generator
from topiarist.reproductions.claims import NOT_TESTABLE
from topiarist.reproductions.surgeon.claims import UNDECIDED, judge_surgeon_claims
from topiarist.reproductions.surgeon.comparison import (
    Comparison,
    TrainedNetwork,
    comparisons_of,
    run_studies,
)
from topiarist.reproductions.surgeon.data import DataSet, PartSummary, read_data_sets, row_named
from topiarist.reproductions.surgeon.options import FULL, PAPER_SEEDS, QUICK, TOPOLOGIES, SurgeonScope
from topiarist.reproductions.surgeon.page import at_epochs
from topiarist.reproductions.surgeon.paper import CLASSES, TABLE_3
from topiarist.reproductions.surgeon.reproduce import is_dead_end, reproduce_surgeon
from topiarist.reproductions.surgeon.study import (
    KINDS,
    METHODS,
    RATES,
    LayerShape,
    final_labels,
    final_study,
    first_study,
    fresh_network,
    hidden_layers,
)
from topiarist.reproductions.surgeon.tables import AT_CHANCE, decisions_table, table_3
from topiarist.storage import load
from topiarist.study.declaration import Cell
from topiarist.study.job import network_for, train_config
from topiarist.study.results import Results
from topiarist.study.samples import StudySamples, source_key

pytestmark = pytest.mark.slow

TINY = SurgeonScope(seeds=2, topologies=("small", "medium"), epochs=6, samples=300)
ONE = SurgeonScope(seeds=1, topologies=("small",), setting="ours", epochs=6, samples=200)
Reproduced = tuple[Path, dict[str, Any]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Reproduced:
    out = tmp_path_factory.mktemp("surgeon")
    return out, reproduce_surgeon(out, scope=TINY)


@pytest.fixture(scope="module")
def networks(found: Reproduced) -> list[TrainedNetwork]:
    """Read what the studies hold; nothing is left to run."""
    return run_studies(TINY, read_data_sets(()), found[0] / "studies", seed=0)[0]


def cells_of(scope: SurgeonScope, *, seed: int = 0) -> list[Cell]:
    return first_study(scope, "digits", seed=seed).cells


def data_of(cell: Cell) -> Data:
    (data,) = read_data_sets(())
    return StudySamples({source_key(cell.settings.data): data.source}).of(cell)


def test_the_page_says_that_digits_stand_in(found: Reproduced) -> None:
    out, result = found
    page = (out / "index.html").read_text()
    assert result["stand_in"] and result["failed"] == 0 and json.loads(json.dumps(result)) == result
    assert "stand-in" in result["summary"] and "A stand-in" in page and "compared with no row" in page
    for title in ("Table 3: digits", "Accuracy on the test part", "Parameters", "Decisions, and why", "Claims"):
        assert title in page
    assert page.index("What the paper claims") < page.index("Table 3: digits")
    assert {claim["verdict"] for claim in result["claims"]} == {NOT_TESTABLE}
    assert "://" not in page.replace("http://www.w3.org", "")
    assert {row["paper, baseline"] for row in result["rows"]} == {None}


def test_the_table_is_what_the_studies_hold(found: Reproduced) -> None:
    out, result = found
    table = pandas.read_csv(out / "tables" / "table3.csv")
    frame = pandas.read_csv(out / "tables" / "runs.csv")
    assert len(table) == len(result["rows"]) == 4 and len(frame) == 4 * 2 * len(KINDS)
    for row, listed in zip(table.to_dict("records"), result["rows"], strict=True):
        some = frame[(frame["topology"] == row["topology"]) & (frame["setting"] == row["setting"])]
        by_kind = {kind: runs.sort_values("seed") for kind, runs in some.groupby("kind")}
        assert set(by_kind) == set(KINDS) and row["runs"] == 2
        for kind, runs in by_kind.items():
            for part in ("test", "validation"):
                values = runs[f"{part}_accuracy"]
                assert row[f"{kind}, {part}"] == listed[f"{kind}, {part}"] == pytest.approx(values.mean())
                assert row[f"{kind}, {part}, sd"] == pytest.approx(values.std())
            assert row[f"{kind}, sample MACs"] == pytest.approx(runs["sample_macs"].mean())
        surgeon, final = by_kind["surgeon"], by_kind["final"]
        better = max(("sgd", "adam"), key=lambda kind: by_kind[kind]["validation_accuracy"].mean())
        plain = by_kind[better]
        assert row["baseline"] == better and row["parameters before"] == plain["parameters"].iloc[0]
        assert list(final["parameters"]) == list(surgeon["parameters"]), "of the same seed"
        assert row["parameters after"] == pytest.approx(surgeon["parameters"].mean())
        assert row["change, %"] == pytest.approx(100 * (row["parameters after"] / row["parameters before"] - 1))
        for end, beside in (("", plain), (" to final", final)):
            assert row[f"time ratio{end}"] == pytest.approx(surgeon["seconds"].sum() / beside["seconds"].sum())
            assert row[f"work ratio{end}"] == pytest.approx(surgeon["sample_macs"].sum() / beside["sample_macs"].sum())
        if row["at chance"]:
            assert listed["gain, test"] is None
        else:
            gain = row["surgeon, test"] - row[f"{better}, test"]
            assert row["gain, test"] == pytest.approx(100 * gain)
            assert row["relative gain, test, %"] == pytest.approx(100 * gain / row[f"{better}, test"])
    assert len(pandas.read_csv(out / "tables" / "claims.csv")) == len(result["claims"])


def test_plain_work_is_epochs_times_samples_times_macs(networks: list[TrainedNetwork]) -> None:
    for network in networks:
        inputs, classes = 64, 10
        sizes = [inputs, *TOPOLOGIES[network.topology], classes]
        start = sum(first * second for first, second in pairwise(sizes))
        if network.kind in ("sgd", "adam"):
            assert network.sample_macs == network.epochs * 300 * start and network.trained_epochs == network.epochs
        if network.kind == "surgeon":
            assert network.trained_epochs >= network.epochs and network.evolution.sample_macs == network.sample_macs
        else:
            assert [epoch for epoch, _ in network.curve] == list(range(1, network.epochs + 1))
            assert network.curve[-1][1] == pytest.approx(network.accuracy["validation"])


def test_inputs_are_scaled_as_each_setting_has_it() -> None:
    for cell in cells_of(TINY):
        data = data_of(cell)
        x = data.train.x if hasattr(data.train, "x") else None
        assert x is not None
        if "published" in cell.label:
            assert float(x.min()) == 0.0 and float(x.max()) == 1.0
        else:
            assert data.preprocessing is not None and data.preprocessing.scaling == "pixels"
            assert abs(float(x.mean())) < 0.01


def test_an_evolution_of_each_data_set_topology_and_setting_is_drawn(
    found: Reproduced, networks: list[TrainedNetwork]
) -> None:
    out, _ = found
    figures = {path.stem: path.read_text() for path in sorted((out / "figures").glob("*.svg"))}
    assert len(figures) == 2 * 2 * 3 + 2
    for figure in figures.values():
        ElementTree.fromstring(figure)
    for setting in ("published", "ours"):
        assert "small, Surgeon" in figures[f"figure2-digits-{setting}"]
        curves = figures[f"digits-small-{setting}-accuracy"]
        assert "plain, final topology" in curves and ("plain (SGD)" in curves) != ("plain (Adam)" in curves)
    for comparison in comparisons_of(networks, TINY, read_data_sets(())):
        lineage = comparison.typical["surgeon"].evolution
        decisions, listed = lineage.decisions, decisions_table(lineage)
        assert len(listed) == sum(len(each.kept) for each in decisions)
        assert all(each.reason in why for each, why in zip(decisions[:1], listed["why"], strict=False))


def test_accuracies_between_known_epochs_lie_on_a_line() -> None:
    assert at_epochs([(2.0, 0.2), (4.0, 0.4), (4.0, 0.6), (5.5, 0.6)]) == pytest.approx([None, 0.2, 0.4, 0.6, 0.6])
    assert at_epochs([]) == []


def lineage_of(*ends: tuple[Fate, tuple[tuple[str, int], ...]], decisions: tuple[int, ...] = ()) -> Lineage:
    """Return a lineage of networks with these fates and widths, and decisions with these numbers."""
    nodes = [
        Node(
            number=number,
            parent=number - 1 if number else None,
            kind="widen",
            edit="",
            decision=0,
            begins=0.0,
            ends=100.0,
            parameters=100,
            widths=widths,
            fate=fate,
        )
        for number, (fate, widths) in enumerate(ends)
    ]
    made = [Decision(number=number, epoch=10.0, draw=0, candidates=(), kept=(), reason="") for number in decisions]
    return Lineage(epochs=100, nodes=nodes, decisions=made)


def network(kind: Any, seed: int, accuracy: float, **known: Any) -> TrainedNetwork:
    """Return a network as a study leaves it."""
    figures: dict[str, Any] = {
        **{"data": "digits", "topology": "small", "setting": "published", "kind": kind, "seed": seed},
        **{"accuracy": {"test": accuracy, "validation": accuracy}, "test_log_loss": 1.0},
        **{"parameters": 110 if kind == "surgeon" else 100},
        **{"seconds": 1.0, "sample_macs": 10.0, "trained_epochs": 290.0, "epochs": 100, "curve": ()},
        **{"lineage": lineage_of(("best", (("hidden0", 10),)), decisions=(1, 1, 2))},
    }
    return TrainedNetwork(**{**figures, **known})


def comparison(
    row: str | None, accuracies: dict[Any, tuple[float, ...]], *, train_samples: int = 597, **known: Any
) -> Comparison:
    """Return a comparison on the digits, with 600 validation and 600 test samples of 10 equal classes."""
    (digits,) = read_data_sets(())
    parts: Any = {"train": train_samples, "validation": 600, "test": 600}
    parts = {name: PartSummary(samples, 0.1) for name, samples in parts.items()}
    data = DataSet(source=digits.source, row=row, parts=parts)
    seeds = [
        {kind: network(kind, seed, values[seed], **known) for kind, values in accuracies.items()}
        for seed in range(len(accuracies["sgd"]))
    ]
    return Comparison(data, "small", "published", tuple(seeds))


def test_a_baseline_at_chance_is_compared_with_nothing() -> None:
    dead = comparison("CIFAR-10", {"sgd": (0.10, 0.25), "adam": (0.1, 0.1), "surgeon": (0.4, 0.4), "final": (0.1, 0.3)})
    (row,) = table_3([dead]).to_dict("records")
    assert row["baseline"] == "sgd" and row["at chance"] == 1 and row["at chance on final"] == 1
    assert {row[name] for name in map(str, row) if name.startswith(("gain", "relative gain"))} == {None}
    claims = {each.claim: each for each in judge_surgeon_claims([dead])}
    gain = claims["Relative gain of accuracy: CIFAR-10, small (Table 3)"]
    assert (gain.verdict, gain.note, gain.ours) == (NOT_TESTABLE, AT_CHANCE, "–")
    alive = comparison("CIFAR-10", {"sgd": (0.1, 0.1), "adam": (0.3, 0.31), "surgeon": (0.4, 0.4), "final": (0.4, 0.4)})
    (row,) = table_3([alive]).to_dict("records")
    assert row["baseline"] == "adam" and row["at chance"] == 0 and row["gain, test"] == pytest.approx(9.5)


@pytest.mark.parametrize(("accuracy", "chance"), [(0.1, True), (0.119, True), (0.12, False), (0.05, True)])
def test_chance_is_what_the_largest_class_may_reach(accuracy: float, chance: bool) -> None:
    assert PartSummary(1000, 0.1).is_at_chance(accuracy) == chance
    draws = numpy.random.default_rng(0).binomial(1000, 0.1, 100_000) / 1000
    assert (numpy.mean(draws <= 0.119) >= 0.975) and (numpy.mean(draws <= 0.118) < 0.98)


def test_one_run_has_no_interval_and_proves_nothing() -> None:
    alone = comparison("CIFAR-10", {"sgd": (0.28,), "adam": (0.3,), "surgeon": (0.34,), "final": (0.3,)})
    (row,) = table_3([alone]).to_dict("records")
    assert row["gain, test"] == pytest.approx(4.0) and row["gain, test, low"] is row["gain, test, high"] is None
    claims = [
        each for each in judge_surgeon_claims([alone]) if each.claim.startswith(("Relative", "Change", "The Sur"))
    ]
    assert {(each.verdict, each.interval, UNDECIDED in each.note) for each in claims} == {(NOT_TESTABLE, None, True)}


def test_claims_are_judged_by_the_papers_numbers() -> None:
    better = comparison("CIFAR-10", {"sgd": (0.28, 0.28, 0.29), "adam": (0.3,) * 3, "surgeon": (0.34, 0.35, 0.33)})
    claims = {each.claim.split(" (")[0]: each for each in judge_surgeon_claims([better])}
    gain = claims["Relative gain of accuracy: CIFAR-10, small"]
    assert gain.verdict == "reproduced" and gain.published == "+21.4 %" and gain.ours == "+20.0 %"
    assert "597 samples, 100 of 100 epochs, 3 runs of 15" in gain.note
    change = claims["Change of parameters: CIFAR-10, small"]
    assert change.verdict == "not reproduced" and change.ours == "+10.0 %"
    assert claims["The Surgeon reaches or outperforms plain training everywhere"].verdict == "reproduced"
    assert claims["What does not learn by plain training learns with the Surgeon"].verdict == NOT_TESTABLE
    epochs = next(each for name, each in claims.items() if name.startswith("Training in all"))
    assert (epochs.ours, epochs.verdict) == ("2.90", "reproduced")
    redraws = claims["Redraws per decision"]
    assert (redraws.ours, redraws.published, redraws.verdict) == ("0.50", "0.56", "not reproduced")
    for known in ({"epochs": 20}, {"train_samples": 100}):
        shorter = comparison("CIFAR-10", {"sgd": (0.28, 0.28), "adam": (0.3,) * 2, "surgeon": (0.34, 0.35)}, **known)
        numbers = [
            each for each in judge_surgeon_claims([shorter]) if "Table 3" in each.claim or "Redraws" in each.claim
        ]
        assert len(numbers) == 3 and {each.verdict for each in numbers} == {NOT_TESTABLE}, "not the paper's experiment"
    vague = comparison("CIFAR-10", {"sgd": (0.28, 0.28), "adam": (0.3,) * 2, "surgeon": (0.25, 0.45)})
    undecided = [each for each in judge_surgeon_claims([vague]) if each.claim.startswith(("Relative", "The Surgeon"))]
    assert [(each.verdict, UNDECIDED in each.note) for each in undecided] == [(NOT_TESTABLE, True)] * 2
    worse = comparison("CIFAR-10", {"sgd": (0.5, 0.51, 0.5), "adam": (0.3,) * 3, "surgeon": (0.34, 0.35, 0.33)})
    assert judge_surgeon_claims([better, worse])[0].verdict == "not reproduced"
    assert {each.verdict for each in judge_surgeon_claims([replace(better, data=replace(better.data, row=None))])} == {
        NOT_TESTABLE
    }


def test_a_topology_that_is_rescued_counts() -> None:
    runs = 8
    rescued = comparison("EuroSAT", {"sgd": (0.1,) * runs, "adam": (0.1,) * runs, "surgeon": (0.5,) * runs})
    assert (
        judge_surgeon_claims([rescued])[1].verdict == "reproduced"
        and "8 of 8" in judge_surgeon_claims([rescued])[1].ours
    )
    stuck = comparison("EuroSAT", {"sgd": (0.1,) * runs, "adam": (0.1,) * runs, "surgeon": (0.1,) * runs})
    assert judge_surgeon_claims([stuck])[1].verdict == "not reproduced"


def test_a_dead_end_is_found_in_the_record() -> None:
    lineage = lineage_of(("kept", (("hidden0", 10),)), ("best", ()))
    assert is_dead_end(network("surgeon", 0, 0.3, lineage=lineage))
    assert not is_dead_end(network("surgeon", 1, 0.3))


def test_the_final_topology_is_that_of_the_surgeon_with_new_weights(found: Reproduced) -> None:
    (first,) = (found[0] / "studies").glob("digits-????????")
    results = Results.read(first)
    rows = [row for row in results.rows if row["label"].endswith("surgeon")]
    assert len(rows) == 8
    for row in rows:
        surgeon = load(results.model_path(row))
        with torch.random.fork_rng():
            fresh = fresh_network(input_shape=(1, 8, 8), classes=10, layers=hidden_layers(surgeon))
        shapes = [[list(value.shape) for value in each.parameters()] for each in (fresh, surgeon)]
        assert shapes[0] == shapes[1]
        assert all(bool(value.isfinite().all()) for value in fresh.parameters())


def test_a_thin_layer_of_a_truncated_svd_has_no_bias_and_no_activation() -> None:
    first = nn.Sequential(nn.Linear(4, 2, bias=False), nn.Linear(2, 8))
    network = nn.Sequential(nn.Flatten(), first, nn.ReLU(), nn.Linear(8, 3))
    layers = (LayerShape(2, False, False), LayerShape(8, True, True))
    assert hidden_layers(network) == layers and hidden_layers(nn.Sequential(nn.Flatten(), nn.Linear(4, 3))) == ()
    fresh = fresh_network(input_shape=(4,), classes=3, layers=[list(layer) for layer in layers])
    assert hidden_layers(fresh) == layers
    assert all(float(value.detach().std()) > 0 for value in fresh.parameters() if value.ndim > 1)


def test_surgeons_of_a_seed_that_end_with_one_topology_share_its_training() -> None:
    same, other = (LayerShape(10, True, True),), (LayerShape(20, True, True),)
    ends: Any = {("small", "ours"): same, ("medium", "ours"): same, ("large", "ours"): other}
    ends[("small", "published")] = same
    labels = final_labels(ends)
    assert list(labels.values()) == [
        "small, ours, final",
        "small, ours, final",
        "large, ours, final",
        "small, published, final",
    ]
    study = final_study(QUICK, "digits", ends, seed=7, split_seed=3)
    assert [cell.label for cell in study.cells] == list(dict.fromkeys(labels.values()))
    assert {(cell.seed, cell.settings.data.seed, cell.settings.training.epochs) for cell in study.cells} == {(7, 3, 20)}


def test_going_on_changes_nothing_and_runs_nothing(found: Reproduced, monkeypatch: pytest.MonkeyPatch) -> None:
    out, result = found
    before = {path: path.read_bytes() for path in (out / "tables").iterdir()}
    monkeypatch.setattr("topiarist.study.engine.run_stack", lambda *_: pytest.fail("it was run again"))
    assert reproduce_surgeon(out, scope=TINY) == result
    assert {path: path.read_bytes() for path in (out / "tables").iterdir()} == before
    monkeypatch.undo()
    fewer = reproduce_surgeon(out, scope=TINY.changed(seeds=1, topologies=("small",), epochs=1))
    assert [row["runs"] for row in fewer["rows"]] == [1, 1], "another scope has studies of its own"
    assert reproduce_surgeon(out, scope=TINY) == result


def test_an_interrupted_run_resumes(tmp_path: Path) -> None:
    whole = reproduce_surgeon(tmp_path / "whole", scope=ONE)
    out = tmp_path / "broken"

    for limit in (2, 3):

        def interrupt(done: int, total: int, limit: int = limit) -> None:
            if done == limit:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            reproduce_surgeon(out, scope=ONE, on_run=interrupt)
    told: list[tuple[int, int]] = []
    result = reproduce_surgeon(out, scope=ONE, on_run=lambda done, total: told.append((done, total)))
    timed = {name for name in result["rows"][0] if name.endswith(", s") or name.startswith("time ratio")}
    (row,), (other,) = result["rows"], whole["rows"]
    assert {name: row[name] for name in row if name not in timed} == {n: other[n] for n in other if n not in timed}
    assert told == [(3, 4), (4, 4)]


def test_a_run_that_fails_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise SettingsError("as a test")

    monkeypatch.setattr(Surgeon, "run", fail)
    result = reproduce_surgeon(tmp_path, scope=ONE)
    assert result["failed"] == 1 and result["rows"] == [] and "No comparison" in result["summary"]
    assert len(result["failed_in"]) == 1 and Path(result["failed_in"][0]).is_dir()
    assert "as a test" in result["notes"][0] and "as a test" in (tmp_path / "index.html").read_text()
    monkeypatch.undo()
    assert reproduce_surgeon(tmp_path, scope=ONE)["failed"] == 0


def test_changed_data_are_refused(tmp_path: Path) -> None:
    folder = write_idx(tmp_path / "mine", "", classes=10, parts=("train", "t10k"))
    reproduce_surgeon(tmp_path / "out", data=[str(folder)], scope=ONE.changed(epochs=1))
    images = folder / "train-images-idx3-ubyte"
    images.write_bytes(images.read_bytes()[:-1] + b"\x07")
    with pytest.raises(DataError, match="the data have changed"):
        reproduce_surgeon(tmp_path / "out", data=[str(folder)], scope=ONE.changed(epochs=1))


def test_plain_training_is_the_surgeons_with_sgd_and_with_adam() -> None:
    for cell in cells_of(FULL, seed=3):
        topology, setting, kind = cell.label.split(", ")
        usual = METHODS[setting]()  # type: ignore[index]
        assert cell.settings.model.hidden == TOPOLOGIES[topology]  # type: ignore[index]
        if kind == "surgeon":
            method = cell.settings.method.method
            assert isinstance(method, SurgeonMethod) and type(method) is type(usual)
            assert method.usual_training == usual.usual_training
            assert method.interval == (10 if setting == "published" else None)
            assert cell.settings.training.epochs == 0, "it trains from the first weights on"
        else:
            change = {"optimizer": kind, "learning_rate": RATES[kind], "seed": cell.training_seed}  # type: ignore[index]
            assert train_config(cell) == usual.usual_training.model_copy(update=change)
    paper = METHODS["published"]().usual_training
    assert (paper.epochs, paper.batch_size, paper.learning_rate, paper.optimizer) == (100, 16, 0.005, "sgd")
    assert TOPOLOGIES == {"small": (10,), "medium": (10, 10, 10), "large": (300, 100, 100)}


def test_all_that_begin_with_a_topology_have_the_same_first_weights() -> None:
    for topology in TOPOLOGIES:
        cells = [cell for cell in cells_of(TINY.changed(seeds=1, topologies=(topology,))) if "ours" in cell.label]
        starts = [network_for(cell.settings, data_of(cell), cell.training_seed).state_dict() for cell in cells]
        assert len(starts) == 3
        assert all(torch.equal(value, other[name]) for other in starts for name, value in starts[0].items())


def test_the_papers_seeds_are_run_three_times_each() -> None:
    cells = cells_of(ONE.changed(paper_seeds=True))
    seeds = [cell.seed for cell in cells if cell.label.endswith("surgeon")]
    assert len(set(seeds)) == 15 and len(cells) == 45 and set(PAPER_SEEDS) < set(seeds)
    assert [seed % 1000 for seed in seeds] == [seed for seed in (6, 63, 72, 77, 97) for _ in range(3)]
    assert {cell.settings.data.seed for cell in cells} == {0}, "all on the same parts"


def test_an_evolution_without_changes_is_plain_training(tmp_path: Path) -> None:
    plain, _, _ = cells_of(ONE.changed(epochs=3))
    data, seed = data_of(plain), plain.training_seed
    (adam,) = (cell for cell in cells_of(ONE.changed(epochs=3)) if cell.label.endswith("adam"))
    model = mlp([64, 10, 10], generator=generator(seed, "initial weights"))
    unchanged = Surgeon(training=train_config(adam), kinds=())
    evolved = resize(model, data, unchanged, seed=seed, latency=False)
    train(model, data, train_config(adam))
    trained = measure(model, data, latency=False)
    assert evolved.after.accuracy == pytest.approx(trained.accuracy)
    assert evolved.after.log_loss == pytest.approx(trained.log_loss, rel=1e-4)
    assert evolved.lineage is not None
    assert evolved.lineage.sample_macs == pytest.approx(3 * 200 * trained.macs)


def test_seeds_epochs_and_samples_can_be_changed() -> None:
    scope = QUICK.changed(seeds=3, epochs=7, samples=99)
    assert (scope.seeds, scope.epochs, scope.samples) == (3, 7, 99)
    assert FULL.changed(seeds=None, epochs=None, samples=None) == FULL


def test_the_papers_rows_agree_with_its_own_increases() -> None:
    assert set(TABLE_3) == {(name, topology) for name in CLASSES for topology in TOPOLOGIES}
    apart = []
    for name, row in TABLE_3.items():
        half = 0.005
        lowest = 100 * ((row.surgeon[0] - half) / (row.baseline[0] + half) - 1)
        highest = 100 * ((row.surgeon[0] + half) / (row.baseline[0] - half) - 1)
        if row.gain is not None and not lowest - 0.01 <= row.gain <= highest + 0.01:
            apart.append(name)
    assert apart == [("EuroSAT", "medium")]


def encoded(array: NDArray[Any]) -> bytes:
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def write_idx(folder: Path, prefix: str, *, classes: int, parts: tuple[str, str]) -> Path:
    """Write pictures of 4 by 4 pixels, in which the brightest pixel tells the class."""
    folder.mkdir()
    for part, each in zip(parts, (8, 2), strict=True):
        labels = numpy.arange(classes * each, dtype=numpy.uint8) % classes
        pictures = numpy.zeros((len(labels), 16), dtype=numpy.uint8)
        pictures[numpy.arange(len(labels)), labels % 16] = 255
        (folder / f"{prefix}{part}-images-idx3-ubyte").write_bytes(encoded(pictures.reshape(-1, 4, 4)))
        (folder / f"{prefix}{part}-labels-idx1-ubyte").write_bytes(encoded(labels))
    return folder


def write_cifar(folder: Path, *, classes: int) -> Path:
    folder.mkdir()
    names = ("data_batch_1.bin", "test_batch.bin") if classes == 10 else ("train.bin", "test.bin")
    for name, each in zip(names, (8, 2), strict=True):
        labels = numpy.arange(classes * each, dtype=numpy.uint8)[:, None] % classes
        coarse = labels[:, :0] if classes == 10 else labels // 5
        pixels = numpy.repeat(labels, 3072, axis=1)
        (folder / name).write_bytes(numpy.hstack([coarse, labels, pixels]).tobytes())
    return folder


def write_svhn(folder: Path) -> Path:
    folder.mkdir()
    for part in ("train", "test"):
        labels = numpy.arange(80, dtype=numpy.uint8)[:, None] % 10 + 1
        pictures = numpy.zeros((32, 32, 3, 80), dtype=numpy.uint8)
        scipy.io.savemat(folder / f"{part}_32x32.mat", {"X": pictures, "y": labels})
    return folder


def write_eurosat(folder: Path) -> Path:
    for label in range(10):
        (folder / f"Land{label}").mkdir(parents=True)
        for number in range(10):
            pixels = numpy.full((8, 8, 3), 20 * label + number, dtype=numpy.uint8)
            Image.fromarray(pixels).save(folder / f"Land{label}" / f"Land{label}_{number}.jpg")
    return folder


@pytest.mark.parametrize(
    ("name", "shape", "test"),
    [
        ("EMNIST", (1, 4, 4), 124),
        ("Fashion-MNIST", (1, 4, 4), 20),
        ("CIFAR-10", (3, 32, 32), 20),
        ("CIFAR-100", (3, 32, 32), 200),
        ("SVHN", (3, 32, 32), 80),
        ("EuroSAT", (3, 8, 8), 20),
    ],
)
def test_the_papers_data_are_read_and_find_their_row(
    tmp_path: Path, name: str, shape: tuple[int, ...], test: int
) -> None:
    folder = tmp_path / "somewhere"
    if name == "EMNIST":
        write_idx(folder, "emnist-byclass-", classes=62, parts=("train", "test"))
    elif name == "Fashion-MNIST":
        write_idx(folder, "", classes=10, parts=("train", "t10k"))
    elif name.startswith("CIFAR"):
        write_cifar(folder, classes=CLASSES[name])
    else:
        (write_svhn if name == "SVHN" else write_eurosat)(folder)
    (found,) = read_data_sets([f"{name}={folder}"])
    data = Data.from_source(found.source)
    assert found.row == name and data.input_shape == shape and len(data.classes) == CLASSES[name]
    assert len(data.test) == test
    (unnamed,) = read_data_sets([str(folder)])
    assert unnamed.row is None and unnamed.name == "somewhere"


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("cifar-10-batches-bin", "CIFAR-10"),
        ("cifar100", "CIFAR-100"),
        ("EuroSAT_RGB", "EuroSAT"),
        ("fashion-mnist", "Fashion-MNIST"),
        ("mnist", None),
        ("digits", None),
    ],
)
def test_rows_are_found_by_name(name: str, row: str | None) -> None:
    assert row_named(name) == row


def test_the_papers_figures_stand_beside_ours(tmp_path: Path) -> None:
    folder = write_idx(tmp_path / "fashion-mnist", "", classes=10, parts=("train", "t10k"))
    other = write_idx(tmp_path / "emnist", "emnist-balanced-", classes=47, parts=("train", "test"))
    result = reproduce_surgeon(tmp_path / "out", data=[str(folder), str(other)], scope=ONE.changed(epochs=1))
    fashion, emnist = result["rows"]
    assert not result["stand_in"] and result["failed"] == 0
    assert (fashion["paper, baseline"], fashion["paper, surgeon, sd"], fashion["paper, change, %"]) == (0.85, 0.0, None)
    assert emnist["paper, baseline"] is None and "47 classes" in result["notes"][0]
    page = (tmp_path / "out" / "index.html").read_text()
    assert ">paper<" in page and "0.85±0.01" in page
    assert (fashion["paper, relative gain, %"], emnist["paper, relative gain, %"]) == (0.47, None)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Any]:
    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["topiarist", "reproduce", "surgeon", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        said = capsys.readouterr()
        assert isinstance(stop.value.code, int)
        return stop.value.code, said.out, said.err

    with warnings.catch_warnings():
        yield run


def test_the_command(tmp_path: Path, command: Any) -> None:
    words = ("--data", "mine=digits", "--topology", "small", "--setting", "ours", "--seeds", 1, "--epochs", 4)
    code, out, err = command(*words, "--workers", 1, "--out", tmp_path / "out", "--json")
    assert (code, err) == (0, "")
    (row,) = json.loads(out.splitlines()[-1])["rows"]
    assert (row["data"], row["topology"], row["setting"], row["runs"]) == ("mine", "small", "ours", 1)
    code, out, err = command(*words, "--workers", 1, "--out", tmp_path / "out")
    assert (code, err) == (0, "") and "page:" in out and "mine, small" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--topology", "huge"), "no topology 'huge'; there are small, medium, large"),
        (("--setting", "theirs"), "'theirs' is not one of"),
        (("--data", "nowhere"), "no such file or folder"),
        (("--data", "=digits"), "data are written as NAME=DATA"),
        (("--data", "digits", "--data", "digits"), "two data sets are called 'digits'"),
        (("--samples", "5"), "5 training samples cannot show 10 classes"),
        (("--seeds", "3", "--paper-seeds"), "--seeds has no effect with --paper-seeds"),
        (("--seeds", "0"), "greater than or equal to 1"),
        (("--epochs", "0"), "greater than or equal to 1"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, command: Any, words: tuple[str, ...], message: str) -> None:
    code, out, err = command(*words, "--out", tmp_path / "out")
    assert code == 2 and out == "" and err.count("\n") == 1 and message in err
    assert not (tmp_path / "out").exists()
