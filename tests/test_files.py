import hashlib
import os
from pathlib import Path

import pytest

from topiarist.errors import TopiaristError
from topiarist.files import check_readable, delivering, replacing, sha256, write_atomically


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_whole_and_alone(tmp_path: Path) -> None:
    for content in (b"old", b"", b"new" * 1000):
        write_atomically(tmp_path / "a.bin", content)
        assert (tmp_path / "a.bin").read_bytes() == content
    assert names(tmp_path) == ["a.bin"]


def test_new_files_have_the_usual_permissions(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a.bin", b"x")
    (tmp_path / "b.bin").write_bytes(b"x")
    assert (tmp_path / "a.bin").stat().st_mode == (tmp_path / "b.bin").stat().st_mode
    before = os.umask(0o077)
    try:
        write_atomically(tmp_path / "c.bin", b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "c.bin").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, TopiaristError])
def test_what_goes_wrong_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    (tmp_path / "a.bin").write_bytes(b"old")
    with pytest.raises(error), replacing(tmp_path / "a.bin") as temporary:
        temporary.write_bytes(b"half")
        assert (tmp_path / "a.bin").read_bytes() == b"old"
        raise error("stop")
    assert (tmp_path / "a.bin").read_bytes() == b"old"
    assert names(tmp_path) == ["a.bin"]


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path / "absent" / "a.bin", tmp_path / "file" / "a.bin", tmp_path / "folder"):
        with pytest.raises(TopiaristError, match=f"cannot write {path}: ") as caught:
            write_atomically(path, b"x")
        assert "\n" not in str(caught.value)
    assert names(tmp_path) == ["file", "folder"]


def test_digest_is_that_of_hashlib() -> None:
    assert sha256(b"topiary") == hashlib.sha256(b"topiary").hexdigest()


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_is_delivered_whole_or_not_at_all(tmp_path: Path, there: bool) -> None:
    place = tmp_path / "results"
    if there:
        place.mkdir()
        (place / "mine").write_text("kept")
        (place / "a").write_text("old")
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    with pytest.raises(ValueError, match="half"), delivering(place) as folder:
        (folder / "a").write_text("new")
        assert not place.exists() or (place / "a").read_text() == "old"
        raise ValueError("half")
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before
    with delivering(place) as folder:
        (folder / "a").write_text("new")
        (folder / "b").write_text("new")
    assert names(tmp_path) == ["results"]
    assert names(place) == (["a", "b", "mine"] if there else ["a", "b"])
    assert (place / "a").read_text() == "new"


def test_a_folder_of_the_same_files_is_replaced_whole(tmp_path: Path) -> None:
    place = tmp_path / "results"
    place.mkdir()
    (place / "a").write_text("old")
    with delivering(place) as folder:
        (folder / "a").write_text("new")
        (folder / "b").write_text("new")
        before = place.stat().st_ino
    assert place.stat().st_ino != before
    assert names(tmp_path) == ["results"] and [(place / name).read_text() for name in "ab"] == ["new", "new"]


def test_only_regular_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").write_bytes(b"12345")
    with pytest.raises(TopiaristError, match="it is a pipe; name a file"):
        check_readable(tmp_path / "pipe")
    with pytest.raises(TopiaristError, match="it has 5 bytes, at most 4 are read"):
        check_readable(tmp_path / "long", most=4)
    check_readable(tmp_path / "long", most=5)
    check_readable(tmp_path / "absent")
