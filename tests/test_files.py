import hashlib
import os
from pathlib import Path

import pytest

from topiarist.errors import TopiaristError
from topiarist.files import replacing, sha256, write_atomically


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
