from pathlib import Path

import pytest

from topiarist.data.readers.folders import MediaFiles
from topiarist.errors import DataError
from topiarist.features.sound_labels import find_sounds

CHALLENGE = """filename\tscene_label\tidentifier\tsource_label
audio/airport-barcelona-0-0-a.wav\tindoor\tbarcelona-0\ta
audio/bus-lyon-1-7-a.wav\ttransportation\tlyon-1\ta
audio/tram-lyon-3-8-a.wav\ttransportation\tlyon-3\ta
audio/airport-vienna-9-1-a.wav\tindoor\tvienna-9\ta
"""


def write(folder: Path, table: str) -> Path:
    """Write a table and the files of its first column."""
    (folder / "meta.csv").write_text(table)
    for row in table.splitlines()[1:]:
        path = folder / row.replace("\t", ",").split(",")[0]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return folder


def find(folder: Path, *, target: str | None = None, finer: str | None = None, group: str | None = None) -> MediaFiles:
    return find_sounds(folder, target=target, finer=finer, group=group)


def test_the_challenges_have_finer_classes_and_cities_in_their_names(tmp_path: Path) -> None:
    sounds = find(write(tmp_path, CHALLENGE))
    assert [path.name[:7] for path in sounds.paths] == ["airport", "bus-lyo", "tram-ly", "airport"]
    assert sounds.labels is not None and sounds.labels.tolist() == [
        "indoor",
        "transportation",
        "transportation",
        "indoor",
    ]
    assert sounds.finer is not None
    assert sounds.finer.tolist() == ["airport", "bus", "tram", "airport"]
    assert sounds.groups is not None
    assert sounds.groups.tolist() == ["barcelona", "lyon", "lyon", "vienna"]
    assert sounds.parts is None
    assert sounds.notes == ()


def test_an_evaluation_setup_gives_parts(tmp_path: Path) -> None:
    folder = write(tmp_path, CHALLENGE)
    rows = CHALLENGE.splitlines()
    (folder / "evaluation_setup").mkdir()
    (folder / "evaluation_setup" / "fold1_train.csv").write_text("\n".join([rows[0], rows[3], rows[2]]))
    (folder / "evaluation_setup" / "fold1_evaluate.csv").write_text("\n".join([rows[0], rows[1]]))
    sounds = find(folder)
    assert sounds.parts is not None
    assert sounds.parts.tolist() == ["test", "train", "train"]
    assert sounds.finer is not None
    assert sounds.finer.tolist() == ["airport", "bus", "tram"]
    assert sounds.groups is not None
    assert sounds.groups.tolist() == ["barcelona", "lyon", "lyon"]
    assert sounds.notes == ("1 file(s) in neither part of evaluation_setup/fold1_train.csv left out",)


def test_ten_classes_are_not_divided_further(tmp_path: Path) -> None:
    table = CHALLENGE.replace("indoor", "airport").replace("a.wav\ttransportation\tlyon-1", "a.wav\tbus\tlyon-1")
    assert find(write(tmp_path, table)).finer is None


def test_columns_come_before_names(tmp_path: Path) -> None:
    table = "filename,coarse_label,fine_label,fold\na-b.wav,x,u,1\nc-d.wav,x,v,2\ne-f.wav,y,w,2\n"
    folder = write(tmp_path, table)
    sounds = find(folder)
    assert sounds.labels is not None and sounds.labels.tolist() == ["x", "x", "y"]
    assert sounds.finer is not None
    assert sounds.finer.tolist() == ["u", "v", "w"]
    assert sounds.groups is not None
    assert sounds.groups.tolist() == [1, 2, 2]
    other = find(folder, target="fine_label", group="coarse_label")
    assert other.labels is not None and other.labels.tolist() == ["u", "v", "w"]
    assert other.finer is None
    assert other.groups is not None
    assert other.groups.tolist() == ["x", "x", "y"]


def test_columns_asked_for(tmp_path: Path) -> None:
    folder = write(tmp_path, CHALLENGE)
    sounds = find(folder, finer="identifier", group="identifier")
    assert sounds.finer is not None
    assert sounds.groups is not None
    assert sounds.finer.tolist() == sounds.groups.tolist() == ["barcelona-0", "lyon-1", "lyon-3", "vienna-9"]
    with pytest.raises(DataError, match="source_label is no finer than scene_label: a lies in indoor and in"):
        find(folder, finer="source_label")
    with pytest.raises(DataError, match="fine is not a column"):
        find(folder, finer="fine")


@pytest.mark.parametrize(
    ("rows", "note"),
    [
        ("a.wav,x,u\nb.wav,y,u\n", "no finer classes used: u lies in x and in y"),
        ("a.wav,x,u\nb.wav,y,\n", "fine_label not used: some values are missing"),
    ],
)
def test_finer_classes_that_are_none_are_left_out(tmp_path: Path, rows: str, note: str) -> None:
    sounds = find(write(tmp_path, f"filename,label,fine_label\n{rows}"))
    assert sounds.finer is None
    assert sounds.notes[-1] == note


@pytest.mark.parametrize("header", ["filename,label,identifier", "filename,label,room"])
def test_names_without_pieces_tell_nothing(tmp_path: Path, header: str) -> None:
    hyphen = "" if header.endswith("identifier") else "-1"
    sounds = find(write(tmp_path, f"{header}\na{hyphen}.wav,x,p-1\nb{hyphen}.wav,x,p-2\nc{hyphen}.wav,y,q-1\n"))
    assert sounds.finer is None
    assert (sounds.groups is None) == header.endswith("room")


def test_one_folder_a_class(tmp_path: Path) -> None:
    for name in ("wind/b.wav", "rain/z.flac", "rain/a.mp3"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    sounds = find(tmp_path)
    assert [path.name for path in sounds.paths] == ["a.mp3", "z.flac", "b.wav"]
    assert sounds.labels is not None and sounds.labels.tolist() == ["rain", "rain", "wind"]
    assert sounds.finer is sounds.groups is sounds.parts is None
    (tmp_path / "README").touch()
    assert find(tmp_path).notes == ("1 file(s) that are no samples left out",)
    with pytest.raises(DataError, match=r"no meta\.csv or labels\.csv to choose a column from: leave out --group city"):
        find(tmp_path, group="city")


def test_parts_above_the_classes(tmp_path: Path) -> None:
    for name in ("train/wind/b.wav", "test/wind/c.wav", "train/rain/z.flac"):
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).touch()
    sounds = find(tmp_path)
    assert [path.name for path in sounds.paths] == ["c.wav", "z.flac", "b.wav"]
    assert sounds.parts is not None
    assert sounds.parts.tolist() == ["test", "train", "train"]


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="there is no such folder"):
        find(tmp_path / "nowhere")
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="it is no folder"):
        find(tmp_path / "file")
    with pytest.raises(DataError, match=r"no labelled sounds in .*, found none"):
        find(tmp_path)
    (tmp_path / "a.wav").touch()
    with pytest.raises(DataError, match=r"found 1 file\(s\) without labels"):
        find(tmp_path)
    for name in ("x/a.wav", "y/b.png"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    with pytest.raises(DataError, match=r"b\.png is no sound"):
        find(tmp_path)
    write(tmp_path, "filename,label\na.wav,x\nb.png,y\n")
    with pytest.raises(DataError, match=r"b\.png is no sound"):
        find(tmp_path)
