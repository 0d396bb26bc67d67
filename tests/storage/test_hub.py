"""Networks from a Hugging Face folder: the same weights and answers, or one line about what is wrong."""

import io
import json
import logging
import socket
from collections.abc import Callable
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from tests.storage.hub_networks import NETWORKS, make_network, refused, write_folder
from topiarist.errors import TopiaristWarning
from topiarist.storage.hub import hub_example, load_folder
from topiarist.storage.hub.files import INDEX, WEIGHTS


def same(one: nn.Module, other: nn.Module) -> bool:
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(
        value.dtype == second[name].dtype and torch.equal(value, second[name]) for name, value in first.items()
    )


@pytest.fixture(scope="module")
def transformers() -> Any:
    return pytest.importorskip("transformers")


@pytest.fixture
def bert(transformers: Any, tmp_path: Path) -> Path:
    return write_folder(make_network(transformers, "bert"), tmp_path / "bert")


def change_config(folder: Path, **settings: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    return folder


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> Path:
    tensors = load_file(folder / WEIGHTS)
    change(tensors)
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_a_folder_gives_the_network_that_was_saved(transformers: Any, tmp_path: Path, name: str) -> None:
    network = make_network(transformers, name)
    loaded = load_folder(write_folder(network, tmp_path))
    assert type(loaded) is type(network) and not loaded.training and same(loaded, network)
    example = hub_example(loaded)
    network.set_attn_implementation("eager")  # type: ignore[operator]
    with torch.no_grad():
        before, after = network(**example), loaded(**example)
    assert torch.equal(before[0], after[0])


@pytest.mark.slow
def test_tied_weights_stay_tied(bert: Path) -> None:
    loaded: Any = load_folder(bert)
    assert loaded.cls.predictions.decoder.weight is loaded.bert.embeddings.word_embeddings.weight


@pytest.mark.slow
def test_shards_are_read_with_their_index_and_without(transformers: Any, tmp_path: Path) -> None:
    network = make_network(transformers, "vit")
    folder = write_folder(network, tmp_path, max_shard_size="8KB")
    assert (folder / INDEX).exists() and len(list(folder.glob("*.safetensors"))) > 1
    assert same(load_folder(folder), network)
    (folder / INDEX).unlink()
    assert same(load_folder(folder), network)
    shard = min(folder.glob("*.safetensors"))
    save_file(load_file(shard), folder / "again.safetensors")
    refused(folder, " and in another file too")


def test_a_lost_shard_is_missed(transformers: Any, tmp_path: Path) -> None:
    folder = write_folder(make_network(transformers, "vit"), tmp_path, max_shard_size="8KB")
    lost = max(folder.glob("*.safetensors"))
    lost.unlink()
    refused(folder, f"'{lost.name}', which is not there")
    (folder / INDEX).unlink()
    refused(folder, "the weights do not fit ViTForImageClassification: its files lack '")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_the_type_of_the_weights_is_kept(transformers: Any, tmp_path: Path, dtype: torch.dtype) -> None:
    network = make_network(transformers, "vit").to(dtype)
    loaded = load_folder(write_folder(network, tmp_path))
    assert same(loaded, network) and hub_example(loaded)["pixel_values"].dtype == dtype


def test_names_of_older_versions_are_understood(transformers: Any, bert: Path) -> None:
    def rename(tensors: dict[str, torch.Tensor]) -> None:
        for name in [name for name in tensors if "LayerNorm" in name]:
            old = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
            tensors[old] = tensors.pop(name)

    assert same(load_folder(change_weights(bert, rename)), make_network(transformers, "bert"))


def test_pickles_beside_the_weights_are_left_alone(transformers: Any, bert: Path) -> None:
    (bert / "pytorch_model.bin").write_bytes(b"\x80\x04not a pickle")
    (bert / "training_args.bin").write_bytes(b"")
    assert same(load_folder(bert), make_network(transformers, "bert"))


# Nothing of the folder runs, nothing is fetched, nothing else is touched.


def test_neither_code_nor_a_network_is_used(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = bert / "it ran"
    code = f"import pathlib\npathlib.Path({str(trace)!r}).touch()\n"
    for name in ("modeling_bert.py", "configuration_bert.py", "__init__.py", "custom_generate/generate.py"):
        (bert / name).parent.mkdir(exist_ok=True)
        (bert / name).write_text(code)

    def connected(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("a connection was asked for")

    monkeypatch.setattr(socket.socket, "connect", connected)
    monkeypatch.setattr(socket, "getaddrinfo", connected)
    (bert / "adapter_config.json").write_text(json.dumps({"base_model_name_or_path": "someone/else"}))
    load_folder(change_config(bert, _name_or_path="someone/else", transformers_weights="../other.safetensors"))
    assert not trace.exists()


def test_kernels_of_others_are_not_used(bert: Path) -> None:
    loaded: Any = load_folder(change_config(bert, attn_implementation="kernels-community/flash-attn"))
    assert loaded.config._attn_implementation == "eager"


def test_requests_are_refused_while_a_folder_is_read(
    transformers: Any, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    constants: Any = pytest.importorskip("huggingface_hub.constants")
    seen = []
    build = transformers.BertForMaskedLM.__init__

    def watched(self: Any, *args: Any, **kwargs: Any) -> None:
        seen.append(constants.is_offline_mode())
        build(self, *args, **kwargs)

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(transformers.BertForMaskedLM, "__init__", watched)
    load_folder(bert)
    assert seen and all(seen) and not constants.is_offline_mode()


def test_reading_is_silent_and_leaves_no_trace(
    transformers: Any, bert: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before, level = torch.get_rng_state(), transformers.logging.get_verbosity()
    files = {path.name: path.read_bytes() for path in bert.iterdir()}
    load_folder(bert)
    assert torch.equal(torch.get_rng_state(), before)
    assert transformers.logging.get_verbosity() == level and logging.root.manager.disable == logging.NOTSET
    assert tuple(capfd.readouterr()) == ("", "")
    assert {path.name: path.read_bytes() for path in bert.iterdir()} == files


# What does not fit together.


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"architectures": ["BertForEverything"]}, "has no network 'BertForEverything'"),
        ({"architectures": ["pipeline"]}, "has no network 'pipeline'"),
        ({"architectures": ["BertConfig"]}, "has no network 'BertConfig'"),
        ({"architectures": ["__class__"]}, "has no network '__class__'"),
        ({"architectures": ["PreTrainedModel"]}, "'PreTrainedModel' is no network of its own"),
        ({"architectures": ["BertPreTrainedModel"]}, "'BertPreTrainedModel' is no network of its own"),
        ({"architectures": []}, "names no class in 'architectures'"),
        ({"architectures": None}, "names no class in 'architectures'"),
        ({"architectures": "BertModel"}, "names no class in 'architectures'"),
        ({"architectures": [3]}, "names no class in 'architectures'"),
        ({"architectures": ["GPT2LMHeadModel"]}, "the weights do not fit GPT2LMHeadModel: its files lack '"),
        ({"architectures": ["BertForSequenceClassification"]}, "its files lack 'bert.pooler.dense.bias' and 3 more"),
        ({"hidden_size": "many"}, "transformers refuses it as BertForMaskedLM: "),
        ({"num_attention_heads": 3}, "transformers refuses it as BertForMaskedLM: "),
        ({"num_hidden_layers": 3}, "its files lack 'bert.encoder.layer.2."),
        ({"intermediate_size": 25}, "(24,) in its files, (25,) in its config.json"),
        ({"vocab_size": 10**9}, " parameters, and its files hold 5,458 numbers"),
    ],
)
def test_a_configuration_that_the_weights_do_not_fit_is_refused(
    bert: Path, settings: dict[str, Any], said: str
) -> None:
    refused(change_config(bert, **settings), said)


def test_missing_and_misshapen_tensors_are_named(bert: Path) -> None:
    name = "bert.encoder.layer.0.attention.self.query.weight"
    whole = load_file(bert / WEIGHTS)
    change_weights(bert, lambda tensors: tensors.update({name: torch.zeros(16, 8)}))
    refused(bert, f"'{name}' is (16, 8) in its files, (16, 16) in its config.json")
    save_file({key: value for key, value in whole.items() if key != name}, bert / WEIGHTS)
    refused(bert, f"its files lack '{name}'")


def test_tensors_that_are_not_used_are_mentioned(transformers: Any, bert: Path) -> None:
    change_weights(bert, lambda tensors: tensors.update({"extra.a": torch.zeros(2), "extra.b": torch.zeros(2)}))
    with pytest.warns(TopiaristWarning, match=r"BertForMaskedLM does not use 'extra\.a' and 1 more of the files"):
        loaded = load_folder(bert)
    assert same(loaded, make_network(transformers, "bert"))


@pytest.mark.parametrize("kept", [0, 5, 200, -1])
def test_damaged_weights_are_refused(bert: Path, kept: int) -> None:
    content = (bert / WEIGHTS).read_bytes()
    (bert / WEIGHTS).write_bytes(content[:kept])
    refused(bert, f"{WEIGHTS} is not a whole .safetensors file (")


def test_weights_without_tensors_are_refused(bert: Path) -> None:
    save_file({}, bert / WEIGHTS)
    refused(bert, f"{WEIGHTS} holds no tensors")


@pytest.mark.slow
def test_a_network_that_was_cut_is_saved_and_loaded_into_a_fresh_one(transformers: Any, tmp_path: Path) -> None:
    from topiarist import anatomy, load, save, surgery

    network = load_folder(write_folder(make_network(transformers, "efficientnet"), tmp_path / "folder"))
    example = hub_example(network)
    space = next(iter(anatomy(network, example).free))
    cut = surgery.remove(network, example, units={space: [0]})
    path = save(cut, tmp_path / "cut.safetensors")
    again = load(path, into=load_folder(tmp_path / "folder"))
    with torch.no_grad(), redirect_stderr(io.StringIO()):
        assert torch.equal(again(**example).logits, cut.eval()(**example).logits)
