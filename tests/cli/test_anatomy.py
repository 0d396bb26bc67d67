"""`topiarist anatomy`: what it prints of code, files and folders, how examples are written, what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.cli.test_resize import as_json, contents
from tests.storage.hub_networks import make_network, write_folder
from topiarist import anatomy, load, save, surgery
from topiarist.cli.examples import ExampleTensor, make_inputs, parse_example, shown_inputs
from topiarist.errors import SettingsError

Run = Callable[..., tuple[int, str, str]]
CODE = """
import torch
from torch import nn

def plain():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3), nn.Flatten(), nn.LazyLinear(2))

def image():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 4, 3))

def double():
    return image().double()

def with_example():
    network = image()
    network.example_input = torch.zeros(2, 3, 9, 9)
    return network

class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.numbers = nn.Linear(6, 8)
        self.middle = nn.Linear(8, 7)
        self.head = nn.Linear(7, 2)

    def forward(self, tokens, values, mask=None):
        known = self.words(tokens).sum(1) if mask is None else (self.words(tokens) * mask[..., None]).sum(1)
        return self.head(torch.relu(self.middle(torch.relu(known + self.numbers(values)))))

def two():
    return Two()

def number():
    return 3

def encoder():
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2, enable_nested_tensor=False)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with code, which is the current one."""
    (tmp_path / "anatomy_networks.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_file_says_itself_what_it_reads(command: Run, digits_model: Path) -> None:
    before = contents(digits_model.parent)
    code, out, err = command("anatomy", digits_model)
    assert (code, err) == (0, "")
    network = load(digits_model)
    head, _, table = out.partition("\n\n")
    # Of 64-16-10, one hidden unit is left: it reads 64 inputs, and 10 outputs read it; both layers have biases.
    share = f"{1 - ((64 + 1) + (10 + 10)) / 1210:.1%}"
    named = f"{type(network).__name__} of {digits_model}"
    assert head == f"{named}, 1,210 parameters, of which {share} can go; example input 2x64 float32"
    assert table.strip() == str(surgery.proven(network, torch.zeros(2, 64)))
    assert contents(digits_model.parent) == before


def test_the_record_has_what_the_table_shows(command: Run, digits_model: Path) -> None:
    result = as_json(command("anatomy", digits_model, "--json"))
    network = load(digits_model)
    found = anatomy(network, torch.zeros(2, 64))
    assert (result["model"], result["network"]) == (str(digits_model), type(network).__name__)
    assert result["example"] == {"shape": [2, 64], "dtype": "float32"}
    assert list(result["spaces"]) == list(found.spaces) and result["not_understood"] == []
    for name, space in found.spaces.items():
        shown = result["spaces"][name]
        assert (shown["units"], shown["fixed"]) == (space.size, space.reason)
        layers = ("written_by", space.producers), ("passes_through", space.passes), ("read_by", space.consumers)
        assert all(shown[role] == [place.name for place in places] for role, places in layers)
    assert result["spaces"]["hidden0"]["read_by"] == ["output"]
    assert (result["parameters"], result["removable"]) == (1210, 1210 - (64 + 1) - (10 + 10))
    # With one hidden unit, the input holds all weights but one per unit, the output all weights and biases but one.
    assert list(result["held"].values()) == [64 - 1, 2 * (10 - 1)]


def test_code_is_shown_with_an_example(command: Run, here: Path) -> None:
    words = ("anatomy", "anatomy_networks:image", "--example", "3x9x9")
    code, out, err = command(*words)
    assert (code, err) == (0, "")
    assert out.startswith("Sequential of anatomy_networks:image, 516 parameters, of which ")
    assert "example input 2x3x9x9 float32\n\nspace " in out
    assert as_json(command(*words, "--json"))["spaces"]["0"]["units"] == 8


def test_residual_blocks_are_listed_below(command: Run, here: Path) -> None:
    words = ("anatomy", "anatomy_networks:encoder", "--example", "5x8", "--no-proof")
    lines = command(*words)[1].splitlines()
    start = lines.index("Residual blocks:")
    assert [line.split()[0] for line in lines[start + 1 :]] == ["block", "layers.0", "layers.1"]
    found = as_json(command(*words, "--json"))["blocks"]
    assert [(each["name"], each["kept"], each["reason"]) for each in found] == [
        ("layers.0", ["norm2"], None),
        ("layers.1", ["norm2"], None),
    ]


def test_an_example_of_its_own_is_used_and_gives_way_to_the_option(command: Run, here: Path) -> None:
    words = ("anatomy", "anatomy_networks:with_example", "--json")
    assert as_json(command(*words))["example"]["shape"] == [2, 3, 9, 9]
    assert as_json(command(*words, "--example", "3x5x5"))["example"]["shape"] == [2, 3, 5, 5]


def test_several_inputs_come_in_a_row_or_by_name(command: Run, here: Path) -> None:
    words = ("anatomy", "anatomy_networks:two", "--json", "--example")
    row = as_json(command(*words, "5:int:20,6"))
    assert [each["dtype"] for each in row["example"]] == ["int64", "float32"]
    named = as_json(command(*words, "values=6", "--example", "tokens=5:int:20", "--example", "mask=5:ones"))
    assert {name: each["shape"] for name, each in named["example"].items()} == {
        "values": [2, 6],
        "tokens": [2, 5],
        "mask": [2, 5],
    }
    assert row["spaces"].keys() == named["spaces"].keys()


def test_numbers_have_the_type_of_the_network(command: Run, here: Path) -> None:
    code, _, err = command("anatomy", "anatomy_networks:double", "--example", "3x9x9")
    assert (code, err) == (0, "")


def test_a_cut_network_of_a_users_class_knows_its_example(command: Run, here: Path) -> None:
    example = {"tokens": torch.zeros(2, 5, dtype=torch.int64), "values": torch.zeros(2, 6)}
    namespace: dict[str, Any] = {}
    exec(CODE, namespace)
    cut = surgery.remove(namespace["two"](), example, units={"middle": [0, 1]})
    save(cut, here / "cut.safetensors")
    words = ("anatomy", here / "cut.safetensors", "--into", "anatomy_networks:two", "--json")
    result = as_json(command(*words))
    assert result["spaces"]["middle"]["units"] == 7 - 2
    assert result["example"]["tokens"] == {"shape": [2, 5], "dtype": "int64", "least": 0, "greatest": 0}


# Hugging Face folders.


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    transformers: Any = pytest.importorskip("transformers")
    return write_folder(make_network(transformers, "efficientnet"), tmp_path / "net")


@pytest.mark.slow
def test_a_hugging_face_folder_needs_no_example(command: Run, folder: Path) -> None:
    code, out, err = command("anatomy", folder)
    assert (code, err) == (0, "")
    assert out.startswith(
        f"EfficientNetForImageClassification of {folder}, 124,575 parameters, of which 99.8% can go; "
    )
    assert "example input pixel_values 2x3x32x32 float32\n" in out
    assert "\nefficientnet.encoder.blocks.1.squeeze_excite.reduce " in out  # names are whole in a pipe
    result = as_json(command("anatomy", folder, "--json"))
    assert result["spaces"]["efficientnet.encoder.top_conv"]["read_by"] == ["classifier"]
    assert 0.99 * 124_575 < result["removable"] < 124_575


@pytest.mark.slow
def test_a_hugging_face_folder_takes_an_example(command: Run, folder: Path) -> None:
    result = as_json(command("anatomy", folder, "--example", "pixel_values=3x40x48", "--json"))
    assert result["example"] == {"pixel_values": {"shape": [2, 3, 40, 48], "dtype": "float32"}}


@pytest.mark.slow
def test_a_folder_that_is_refused_is_one_line(command: Run, folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "auto_map": {"AutoModel": "modeling.Own"}}))
    code, out, err = command("anatomy", folder)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith(f"topiarist: cannot load {folder}: its config.json asks for code of its own")


@pytest.mark.slow
def test_what_does_not_follow_from_a_folder_is_asked_for(command: Run, tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers")
    network = transformers.PatchTSTModel(transformers.PatchTSTConfig(d_model=8, num_attention_heads=2, ffn_dim=8))
    code, out, err = command("anatomy", write_folder(network, tmp_path / "net"))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "PatchTSTModel reads 'past_values', " in err and err.endswith(": name it, as in --example NAME=SHAPE\n")


# Wrong input.


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "Missing argument 'MODEL'"),
        ("anatomy_networks:image", "does not say what it reads: name the shape of a sample, as --example 3x224x224"),
        ("anatomy_networks:absent --example 3", "cannot build a network with 'anatomy_networks:absent'"),
        ("no_such_module:make --example 3", "cannot build a network with 'no_such_module:make'"),
        ("anatomy_networks:number --example 3", "must return an nn.Module; it returns int"),
        ("anatomy_networks:plain --example 3x9x9", "has no values yet: run the network on a batch first"),
        ("anatomy_networks:image --example 4x9x9", "the example input fails at '0' (Conv2d): "),
        ("anatomy_networks:two --example nonsense=6", "the example input does not fit Two.forward"),
        ("anatomy_networks:image --into anatomy_networks:image", "--into is what a model file is loaded into"),
        (". --into anatomy_networks:image", "--into is what a model file is loaded into"),
        ("google/bert_uncased", "there is no file or folder google/bert_uncased;"),
        ("absent.safetensors", "there is no file or folder absent.safetensors;"),
        ("others.safetensors", "not written by topiarist: build the module"),
        ("pickle.bin", "it looks like a pickle (torch.save), which is never read; save its state_dict as .safetensors"),
        ("pickle.pt", "it looks like a pickle (torch.save), which is never read; save its state_dict as .safetensors"),
        (".", "it has no config.json, as a Hugging Face folder has"),
        ("own.safetensors --into anatomy_networks:image", "Sequential does not say what it reads"),
        ("anatomy_networks:image --seed=-1", "'--seed': it must be greater than or equal to 0"),
    ],
)
def test_wrong_input_is_one_line(command: Run, here: Path, words: str, said: str) -> None:
    from safetensors.torch import save_file

    namespace: dict[str, Any] = {}
    exec(CODE, namespace)
    save(namespace["image"](), here / "own.safetensors")
    save_file({"weight": torch.zeros(2)}, here / "others.safetensors")
    for name in ("pickle.bin", "pickle.pt"):
        torch.save(nn.Linear(2, 2).state_dict(), here / name)
    code, out, err = command("anatomy", *words.split())
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("topiarist: ") and said in err


# How examples are written.


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3x224x224", ExampleTensor(None, (3, 224, 224))),
        ("64", ExampleTensor(None, (64,))),
        ("16:int:1000", ExampleTensor(None, (16,), "int", 1000)),
        ("input_ids=16:int:1000", ExampleTensor("input_ids", (16,), "int", 1000)),
        ("labels=4:int", ExampleTensor("labels", (4,), "int", 2)),
        ("attention_mask=16:ones", ExampleTensor("attention_mask", (16,), "ones")),
        ("mask=4x4:bool", ExampleTensor("mask", (4, 4), "bool")),
        ("pixel_values=3x8x8", ExampleTensor("pixel_values", (3, 8, 8))),
        ("step=:int:1000", ExampleTensor("step", (), "int", 1000)),
    ],
)
def test_an_input_is_read(text: str, found: ExampleTensor) -> None:
    assert parse_example([text]) == [found]


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([""], "--example is written like 3x224x224 or input_ids=16:int:1000; found ''"),
        (["3x8x8,"], "--example is written like 3x224x224"),
        (["a=b=3"], "--example is written like 3x224x224"),
        (["=3"], "--example is written like 3x224x224"),
        (["a=3:int:4:5"], "--example is written like 3x224x224"),
        (["a=3:"], "--example is written like 3x224x224"),
        (["3by4"], "--example: a shape is written like 1x8x8; found '3by4'"),
        (["0x4"], "--example: a shape is written like 1x8x8; found '0x4'"),
        (["-3"], "--example: a shape is written like 1x8x8; found '-3'"),
        (["3:text"], "is one of float, int, ones, zeros, bool; found 'text' in '3:text'"),
        (["3:float:5"], "only an input of the kind int has a limit; found '3:float:5'"),
        (["3:int:0"], "a limit is a whole number above 0; found '0' in '3:int:0'"),
        (["3:int:many"], "a limit is a whole number above 0; found 'many' in '3:int:many'"),
        (["3:int:" + "9" * 5000], "a limit is a whole number above 0"),
        (["3:int:9999999999999999999"], "a limit is a whole number above 0"),
        (["100000x100000"], "--example: an input has at most 67,108,864 elements; found '100000x100000'"),
        (["a=3", "4"], "--example: name all inputs or none; found a=3, 4"),
        (["a=3,a=4"], "--example names 'a' twice"),
    ],
)
def test_what_cannot_be_read_is_refused(texts: list[str], said: str) -> None:
    with pytest.raises(SettingsError) as caught:
        parse_example(texts)
    assert said in str(caught.value)


def test_tensors_are_of_the_kind_asked_for() -> None:
    texts = ["a=3", "b=50:int:7", "c=2:ones", "d=2:zeros", "e=2:bool", "f=:int:9", "g=50:int"]
    made = make_inputs(parse_example(texts), seed=0)
    assert isinstance(made, dict)
    assert made["a"].dtype == torch.float32 and made["a"].shape == (2, 3)
    assert set(made["b"].flatten().tolist()) == set(range(7)) and set(made["g"].flatten().tolist()) == {0, 1}
    assert made["c"].tolist() == [[1, 1], [1, 1]] and made["d"].tolist() == [[0, 0], [0, 0]]
    assert made["e"].dtype == torch.bool and made["e"].all() and made["f"].shape == (2,)
    assert shown_inputs(made).startswith("a 2x3 float32, b 2x50 int64, c 2x2 int64, ")


def test_the_same_seed_makes_the_same_tensors() -> None:
    made: list[Any] = [make_inputs(parse_example(["4,4"]), seed=seed) for seed in (1, 1, 2)]
    first, again, other = made
    assert isinstance(first, list) and len(first) == 2 and not torch.equal(first[0], first[1])
    assert torch.equal(first[0], again[0]) and not torch.equal(first[0], other[0])
