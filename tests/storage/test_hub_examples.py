"""Example inputs of transformers' networks: in the sizes of their configurations, and such that the networks run."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.storage.hub_networks import IMAGE, NETWORKS, TEXT, make_network
from topiarist.errors import ModelError
from topiarist.storage.hub import hub_example, is_of_hub

SHAPES = {
    "bert": {"input_ids": (2, 16)},
    "roberta": {"input_ids": (2, 8)},  # of ten positions, two are not for tokens
    "gpt2": {"input_ids": (2, 16)},
    "t5": {"input_ids": (2, 16), "decoder_input_ids": (2, 16)},
    "bart": {"input_ids": (2, 16), "decoder_input_ids": (2, 16)},
    "vit": {"pixel_values": (2, 1, 16, 16)},
    "videomae": {"pixel_values": (2, 4, 3, 16, 16)},
    "resnet": {"pixel_values": (2, 3, 224, 224)},
    "efficientnet": {"pixel_values": (2, 3, 32, 32)},
    "wav2vec2": {"input_values": (2, 16_000)},
    "spectrograms": {"input_values": (2, 32, 24)},
    "whisper": {"input_features": (2, 8, 24), "decoder_input_ids": (2, 16)},
    "clip": {"input_ids": (2, 16), "pixel_values": (2, 3, 16, 16)},
}


@pytest.fixture(scope="module")
def transformers() -> Any:
    return pytest.importorskip("transformers")


def shapes(example: dict[str, Tensor]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in example.items()}


def test_every_network_has_its_shapes() -> None:
    assert SHAPES.keys() == NETWORKS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_the_example_has_the_sizes_of_the_configuration_and_runs(transformers: Any, name: str) -> None:
    network = make_network(transformers, name)
    example = hub_example(network)
    assert is_of_hub(network) and shapes(example) == SHAPES[name]
    with torch.no_grad():
        assert network(**example)[0].isfinite().all()


def test_the_same_seed_gives_the_same_example(transformers: Any) -> None:
    network = make_network(transformers, "clip")
    first, again, other = hub_example(network, seed=3), hub_example(network, seed=3), hub_example(network, seed=4)
    for name, value in first.items():
        assert torch.equal(value, again[name]) and not torch.equal(value, other[name])


def test_tokens_are_pieces_of_text_with_an_end(transformers: Any) -> None:
    for name, end in {"bart": 2, "gpt2": 49, "clip": 49}.items():
        tokens = hub_example(make_network(transformers, name))["input_ids"]
        assert (tokens[:, -1] == end).all() and (tokens >= 0).all() and (tokens < 50).all()
        assert not torch.isin(tokens[:, :-1], torch.tensor([0, 1, 2] if name == "bart" else [end])).any()


def test_an_end_outside_the_vocabulary_is_not_used(transformers: Any) -> None:
    config = transformers.LlamaConfig(**TEXT, eos_token_id=[7, 5])
    assert (hub_example(transformers.LlamaModel(config))["input_ids"][:, -1] == 7).all()
    config.eos_token_id = 100
    assert (hub_example(transformers.LlamaModel(config))["input_ids"] < 50).all()


def test_text_with_images_in_it_is_given_as_text_alone(transformers: Any) -> None:
    config = transformers.LlavaConfig(
        text_config={**TEXT, "model_type": "llama"},
        vision_config={**IMAGE, "model_type": "clip_vision_model", "image_size": 16, "patch_size": 8},
        image_token_index=9,
    )
    network = transformers.LlavaForConditionalGeneration(config).eval()
    example = hub_example(network)
    assert shapes(example) == {"input_ids": (2, 16)} and 9 not in example["input_ids"]
    with torch.no_grad():
        assert network(**example).logits.shape == (2, 16, 50)


@pytest.mark.parametrize(("size", "sides"), [([16, 32], (16, 32)), ((8, 24), (8, 24)), (24, (24, 24))])
def test_an_image_need_not_be_square(transformers: Any, size: Any, sides: tuple[int, int]) -> None:
    network = transformers.ViTModel(transformers.ViTConfig(**IMAGE, image_size=size, patch_size=8))
    assert shapes(hub_example(network)) == {"pixel_values": (2, 3, *sides)}


def test_what_does_not_follow_from_the_configuration_is_refused(transformers: Any) -> None:
    network = transformers.PatchTSTModel(transformers.PatchTSTConfig(d_model=8, num_attention_heads=2, ffn_dim=8))
    with pytest.raises(ModelError, match="PatchTSTModel reads 'past_values', whose shape does not follow from"):
        hub_example(network)


def test_other_networks_are_not_of_the_hub() -> None:
    assert not is_of_hub(nn.Linear(2, 2))
