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
import scipy.stats
from numpy.typing import NDArray
from PIL import Image

from topiarist.cli import main
from topiarist.data import Data
from topiarist.errors import SettingsError
from topiarist.methods import Surgeon
from topiarist.reproductions.claims import NOT_TESTABLE
from topiarist.reproductions.surgeon import runs as surgeon_runs
from topiarist.reproductions.surgeon import training as surgeon_training
from topiarist.reproductions.surgeon.claims import UNDECIDED, claims_of
from topiarist.reproductions.surgeon.data import Asked, DataSet, read_data_sets, row_named
from topiarist.reproductions.surgeon.figures import at_epochs
from topiarist.reproductions.surgeon.paper import CLASSES, TABLE_3
from topiarist.reproductions.surgeon.reproduce import reproduce_surgeon
from topiarist.reproductions.surgeon.statistics import is_at_chance, mean_interval
from topiarist.reproductions.surgeon.study import (
    FULL,
    KINDS,
    PAPER_SEEDS,
    QUICK,
    RATES,
    TOPOLOGIES,
    Run,
    Scope,
    changed,
    runs_of,
)
from topiarist.reproductions.surgeon.tables import (
    AT_CHANCE,
    Cell,
    cells_of,
    dead_ends,
    decisions_table,
    table_3,
    typical,
)
from topiarist.surgery import Plan

TINY = Scope(seeds=2, topologies=("small", "medium"), epochs=6, samples=300)
ONE = Scope(seeds=1, topologies=("small",), settings=("ours",), epochs=6, samples=200)
Reproduced = tuple[Path, dict[str, Any]]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Reproduced:
    out = tmp_path_factory.mktemp("surgeon")
    return out, reproduce_surgeon(out, scope=TINY)


def records_in(out: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_bytes()) for path in sorted((out / "runs").glob("*.json"))]


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


def test_the_table_is_what_the_records_say(found: Reproduced) -> None:
    out, result = found
    table = pandas.read_csv(out / "tables" / "table3.csv")
    frame = pandas.DataFrame(records_in(out))
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
    assert len(pandas.read_csv(out / "tables" / "runs.csv")) == len(frame)
    assert len(pandas.read_csv(out / "tables" / "claims.csv")) == len(result["claims"])


def test_plain_work_is_epochs_times_samples_times_macs(found: Reproduced) -> None:
    for record in records_in(found[0]):
        whole = record["epochs"] * record["train_samples"]
        inputs, classes = 64, 10
        sizes = [inputs, *TOPOLOGIES[record["topology"]], classes]
        start = sum(first * second for first, second in pairwise(sizes))
        if record["kind"] in ("sgd", "adam"):
            assert record["sample_macs"] == whole * start and record["trained_epochs"] == record["epochs"]
            assert [epoch for epoch, _ in record["curve"]] == list(range(1, record["epochs"] + 1))
            assert record["curve"][-1][1] == pytest.approx(record["validation_accuracy"])
        elif record["kind"] == "surgeon":
            assert record["trained_epochs"] >= record["epochs"]


def test_inputs_are_scaled_as_each_setting_has_it() -> None:
    (source,) = (each.source for each in read_data_sets(()))
    samples = surgeon_runs.Samples({"digits": source})
    for run in runs_of(TINY, ["digits"], seed=0):
        data = samples.of(run)
        x = data.train.x if hasattr(data.train, "x") else None
        assert x is not None
        if run.setting == "published":
            assert float(x.min()) == 0.0 and float(x.max()) == 1.0
        else:
            assert data.preprocessing is not None and data.preprocessing.scaling == "pixels"
            assert abs(float(x.mean())) < 0.01


def test_an_evolution_of_each_data_set_topology_and_setting_is_drawn(found: Reproduced) -> None:
    out, _ = found
    figures = {path.stem: path.read_text() for path in sorted((out / "figures").glob("*.svg"))}
    assert len(figures) == 2 * 2 * 3 + 2
    for figure in figures.values():
        ElementTree.fromstring(figure)
    for setting in ("published", "ours"):
        assert "small, Surgeon" in figures[f"figure2-digits-{setting}"]
        curves = figures[f"digits-small-{setting}-accuracy"]
        assert "plain, final topology" in curves and ("plain (SGD)" in curves) != ("plain (Adam)" in curves)
    for cell in cells_of(records_in(out), TINY, read_data_sets(())):
        shown = typical(cell)["surgeon"]
        decisions = shown["lineage"]["decisions"]
        listed = decisions_table(shown["lineage"])
        assert len(listed) == sum(len(each["kept"]) for each in decisions)
        assert all(each["reason"] in why for each, why in zip(decisions[:1], listed["why"], strict=False))


def test_accuracies_between_known_epochs_lie_on_a_line() -> None:
    assert at_epochs([(2.0, 0.2), (4.0, 0.4), (4.0, 0.6), (5.5, 0.6)]) == pytest.approx([None, 0.2, 0.4, 0.6, 0.6])
    assert at_epochs([]) == []


def record(kind: str, seed: int, accuracy: float, **known: Any) -> dict[str, Any]:
    """Give a record as a run leaves it, of 600 validation and 600 test samples of 10 equal classes."""
    sizes = {"train_samples": 597, "validation_samples": 600, "test_samples": 600}  # all of the digits
    node = {"fate": "best", "widths": [["hidden0", 10]]}
    return {
        **{"data": "d", "topology": "small", "setting": "published", "kind": kind, "seed": seed, "repeat": 0},
        **{"test_accuracy": accuracy, "validation_accuracy": accuracy, "parameters": 110, "parameters_before": 100},
        **{"seconds": 1.0, "sample_macs": 10.0, "trained_epochs": 290, "epochs": 100, **sizes},
        **{"validation_majority": 0.1, "test_majority": 0.1},
        **{"lineage": {"nodes": [node], "decisions": [{"number": 1}, {"number": 1}, {"number": 2}]}},
        **known,
    }


def cell(row: str | None, accuracies: dict[str, tuple[float, ...]], topology: Any = "small", **known: Any) -> Cell:
    (source,) = (each.source for each in read_data_sets(()))
    seeds = [
        {kind: record(kind, seed, values[seed], **known) for kind, values in accuracies.items()}
        for seed in range(len(accuracies["sgd"]))
    ]
    return Cell(DataSet(source=source, row=row), topology, "published", tuple(seeds))


def test_a_baseline_at_chance_is_compared_with_nothing() -> None:
    dead = cell("CIFAR-10", {"sgd": (0.10, 0.25), "adam": (0.1, 0.1), "surgeon": (0.4, 0.4), "final": (0.1, 0.3)})
    (row,) = table_3([dead]).to_dict("records")
    assert row["baseline"] == "sgd" and row["at chance"] == 1 and row["at chance on final"] == 1
    assert {row[name] for name in map(str, row) if name.startswith(("gain", "relative gain"))} == {None}
    claims = {each.claim: each for each in claims_of([dead])}
    gain = claims["Relative gain of accuracy: CIFAR-10, small (Table 3)"]
    assert (gain.verdict, gain.note, gain.ours) == (NOT_TESTABLE, AT_CHANCE, "–")
    alive = cell("CIFAR-10", {"sgd": (0.1, 0.1), "adam": (0.3, 0.31), "surgeon": (0.4, 0.4), "final": (0.4, 0.4)})
    (row,) = table_3([alive]).to_dict("records")
    assert row["baseline"] == "adam" and row["at chance"] == 0 and row["gain, test"] == pytest.approx(9.5)


@pytest.mark.parametrize(("accuracy", "chance"), [(0.1, True), (0.119, True), (0.12, False), (0.05, True)])
def test_chance_is_what_the_largest_class_may_reach(accuracy: float, chance: bool) -> None:
    assert is_at_chance(accuracy, majority=0.1, samples=1000) == chance
    draws = numpy.random.default_rng(0).binomial(1000, 0.1, 100_000) / 1000
    assert (numpy.mean(draws <= 0.119) >= 0.975) and (numpy.mean(draws <= 0.118) < 0.98)


def test_an_interval_of_a_mean_is_students() -> None:
    values = [1.0, 2.0, 4.0]
    expected = scipy.stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert mean_interval(values) == pytest.approx((expected.low, expected.high))
    assert mean_interval([1.0]) is None


def test_claims_are_judged_by_the_papers_numbers() -> None:
    better = cell("CIFAR-10", {"sgd": (0.28, 0.28, 0.29), "adam": (0.3,) * 3, "surgeon": (0.34, 0.35, 0.33)})
    claims = {each.claim.split(" (")[0]: each for each in claims_of([better])}
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
        shorter = cell("CIFAR-10", {"sgd": (0.28, 0.28), "adam": (0.3,) * 2, "surgeon": (0.34, 0.35)}, **known)
        numbers = [each for each in claims_of([shorter]) if "Table 3" in each.claim or "Redraws" in each.claim]
        assert len(numbers) == 3 and {each.verdict for each in numbers} == {NOT_TESTABLE}, "not the paper's experiment"
    vague = cell("CIFAR-10", {"sgd": (0.28, 0.28), "adam": (0.3,) * 2, "surgeon": (0.25, 0.45)})
    undecided = [each for each in claims_of([vague]) if each.claim.startswith(("Relative", "The Surgeon"))]
    assert [(each.verdict, UNDECIDED in each.note) for each in undecided] == [(NOT_TESTABLE, True)] * 2
    worse = cell("CIFAR-10", {"sgd": (0.5, 0.51, 0.5), "adam": (0.3,) * 3, "surgeon": (0.34, 0.35, 0.33)})
    assert claims_of([better, worse])[0].verdict == "not reproduced"
    assert {each.verdict for each in claims_of([replace(better, data=replace(better.data, row=None))])} == {
        NOT_TESTABLE
    }


def test_a_topology_that_is_rescued_counts() -> None:
    runs = 8
    rescued = cell("EuroSAT", {"sgd": (0.1,) * runs, "adam": (0.1,) * runs, "surgeon": (0.5,) * runs})
    assert claims_of([rescued])[1].verdict == "reproduced" and "8 of 8" in claims_of([rescued])[1].ours
    stuck = cell("EuroSAT", {"sgd": (0.1,) * runs, "adam": (0.1,) * runs, "surgeon": (0.1,) * runs})
    assert claims_of([stuck])[1].verdict == "not reproduced"


def test_a_dead_end_is_found_in_the_record() -> None:
    nodes = [{"fate": "kept", "widths": [["hidden0", 10]]}, {"fate": "best", "widths": []}]
    ended = record("surgeon", 0, 0.3, lineage={"nodes": nodes, "decisions": []})
    assert dead_ends([ended, record("surgeon", 1, 0.3), record("sgd", 0, 0.3)]) == [ended]


def test_the_final_topology_is_that_of_the_surgeon_with_new_weights(found: Reproduced) -> None:
    (source,) = (each.source for each in read_data_sets(()))
    samples = surgeon_runs.Samples({"digits": source})
    for run in runs_of(TINY, ["digits"], seed=0):
        if run.kind != "final":
            continue
        (record,) = [
            each
            for each in records_in(found[0])
            if {**each, "kind": "final"}.items() >= run.keys.items() and each["kind"] == "surgeon"
        ]
        data = samples.of(run)
        model = surgeon_training.fresh_network(surgeon_training.Task(run, None, record["plan"]), data)
        assert sum(each.numel() for each in model.parameters()) == record["parameters"]
        assert all(bool(each.isfinite().all()) for each in model.parameters())
        assert len(Plan.from_record(record["plan"])) == 0 or record["parameters"] > 0


def test_going_on_changes_nothing_and_runs_nothing(found: Reproduced, monkeypatch: pytest.MonkeyPatch) -> None:
    out, result = found
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    monkeypatch.setattr(surgeon_runs, "run_task", lambda *_: pytest.fail("it was run again"))
    assert reproduce_surgeon(out, scope=TINY) == result
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    fewer = reproduce_surgeon(out, scope=replace(TINY, seeds=1, topologies=("small",)))
    assert [row["runs"] for row in fewer["rows"]] == [1, 1]


def test_an_interrupted_run_goes_on_and_its_time_is_not_known(tmp_path: Path) -> None:
    whole = reproduce_surgeon(tmp_path / "whole", scope=ONE)
    out = tmp_path / "broken"

    def interrupt(done: int, total: int) -> None:
        if list((out / "runs").glob("*surgeon*.checkpoint")):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce_surgeon(out, scope=ONE, on_run=interrupt)
    assert len(records_in(out)) == 2
    told: list[tuple[int, int]] = []
    result = reproduce_surgeon(out, scope=ONE, on_run=lambda done, total: told.append((done, total)))
    timed = {name for name in result["rows"][0] if name.endswith(", s") or name.startswith("time ratio")}
    (row,), (other,) = result["rows"], whole["rows"]
    assert {name: row[name] for name in row if name not in timed} == {n: other[n] for n in other if n not in timed}
    assert row["time ratio"] is None and other["time ratio"] > 0
    assert told[0] == (2000, 4000) and told[-1] == (4000, 4000) and told == sorted(told)
    assert not list((out / "runs").glob("*.checkpoint"))


def test_a_run_that_fails_costs_only_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(task: surgeon_training.Task, *_: object) -> dict[str, Any]:
        raise SettingsError(f"as a test, of {task.run.topology}")

    monkeypatch.setattr(surgeon_runs, "train_by_surgeon", fail)
    result = reproduce_surgeon(tmp_path, scope=ONE)
    assert result["failed"] == 1 and result["rows"] == [] and "No comparison" in result["summary"]
    assert "as a test, of small" in result["notes"][0] and "as a test" in (tmp_path / "index.html").read_text()
    monkeypatch.undo()
    assert reproduce_surgeon(tmp_path, scope=ONE)["failed"] == 0


def test_plain_training_is_the_surgeons_with_sgd_and_with_adam() -> None:
    for run in runs_of(FULL, ["digits"], seed=3):
        published = run.setting == "published"
        usual = Surgeon(published=published)
        assert run.method.course == usual.course.model_copy(update={"seed": run.seed})
        assert run.method.interval == (10 if published else None)
        change = {"optimizer": run.kind, "learning_rate": RATES[run.kind]} if run.kind in RATES else {}
        assert run.course == run.method.course.model_copy(update=change)
    run = runs_of(FULL, ["digits"], seed=0)[0]
    course = run.course
    assert (course.epochs, course.batch_size, course.learning_rate, course.optimizer) == (100, 16, 0.005, "sgd")
    assert TOPOLOGIES == {"small": (10,), "medium": (10, 10, 10), "large": (300, 100, 100)}


def test_the_papers_seeds_are_run_three_times_each() -> None:
    runs = runs_of(replace(ONE, paper_seeds=True), ["digits"], seed=0)
    surgeons = [run for run in runs if run.kind == "surgeon"]
    assert [run.seed for run in surgeons] == [seed for seed in (6, 63, 72, 77, 97) for _ in range(3)]
    assert len({run.drawn_seed for run in surgeons}) == 15 and set(PAPER_SEEDS) < {run.drawn_seed for run in surgeons}
    assert len({run.fingerprint("") for run in runs}) == len(runs) == 60


def test_an_evolution_without_changes_is_plain_training() -> None:
    (run,) = (run for run in runs_of(ONE, ["digits"], seed=0) if run.kind == "adam")
    assert run.course == run.method.course

    class Unchanged(Run):
        @property
        def method(self) -> Surgeon:
            return Surgeon(training=run.course, kinds=())

    (source,) = (each.source for each in read_data_sets(()))
    data = Data.from_source(source, samples=200)
    plain = surgeon_training.train_plainly(surgeon_training.Task(run, None), data, lambda share: None)
    same = Unchanged(**vars(run))
    evolved = surgeon_training.train_by_surgeon(surgeon_training.Task(same, None), data, lambda share: None)
    for name in ("parameters", "test_accuracy", "validation_accuracy", "sample_macs", "trained_epochs"):
        assert evolved[name] == pytest.approx(plain[name])
    assert evolved["test_log_loss"] == pytest.approx(plain["test_log_loss"], rel=1e-4)


def test_seeds_epochs_and_samples_can_be_changed() -> None:
    scope = changed(QUICK, seeds=3, epochs=7, samples=99)
    assert (scope.seeds, scope.epochs, scope.samples) == (3, 7, 99)
    assert changed(FULL, seeds=None, epochs=None, samples=None) == FULL


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
    (found,) = read_data_sets([Asked(location=str(folder), name=name)])
    data = Data.from_source(found.source)
    assert found.row == name and data.input_shape == shape and len(data.classes) == CLASSES[name]
    assert len(data.test) == test
    (unnamed,) = read_data_sets([Asked(location=str(folder))])
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
    result = reproduce_surgeon(
        tmp_path / "out", data=[Asked(location=str(folder)), Asked(location=str(other))], scope=replace(ONE, epochs=1)
    )
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
