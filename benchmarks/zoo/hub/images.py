"""Networks that see: classifiers, segmentation, and one that compares images with texts."""

from typing import Any

import torch
from torch import Tensor

from benchmarks.zoo.catalogue import Made, words
from benchmarks.zoo.hub.building import CATALOGUE, CLASSES, build

PATCHES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "image_size": 16,
    "patch_size": 4,
    "num_labels": CLASSES,
}


def image(size: int) -> Tensor:
    """Return two random images."""
    return torch.randn(2, 3, size, size)


@CATALOGUE.add
def hf_vit() -> Made:
    """Return a vision transformer."""
    return build("ViTForImageClassification", "ViTConfig", **PATCHES), image(16)


@CATALOGUE.add
def hf_deit() -> Made:
    """Return DeiT with its two heads, one for the class token and one for the distillation token."""
    return build("DeiTForImageClassificationWithTeacher", "DeiTConfig", **PATCHES), {"pixel_values": image(16)}


@CATALOGUE.add
def hf_beit() -> Made:
    """Return BEiT with relative positions and layer scales."""
    return build("BeitForImageClassification", "BeitConfig", use_relative_position_bias=True, **PATCHES), image(16)


@CATALOGUE.add
def hf_dinov2() -> Made:
    """Return DINOv2, classifying from the class token and the mean of the patches."""
    settings = {name: size for name, size in PATCHES.items() if name != "intermediate_size"}
    return build("Dinov2ForImageClassification", "Dinov2Config", mlp_ratio=2, **settings), image(16)


@CATALOGUE.add
def hf_swin() -> Made:
    """Return Swin: shifted windows, merged patches, relative positions."""
    sizes = {"embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 4}
    model = build("SwinForImageClassification", "SwinConfig", image_size=32, patch_size=2, num_labels=CLASSES, **sizes)
    return model, image(32)


@CATALOGUE.add
def hf_convnext() -> Made:
    """Return ConvNeXt: depthwise convolutions, channels last, layer scales."""
    sizes = {"hidden_sizes": [8, 12, 16, 24], "depths": [1, 1, 2, 1]}
    model = build("ConvNextForImageClassification", "ConvNextConfig", num_labels=CLASSES, image_size=64, **sizes)
    return model, image(64)


@CATALOGUE.add
def hf_convnextv2() -> Made:
    """Return ConvNeXt V2 with global response normalisation."""
    sizes = {"hidden_sizes": [8, 12, 16, 24], "depths": [1, 1, 2, 1]}
    model = build("ConvNextV2ForImageClassification", "ConvNextV2Config", num_labels=CLASSES, image_size=64, **sizes)
    return model, image(64)


@CATALOGUE.add
def hf_segformer() -> Made:
    """Return SegFormer: attention to a reduced image, and a head that joins four levels."""
    sizes = {
        "hidden_sizes": [8, 16, 24, 32],
        "depths": [1, 1, 1, 1],
        "num_attention_heads": [1, 2, 2, 4],
        "mlp_ratios": [2, 2, 2, 2],
        "decoder_hidden_size": 24,
    }
    return build("SegformerForSemanticSegmentation", "SegformerConfig", num_labels=CLASSES, **sizes), image(64)


@CATALOGUE.add
def hf_resnet() -> Made:
    """Return a residual network with bottlenecks."""
    sizes = {"embedding_size": 16, "hidden_sizes": [32, 48, 64], "depths": [1, 2, 1]}
    return build("ResNetForImageClassification", "ResNetConfig", num_labels=CLASSES, **sizes), image(32)


@CATALOGUE.add
def hf_regnet() -> Made:
    """Return RegNet-Y: grouped convolutions with squeeze and excite."""
    sizes = {"embedding_size": 16, "hidden_sizes": [16, 32, 48], "depths": [1, 2, 1], "groups_width": 8}
    model = build("RegNetForImageClassification", "RegNetConfig", num_labels=CLASSES, layer_type="y", **sizes)
    return model, image(32)


@CATALOGUE.add
def hf_mobilenet_v2() -> Made:
    """Return MobileNetV2, a third as wide."""
    sizes = {"depth_multiplier": 0.35, "image_size": 64}
    return build("MobileNetV2ForImageClassification", "MobileNetV2Config", num_labels=CLASSES, **sizes), image(64)


@CATALOGUE.add
def hf_mobilevit() -> Made:
    """Return MobileViT: inverted bottlenecks, and attention between unfolded patches."""
    sizes = {"hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 12, 16, 16, 24, 32, 64], "image_size": 64}
    model = build(
        "MobileViTForImageClassification",
        "MobileViTConfig",
        num_labels=CLASSES,
        num_attention_heads=2,
        expand_ratio=2.0,
        **sizes,
    )
    return model, image(64)


@CATALOGUE.add
def hf_yolos() -> Made:
    """Return YOLOS, which finds objects with tokens of their own."""
    settings = {**PATCHES, "image_size": [32, 32], "patch_size": 8, "num_detection_tokens": 6}
    return build("YolosForObjectDetection", "YolosConfig", **settings), image(32)


@CATALOGUE.add
def hf_clip() -> Made:
    """Return CLIP, which compares images with texts."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    special = {"bos_token_id": 57, "eos_token_id": 59, "pad_token_id": 58}
    read = {**sizes, **special, "vocab_size": 60, "max_position_embeddings": 16, "projection_dim": 24}
    seen = {**sizes, "image_size": 16, "patch_size": 4, "projection_dim": 24}
    model = build("CLIPModel", "CLIPConfig", text_config=read, vision_config=seen, projection_dim=24)
    return model, {"input_ids": words(2, 7, 59), "pixel_values": image(16)}
