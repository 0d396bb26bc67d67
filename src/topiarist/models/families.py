"""Families of convolutional networks by name: `vgg` with four blocks, `inception` with three."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from topiarist.errors import ModelError
from topiarist.models.inception import inception
from topiarist.models.vgg import vgg

MAKERS: Mapping[str, Callable[..., nn.Module]] = {"vgg": vgg, "inception": inception}
BLOCKS: Mapping[str, int] = {"vgg": 4, "inception": 3}


def check_blocks(family: str, blocks: Sequence[int]) -> None:
    """Refuse another number of blocks than a family has."""
    if len(blocks) != BLOCKS[family]:
        raise ModelError(f"a network of the family {family} has {BLOCKS[family]} blocks; found {len(blocks)}")


def family_network(
    family: str,
    blocks: Sequence[int],
    *,
    input_shape: tuple[int, ...],
    classes: int,
    generator: torch.Generator | None = None,
    options: Mapping[str, Any] | None = None,
) -> nn.Module:
    """Build a network of a family for data at hand; `options` are those of its function."""
    check_blocks(family, blocks)
    shape = {"input_shape": input_shape, "classes": classes, "generator": generator}
    try:
        return MAKERS[family](*blocks, **shape, **(options or {}))
    except TypeError as error:
        raise ModelError(f"a network of the family {family}: {str(error).rpartition(') ')[2]}") from error
