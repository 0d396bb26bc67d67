"""A raw folder of sounds is read as spectrograms, with labels and without; all else is read as before."""

from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from topiarist import load, load_data, save
from topiarist.cli.loading import features_for
from topiarist.cli.starting import task_and_start
from topiarist.errors import DataError, TopiaristWarning
from topiarist.features.described import find_described, load_described
from topiarist.features.log_mel import LogMel
from topiarist.features.sounds import archive_of, describe_sounds
from topiarist.models import vgg
from topiarist.reproductions.scenes.stand_in import scene_waves
from topiarist.rightsizing import Backbone


@pytest.fixture
def clips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    soundfile = pytest.importorskip("soundfile")
    monkeypatch.setenv("TOPIARIST_CACHE", str(tmp_path / "cache"))
    made = scene_waves(clips=20, seconds=0.5, rate=8000, seed=0)
    for number, (wave, label) in enumerate(zip(made.waves, made.labels, strict=True)):
        place = tmp_path / "clips" / label / f"{number}.wav"
        place.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(place, wave, 8000)
    return tmp_path / "clips"


def test_a_folder_of_sounds_is_described_and_a_note_says_how(clips: Path) -> None:
    with pytest.warns(TopiaristWarning, match="log-mel spectrograms of 48 bands, window 2048"):
        data = load_described(clips, seed=1)
    assert data.input_shape == (1, 48, 2) and len(data.classes) == 3
    source = find_described(clips, settings=LogMel(bands=16, window=512))
    assert numpy.array_equal(source.features, describe_sounds(clips, LogMel(bands=16, window=512)).features)
    assert f"topiarist data sounds {clips} --out" in source.notes[0]


def test_for_prediction_sounds_need_no_labels(clips: Path) -> None:
    known = find_described(clips, labelled=False)
    loose = find_described(clips / "indoor", labelled=False)
    alone = find_described(clips / "indoor" / "0.wav", labelled=False)
    assert known.labels is not None and loose.labels is None and alone.labels is None
    assert numpy.array_equal(known.features[known.labels == "indoor"], loose.features)
    assert numpy.array_equal(alone.features[:1], loose.features[:1])
    with pytest.raises(DataError, match="single sample without a label"):
        find_described(clips / "indoor" / "0.wav")


@pytest.mark.slow
def test_new_sounds_are_described_as_those_that_a_network_was_trained_on(clips: Path, tmp_path: Path) -> None:
    soundfile = pytest.importorskip("soundfile")
    archive = tmp_path / "clips.npz"
    archive.write_bytes(archive_of(describe_sounds(clips, LogMel(bands=16, window=512))))
    data = load_data(archive)
    assert data.preprocessing is not None
    assert (
        str(data.preprocessing.sound) == "log-mel spectrograms of 16 bands, window 512, of clips of 0.5 s at 8,000 Hz"
    )
    network = load(
        save(vgg(1, 1, 1, 1, input_shape=data.input_shape, classes=3), tmp_path / "m.safetensors", data=data)
    )
    first = sorted((clips / "indoor").iterdir())[0]
    wave, rate = soundfile.read(first)
    soundfile.write(tmp_path / "longer.wav", numpy.tile(wave, 2), rate)
    soundfile.write(tmp_path / "faster.wav", wave.repeat(2), 2 * rate)
    known = features_for(network, str(first), target=None)[torch.arange(1)]
    with pytest.warns(TopiaristWarning, match=r"1 of 1 clips cut to 0\.5 s"):
        longer = features_for(network, str(tmp_path / "longer.wav"), target=None)[torch.arange(1)]
    with pytest.warns(TopiaristWarning, match="1 of 1 clips resampled to 8000 Hz"):
        faster = features_for(network, str(tmp_path / "faster.wav"), target=None)[torch.arange(1)]
    assert known.shape == faster.shape == (1, *data.input_shape) and torch.equal(known, longer)
    assert (known - faster).abs().mean() < 0.2 * known.std()  # the same sound but for the highest frequencies
    how: dict[str, Any] = dict.fromkeys(("target", "group", "weight", "task", "columns", "samples", "scaling"))
    how |= {"seed": 0, "input_shape": None}
    with pytest.warns(TopiaristWarning, match="16 bands, window 512, of clips of 0.5 s at 8,000 Hz"):
        again, start = task_and_start(str(clips), None, None, how, base=tmp_path / "m.safetensors")
    assert isinstance(start, Backbone) and start.source == "m.safetensors"
    assert again.input_shape == data.input_shape and again.preprocessing is not None
    assert again.preprocessing.sound == data.preprocessing.sound
    with pytest.raises(DataError, match="four whole numbers: bands, window, rate and samples"):
        with numpy.load(archive) as arrays:
            numpy.savez(tmp_path / "bad.npz", **{**arrays, "sound": numpy.arange(3)})
        load_data(tmp_path / "bad.npz")


def test_all_else_is_read_as_before(tmp_path: Path) -> None:
    assert load_described("iris").input_shape == (4,)
    with pytest.raises(DataError, match="no such file or folder"):
        find_described(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no data"):
        find_described(tmp_path / "empty")
