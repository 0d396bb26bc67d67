"""A raw folder of sounds from training to prediction, and the options of the scenes that are refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from topiarist.reproductions.scenes.stand_in import scene_waves

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def clips(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    soundfile = pytest.importorskip("soundfile")
    monkeypatch.setenv("TOPIARIST_CACHE", str(tmp_path / "cache"))
    made = scene_waves(clips=40, seconds=1, rate=16_000, seed=0)
    for number, (wave, label) in enumerate(zip(made.waves, made.labels, strict=True)):
        place = tmp_path / "clips" / label / f"{number}.wav"
        place.parent.mkdir(parents=True, exist_ok=True)
        soundfile.write(place, wave, 16_000)
    return tmp_path / "clips"


@pytest.mark.slow
def test_every_command_reads_a_raw_folder_of_sounds_as_spectrograms(command: Run, clips: Path, tmp_path: Path) -> None:
    model, smaller = tmp_path / "m.safetensors", tmp_path / "s.safetensors"
    code, out, err = command(
        "train", clips, "--family", "vgg", "--blocks", "1,0,0,0", "--epochs", "2", "--out", model, "--json"
    )
    assert code == 0 and "log-mel spectrograms of 48 bands, window 2048" in err
    trained = json.loads(out.splitlines()[-1])
    code, out, _ = command("measure", model, clips, "--json")
    assert code == 0 and json.loads(out.splitlines()[-1])["accuracy"] == trained["accuracy"]
    code, _, _ = command("resize", "magnitude", model, clips, "--finetune", "1", "--out", smaller)
    assert code == 0 and smaller.stat().st_size < model.stat().st_size
    code, out, _ = command("predict", model, clips / "indoor")
    assert code == 0 and len(out.split()) == 1 + len(list((clips / "indoor").iterdir()))
    assert out.splitlines()[1].split(",")[0] in {path.name for path in (clips / "indoor").iterdir()}
    code, out, _ = command("data", "show", clips, "--json")
    assert code == 0 and json.loads(out)["input_shape"] == [1, 48, 14]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--final-sparsity", "1.2"), "--final-sparsity must be less than 1; found 1.2"),
        (("--initial-sparsity", "0.9"), "--initial-sparsity must be at most sparsity, 0.8"),
        (("--prune-times", "50"), "the last pruning is after epoch 50, and the training has 8 epochs"),
        (("--vgg-members", "1", "--inception-members", "0"), "two members or more; found 1 V and 0 I"),
        (("--mix-on", "picture"), "--mix-on"),
        (("--pieces", "0"), "--pieces"),
    ],
)
def test_options_of_the_scenes_are_checked(command: Run, tmp_path: Path, options: tuple[str, ...], said: str) -> None:
    code, _, err = command("reproduce", "scenes", "--quick", "--out", tmp_path / "out", *options)
    assert code == 2 and said in err and len(err.splitlines()) == 1 and not (tmp_path / "out").exists()
