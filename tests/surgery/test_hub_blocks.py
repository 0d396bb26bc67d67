"""Layers of the hub's models are removed as blocks; what is left reads on from its cache."""

from typing import Any

import pytest
import torch
from torch import nn

from topiarist import load, save, surgery
from topiarist.randomness import isolated

pytestmark = pytest.mark.slow
TEXT = {"vocab_size": 50, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 24}
IMAGE = {**{key: value for key, value in TEXT.items() if key != "vocab_size"}, "image_size": 16, "patch_size": 8}
WORDS = torch.tensor([[3, 7, 1, 9, 4], [8, 2, 2, 6, 5]])


@pytest.fixture(scope="module")
def transformers() -> Any:
    return pytest.importorskip("transformers")


def made(transformers: Any, name: str, seed: int = 0) -> tuple[nn.Module, Any, list[str]]:
    """Return a small model, an example, and the names of its layers."""
    with isolated(seed):
        match name:
            case "vit":
                model = transformers.ViTForImageClassification(transformers.ViTConfig(**IMAGE))
                example: Any = {"pixel_values": torch.randn(2, 3, 16, 16)}
            case "bert":
                model = transformers.BertForSequenceClassification(transformers.BertConfig(**TEXT))
                example = {"input_ids": WORDS}
            case "gpt2":
                config = transformers.GPT2Config(
                    vocab_size=50, n_embd=16, n_layer=3, n_head=2, bos_token_id=0, eos_token_id=None
                )
                model, example = transformers.GPT2LMHeadModel(config), {"input_ids": WORDS}
            case _:
                config = transformers.LlamaConfig(**TEXT, eos_token_id=None)
                model, example = transformers.LlamaForCausalLM(config), {"input_ids": WORDS}
    modules = [key for key, module in model.named_modules() if isinstance(module, nn.ModuleList) and len(module) == 3]
    return model.eval(), example, [f"{modules[0]}.{number}" for number in range(3)]


@pytest.mark.parametrize("name", ["vit", "bert", "gpt2", "llama"])
def test_layers_are_removed_saved_and_loaded(transformers: Any, name: str, tmp_path: Any) -> None:
    model, example, names = made(transformers, name)
    found = surgery.blocks(model, example)
    assert set(names) <= set(found.removable)
    kept = found[names[0]].passage.kept
    assert kept == (("output.LayerNorm",) if name == "bert" else ())
    cut = surgery.remove_block(model, example, block=[names[0], names[2]])
    loaded = load(save(cut, tmp_path / "m.safetensors"), into=made(transformers, name, 1)[0])
    with torch.no_grad():
        assert torch.equal(loaded(**example).logits, cut(**example).logits)

    def hook(block: nn.Module, args: Any, given: Any) -> Any:
        x = args[0]
        for each in kept:
            x = block.get_submodule(each)(x)
        return x if isinstance(given, torch.Tensor) else (x, *given[1:])

    for each in (names[0], names[2]):
        model.get_submodule(each).register_forward_hook(hook)
    with torch.no_grad():
        torch.testing.assert_close(cut(**example).logits, model(**example).logits)


@pytest.mark.parametrize("name", ["gpt2", "llama"])
def test_what_is_left_reads_on_from_its_cache(transformers: Any, name: str) -> None:
    model, example, names = made(transformers, name)
    cut: Any = surgery.remove_block(model, example, block=names[:2])
    with torch.no_grad():
        begun = cut(WORDS[:, :3], use_cache=True)
        rest = cut(WORDS[:, 3:], past_key_values=begun.past_key_values, use_cache=True)
        torch.testing.assert_close(rest.logits, cut(WORDS).logits[:, 3:])
