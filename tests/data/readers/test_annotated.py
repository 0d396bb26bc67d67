from pathlib import Path

import numpy
import pytest
from PIL import Image

from topiarist.data.readers.folders import holds_annotations, read_media
from topiarist.data.source import Source
from topiarist.errors import DataError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "audio").mkdir()
    for place in range(4):
        Image.new("L", (3, 2), place).save(tmp_path / "audio" / f"{place}.png")
    return tmp_path


def read(
    folder: Path,
    text: str,
    *,
    name: str = "meta.csv",
    target: str | None = None,
    group: str | None = None,
    labelled: bool = True,
) -> Source:
    (folder / name).write_text(text)
    return read_media(folder, target=target, group=group, labelled=labelled)


def values(source: Source) -> list[int]:
    assert isinstance(source.features, numpy.ndarray)
    return [int(value) for value in source.features[:, 0, 0, 0]]


@pytest.mark.parametrize("base", ["", "audio/"])
@pytest.mark.parametrize("name", ["meta.csv", "labels.csv"])
def test_files_labels_and_groups_are_found(folder: Path, base: str, name: str) -> None:
    assert not holds_annotations(folder)
    rows = f"id\tfilename\tfine_label\tscene_label\tfold\n7\t{base}2.png\tx\tpark\t1\n8\t{base}0.png\ty\ttram\t2\n"
    source = read(folder, rows, name=name)
    assert holds_annotations(folder)
    assert values(source) == [2, 0]
    assert source.labels is not None
    assert source.labels.tolist() == ["park", "tram"]
    assert source.groups is not None
    assert source.groups.tolist() == [1, 2]
    assert source.scaling == "pixels"


def test_columns_asked_for(folder: Path) -> None:
    text = "file,label,mood,owner,fold\n0.png,a,sad,p,1\n1.png,a,gay,q,1\n"
    source = read(folder, text, target="mood", group="owner")
    assert source.labels is not None
    assert source.labels.tolist() == ["sad", "gay"]
    assert source.groups is not None
    assert source.groups.tolist() == ["p", "q"]


def test_rows_without_a_label_are_left_out(folder: Path) -> None:
    source = read(folder, "file,label\n0.png,a\n1.png,\n2.png,b\n")
    assert values(source) == [0, 2]
    assert source.notes == ("1 row(s) without a label in label left out",)


def test_labels_may_be_absent_for_prediction_only(folder: Path) -> None:
    source = read(folder, "file,weight\n0.png,1\n", labelled=False)
    assert source.labels is None
    assert read(folder, "file,label\n0.png,a\n", labelled=False).labels == ["a"]
    with pytest.raises(DataError, match="the label with --target: weight, size"):
        read(folder, "file,weight,size\n0.png,1,2\n")


def test_the_only_other_column_holds_the_labels(folder: Path) -> None:
    source = read(folder, "file,mood\n0.png,sad\n1.png,gay\n")
    assert source.labels is not None and source.labels.tolist() == ["sad", "gay"] and source.notes == ()


def test_what_was_chosen_among_columns_is_said(folder: Path) -> None:
    source = read(folder, "file,class,emotion,fold\n0.png,a,sad,1\n1.png,b,gay,2\n")
    assert source.notes == (
        "labels are those of column class of meta.csv; --target names another one",
        "files with the same fold stay in one part; --group names another column",
    )


def test_an_evaluation_setup_gives_parts(folder: Path) -> None:
    (folder / "evaluation_setup").mkdir()
    (folder / "evaluation_setup" / "fold1_train.csv").write_text(
        "filename\tscene_label\naudio/0.png\ta\naudio/3.png\tb\n"
    )
    (folder / "evaluation_setup" / "fold1_evaluate.csv").write_text("filename\tscene_label\naudio/1.png\ta\n")
    text = "filename\tscene_label\n" + "".join(f"audio/{place}.png\t{'ab'[place % 2]}\n" for place in range(4))
    source = read(folder, text)
    assert values(source) == [0, 1, 3]
    assert source.parts is not None
    assert source.parts.tolist() == ["train", "test", "train"]
    assert source.notes == ("1 file(s) in neither part of evaluation_setup/fold1_train.csv left out",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("file,label\n", "a header and no rows"),
        ("file,label\nx.png,a\ny.png,b\n", "no column names images or sounds"),
        ("file,label\n0.png,a\nx.png,b\n", r"names x\.png, which is no image or sound below"),
        ("file,label\n0.png,a\n../audio/1.png,b\n", "which is no image or sound below"),
        ("file,label\n0.png,a\n,b\n", "names nan"),
        ("file,label\n0.png,a\n1.png,a\n", "only the class a"),
    ],
)
def test_refusals(folder: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(folder, text)


def test_absolute_paths_are_refused(folder: Path) -> None:
    with pytest.raises(DataError, match="no column names images"):
        read(folder, f"file,label\n{folder}/audio/0.png,a\n")
