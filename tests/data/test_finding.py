"""What a target is read as: many targets, each with what a person would say of it."""

from pathlib import Path
from typing import Any

import numpy
import pytest
from numpy.typing import NDArray

from topiarist import load_data
from topiarist.data import Data, Part
from topiarist.data.finding import kind_of_values
from topiarist.data.targets import targets_of
from topiarist.errors import DataError, TopiaristWarning
from topiarist.tasks import Regression

RANDOM = numpy.random.default_rng(0)

CODES = tuple(f"{number * 11:03}" for number in range(9))

TARGETS: dict[str, tuple[str, NDArray[Any]]] = {
    "text": ("classes", numpy.array(["a", "b", "a"])),
    "truth values": ("classes", numpy.array([True, False])),
    "zero and one": ("classes", RANDOM.integers(0, 2, 50)),
    "minus one and one": ("classes", numpy.array([-1.0, 1.0, 1.0])),
    "grades 1 to 5": ("classes", RANDOM.integers(1, 6, 60)),
    "wine quality with a rare 9": ("classes", numpy.array([3, 4, 5, 6, 7, 8] * 50 + [9])),
    "digits as floats": ("classes", numpy.arange(10.0).repeat(30)),
    "twelve months": ("classes", RANDOM.integers(1, 13, 400)),
    "eleven points with a rare one": ("classes", numpy.array([*range(11)] * 20 + [10])),
    "miles per gallon of 40 cars": ("numbers", numpy.array([18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 32, 33] * 3)),
    "model years": ("numbers", numpy.arange(1970, 1983).repeat(30)),
    "children, few of whom have many": ("numbers", numpy.array([0, 1, 2, 3, 4, 5, 6, 7] * 20 + [8, 9, 10, 12])),
    "26 letters as codes": ("classes", numpy.arange(26).repeat(40)),
    "100 codes": ("classes", numpy.arange(100).repeat(50)),
    "three classes, one with one row": ("classes", numpy.array([0, 0, 1, 1, 2])),
    "prices in whole numbers": ("numbers", RANDOM.integers(80, 900, 500)),
    "214 prices": ("numbers", RANDOM.permutation(numpy.arange(214) * 500).repeat(3)),
    "prices in thousands, often the same": ("numbers", RANDOM.integers(10, 300, 5000) * 1000),
    "18 prices with gaps": (
        "numbers",
        numpy.array([99, 149, 199, 249, 299, 349, 399, 449, 499] * 9 + [1000 * i for i in range(1, 10)] * 9),
    ),
    "counts": ("numbers", RANDOM.poisson(40, 3000)),
    "ages": ("numbers", RANDOM.integers(17, 91, 30000)),
    "few rows, all different": ("numbers", numpy.array([3, 9, 27, 81, 4])),
    "fractions": ("numbers", numpy.array([0.5, 1.5, 0.5, 1.5])),
    "measurements": ("numbers", RANDOM.normal(size=100)),
}


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_is_read_as_a_person_would(name: str) -> None:
    wanted, values = TARGETS[name]
    assert kind_of_values(values)[0] == wanted


def test_the_kind_can_be_said() -> None:
    x, y = RANDOM.normal(size=(60, 2)), RANDOM.integers(1, 6, 60)
    assert Data.from_arrays(x, y).task.kind == "classes"
    assert Data.from_arrays(x, y, task="numbers").task.kind == "numbers"
    assert Data.from_arrays(x, y.repeat(1) + 0.5, task="classes").classes == ("1.5", "2.5", "3.5", "4.5", "5.5")
    with pytest.raises(DataError, match="arrays has no classes: what is predicted is a number: y"):
        _ = Data.from_arrays(x, y, task="numbers").classes


def test_numbers_are_standardised_by_the_training_part_unless_left_as_they_are() -> None:
    x, y = RANDOM.normal(size=(200, 2)), RANDOM.normal(1e6, 50.0, size=200)
    data, raw = Data.from_arrays(x, y, scaling="auto"), Data.from_arrays(x, y)
    assert isinstance(data.task, Regression) and isinstance(data.train, Part) and isinstance(raw.train, Part)
    assert abs(float(data.train.y.mean())) < 1e-3 and abs(float(data.train.y.std()) - 1) < 0.01
    assert data.split is not None and data.train.y.shape == (130, 1)
    assert numpy.allclose(data.task.answers(data.train.y)[:, 0], y[data.split.train], rtol=0, atol=0.01)
    assert raw.task.answers(raw.train.y).allclose(raw.train.y.double())
    assert next(iter(data.folds(3))).task != data.task


@pytest.mark.parametrize(
    ("text", "target", "kind", "names"),
    [
        ("\n".join(f"{i * 7 % 10},{i * 1.5}" for i in range(40)), "y", "numbers", ("y",)),
        ("\n".join(f'{i * 7 % 10},"1,{100 + i}"' for i in range(40)), "y", "numbers", ("y",)),
        ("\n".join(f"{i * 7 % 10},0{i % 3}1" for i in range(40)), "y", "classes", ("001", "011", "021")),
        ("\n".join(f"{i * 7 % 10},{i % 3}" for i in range(40)), "y", "classes", ("0", "1", "2")),
        ("\n".join(f"{i * 7 % 10},{1 + i % 3}" for i in range(40)), "y", "classes", ("1", "2", "3")),
        ("\n".join(f"{i * 7 % 10},{'NA' if i == 4 else f'{i % 9 * 11:03}'}" for i in range(80)), "y", "classes", CODES),
    ],
)
def test_a_column_of_a_file(tmp_path: Path, text: str, target: str, kind: str, names: tuple[str, ...] | None) -> None:
    (tmp_path / "t.csv").write_text("x,y\n" + text + "\n")
    noted = '"' in text or "NA" in text or names == ("1", "2", "3")
    with pytest.warns(TopiaristWarning) if noted else pytest.MonkeyPatch.context():
        data = load_data(tmp_path / "t.csv", target=target)
    assert data.task.kind == kind and names in (None, data.task.names)
    if '"' in text:
        assert data.source is not None and targets_of(data.source).values[:3, 0].tolist() == [1100.0, 1101.0, 1102.0]


def test_codes_are_numbers_where_the_call_says_so(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x,y\n" + "\n".join(f"{i * 7 % 10},0{i % 9}1" for i in range(60)))
    data = load_data(tmp_path / "t.csv", target="y", task="numbers")
    assert data.source is not None and targets_of(data.source).values[:3, 0].tolist() == [1.0, 11.0, 21.0]


def test_several_columns_are_labels_or_numbers(tmp_path: Path) -> None:
    rows = [f"{i * 7 % 10},{i % 2},{'yes' if i % 3 else 'no'},{i * 0.5},{1 + i % 2}" for i in range(60)]
    (tmp_path / "t.csv").write_text("x,a,b,c,w\n" + "\n".join(rows) + "\n")
    with pytest.warns(TopiaristWarning, match="a, b: read as labels"):
        labels = load_data(tmp_path / "t.csv", target="a, b", weight="w")
    assert labels.task.kind == "labels" and labels.task.names == ("a", "b")
    assert isinstance(labels.train, Part) and labels.train.weights is not None
    assert set(labels.train.weights.tolist()) == {1.0, 2.0} and labels.input_shape == (2,)
    with pytest.warns(TopiaristWarning, match="a, c: read as numbers"):
        numbers = load_data(tmp_path / "t.csv", target=["a", "c"])
    assert numbers.task.kind == "numbers" and isinstance(numbers.train, Part) and numbers.train.y.shape[1] == 2


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"target": "c", "weight": "n"}, "weights must be at least 0, and one of them above 0; found -1"),
        ({"target": "c", "weight": "c"}, "--target and --weight are both c"),
        ({"target": "a,c", "task": "labels"}, "labels must be 0 or 1, there or not; found 0.5"),
        ({"target": "a,t"}, "the target t holds text such as 'u', which is no number, and neither yes nor no"),
        ({"target": "a,c", "task": "classes"}, "classes are one column; found 2"),
        ({"target": "k", "task": "numbers"}, "the target k is always 3: there is nothing to learn"),
        ({"target": "t", "task": "numbers"}, "the target t holds text such as 'u', which is no number"),
        ({"target": "a,missing"}, "missing"),
    ],
)
def test_wrong_combinations_are_one_line(tmp_path: Path, how: dict[str, Any], message: str) -> None:
    rows = [f"{i * 7 % 10},{i % 2},{i * 0.5},{'uv'[i % 2]},{-1 if i == 5 else 1},3" for i in range(60)]
    (tmp_path / "t.csv").write_text("x,a,c,t,n,k\n" + "\n".join(rows) + "\n")
    with pytest.raises(DataError, match=message) as caught:
        load_data(tmp_path / "t.csv", **how)
    assert "\n" not in str(caught.value)
