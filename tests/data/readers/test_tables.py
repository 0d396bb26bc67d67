from pathlib import Path

import numpy
import pandas
import pytest

from topiarist.data.readers.tables import read_table
from topiarist.data.source import Source
from topiarist.errors import DataError


def read(
    tmp_path: Path,
    text: str,
    *,
    target: str | None = "y",
    group: str | None = None,
    labelled: bool = True,
) -> Source:
    path = tmp_path / "t.csv"
    path.write_text(text)
    return read_table(path, target=target, group=group, labelled=labelled)


def table(source: Source) -> pandas.DataFrame:
    assert isinstance(source.features, pandas.DataFrame)
    return source.features


def test_features_labels_and_groups(tmp_path: Path) -> None:
    source = read(tmp_path, "a,who,y,b\n1,p,cat,u\n2,q,dog,v\n3,p,cat,u\n", group="who")
    assert table(source).to_dict("list") == {"a": [1.0, 2.0, 3.0], "b": ["u", "v", "u"]}
    assert source.labels is not None
    assert source.labels.tolist() == ["cat", "dog", "cat"]
    assert source.groups is not None
    assert source.groups.tolist() == ["p", "q", "p"]
    assert (source.name, source.scaling, source.notes) == ("t.csv", "zscore", ())


def test_rows_without_a_label_are_left_out_and_counted(tmp_path: Path) -> None:
    source = read(tmp_path, "a,y\n1,0\n2,\n3,1\n4,inf\n")
    assert table(source)["a"].tolist() == [1.0, 3.0]
    assert source.labels is not None
    assert source.labels.tolist() == [0, 1]
    assert source.labels.dtype.kind == "i"
    assert source.notes == ("2 row(s) without a label in y left out",)


def test_truth_values_as_labels(tmp_path: Path) -> None:
    source = read(tmp_path, "a,y\n1,True\n2,\n3,False\n")
    assert source.labels is not None
    assert source.labels.tolist() == [True, False]


def test_what_is_left_out_is_noted(tmp_path: Path) -> None:
    source = read(tmp_path, "a,id,same,none,y\n1,k1,5,,0\ninf,k2,5,,1\n3,k3,5,,0\n")
    assert list(table(source).columns) == ["a"]
    assert source.notes == (
        "1 infinite number(s) taken as missing in a",
        "left out, different in every row: id",
        "left out, constant: same",
        "left out, empty: none",
    )


@pytest.mark.parametrize(
    ("text", "target", "message"),
    [
        ("a,y\n1,0\n", None, "name the column that holds the label with --target: a, y"),
        ("a,y\n", "y", "a header and no rows"),
        ("a,label\n1,0\n2,1\n", "lable", r"found a, label; did you mean label\?"),
        ("a,y\n1,0\n2,0\n", "y", "found only the class 0"),
        ("a,y\n1,\n2,\n", "y", "every value of the target y is missing"),
        ("a,y\n1,0.5\n2,inf\n3,0.9\n", "y", "1 values of the target y are infinite"),
        ("a,y\nk,0\nk,1\n", "y", "no column is left to learn from"),
        ("y\n0\n1\n", "y", "no column is left to learn from"),
        (
            "t,y\n" + "".join(f"word {n} of many here,{n % 2}\n" for n in range(30)),
            "y",
            "text of many words: t; free text is not read: make numbers of it first",
        ),
    ],
)
def test_refusals(tmp_path: Path, text: str, target: str | None, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, text, target=target)


@pytest.mark.parametrize(
    ("group", "message"), [("who", "--group who is not a column"), ("y", "both y"), ("g", "1 row")]
)
def test_groups_that_cannot_be_used(tmp_path: Path, group: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(tmp_path, "a,g,y\n1,p,0\n2,,1\n", group=group)


def test_prediction_keeps_every_row_and_column(tmp_path: Path) -> None:
    source = read(tmp_path, "a,id,b,who\n1,k1,5,p\n", labelled=False, group="who")
    assert list(table(source).columns) == ["a", "id", "b"]
    assert source.labels is None
    assert source.notes == ()


def test_prediction_uses_complete_labels_and_only_those(tmp_path: Path) -> None:
    complete = read(tmp_path, "a,y\n1,cat\n", labelled=False)
    assert list(table(complete).columns) == ["a"]
    assert complete.labels is not None
    assert complete.labels.tolist() == ["cat"]
    gaps = read(tmp_path, "a,y\n1,cat\n2,\n", labelled=False)
    assert len(gaps) == 2
    assert gaps.labels is None
    assert gaps.notes == ("labels not used: 1 missing in y",)


def test_parquet_and_excel_give_the_same(tmp_path: Path) -> None:
    frame = pandas.DataFrame({"a": [1.5, numpy.nan, 2.0], "b": ["u", "v", "u"], "y": [1, 0, 1]})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_excel(tmp_path / "t.xlsx", index=False)
    first = read_table(tmp_path / "t.parquet", form="parquet", target="y", group=None, labelled=True)
    second = read_table(tmp_path / "t.xlsx", form="excel", target="y", group=None, labelled=True)
    pandas.testing.assert_frame_equal(table(first), table(second))
    assert first.labels is not None
    assert second.labels is not None
    assert first.labels.tolist() == second.labels.tolist() == [1, 0, 1]
