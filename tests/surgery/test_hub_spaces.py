"""Heads, their dims, inner widths and the residual stream of the hub's models: each is cut by itself, and proven."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from topiarist import anatomy, surgery
from topiarist.randomness import isolated

pytestmark = pytest.mark.slow
TEXT = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
IMAGE = {**{key: value for key, value in TEXT.items() if key != "vocab_size"}, "image_size": 32, "patch_size": 8}
WORDS = torch.tensor([[3, 7, 1, 9, 4], [8, 2, 2, 6, 5]])
Family = Callable[[Any], nn.Module]
# What makes a model, its example, and the ends of the names of heads, dims, an inner width and the stream.
FAMILIES: dict[str, tuple[Family, dict[str, Any], tuple[str, str, str, str]]] = {
    "vit": (
        lambda hub: hub.ViTForImageClassification(hub.ViTConfig(**IMAGE)),
        {"pixel_values": torch.zeros(2, 3, 32, 32)},
        (":heads", ":dims", "mlp.fc1", "patch_embeddings.projection"),
    ),
    "bert": (
        lambda hub: hub.BertForSequenceClassification(hub.BertConfig(**TEXT)),
        {"input_ids": WORDS},
        (":heads", ":dims", "intermediate.dense", "word_embeddings"),
    ),
    "gpt2": (
        lambda hub: hub.GPT2LMHeadModel(
            hub.GPT2Config(vocab_size=60, n_embd=32, n_layer=2, n_head=4, bos_token_id=0, eos_token_id=None)
        ),
        {"input_ids": WORDS},
        (":heads", ":dims", "mlp.c_fc", "wpe"),
    ),
    "llama": (
        lambda hub: hub.LlamaForCausalLM(hub.LlamaConfig(**TEXT, num_key_value_heads=2, eos_token_id=None)),
        {"input_ids": WORDS},
        (":heads", ":dims", "mlp.gate_proj", "embed_tokens"),
    ),
    "swin": (
        lambda hub: hub.SwinForImageClassification(
            hub.SwinConfig(image_size=32, patch_size=2, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)
        ),
        {"pixel_values": torch.zeros(2, 3, 32, 32)},
        (":heads", ":dims", "mlp.fc1", "downsample.reduction"),
    ),
    "t5": (
        lambda hub: hub.T5ForConditionalGeneration(
            hub.T5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)
        ),
        {"input_ids": WORDS, "decoder_input_ids": WORDS},
        (":heads", ":dims", "DenseReluDense.wi", "SelfAttention.o"),
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_kind_of_space_is_cut_and_proven(family: str) -> None:
    hub = pytest.importorskip("transformers")
    make, example, kinds = FAMILIES[family]
    with isolated(0):
        model = make(hub).eval()
    found = anatomy(model, example)
    before = sum(parameter.numel() for parameter in model.parameters())
    for kind in kinds:
        name = next(name for name in found.free if name.endswith(kind))
        units = {name: range(1, found[name].size, 2)}
        cut = surgery.remove(model, example, units=units, anatomy=found)  # raises where the proof does not hold
        assert sum(parameter.numel() for parameter in cut.parameters()) < before
        with torch.no_grad():
            assert cut(**example).logits.shape == model(**example).logits.shape
