import struct
from pathlib import Path

import numpy
import pytest

from topiarist.data import Part, Preprocessing, SplitRule, find_source, load_data
from topiarist.data.source import Scaling
from topiarist.errors import DataError


def part(found: object) -> Part:
    assert isinstance(found, Part)
    return found


def test_digits_are_split_and_scaled() -> None:
    data = load_data("digits")
    assert [len(one) for one in (data.train, data.validation, data.test)] == [1168, 270, 359]
    assert data.classes == tuple("0123456789") and data.input_shape == (64,)
    assert abs(float(part(data.train).x.mean())) < 1e-6 and float(part(data.train).x.std()) == pytest.approx(
        1, abs=1e-4
    )


def test_digits_as_pictures_are_the_same_numbers() -> None:
    flat, seen = load_data("digits", scaling="none"), load_data("digits", scaling="none", input_shape=(1, 8, 8))
    assert seen.input_shape == (1, 8, 8)
    assert part(seen.test).x.flatten(1).equal(part(flat.test).x)
    assert all(fold.input_shape == (1, 8, 8) for fold in seen.folds(3))


def test_a_shape_that_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match=r"cannot see samples of shape \(64,\) as \(3, 3\)"):
        load_data("digits", input_shape=(3, 3))


@pytest.mark.parametrize("scaling", ["none", "zscore", "minmax", "unit"])
def test_scaling_replaces_what_suits_the_data(scaling: Scaling) -> None:
    prepared = load_data("wine", scaling=scaling).preprocessing
    assert isinstance(prepared, Preprocessing) and prepared.scaling == scaling


def test_fractions_and_seed_decide_the_split() -> None:
    data = load_data("iris", test_fraction=0.1, validation_fraction=0.0, seed=7)
    assert [len(one) for one in (data.train, data.validation, data.test)] == [135, 0, 15]
    assert data.rule == SplitRule(seed=7, test_fraction=0.1, validation_fraction=0.0)
    with pytest.raises(DataError, match=r"the validation part must be a fraction .* found 2"):
        load_data("iris", validation_fraction=2)


def test_a_table_with_groups(tmp_path: Path) -> None:
    rows = [f"{i % 50},{'red' if i % 3 else 'blue'},p{i % 12},{'yes' if i % 2 else 'no'}" for i in range(60)]
    (tmp_path / "t.csv").write_text("\n".join(["n,colour,person,y", *rows]))
    data = load_data(tmp_path / "t.csv", target="y", group="person")
    assert data.classes == ("no", "yes") and data.input_shape == (3,)
    people = [set(numpy.asarray(part(one).groups).tolist()) for one in (data.train, data.validation, data.test)]
    assert sum(map(len, people)) == 12


def test_a_file_is_read_before_a_download_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mnist").mkdir()
    with pytest.raises(DataError, match="mnist holds no data"):
        find_source("mnist")


def test_a_name_of_the_catalogue_is_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numpy.savez(tmp_path / "t.npz", x=numpy.arange(40.0).reshape(20, 2), y=[0, 1] * 10)
    asked = []

    def fetch(name: str) -> Path:
        asked.append(name)
        return tmp_path / "t.npz"

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("topiarist.data.readers.download.fetch", fetch)
    assert len(find_source("mnist")) == 20
    assert asked == ["mnist"]


def test_a_set_of_the_catalogue_has_readable_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part, count in (("train", 40), ("t10k", 10)):
        images, labels = numpy.zeros((count, 28, 28), numpy.uint8), numpy.arange(count, dtype=numpy.uint8) % 10
        (tmp_path / f"{part}-images-idx3-ubyte").write_bytes(
            struct.pack(">HBBIII", 0, 8, 3, count, 28, 28) + images.tobytes()
        )
        (tmp_path / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">HBBI", 0, 8, 1, count) + labels.tobytes())
    monkeypatch.setattr("topiarist.data.readers.download.fetch", lambda name: {"fashion-mnist": tmp_path}[name])
    data = load_data("fashion-mnist", validation_fraction=0.25)
    assert data.name == "fashion-mnist" and data.input_shape == (1, 28, 28)
    assert data.classes[:2] == ("T-shirt/top", "Trouser") and len(data.test) == 10
    assert isinstance(data.test, Part) and data.test.y.tolist() == list(range(10))
