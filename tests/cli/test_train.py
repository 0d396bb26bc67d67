import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest
from safetensors.torch import load_file, save_file

from topiarist import load, load_data, measure
from topiarist.models import card_of
from topiarist.models.building import build_by_code
from topiarist.randomness import isolated

Run = Callable[..., tuple[int, str, str]]
MEASURED = {
    "accuracy",
    "macro_accuracy",
    "log_loss",
    "parameters",
    "nonzero",
    "memory_kb",
    "file_kb",
    "macs",
    "latency_ms",
}


def as_json(ran: tuple[int, str, str]) -> dict[str, Any]:
    """Return the one object that standard output holds."""
    code, out, err = ran
    assert (code, err) == (0, "")
    assert out.count("\n") == 1 and out.endswith("\n")
    result = json.loads(out)
    assert isinstance(result, dict)
    return result


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_network_is_trained_measured_and_saved(command: Run, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    result = as_json(command("train", "digits", "--hidden", 16, "--epochs", 3, "--out", out, "--json"))
    assert set(result) >= MEASURED
    assert (result["data"], result["seed"], result["epochs"], result["kept_epoch"]) == ("digits", 0, 3, 3)
    assert result["parameters"] == 64 * 16 + 16 + 16 * 10 + 10
    assert result["out"] == str(out) and result["config"]["learning_rate"] == 0.001
    assert result["file_kb"] == out.stat().st_size / 1024
    measured = measure(load(out), load_data("digits"), latency=False)
    assert (result["accuracy"], result["log_loss"]) == (measured.accuracy, measured.log_loss)
    assert names(tmp_path) == ["m.safetensors"]


@pytest.mark.slow
def test_the_seed_decides_every_byte(command: Run, tmp_path: Path) -> None:
    contents = []
    for number, seed in enumerate((3, 3, 4)):
        out = tmp_path / f"{number}.safetensors"
        words = ("--hidden", 8, "--epochs", 2, "--dropout", 0.3, "--batch-norm", "before", "--seed", seed)
        as_json(command("train", "wine", *words, "--out", out, "--json"))
        contents.append(out.read_bytes())
    assert contents[0] == contents[1] != contents[2]


def test_people_get_a_table(command: Run) -> None:
    code, out, err = command("train", "iris", "--epochs", 1)
    assert (code, err) == (0, "")
    first_words = [line.split()[0] for line in out.splitlines() if line.strip()]
    assert first_words == [
        "data",
        "task",
        "training",
        "accuracy",
        "macro",
        "log",
        "parameters",
        "size",
        "MACs",
        "latency",
    ]


def test_folds_give_mean_and_standard_deviation(command: Run) -> None:
    result = as_json(command("train", "iris", "--hidden", 8, "--epochs", 5, "--folds", 3, "--json"))
    accuracies = result["fold_accuracies"]
    assert result["folds"] == len(accuracies) == 3 and len(set(accuracies)) > 1
    assert result["mean_accuracy"] == pytest.approx(numpy.mean(accuracies), rel=1e-12)
    assert result["sd_accuracy"] == pytest.approx(numpy.std(accuracies, ddof=1), rel=1e-12)
    assert "accuracy" not in result
    assert "mean and SD of 3 folds" in command("train", "iris", "--epochs", 1, "--folds", 3)[1]


def test_folds_and_a_network_of_all(command: Run, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    result = as_json(command("train", "iris", "--epochs", 2, "--folds", 3, "--out", out, "--json"))
    assert len(result["fold_accuracies"]) == 3 and set(result) >= MEASURED
    assert names(tmp_path) == ["m.safetensors"]


@pytest.mark.slow
def test_every_practice_in_one_command(command: Run) -> None:
    words = (
        "--hidden 20,10 --activation relu --lr 0.001 --batch 32 --optimizer adam --schedule exponential"
        " --dropout 0.2 --batch-norm before --clip-norm 1 --early-stopping 5 --folds 3 --seed 0 --epochs 6"
    )
    result = as_json(command("train", "digits", *words.split(), "--json"))
    assert len(result["fold_accuracies"]) == 3
    config = result["config"]
    assert (config["schedule"]["name"], config["clip_norm"], config["early_stopping"]) == ("exponential", 1.0, 5)


@pytest.mark.parametrize(
    "words",
    [
        "--optimizer sgd --momentum 0.9 --nesterov --schedule one-cycle --lr 0.1",
        "--optimizer rmsprop --schedule power --schedule-step-size 10 --schedule-power 2 --schedule-warmup 3",
        "--optimizer adamw --weight-decay 0.01 --schedule cosine --clip-value 0.5",
        "--schedule performance --schedule-factor 3 --schedule-patience 1 --monitor macro_accuracy"
        " --class-weights balanced",
        "--activation selu --dropout 0.1 --dropout-layers 1 --input-dropout 0.1",
        "--activation gelu --batch-norm after --clip-norm 1 --clip-norm-over tensor",
        "--activation leaky_relu --leaky-slope 0.2 --batch-norm before --batch-norm-epsilon 0.001"
        " --batch-norm-momentum 0.5",
        "--scaling unit --threads 1 --batch-size 7 --learning-rate 0.01 --device cpu",
    ],
)
def test_every_other_option_works(command: Run, words: str) -> None:
    result = as_json(command("train", "iris", "--hidden", 4, "--hidden", 3, "--epochs", 3, *words.split(), "--json"))
    assert result["epochs"] == 3


def test_the_file_keeps_the_settings_of_batch_norm_and_leaky_relu(command: Run, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    norm = "--batch-norm before --batch-norm-epsilon 0.01 --batch-norm-momentum 1"
    words = f"--activation leaky_relu --leaky-slope 0.2 {norm}"
    as_json(command("train", "iris", "--epochs", 0, *words.split(), "--out", out, "--json"))
    model = load(out)
    assert model.get_submodule("activation0").negative_slope == 0.2
    assert "eps=0.01, momentum=1.0" in repr(model.get_submodule("norm0"))


WEIGHTS = "--class-weights: class weights are written balanced, or one number per class as 1,2.5,1"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--batch-norm-epsilon 0.1", "--batch-norm-epsilon has no effect without --batch-norm"),
        ("--batch-norm-momentum 0.5", "--batch-norm-momentum has no effect without --batch-norm"),
        ("--leaky-slope 0.1", "--leaky-slope has no effect without --activation leaky_relu"),
        ("--activation leaky_relu --leaky-slope 2", "--leaky-slope must be less than 1; found 2.0"),
        ("--batch-norm before --batch-norm-epsilon 0", "--batch-norm-epsilon must be greater than 0; found 0.0"),
        (
            "--batch-norm after --batch-norm-momentum 3",
            "--batch-norm-momentum must be less than or equal to 1; found 3.0",
        ),
        (
            "--family vgg --blocks 0,0,1,1 --dropout-layers 1",
            "--dropout-layers belongs to mlp, not to a network of the family vgg",
        ),
        ("--family vgg --blocks 1,1", "a network of the family vgg has 4 blocks; found 2"),
        ("--blocks 1,1,1,1", "--blocks belongs to vgg and inception, not to a network of the family mlp"),
        ("--class-weights heavy", f"{WEIGHTS}; found 'heavy'"),
        ("--class-weights=-1,1,1", "class weights must be at least 0, and one of them above 0"),
        ("--class-weights nan,1,1", f"{WEIGHTS}; found 'nan,1,1'"),
    ],
)
def test_settings_of_layers_that_are_not_there_are_refused(command: Run, words: str, said: str) -> None:
    assert command("train", "iris", *words.split()) == (2, "", f"topiarist: {said}\n")


@pytest.mark.slow
def test_convolutional_networks_are_named_by_family_and_blocks(command: Run, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    words = ("--input-shape", "1x8x8", "--family", "inception", "--blocks", "1,1,0", "--dropout", 0.25, "--epochs", 0)
    as_json(command("train", "digits", *words, "--out", out, "--json"))
    assert "Dropout(p=0.25" in repr(load(out))


def test_weights_of_classes_and_pruning_and_masks(command: Run) -> None:
    words = "--class-weights 1,2,0.5 --prune 0.5 --mixup 0.2 --epochs 8 --hidden 4"
    result = as_json(command("train", "iris", *words.split(), "--json"))
    config = result["config"]
    assert config["class_weights"] == [1, 2, 0.5] and config["pruning"]["sparsity"] == 0.5
    assert config["augmentation"]["mixup"] == 0.2 and result["nonzero"] < result["parameters"]


def test_images_are_told_their_shape(command: Run, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    as_json(command("train", "digits", "--epochs", 0, "--input-shape", "1x8x8", "--out", out, "--json"))
    assert card_of(load(out)).input_shape == (1, 8, 8)


@pytest.mark.slow
def test_balanced_weights_help_the_rare_class(command: Run, tmp_path: Path) -> None:
    random = numpy.random.default_rng(0)
    y = (numpy.arange(400) % 16 == 0).astype(int)
    numpy.savez(tmp_path / "t.npz", x=random.normal(size=(400, 2)) + y[:, None], y=y)
    words = ("--hidden", 8, "--epochs", 40, "--json")
    plain, balanced = (
        json.loads(command("train", tmp_path / "t.npz", *words, *more)[1])
        for more in ((), ("--class-weights", "balanced"))
    )
    assert balanced["macro_accuracy"] > plain["macro_accuracy"] + 0.1


def test_a_network_that_learned_nothing_is_said_and_trained_again(command: Run, tmp_path: Path) -> None:
    random = numpy.random.default_rng(0)
    numpy.savez(tmp_path / "t.npz", x=random.normal(size=(400, 3)), y=random.integers(0, 3, 400))
    code, out, err = command("train", tmp_path / "t.npz", "--hidden", 2, "--epochs", 15, "--lr", 1e-6, "--json")
    (note,) = json.loads(out)["rescue"]
    assert (code, err) == (0, f"topiarist: note: {note}\n")
    assert note.startswith("the network does not tell the classes of its training samples apart")


@pytest.mark.slow
def test_a_base_is_continued(command: Run, digits_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    words = ("--base", digits_model, "--phase", "2:1", "--phase", "1:2:0.0001")
    result = as_json(command("train", "digits", *words, "--out", out, "--json"))
    assert result["epochs"] == 1
    before, after = load(digits_model).state_dict(), load(out).state_dict()
    assert {name: value.shape for name, value in before.items()} == {name: value.shape for name, value in after.items()}
    head_only = as_json(command("train", "digits", *words[:4], "--out", out, "--json"))
    frozen = load(out).state_dict()
    assert head_only["epochs"] == 2
    assert frozen["hidden0.weight"].equal(before["hidden0.weight"])
    assert not frozen["output.weight"].equal(before["output.weight"])


def test_layers_are_dropped_and_added_above_a_base(command: Run, digits_model: Path) -> None:
    words = ("--base", digits_model, "--drop-top", 1, "--hidden", 5, "--phase", "1", "--folds", 2)
    result = as_json(command("train", "digits", *words, "--json"))
    assert len(result["fold_accuracies"]) == 2


OWN = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, channels=3, size=12, classes=5):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, 4, 3), nn.ReLU(), nn.Flatten())
        self.head = nn.Linear(4 * (size - 2) ** 2, classes)

    def forward(self, x):
        return self.head(self.body(x))

def colour(): return Net()
def new_colour(): return Net(classes=4)
def headless(): return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten())
def deep(): return Net(channels=2)
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a user's own networks, their code and data: 40 grey images of 8 × 8, of 4 classes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_networks", raising=False)
    (tmp_path / "own_networks.py").write_text(OWN)
    random = numpy.random.default_rng(0)
    y = numpy.arange(80) % 4
    images = (random.integers(0, 100, (80, 1, 8, 8)) + 40 * y[:, None, None, None]).astype(numpy.uint8)
    numpy.savez(tmp_path / "grey.npz", x=images, y=y)
    numpy.savez(tmp_path / "pairs.npz", x=numpy.repeat(images, 2, axis=1), y=y)
    for name in ("colour", "headless", "deep"):
        with isolated(0):
            save_file(build_by_code(f"own_networks:{name}").state_dict(), tmp_path / f"{name}.safetensors")
    return tmp_path


@pytest.mark.slow
def test_a_users_own_network_is_continued(command: Run, own: Path) -> None:
    words = ("--base", "colour.safetensors", "--into", "own_networks:colour", "--phase", "2:1", "--json")
    code, out, err = command("train", "grey.npz", *words, "--out", "new.safetensors")
    assert (code, err) == (0, "topiarist: note: images of 1 × 8 × 8 resized to 3 × 12 × 12, which the network reads\n")
    assert json.loads(out)["parameters"] == 3 * 4 * 9 + 4 + 4 * 100 * 4 + 4
    before, after = load_file(own / "colour.safetensors"), load_file(own / "new.safetensors")
    assert before["body.0.weight"].equal(after["body.0.weight"]) and after["head.weight"].shape == (4, 400)
    # what was saved reads the same raw images again
    for verb in ("measure", "predict"):
        code, out, err = command(verb, "new.safetensors", "grey.npz", "--into", "own_networks:new_colour", "--json")
        assert code == 0 and "resized to 3 × 12 × 12" in err


def test_a_users_own_network_is_cross_validated(command: Run, own: Path) -> None:
    words = ("--base", "colour.safetensors", "--into", "own_networks:colour", "--phase", "1:1", "--folds", 2)
    code, out, _ = command("train", "grey.npz", *words, "--json")
    assert code == 0 and len(json.loads(out)["fold_accuracies"]) == 2


@pytest.mark.parametrize(
    ("data", "words", "said"),
    [
        ("grey.npz", "--base colour.safetensors", "not written by topiarist"),
        ("grey.npz", "--base headless.safetensors --into own_networks:headless", "no linear layer"),
        ("grey.npz", "--base deep.safetensors --into own_networks:deep", r"cannot read samples of shape \(1, 8, 8\)"),
        ("pairs.npz", "--base colour.safetensors --into own_networks:colour", r"samples of shape \(2, 8, 8\)"),
        ("iris", "--base colour.safetensors --into own_networks:colour", r"cannot read samples of shape \(4,\)"),
        ("grey.npz", "--base colour.safetensors --into own_networks:none", "cannot build a network"),
        ("grey.npz", "--base colour.safetensors --into own_networks:colour --drop-top 1", "dropped or added only"),
        ("grey.npz", "--into own_networks:colour", "--into belongs to transfer"),
    ],
)
def test_what_cannot_be_continued_is_refused_in_a_line(
    command: Run, own: Path, data: str, words: str, said: str
) -> None:
    code, out, err = command("train", data, *words.split())
    *notes, last = err.splitlines()
    assert (code, out) == (2, "") and re.search(said, last) and all(": note: " in note for note in notes)


def test_one_of_our_networks_reads_resized_images_too(command: Run, own: Path) -> None:
    as_json(command("train", "digits", "--epochs", 0, "--input-shape", "1x8x8", "--out", "base.safetensors", "--json"))
    random = numpy.random.default_rng(0)
    images = random.integers(0, 255, (60, 3, 16, 10)).astype(numpy.uint8)
    numpy.savez(own / "colour.npz", x=images, y=numpy.arange(60) % 3)
    code, _, err = command("train", "colour.npz", "--base", "base.safetensors", "--phase", "1:1", "--json")
    assert (code, err) == (0, "topiarist: note: images of 3 × 16 × 10 resized to 1 × 8 × 8, which the network reads\n")
    code, _, err = command("train", "iris", "--base", "base.safetensors")
    assert code == 2 and "it was trained on samples of shape (1, 8, 8)" in err


def test_what_was_decided_is_noted_on_standard_error(command: Run, tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("a,same,y\n" + "".join(f"{i % 30},1,{'yes' if i % 2 else 'no'}\n" for i in range(40)))
    code, out, err = command("train", table, "--target", "y", "--epochs", 1, "--json")
    assert (code, err) == (0, "topiarist: note: left out, constant: same\n")
    assert set(json.loads(out)) >= MEASURED


def interrupted(running: subprocess.Popen[str]) -> tuple[str, str]:
    """Press Ctrl-C, as a person does: again where nothing comes of it, as within a callback of C code."""
    while True:
        running.send_signal(signal.SIGINT)
        try:
            return running.communicate(timeout=3)
        except subprocess.TimeoutExpired:
            continue


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is no signal there")
def test_an_interrupted_training_resumes_to_the_same_bytes(command: Run, tmp_path: Path) -> None:
    """A checkpoint is written every few seconds; here after every epoch, so that the test need not wait."""
    often = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"  # tests may run in the background
        "from topiarist.training.checkpoint import Checkpoint; Checkpoint.due = property(lambda self: True);"
        "from topiarist.cli import main; main()"
    )
    (tmp_path / "broken").mkdir()
    (tmp_path / "whole").mkdir()
    out = tmp_path / "broken" / "m.safetensors"
    words = ["train", "iris", "--hidden", "8", "--dropout", "0.1", "--epochs", "1500", "--early-stopping", "1500"]
    running = subprocess.Popen(
        [sys.executable, "-c", often, *words, "--out", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    checkpoint = out.with_name("m.safetensors.checkpoint")
    while not checkpoint.exists() and running.poll() is None:
        time.sleep(0.01)
    printed, said = interrupted(running)
    assert (running.returncode, printed) == (130, "")
    assert said == "topiarist: interrupted: run the same command again to resume\n"
    assert names(out.parent) == ["m.safetensors.checkpoint"]
    resumed = as_json(command(*words, "--out", out, "--json"))
    assert names(out.parent) == ["m.safetensors"]
    whole = as_json(command(*words, "--out", tmp_path / "whole" / "m.safetensors", "--json"))
    assert out.read_bytes() == (tmp_path / "whole" / "m.safetensors").read_bytes()
    assert (resumed["epochs"], resumed["kept_epoch"]) == (whole["epochs"], whole["kept_epoch"])


def test_a_length_in_steps(command: Run) -> None:
    result = as_json(command("train", "iris", "--hidden", 4, "--steps", 7, "--json"))
    assert result["stopped"] == "all 7 steps done" and result["config"]["steps"] == 7
    assert "epochs" not in result["config"]
    code, _, err = command("train", "iris", "--steps", 7, "--epochs", 100)
    assert code == 2 and "--epochs and --steps both say how long to train: give one" in err
