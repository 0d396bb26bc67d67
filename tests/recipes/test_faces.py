"""The recipe of the faces: what it declares, what it reads, and a small run of it from end to end."""

from pathlib import Path
from xml.etree import ElementTree

import numpy
import pandas
import pytest
from PIL import Image

from topiarist import load_data
from topiarist.errors import DataError
from topiarist.randomness import array_generator
from topiarist.recipes import faces
from topiarist.recipes import faces_paper as paper
from topiarist.recipes import reproduce_faces as recipe
from topiarist.recipes.faces import FULL, QUICK, Plan, Scope, plan_faces
from topiarist.recipes.faces_data import Pictures, read_faces
from topiarist.recipes.faces_tables import distance_from_paper
from topiarist.study.results import Results

TINY = Scope(
    folds=2,
    sizes=(20, 50),
    table_sizes=(20,),
    rates=(0.01,),
    angles=(0, 45, 90),
    penalties=(0, 50),
    penalty_sizes=(20,),
    long_epochs=5,
    paper_rewound=True,
)


def shorten(patch: pytest.MonkeyPatch) -> None:
    """Let a quick run be a quicker one."""
    patch.setattr(recipe, "QUICK", TINY)
    patch.setattr(faces, "EPOCHS", 60)


def plan(scope: Scope) -> Plan:
    return plan_faces("anything", projection=None, scope=scope, seed=0)


@pytest.mark.parametrize("scope", [FULL, QUICK])
def test_every_table_and_figure_of_the_paper_is_declared_and_nothing_is_run_twice(scope: Scope) -> None:
    found = plan(scope)
    parts = {part for part, _ in found.labels}
    assert parts == {"table 1", "long training", "scalings", "angles", "penalties", "variants", "ours", "searches"}
    labels = [configuration.label for configuration in found.study.configurations]
    assert set(found.labels.values()) == set(labels)
    assert len(labels) < len(found.labels)


def test_the_full_scope_is_that_of_the_paper() -> None:
    assert tuple(paper.TABLE_1) == FULL.rates
    assert all(tuple(sizes) == FULL.table_sizes for sizes in paper.TABLE_1.values())
    assert tuple(paper.TABLE_3) == FULL.sizes
    assert FULL.folds == 10 and FULL.angles == tuple(range(0, 95, 5)) and FULL.long_epochs == 2000
    angles = [keys["angle"] for keys, _ in plan(FULL).rows("angles")]
    assert angles == list(FULL.angles)


def test_an_angle_of_nothing_is_declared_as_such() -> None:
    found = plan(TINY)
    label = next(label for keys, label in found.rows("angles") if keys["angle"] == 0)
    method = next(made.settings.method for made in found.study.configurations if made.label == label)
    assert getattr(method, "angle_degrees", None) == 0


def sizes(scaling: str, at_45: float) -> list[dict[str, object]]:
    """Rows in which 15° leaves what the paper says."""
    rows = []
    for size, left in paper.TABLE_3.items():
        for variant, units in (("15°", left), ("45°", at_45), ("unpruned", float(size))):
            known = {"accuracy": 20.0, "training accuracy": 30.0, "units left": units}
            rows.append({"scaling": scaling, "units": size, "variant": variant, **known})
    return rows


def test_the_nearest_scaling_is_that_with_the_sizes_of_the_paper() -> None:
    cells = pandas.DataFrame([*sizes("unit", 25.0), *sizes("zscore", 100.0)])
    found = distance_from_paper(cells)
    assert found["unit"] < found["zscore"]
    assert found["unit"] == pytest.approx(1.0, abs=0.03)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run on the stand-in."""
    place = tmp_path_factory.mktemp("faces")
    with pytest.MonkeyPatch.context() as patch:
        shorten(patch)
        found = recipe.reproduce_faces(place, quick=True)
    assert found["failed"] == 0 and found["stand_in"]
    return place


def test_the_page_says_that_it_shows_a_stand_in(out: Path) -> None:
    page = (out / "index.html").read_text()
    assert "synthetic stand-in" in page and "Table 3" in page and "Better than the paper" in page


def test_tables_hold_what_the_study_found_and_the_papers_numbers(out: Path) -> None:
    results = Results.read(out / "study")
    table = pandas.read_csv(out / "tables" / "table1.csv")
    label = next(label for keys, label in plan(TINY).rows("table 1"))
    mean = results.done[results.done["configuration"] == label]["accuracy"].mean()
    assert table.loc[0, "accuracy"] == pytest.approx(100 * mean)
    assert table.loc[0, "paper"] == 22.6
    names = {path.stem for path in (out / "tables").iterdir()}
    assert names == {"table1", "svm", "table3", "scalings", "angles", "penalties", "variants", "ours", "searches"}
    angles = pandas.read_csv(out / "tables" / "angles.csv").set_index("angle")["units left"]
    assert angles[0] == 100 and angles[90] < angles[45] < 100
    ours = pandas.read_csv(out / "tables" / "ours.csv")
    assert set(ours[ours["variant"] == "ours"]["units left"]) == {20.0, 25.0}


def test_every_figure_is_drawn(out: Path) -> None:
    drawn = sorted((out / "figures").glob("*.svg"))
    assert {path.stem.partition("-")[0] for path in drawn} >= {
        "fig1",
        "fig2",
        "fig3",
        "fig4",
        "fig5",
        "learning",
        "ours",
    }
    for path in drawn:
        assert ElementTree.fromstring(path.read_bytes()).tag.endswith("svg")


def test_the_same_call_goes_on_and_changes_nothing(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path: path.read_bytes() for path in out.rglob("*.csv")}
    shorten(monkeypatch)
    recipe.reproduce_faces(out, quick=True)
    assert {path: path.read_bytes() for path in out.rglob("*.csv")} == before


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
    found = read_faces(folder, tmp_path / "out", pictures=Pictures(copies=2), **options)  # type: ignore[arg-type]
    assert found.projection == ((4096, 5), (5456, 5)) and not found.stand_in
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
        read_faces(tmp_path / "nothing", tmp_path, target=None, pictures=Pictures(), seed=0)
    with pytest.raises(DataError, match=r"table\.csv"):
        read_faces(tmp_path / "table.csv", tmp_path, target=None, pictures=Pictures(), seed=0)
    with pytest.raises(DataError, match="empty"):
        read_faces(tmp_path / "empty", tmp_path, target=None, pictures=Pictures(), seed=0)
    with pytest.raises(DataError, match=r"0\.png"):
        read_faces(broken, tmp_path, target=None, pictures=Pictures(), seed=0)
    with pytest.raises(DataError):
        read_faces(pictures(tmp_path / "none"), tmp_path, target=None, pictures=Pictures(missing="skip"), seed=0)
