"""The recipe of the faces: what it declares, what it reads, and a small run of it from end to end."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy
import pandas
import pytest
from openpyxl import Workbook
from PIL import Image

from topiarist import load_data
from topiarist.errors import DataError
from topiarist.methods.published import Distinctiveness
from topiarist.randomness import array_generator
from topiarist.reproductions.faces import paper
from topiarist.reproductions.faces import reproduce as recipe
from topiarist.reproductions.faces.data import FaceSamples, read_faces
from topiarist.reproductions.faces.expressions import EXPRESSIONS, face_stand_in
from topiarist.reproductions.faces.methods import Rewound
from topiarist.reproductions.faces.options import FaceImageOptions
from topiarist.reproductions.faces.study import FULL, QUICK, FacesPlan, FacesScope, plan_faces
from topiarist.reproductions.faces.tables import PARTS
from topiarist.study.results import Results

pytestmark = pytest.mark.slow

TINY = FacesScope(
    repeats=1,
    folds=2,
    sizes=(20, 100),
    table_sizes=(20, 100),
    rates=(0.01,),
    angles=(0, 45, 90),
    penalties=(0, 50),
    absolute_penalties=(0.001, 10),
    penalty_sizes=(50,),
    search_sizes=(100,),
    long_epochs=5,
    length=40,
)


def plan(scope: FacesScope) -> FacesPlan:
    return plan_faces("anything", samples=674, projection=None, scope=scope, seed=0)


@pytest.mark.parametrize("scope", [FULL, QUICK])
def test_every_table_and_figure_of_the_paper_is_declared_and_nothing_is_run_twice(scope: FacesScope) -> None:
    found = plan(scope)
    parts = {part for part, _ in found.labels}
    assert parts == {*PARTS, "long training"}
    labels = [configuration.label for configuration in found.study.configurations]
    assert set(found.labels.values()) == set(labels)
    assert len(labels) < len(found.labels)


def test_the_full_scope_is_that_of_the_paper() -> None:
    assert tuple(paper.TABLE_1) == FULL.rates
    assert all(tuple(sizes) == FULL.table_sizes for sizes in paper.TABLE_1.values())
    assert tuple(paper.TABLE_3) == FULL.sizes
    assert FULL.angles == tuple(range(0, 95, 5)) and FULL.long_epochs == 2000
    assert (min(FULL.absolute_penalties), max(FULL.absolute_penalties)) == (0.001, 100)
    study = plan(FULL).study
    assert study.folds == 10 and len(study.seeds) == 5 and study.new_folds_per_seed
    assert [keys["angle"] for keys, _ in plan(FULL).rows("angles")] == list(FULL.angles)


def test_all_parts_train_for_300_steps_on_z_scores_and_the_readings_for_all_others_too() -> None:
    found = plan(FULL)
    settings = {made.label: made.settings for made in found.study.configurations}
    for part in PARTS:
        if part != "readings":
            assert {settings[label].training.steps for _, label in found.rows(part)} == {300}
            assert {settings[label].data.scaling for _, label in found.rows(part)} == {"zscore"}
    for keys, label in found.rows("readings"):
        training = settings[label].training
        assert (training.steps, training.epochs) == ((300, 100) if keys["length"] == "steps" else (None, 300))
    assert len({(keys["length"], keys["scaling"]) for keys, _ in found.rows("readings")}) == 6


def test_an_angle_of_nothing_is_declared_as_such() -> None:
    found = plan(TINY)
    label = next(label for keys, label in found.rows("angles") if keys["angle"] == 0)
    method = next(made.settings.method for made in found.study.configurations if made.label == label)
    assert isinstance(method.method, Distinctiveness) and method.method.angle_degrees == 0


@pytest.mark.parametrize(("per_epoch", "late", "early"), [(19, 13, 1), (6, 41, 2), (400, 0, 0)])
def test_rewinding_begins_within_the_training(per_epoch: int, late: int, early: int) -> None:
    assert Rewound.of(300, per_epoch) == Rewound(late, early)
    assert late * per_epoch < 300


def spreadsheet(path: Path, *, dropped: int = 0, seed: int = 1) -> Path:
    """Write made-up samples in the form of the real spreadsheet, the row without PHOG numbers included."""
    source = face_stand_in(seed)
    assert isinstance(source.features, pandas.DataFrame) and source.labels is not None
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append([None, "label", "LPQ features", *[None] * 4, "PHOG features", *[None] * 4])
    sheet.merge_cells("C1:G1")
    sheet.merge_cells("H1:L1")
    rows = list(zip(source.features.to_numpy().tolist(), source.labels.tolist(), strict=True))
    for number, (row, label) in enumerate(rows[dropped:]):
        sheet.append([f"{number}.png", EXPRESSIONS.index(label) + 1, *row])
    sheet.append(["bad.png", 3, 99.0, *[0.0] * 4, *[None] * 5])
    book.save(path)
    return path


def read(path: Path | None, out: Path) -> FaceSamples:
    return read_faces(path, out, target=None, images=FaceImageOptions(), seed=0)


def test_only_the_spreadsheet_with_the_papers_classes_counts_as_the_papers_data(tmp_path: Path) -> None:
    assert read(spreadsheet(tmp_path / "all.xlsx"), tmp_path).papers_data
    fewer = read(spreadsheet(tmp_path / "fewer.xlsx", dropped=1), tmp_path)
    assert not fewer.papers_data and "673 samples" in fewer.why
    stand_in = read(None, tmp_path)
    assert stand_in.class_sizes == paper.CLASS_SIZES and stand_in.stand_in and not stand_in.papers_data


def ran(place: Path, location: Path | None) -> dict[str, Any]:
    """Run all parts with few and small networks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recipe, "QUICK", TINY)
        found = recipe.reproduce_faces(place, location=location, quick=True)
    assert found["failed"] == 0
    return found


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run on the stand-in."""
    place = tmp_path_factory.mktemp("faces")
    assert ran(place, None)["stand_in"]
    return place


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A small run on a spreadsheet that counts as the paper's data."""
    place = tmp_path_factory.mktemp("faces")
    return place, ran(place, spreadsheet(place / "faces.xlsx"))


def test_a_stand_in_shows_no_number_of_the_paper_as_if_it_could_be_compared(out: Path) -> None:
    page = (out / "index.html").read_text()
    assert "synthetic stand-in" in page and "none of its claims can be tested here" in page
    assert "the paper, on its data" in page
    verdicts = json.loads((out / "verdicts.json").read_text())
    assert {verdict["verdict"] for verdict in verdicts["verdicts"]} == {"not testable on this data"}
    assert verdicts["matches_best"] is None and not verdicts["data"]["papers_data"]
    for path in (out / "tables").iterdir():
        columns = pandas.read_csv(path, nrows=1).columns
        assert path.stem == "verdicts" or "paper" not in columns, path
    for path in (out / "figures").iterdir():
        assert path.stem == "ours-against-unpruned" or "paper" not in path.read_text(), path


def test_on_the_papers_data_every_claim_has_a_verdict_and_figures_have_the_papers_points(
    real: tuple[Path, dict[str, Any]],
) -> None:
    place, found = real
    assert found["data"]["papers_data"] and found["data"]["samples"] == 674
    assert json.loads((place / "verdicts.json").read_text())["verdicts"] == found["verdicts"]
    answers = {verdict["verdict"] for verdict in found["verdicts"]}
    assert answers <= {"reproduced", "not reproduced"} and answers
    parts = {verdict["target"]["part"] for verdict in found["verdicts"]}
    assert parts == {"Table 1", "SVM", "Figure 2", "Table 3", "45°", "λ = 0", "λ = 50", "Equation 6"}
    assert found["matches_best"] in found["readings"] and len(found["readings"]) == 6
    assert f"{found['matches_best']} matches best" in found["summary"]
    with_points = {path.stem for path in (place / "figures").iterdir() if ", paper" in path.read_text()}
    assert {"fig5-size-by-variant", "fig4-accuracy-by-variant", "table1-accuracy-by-size"} <= with_points
    assert pandas.read_csv(place / "tables" / "table1.csv")["paper"].tolist() == [22.6, 21.3]


def test_tables_hold_what_the_study_found(out: Path) -> None:
    results = Results.read(out / "study")
    table = pandas.read_csv(out / "tables" / "table1.csv")
    label = next(label for keys, label in plan(TINY).rows("table 1"))
    done = results.done[results.done["configuration"] == label]
    assert len(done) == TINY.repeats * TINY.folds
    assert table.loc[0, "accuracy"] == pytest.approx(100 * done["accuracy"].mean())
    angles = pandas.read_csv(out / "tables" / "angles.csv").set_index("angle")["units left"]
    assert angles[0] == 100 and angles[90] < angles[45] < 100
    ours = pandas.read_csv(out / "tables" / "ours.csv")
    assert set(ours[ours["variant"] == "ours"]["units left"]) == {20.0, 25.0}
    orders = pandas.read_csv(out / "tables" / "pair-orders.csv")
    at_45 = orders[(orders["variant"] == "45°") & (orders["units"] == 100)].set_index("order")["units left"]
    assert at_45["all at once"] < at_45["in order"]


def test_the_long_training_shows_training_and_held_out_accuracy(out: Path) -> None:
    drawn = (out / "figures" / "learning-curves-accuracy.svg").read_text()
    assert "training" in drawn and "held out" in drawn


def test_every_figure_is_drawn(out: Path) -> None:
    drawn = sorted((out / "figures").glob("*.svg"))
    expected = {"fig1", "fig2", "fig3", "fig4", "fig5", "learning", "ours", "table1", "sizes"}
    assert {path.stem.partition("-")[0] for path in drawn} == expected
    for path in drawn:
        assert ElementTree.fromstring(path.read_bytes()).tag.endswith("svg")


def test_the_same_call_resumes_and_changes_nothing(out: Path) -> None:
    before = {path: path.read_bytes() for path in (*out.rglob("*.csv"), out / "verdicts.json")}
    ran(out, None)
    assert {path: path.read_bytes() for path in before} == before


def pictures(folder: Path, count: int = 4) -> Path:
    """Pictures without a face, in two classes."""
    for name in ("glad", "sad"):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            noise = array_generator(number, name).integers(0, 255, (40, 30), dtype=numpy.uint8)
            Image.fromarray(noise).save(folder / name / f"{number}.png")
    return folder


def test_a_folder_is_described_and_kept_for_training(tmp_path: Path) -> None:
    folder = pictures(tmp_path / "faces", 10)
    options = {"target": None, "seed": 0}
    found = read_faces(folder, tmp_path / "out", images=FaceImageOptions(copies=2), **options)  # type: ignore[arg-type]
    assert found.projection == ((4096, 5), (5456, 5)) and not found.stand_in and not found.papers_data
    assert len(found.source) == 3 * 20
    assert any("no face found in 20 of 20" in note for note in found.source.notes)
    kept = load_data(str(tmp_path / "out" / "features.npz"), projection=((4096, 2), (5456, 2)))
    assert kept.input_shape == (4,) and kept.classes == ("glad", "sad")
    assert len(kept.train) % 3 == 0  # each with its copies
    assert len(kept.test) + len(kept.validation) + len(kept.train) // 3 == 20


def test_what_is_no_faces_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    broken = pictures(tmp_path / "broken")
    (broken / "sad" / "0.png").write_bytes(b"no picture")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    with pytest.raises(DataError, match="no file or folder"):
        read_faces(tmp_path / "nothing", tmp_path, target=None, images=FaceImageOptions(), seed=0)
    with pytest.raises(DataError, match=r"table\.csv"):
        read_faces(tmp_path / "table.csv", tmp_path, target=None, images=FaceImageOptions(), seed=0)
    with pytest.raises(DataError, match="empty"):
        read_faces(tmp_path / "empty", tmp_path, target=None, images=FaceImageOptions(), seed=0)
    with pytest.raises(DataError, match=r"0\.png"):
        read_faces(broken, tmp_path, target=None, images=FaceImageOptions(), seed=0)
    with pytest.raises(DataError):
        read_faces(pictures(tmp_path / "none"), tmp_path, target=None, images=FaceImageOptions(missing="skip"), seed=0)
