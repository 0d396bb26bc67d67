"""Example inputs for networks of transformers, in the sizes that their configurations name.

What a network reads follows from the arguments of its forward: tokens for `input_ids`, an image for `pixel_values`, a
wave form or a spectrogram for `input_values` and `input_features`, and tokens for the decoder of an encoder-decoder.
"""

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.models.evaluation import numbers_of, placed
from topiarist.randomness import generator

SAMPLES = 2  # a batch of one would hide what depends on the number of samples
TOKENS = 16  # enough for every kind of attention to have something to attend to
IMAGE_SIZE, CHANNELS = 224, 3  # where the configuration names none: such networks read images of any size
SOUND = 16_000  # one second at the sampling rate of nearly all networks that read wave forms
FRAMES = 100  # one second of a spectrogram, where the configuration does not say how long it is
RESERVED_POSITIONS = 2  # RoBERTa and its kin count positions from 2 on

# The configurations of parts, in which a setting is looked for after the network's own.
OF_TEXT = ("text_config", "text_encoder", "encoder", "decoder")
OF_DECODER = ("decoder", "text_config")
OF_IMAGE = ("vision_config", "encoder", "backbone_config")
OF_SOUND = ("audio_config", "audio_encoder", "encoder")
PLACEHOLDERS = ("image_token_id", "image_token_index", "audio_token_id", "audio_token_index")


def is_of_hub(network: nn.Module) -> bool:
    """Return whether a network is one of transformers, from a folder or built by code."""
    return isinstance(getattr(network, "main_input_name", None), str) and hasattr(network, "config")


def hub_example(network: nn.Module, *, seed: int = 0) -> dict[str, Tensor]:
    """Return an example input by name: a batch of two samples of what the network's forward reads.

    A network that reads text with images or sounds in it gets text alone.

    Parameters
    ----------
    network
        A network of transformers.
    seed
        Of the tokens and the numbers.

    Raises
    ------
    ModelError
        If the network reads something else, or its configuration does not say how large that is.
    """
    config, reads = network.config, inspect.signature(network.forward).parameters
    random = generator(seed, "example input")
    mixed = _setting(config, PLACEHOLDERS, ()) is not None
    example: dict[str, Tensor | None] = {}
    if "input_ids" in reads:
        example["input_ids"] = _tokens(config, OF_TEXT, random)
    if "pixel_values" in reads and not mixed:
        example["pixel_values"] = _numbers(_image_shape(config), random)
    if "input_values" in reads and not mixed:
        example["input_values"] = _numbers(_sound_shape(config), random)
    if "input_features" in reads and not mixed:
        example["input_features"] = _numbers(_spectrogram_shape(config), random)
    if "decoder_input_ids" in reads and getattr(config, "is_encoder_decoder", False):
        example["decoder_input_ids"] = _tokens(config, OF_DECODER, random)
    like = numbers_of(network)
    known = {name: placed(value, like) for name, value in example.items() if value is not None}
    main = network.main_input_name  # a class may inherit a name that its own forward does not have
    lacking = [name for name in reads if name == main and name not in known]
    if lacking or not known:
        read = (lacking or list(reads))[0]
        raise ModelError(f"{type(network).__name__} reads '{read}', whose shape does not follow from its configuration")
    return known


def _setting(config: Any, names: tuple[str, ...], parts: tuple[str, ...]) -> Any:
    """Return the first setting that has a value, of the network's own configuration and then of its parts."""
    for owner in (config, *(getattr(config, part, None) for part in parts)):
        for name in names:
            if (found := getattr(owner, name, None)) is not None:
                return found
    return None


def _numbers(shape: tuple[int, ...] | None, random: torch.Generator) -> Tensor | None:
    """Return a batch of numbers from a standard normal distribution, as images and sounds are after scaling."""
    return None if shape is None else torch.randn((SAMPLES, *shape), generator=random)


def _tokens(config: Any, parts: tuple[str, ...], random: torch.Generator) -> Tensor | None:
    """Return a batch of tokens without special ones, but for the one that ends a text, where there is one."""
    size = _setting(config, ("vocab_size",), parts)
    if not isinstance(size, int) or size < 1:
        return None
    positions = _setting(config, ("max_position_embeddings", "n_positions"), parts)
    room = positions - RESERVED_POSITIONS if isinstance(positions, int) and positions > 0 else TOKENS
    length = max(1, min(TOKENS, room))
    special = _special_tokens(config, parts)
    plain = torch.tensor([token for token in range(size) if token not in special] or range(size))
    tokens = plain[torch.randint(len(plain), (SAMPLES, length), generator=random)]
    end = _setting(config, ("eos_token_id",), parts)
    end = end[0] if isinstance(end, list) and end else end
    if isinstance(end, int) and 0 <= end < size:
        tokens[:, -1] = end  # several networks classify a text by what they know at its end
    return tokens


def _special_tokens(config: Any, parts: tuple[str, ...]) -> set[int]:
    """Return the tokens that stand for no piece of text: padding, ends, places of images."""
    special: set[int] = set()
    for owner in (config, *(getattr(config, part, None) for part in parts)):
        for name in () if owner is None else dir(owner):
            if name.endswith(("_token_id", "_token_index")):
                value = getattr(owner, name)
                special.update(each for each in (value if isinstance(value, list) else [value]) if type(each) is int)
    return special


def _image_shape(config: Any) -> tuple[int, ...]:
    """Return the shape of an image, or of a film where the configuration counts its images."""
    channels = _setting(config, ("num_channels", "in_channels", "in_chans"), OF_IMAGE)
    size = _setting(config, ("image_size",), OF_IMAGE)
    if isinstance(size, dict):
        size = (size.get("height"), size.get("width"))
    sides = tuple(size) if isinstance(size, (list, tuple)) else (size, size)
    height, width = sides if len(sides) == 2 and all(type(side) is int for side in sides) else (IMAGE_SIZE, IMAGE_SIZE)
    image = (channels if type(channels) is int else CHANNELS, height, width)
    frames = _setting(config, ("num_frames",), OF_IMAGE)
    return (frames, *image) if type(frames) is int else image


def _sound_shape(config: Any) -> tuple[int, ...]:
    """Return the shape of a wave form, or of a spectrogram where the configuration names its bands."""
    bands = _setting(config, ("num_mel_bins",), OF_SOUND)
    frames = _setting(config, ("max_length",), OF_SOUND)
    if type(bands) is int and type(frames) is int:
        return frames, bands
    channels = _setting(config, ("audio_channels",), OF_SOUND)
    return (channels, SOUND) if type(channels) is int else (SOUND,)


def _spectrogram_shape(config: Any) -> tuple[int, ...] | None:
    """Return the shape of a spectrogram: bands first, as Whisper reads it, or frames first."""
    bands = _setting(config, ("num_mel_bins",), OF_SOUND)
    positions = _setting(config, ("max_source_positions",), OF_SOUND)
    width = _setting(config, ("feature_projection_input_dim", "input_feat_per_channel"), OF_SOUND)
    if type(width) is int:
        return FRAMES, width
    if type(bands) is int and type(positions) is int:
        return bands, 2 * positions  # the first convolutions halve the length
    return None
