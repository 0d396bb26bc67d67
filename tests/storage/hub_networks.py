"""Small networks of transformers with random weights, as folders; for tests that have the package."""

import io
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from topiarist.errors import ModelError
from topiarist.randomness import isolated
from topiarist.storage.hub import load_folder

TEXT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "vocab_size": 50}
IMAGE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
WIDTHS = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "vocab_size": 50}
HEADS = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24}
ENDS = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
CONVOLUTIONS = {"conv_dim": (8, 8), "conv_stride": (5, 2), "conv_kernel": (10, 3), "num_feat_extract_layers": 2}

# The class, its configuration, and the settings of that.
NETWORKS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("BertForMaskedLM", "BertConfig", {**TEXT, "max_position_embeddings": 20}),
    "roberta": (
        "RobertaForSequenceClassification",
        "RobertaConfig",
        {**TEXT, "max_position_embeddings": 10, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2},
    ),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {"n_embd": 16, "n_layer": 2, "n_head": 2, "vocab_size": 50, "bos_token_id": 49, "eos_token_id": 49},
    ),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, "vocab_size": 50},
    ),
    "bart": ("BartForSequenceClassification", "BartConfig", {**WIDTHS, **HEADS, **ENDS}),
    "vit": ("ViTForImageClassification", "ViTConfig", {**IMAGE, "image_size": 16, "patch_size": 4, "num_channels": 1}),
    "videomae": (
        "VideoMAEForVideoClassification",
        "VideoMAEConfig",
        {**IMAGE, "image_size": 16, "patch_size": 8, "num_frames": 4},
    ),
    "resnet": (
        "ResNetForImageClassification",
        "ResNetConfig",
        {"embedding_size": 4, "hidden_sizes": [4, 8], "depths": [1, 1], "layer_type": "basic", "num_labels": 3},
    ),
    "efficientnet": (
        "EfficientNetForImageClassification",
        "EfficientNetConfig",
        {"image_size": 32, "width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 320, "num_labels": 3},
    ),
    "wav2vec2": (
        "Wav2Vec2ForCTC",
        "Wav2Vec2Config",
        {**TEXT, **CONVOLUTIONS, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 2},
    ),
    "spectrograms": (
        "ASTForAudioClassification",
        "ASTConfig",
        {**IMAGE, "max_length": 32, "num_mel_bins": 24, "patch_size": 8, "frequency_stride": 8, "time_stride": 8},
    ),
    "whisper": (
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {**WIDTHS, **HEADS, **ENDS, "num_mel_bins": 8, "max_source_positions": 12, "max_target_positions": 24},
    ),
    "clip": (
        "CLIPModel",
        "CLIPConfig",
        {
            "text_config": {**TEXT, "eos_token_id": 49, "bos_token_id": 48, "pad_token_id": 49},
            "vision_config": {**IMAGE, "image_size": 16, "patch_size": 8},
            "projection_dim": 8,
        },
    ),
}


def make_network(transformers: Any, name: str) -> nn.Module:
    """Build a network, with weights that do not depend on other tests."""
    kind, config, settings = NETWORKS[name]
    with isolated(0), redirect_stderr(io.StringIO()):
        network: nn.Module = getattr(transformers, kind)(getattr(transformers, config)(**settings))
    return network.eval()


def write_folder(network: nn.Module, folder: Path, **how: Any) -> Path:
    """Save a network as transformers does, without its bars on standard error."""
    with redirect_stderr(io.StringIO()):
        network.save_pretrained(folder, **how)  # type: ignore[operator]
    return folder


def refused(folder: Path, *said: str) -> None:
    """Check that a folder is refused in one line that begins with its path and has some words."""
    with pytest.raises(ModelError) as caught:
        load_folder(folder)
    text = str(caught.value)
    assert text.startswith(f"cannot load {folder}: ") and "\n" not in text
    assert all(part in text for part in said), text
