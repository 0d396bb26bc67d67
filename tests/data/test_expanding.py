import gzip
from pathlib import Path

import pytest

from topiarist.data import limits
from topiarist.data.limits import expanded, read_up_to, read_whole
from topiarist.errors import DataError


@pytest.fixture
def packed(tmp_path: Path) -> Path:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(range(256)) * 40))
    return path


def test_gzip_is_expanded_and_plain_is_not(tmp_path: Path, packed: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_bytes(b"abc")
    assert read_whole(packed) == bytes(range(256)) * 40
    assert read_whole(plain) == b"abc"
    for path, size, head in ((packed, 3, b"\0\1\2"), (plain, 9, b"abc")):
        with expanded(path) as stream:
            assert read_up_to(stream, size) == head


def test_truncated_gzip(packed: Path) -> None:
    packed.write_bytes(packed.read_bytes()[:-12])
    with pytest.raises(DataError, match=r"truncated.*download it again"):
        read_whole(packed)


@pytest.mark.parametrize("place", [-6, 30])
def test_damaged_gzip(packed: Path, place: int) -> None:
    content = bytearray(packed.read_bytes())
    content[place] ^= 0xFF
    packed.write_bytes(content)
    with pytest.raises(DataError, match=r"damaged gzip|truncated"):
        read_whole(packed)


def test_a_gzip_bomb_stops_at_the_limit(packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LARGEST_BYTES", 5_000)
    assert packed.stat().st_size < 5_000
    with pytest.raises(DataError, match="at most 5,000 are allowed"):
        read_whole(packed)
