from collections.abc import Sequence
from pathlib import Path

import numpy
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from topiarist.data.readers.sound import Clips, read_clip
from topiarist.errors import DataError, TopiaristError
from topiarist.features import sound_cache, sounds
from topiarist.features.log_mel import LogMel, log_mel
from topiarist.features.sounds import SoundSet, describe_sounds

RATE = 8000
SMALL = LogMel(window=256, bands=8)
NAMES = ("bus-lyon-1.wav", "park-lyon-2.wav", "tram-oslo-3.wav", "park-oslo-4.wav", "bus-oslo-5.wav")


def noise(length: int = 2000, *, seed: int = 0) -> NDArray[numpy.float32]:
    return (0.1 * numpy.random.default_rng(seed).standard_normal(length)).astype(numpy.float32)


def write_table(folder: Path, names: Sequence[str]) -> None:
    rows = [f"audio/{name}\t{'outdoor' if name[0] == 'p' else 'vehicle'}\t{name[4:-4]}" for name in names]
    (folder / "meta.csv").write_text("\n".join(["filename\tscene_label\tidentifier", *rows]))


def fill(folder: Path) -> Path:
    (folder / "audio").mkdir(parents=True)
    for seed, name in enumerate(NAMES):
        soundfile.write(folder / "audio" / name, noise(seed=seed), RATE, subtype="FLOAT")
    write_table(folder, NAMES)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return fill(tmp_path / "data")


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the clips that are decoded, from now on."""
    names: list[str] = []

    def watched(clips: Clips, number: int) -> NDArray[numpy.float32]:
        names.append(clips.paths[number].name)
        return read_clip(clips, number)

    monkeypatch.setattr(sounds, "read_clip", watched)
    return names


def test_a_folder_is_described(folder: Path) -> None:
    heard: list[tuple[int, int]] = []
    found = describe_sounds(folder, SMALL, on_clip=lambda done, total: heard.append((done, total)))
    assert found.features.shape == (5, 1, 8, 14)
    assert found.features.dtype == numpy.float32
    assert found.labels.tolist() == ["vehicle", "outdoor", "vehicle", "outdoor", "vehicle"]
    assert found.finer is not None
    assert found.finer.tolist() == ["bus", "park", "tram", "park", "bus"]
    assert found.names == tuple(f"audio/{name}" for name in NAMES)
    assert found.rate == RATE
    assert found.notes == ()
    assert heard == [(done, 5) for done in range(1, 6)]
    assert len(found) == 5
    for seed, features in enumerate(found.features):
        numpy.testing.assert_array_equal(features[0], log_mel(noise(seed=seed), RATE, SMALL))


def test_ten_seconds_of_the_challenge(tmp_path: Path) -> None:
    for label in ("indoor", "outdoor"):
        (tmp_path / label).mkdir()
        wave = noise(480_000).reshape(-1, 1).repeat(2, axis=1)
        soundfile.write(tmp_path / label / "a.wav", wave, 48_000, subtype="PCM_24")
    assert describe_sounds(tmp_path).features.shape == (2, 1, 48, 467)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("sounds") / "data")


@pytest.mark.slow
@settings(max_examples=20)
@given(rows=st.permutations(range(5)), left_out=st.integers(0, 1))
def test_rows_follow_the_table(shared: Path, rows: list[int], left_out: int) -> None:
    write_table(shared, NAMES)
    whole = cached(shared)
    rows = rows[left_out:]
    write_table(shared, [NAMES[row] for row in rows])
    for found in (describe_sounds(shared, SMALL), cached(shared)):
        numpy.testing.assert_array_equal(found.features, whole.features[rows])
        assert found.labels.tolist() == whole.labels[rows].tolist()
        assert found.names == tuple(whole.names[row] for row in rows)


def test_notes_count_what_was_changed_and_what_is_silent(folder: Path) -> None:
    soundfile.write(folder / "audio" / NAMES[1], noise(1000), RATE)
    soundfile.write(folder / "audio" / NAMES[2], noise(8000), 2 * RATE)
    soundfile.write(folder / "audio" / NAMES[3], numpy.zeros(2000), RATE)
    found = describe_sounds(folder, LogMel(window=256, bands=8, rate=RATE))
    assert found.notes == (
        "1 of 5 clips resampled to 8000 Hz",
        "1 of 5 clips padded, 1 cut to 0.25 s",
        "1 of 5 clips are silent",
    )
    assert numpy.isfinite(found.features).all()
    numpy.testing.assert_allclose(found.features[3], numpy.log(1e-10), rtol=1e-6)


def test_notes_count_empty_bands(folder: Path) -> None:
    found = describe_sounds(folder, LogMel(window=64, bands=64))
    assert found.notes[0].endswith("of 64 bands are empty: use fewer bands or a longer window")


def test_bad_clips_are_named(folder: Path) -> None:
    bad = folder / "audio" / NAMES[2]
    soundfile.write(bad, noise() * 1e25, RATE, subtype="FLOAT")
    with pytest.raises(DataError, match=r"tram-oslo-3\.wav is too loud"):
        describe_sounds(folder, SMALL)
    bad.write_bytes(bad.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"tram-oslo-3\.wav is truncated"):
        describe_sounds(folder, SMALL)


def cached(folder: Path, wanted: LogMel = SMALL) -> SoundSet:
    return describe_sounds(folder, wanted, cache=folder / "cache")


def cache_files(folder: Path) -> list[Path]:
    return [path for path in (folder / "cache").rglob("*") if path.is_file()]


def test_each_clip_is_decoded_once(folder: Path, decoded: list[str]) -> None:
    first = cached(folder)
    assert decoded == list(NAMES)
    assert len(cache_files(folder)) == 1
    again = cached(folder)
    assert decoded == list(NAMES)
    numpy.testing.assert_array_equal(again.features, first.features)
    assert (again.names, again.notes) == (first.names, first.notes)


def test_what_counts_is_the_content(folder: Path, decoded: list[str]) -> None:
    first = cached(folder)
    decoded.clear()
    audio = folder / "audio"
    (audio / NAMES[0]).rename(audio / "bus-rome-9.wav")
    soundfile.write(audio / NAMES[4], noise(seed=9), RATE, subtype="FLOAT")
    write_table(folder, ["bus-rome-9.wav", *NAMES[1:]])
    changed = cached(folder)
    assert decoded == [NAMES[4]]
    numpy.testing.assert_array_equal(changed.features[:4], first.features[:4])
    assert (changed.features[4] != first.features[4]).any()


@pytest.mark.parametrize(
    "wanted",
    [
        LogMel(window=256, bands=9),
        LogMel(window=128, bands=8),
        LogMel(window=256, bands=8, rate=4000),
        LogMel(window=256, bands=8, seconds=0.2),
        LogMel(window=256, bands=8, rate=4000, seconds=0.5),
    ],
)
def test_other_settings_are_kept_apart(folder: Path, decoded: list[str], wanted: LogMel) -> None:
    cached(folder)
    other = cached(folder, wanted)
    assert decoded == [*NAMES, *NAMES]
    numpy.testing.assert_array_equal(other.features, describe_sounds(folder, wanted).features)


def test_what_was_described_is_kept_when_a_later_clip_is_bad(folder: Path, decoded: list[str]) -> None:
    good = (folder / "audio" / NAMES[3]).read_bytes()
    soundfile.write(folder / "audio" / NAMES[3], noise() * numpy.nan, RATE, subtype="FLOAT")
    with pytest.raises(DataError, match="not finite"):
        cached(folder)
    decoded.clear()
    (folder / "audio" / NAMES[3]).write_bytes(good)
    cached(folder)
    assert decoded == list(NAMES[3:])


def test_many_clips_share_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch, decoded: list[str]) -> None:
    monkeypatch.setattr(sound_cache, "BYTES_PER_FILE", 2 * 8 * 14 * 4)
    first = cached(folder)
    assert len(cache_files(folder)) == 3
    numpy.testing.assert_array_equal(cached(folder).features, first.features)
    assert decoded == list(NAMES)


@pytest.mark.parametrize(("damage", "lost"), [("cut", 5), ("flipped", 1), ("text", 5), ("empty", 5)])
def test_what_is_damaged_is_described_again(folder: Path, decoded: list[str], damage: str, lost: int) -> None:
    first = cached(folder)
    (path,) = cache_files(folder)
    content = path.read_bytes()
    flipped = content[:-1] + bytes([content[-1] ^ 1])
    path.write_bytes({"cut": content[:-4], "flipped": flipped, "text": b"{}" * 99, "empty": b""}[damage])
    decoded.clear()
    for _ in range(2):
        numpy.testing.assert_array_equal(cached(folder).features, first.features)
        assert len(decoded) == lost


def test_a_cache_that_cannot_be_written(folder: Path) -> None:
    (folder / "cache").touch()
    with pytest.raises(TopiaristError, match="cannot write"):
        cached(folder)
