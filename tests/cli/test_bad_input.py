"""Whatever is wrong with the input: exit code 2, one line on standard error, no traceback, nothing written."""

import gzip
import os
import shlex
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
import torch
from safetensors.torch import save_file

from topiarist import save
from topiarist.models import mlp

Run = Callable[..., tuple[int, str, str]]
Case = tuple[str, str]

OPTIONS: list[Case] = [
    ("train digits --nonsense", "No such option: --nonsense"),
    ("train digits --lr", "Option '--lr' requires an argument"),
    ("train", "Missing argument 'DATA'"),
    ("train digits iris", "unexpected extra argument"),
    ("nonsense", "No such command 'nonsense'"),
    ("train digits --optimizer best", "'best' is not one of 'sgd', 'adam', 'adamw', 'rmsprop'"),
    ("train digits --activation step", "'step' is not one of 'selu'"),
    ("train digits --schedule never", "'never' is not one of 'constant'"),
    ("train digits --scaling up", "'up' is not one of 'none'"),
    ("train digits --hidden 0", "--hidden must be greater than 0; found '0'"),
    (
        "train digits --hidden many",
        "--hidden must be a valid integer, unable to parse string as an integer; found 'many'",
    ),
    ("train iris --hidden 100000000000", "cannot build a network of sizes [4, 100000000000, 3]"),
    ("train digits --lr=-1", "--lr must be greater than 0; found -1.0"),
    ("train digits --lr 0", "--lr must be greater than 0; found 0.0"),
    ("train digits --lr nan", "--lr must be a finite number; found nan"),
    ("train digits --lr inf", "--lr must be a finite number; found inf"),
    ("train digits --lr fast", "'--lr' / '--learning-rate': it must be a valid number"),
    ("train digits --epochs=-1", "--epochs must be greater than or equal to 0; found -1"),
    ("train digits --epochs 1.5", "'--epochs': it must be a valid integer"),
    ("train digits --batch 0", "--batch must be greater than or equal to 1; found 0"),
    ("train digits --dropout 1.5", "--dropout must be less than 1; found 1.5"),
    ("train digits --dropout nan", "--dropout must be a finite number; found nan"),
    ("train digits --dropout-layers=-1", "--dropout-layers must be greater than or equal to 0; found -1"),
    ("train digits --clip-norm 0", "--clip-norm must be greater than 0; found 0.0"),
    ("train digits --clip-value=-1", "--clip-value must be greater than 0; found -1.0"),
    ("train digits --weight-decay nan", "--weight-decay must be a finite number; found nan"),
    ("train digits --momentum 0.9", "--momentum belongs to sgd and rmsprop, not to adam"),
    ("train digits --momentum 1.5 --optimizer sgd", "--momentum must be less than 1; found 1.5"),
    ("train digits --nesterov", "--nesterov needs the optimizer sgd and a momentum above 0"),
    ("train digits --nesterov --optimizer sgd", "--nesterov needs the optimizer sgd and a momentum above 0"),
    ("train digits --schedule power --schedule-step-size 0", "--schedule-step-size must be greater than 0; found 0.0"),
    ("train digits --schedule-power=-1", "--schedule-power must be greater than 0; found -1.0"),
    ("train digits --schedule-factor 1", "--schedule-factor must be greater than 1; found 1.0"),
    ("train digits --schedule-patience 0", "--schedule-patience must be greater than or equal to 1; found 0"),
    ("train digits --early-stopping 0", "--early-stopping must be greater than or equal to 1; found 0"),
    ("train digits --folds 1", "'--folds': it must be greater than or equal to 2; found '1'"),
    ("train digits --seed=-1", "'--seed': it must be greater than or equal to 0; found '-1'"),
    ("train digits --threads 0", "--threads must be greater than or equal to 1; found 0"),
    ("train digits --device nonsense", "the device 'nonsense' cannot be used"),
    ("train digits --batch 1 --batch-norm before", "batch norm cannot learn from batches of one sample"),
    ("train digits --input-shape 3x3", "cannot see samples of shape (64,) as (3, 3)"),
    ("train digits --input-shape 8by8", "a shape is written like 1x8x8; found '8by8'"),
    ("train digits --input-shape 0x64", "a shape is written like 1x8x8; found '0x64'"),
    ("train digits --phase 10:1", "--phase belongs to transfer: name the trained network with --base"),
    (
        "rightsize digits --base a.safetensors --model b:c",
        "--model is a network for the task as it is, --base one",
    ),
    ("rightsize digits --base a.safetensors", "there is no such file"),
    ("rightsize digits --base a.safetensors --trained", "--trained and --fresh say what to do with a network of yours"),
    ("train digits --drop-top 1", "--drop-top belongs to transfer: name the trained network with --base"),
    ("train iris --folds 60", "cannot make 60 stratified folds: the smallest class has 50 samples"),
    ("train iris --target species", "iris has no columns to choose from: leave out --target species"),
]

DATA: list[Case] = [
    ("train {d}/absent.csv --target y", "absent.csv: no such file or folder"),
    ("train {d}/good.csv", "name the column that holds the label with --target: a, b, y"),
    ("train {d}/good.csv --target z", "--target z is not a column, found a, b, y"),
    ("train {d}/good.csv --target y --group z", "--group z is not a column"),
    ("train {d}/empty.csv --target y", "empty.csv is empty"),
    ("train {d}/header.csv --target y", "header.csv has a header and no rows"),
    ("train {d}/twice.csv --target y", "columns must have distinct names, found more than once: a"),
    ("train {d}/ragged.csv --target y", "line 3: expected 2 values as in the header, found 3"),
    ("train {d}/half.csv --target y", "is not text"),
    ("train {d}/one.csv --target y", "at least two classes are needed, found only the class c"),
    ("train {d}/continuous.csv --target y --task labels", "labels"),
    ("train {d}/two.csv --target y", "two.csv has 2 samples: too few to set a test part aside"),
    ("train {d}/groups.csv --target y --group g", "whole groups aside: found 1 group"),
    ("train {d}/train-images-idx3-ubyte.gz", "is truncated: the gzip ends too early"),
    ("train {d}/bomb.npz", "x.npy has 4,294,967,280 bytes where its header means 192"),
    ("train {d}/text.npz", "x must hold real numbers, found type <U1"),
    ("train {d}/objects.npz", "holds Python objects, which are never unpickled"),
    ("train {d}/short.npz", "y must hold one value for each of 4 samples, found (3,)"),
    ("train {d}/nolabels.npz", "no labels y found"),
    ("train {d}/no_images", "no_images holds no data that is understood"),
    ("train {d}/broken_images", "bad.png cannot be decoded as an image"),
    ("train {d}/noise.bin", "noise.bin"),
    ("train {d}/pickle.safetensors", "is a zip file of 7 members; unpack it first"),
    ("data show {d}/absent.csv", "no such file or folder"),
    ("data show {d}/good.csv", "with --target"),
    ("data get imagenet", "no data set 'imagenet' to download; there are"),
    ("data get iris", "comes with topiarist and needs no download"),
]

OUT: list[Case] = [
    ("train iris --out {o}/absent/m.safetensors", "m.safetensors: there is no folder"),
    ("train iris --out {d}/folder.safetensors", "folder.safetensors: it is a folder; name a file"),
    ("train iris --out {o}/m.pt", "--out must end in .safetensors; found"),
    ("train iris --out {o}", "--out must end in .safetensors; found"),
    ("predict {d}/good.safetensors {d}/good.csv --out {o}/absent/p.csv", "absent/p.csv: there is no folder"),
    ("predict {d}/good.safetensors {d}/good.csv --out {d}/folder.safetensors", "folder.safetensors: it is a folder"),
]

UNREADABLE: list[Case] = [
    ("absent", "absent.safetensors: there is no such file"),
    ("empty", "empty.safetensors: it is empty"),
    ("truncated", "truncated.safetensors: it is not a whole .safetensors file"),
    ("tampered", "tampered.safetensors: the file is damaged: its content does not match its digest"),
    ("foreign", "foreign.safetensors: not written by topiarist"),
    ("pickle", "pickle.safetensors: it looks like a pickle (torch.save), which is never read"),
    ("folder", "folder.safetensors: it is a folder"),
    ("own", "own.safetensors: its network is of a user's class"),
]

MODELS: list[Case] = [
    *((f"measure {{d}}/{name}.safetensors {{d}}/good.csv --target y", said) for name, said in UNREADABLE),
    *((f"predict {{d}}/{name}.safetensors {{d}}/good.csv", said) for name, said in UNREADABLE),
    *((f"train iris --base {{d}}/{name}.safetensors", said) for name, said in UNREADABLE),
    ("measure {d}/good.safetensors", "Missing argument 'DATA'"),
    ("measure {d}/good.safetensors {d}/absent.csv", "no such file or folder"),
    ("measure {d}/good.safetensors {d}/good.csv", "name the column that holds the label with --target"),
    ("measure {d}/good.safetensors {d}/good.csv --part all", "name the column that holds the label with --target"),
    ("measure {d}/good.safetensors {d}/other.csv --target y", "not among the classes ['no', 'yes']: ['maybe']"),
    (
        "measure {d}/good.safetensors {d}/column.csv --target y",
        "columns that the network was trained on are missing: b",
    ),
    ("measure {d}/good.safetensors {d}/good.csv --target y --part best", "'best' is not one of 'train'"),
    ("measure {d}/good.safetensors {d}/good.csv --target y --threads 0", "greater than or equal to 1; found '0'"),
    ("measure {d}/bare.safetensors {d}/good.csv --target y", "does not say how to read raw samples"),
    ("predict {d}/good.safetensors {d}/column.csv", "columns that the network was trained on are missing: b"),
    (
        "predict {d}/good.safetensors {d}/words.csv",
        "column 'a' must hold numbers; found 'long' in row 1 below the header: correct",
    ),
    ("predict {d}/good.safetensors digits", "a table with named columns; found an array"),
    ("predict {d}/good.safetensors {d}/good.csv --monte-carlo 1", "greater than or equal to 2; found '1'"),
    ("predict {d}/good.safetensors {d}/good.csv --monte-carlo 5", "needs a network with dropout: this one has none"),
    ("predict {d}/good.safetensors {d}/good.csv --into nonsense:thing", "'nonsense:thing': ModuleNotFoundError"),
    ("predict {d}/good.safetensors {d}/good.csv --into os:thing", "'os:thing': AttributeError"),
    ("predict {d}/good.safetensors {d}/good.csv --into os:name", "'os:name': TypeError"),
    ("predict {d}/good.safetensors {d}/good.csv --into os:getcwd", "must return an nn.Module; it returns str"),
    ("predict {d}/good.safetensors {d}/good.csv --into os", "code is named as module:function; found 'os'"),
    ("predict {d}/good.safetensors {d}/good.csv --into torch.nn:Identity", "the file holds"),
    (
        "train {d}/good.csv --target y --base {d}/good.safetensors --phase 10:1:x",
        "--phase 10:1:x: learning_rate must be",
    ),
    ("train {d}/good.csv --target y --base {d}/good.safetensors --phase 0:1", "--phase 0:1: epochs must be greater"),
    (
        "train {d}/good.csv --target y --base {d}/good.safetensors --phase 1:1:1:1",
        "is written EPOCHS[:TOP[:LR]]; found",
    ),
    ("train {d}/good.csv --target y --base {d}/good.safetensors --drop-top 4", "cannot drop 4 of 1 hidden layers"),
    ("train {d}/good.csv --target y --base {d}/good.safetensors --epochs 5", "--epochs has no effect with --base"),
    ("train {d}/good.csv --target y --base {d}/good.safetensors --dropout 0.5", "--dropout has no effect with --base"),
    ("train digits --base {d}/good.safetensors", "the network cannot read samples of shape (64,)"),
]


def write_tables(folder: Path) -> None:
    good = [f"{i % 7},{i % 5},{'yes' if i % 2 else 'no'}" for i in range(60)]
    tables = {
        "good": ["a,b,y", *good],
        "other": ["a,b,y", *good, "1,1,maybe", "2,1,maybe"],
        "column": ["a,y", *(f"{i % 7},{'yes' if i % 2 else 'no'}" for i in range(60))],
        "words": ["a,b", "long,1", "long,1"],
        "empty": [],
        "header": ["a,y"],
        "twice": ["a,a,y", "1,2,3"],
        "ragged": ["a,y", "1,c", "2,d,3"],
        "one": ["a,y", "1,c", "2,c", "3,c"],
        "two": ["a,y", "1,c", "2,d"],
        "continuous": ["a,y", *(f"{i},{i * 0.37}" for i in range(60))],
        "groups": ["a,g,y", *(f"{i},{i % 2},{'yes' if i % 3 else 'no'}" for i in range(60))],
    }
    for name, lines in tables.items():
        (folder / f"{name}.csv").write_text("".join(f"{line}\n" for line in lines))
    (folder / "half.csv").write_bytes("a,y\n1,Müller\n2,Maier\n".encode("utf-16")[:-1])


def write_arrays(folder: Path) -> None:
    idx = struct.pack(">HBBIII", 0, 8, 3, 10, 4, 4) + bytes(range(160))
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx)[:-40])
    x, y = numpy.arange(8.0).reshape(4, 2), numpy.array([0, 1, 0, 1])
    numpy.savez(folder / "text.npz", x=x.astype(int).astype("U1"), y=y)
    numpy.savez(folder / "short.npz", x=x, y=y[:3])
    numpy.savez(folder / "nolabels.npz", x=x)
    numpy.savez(folder / "objects.npz", x=x.astype(object), y=y)
    numpy.savez(folder / "bomb.npz", x=x, y=y)
    bomb = bytearray((folder / "bomb.npz").read_bytes())
    place = bomb.find(b"PK\1\2")
    while place >= 0:  # the size that each entry of the directory declares
        bomb[place + 24 : place + 28] = struct.pack("<I", 0xFFFFFFF0)
        place = bomb.find(b"PK\1\2", place + 4)
    (folder / "bomb.npz").write_bytes(bomb)
    assert sum(member.file_size for member in zipfile.ZipFile(folder / "bomb.npz").infolist()) > 8e9
    (folder / "noise.bin").write_bytes(bytes(range(256)) * 3)
    (folder / "no_images" / "class").mkdir(parents=True)
    (folder / "no_images" / "class" / "readme.txt").write_text("no picture")
    for name in ("first", "second"):
        (folder / "broken_images" / name).mkdir(parents=True)
        (folder / "broken_images" / name / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n and no more")


def write_models(folder: Path, command: Run) -> None:
    good = folder / "good.safetensors"
    code, _, err = command("train", folder / "good.csv", "--target", "y", "--hidden", 4, "--epochs", 1, "--out", good)
    assert (code, err) == (0, "")
    content = good.read_bytes()
    (folder / "truncated.safetensors").write_bytes(content[:-100])
    (folder / "tampered.safetensors").write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    (folder / "empty.safetensors").write_bytes(b"")
    (folder / "folder.safetensors").mkdir()
    save_file({"weight": torch.zeros(2, 2)}, folder / "foreign.safetensors")
    torch.save({"weight": torch.zeros(2, 2)}, folder / "pickle.safetensors")
    save(torch.nn.Linear(2, 2), folder / "own.safetensors")
    save(mlp([2, 2]), folder / "bare.safetensors")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, command: Run) -> Path:
    made = tmp_path_factory.mktemp("input")
    write_tables(made)
    write_arrays(made)
    write_models(made, command)
    return made


def contents(*folders: Path) -> dict[Path, bytes | None]:
    paths = [path for place in folders for path in sorted(place.rglob("*"))]
    return {path: path.read_bytes() if path.is_file() else None for path in paths}


def refused(run: Run, words: list[str], said: str) -> None:
    code, out, err = run(*words)
    assert code == 2, err
    assert out == ""
    assert err.startswith("topiarist: ") and err.endswith("\n") and err.count("\n") == 1, err
    assert "Traceback" not in err
    assert said in err


@pytest.mark.slow
@pytest.mark.parametrize(("call", "said"), [*OPTIONS, *DATA, *OUT, *MODELS])
def test_wrong_input_is_one_line(
    command: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOPIARIST_CACHE", str(tmp_path / "cache"))
    words = shlex.split(call.format(d=folder, o=tmp_path))
    if words[0] == "train" and "--out" not in words:
        words[1:1] = ["--out", str(tmp_path / "m.safetensors")]
    before = contents(folder, tmp_path)
    refused(command, words, said)
    assert contents(folder, tmp_path) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("train digits --nonsense", "No such option"),
        ("train {d}/good.csv --target z --out {o}/m.safetensors", "--target z is not a column"),
        ("predict {d}/good.safetensors {d}/column.csv", "missing: b"),
    ],
)
def test_the_installed_command_says_the_same(
    installed: Run, folder: Path, tmp_path: Path, call: str, said: str
) -> None:
    before = contents(folder, tmp_path)
    refused(installed, shlex.split(call.format(d=folder, o=tmp_path)), said)
    assert contents(folder, tmp_path) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind root")
def test_a_folder_that_is_read_only_is_refused(command: Run, tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    refused(command, ["train", "iris", "--out", str(tmp_path / "m.safetensors")], "cannot be written to")
    tmp_path.chmod(0o700)


def test_a_folder_that_the_system_denies_is_refused(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)
    refused(command, ["train", "iris", "--out", str(tmp_path / "m.safetensors")], f"{tmp_path} cannot be written to")
    assert not list(tmp_path.iterdir())


def test_a_damaged_checkpoint_is_named(command: Run, tmp_path: Path) -> None:
    (tmp_path / "m.safetensors.checkpoint").write_bytes(b"half")
    words = ["train", "iris", "--epochs", "1", "--out", str(tmp_path / "m.safetensors")]
    refused(command, words, f"cannot read {tmp_path / 'm.safetensors.checkpoint'}: ")
    assert [path.name for path in tmp_path.iterdir()] == ["m.safetensors.checkpoint"]
