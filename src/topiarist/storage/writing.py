"""Writes a network to a file; the same network gives the same bytes."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors.torch import save as write
from torch import Tensor, nn

from topiarist.data import Data
from topiarist.errors import ModelError, TopiaristWarning
from topiarist.files import write_atomically
from topiarist.models import Card, build, card_for, card_of, spec_of
from topiarist.models.evaluation import kernels_of
from topiarist.storage.header import KEY, make_header, sign
from topiarist.storage.packing import Packing, pack
from topiarist.storage.quantising import is_rounded
from topiarist.storage.state import named_tensors, tied_names
from topiarist.surgery import plan_of
from topiarist.surgery.applying import rebuild

SUFFIX = ".safetensors"


def save(model: nn.Module, path: str | Path, *, data: Data | None = None, packing: Packing | None = None) -> Path:
    """Write a network to a `.safetensors` file, in the place of one that is there, and give its path.

    Classes, input shape and preprocessing are those of `data`, or of the network's card where no data are given. With
    `packing`, what is zero takes next to no room. A network that was pruned, or loaded from a packed file, is packed
    unless told otherwise: with as few bits as then, or with 32 where its weights have changed since.
    """
    place = Path(path)
    if place.suffix != SUFFIX:
        raise ModelError(f"a model file must end in {SUFFIX}; found '{place.name}'")
    card = card_to_write(model, data)
    if card.spec is None and card_of(model).spec is not None:
        note = f"the network is no longer what its spec describes: load it with load('{place}', into=model)"
        warnings.warn(note, TopiaristWarning, stacklevel=2)
    write_atomically(place, content_of(model, card, packing))
    return place


def serialise(model: nn.Module, *, data: Data | None = None, packing: Packing | None = None) -> bytes:
    """Give the content of the file that `save` writes."""
    return content_of(model, card_to_write(model, data), packing)


def content_of(model: nn.Module, card: Card, packing: Packing | None) -> bytes:
    """Give weights and card in the file's format."""
    state = named_tensors(model)
    aliases = tied_names(state)
    tensors = unshared({name: tensor for name, tensor in state.items() if name not in aliases})
    header = make_header(card, plan_of(model), aliases)
    if packing is None and card.bits is not None:
        packing = Packing(bits=card.bits if is_rounded(model, card.bits) else 32)
    if packing is not None:
        header, tensors = pack(header, tensors, kernels_of(model), packing)
    content: bytes = write(tensors, metadata={KEY: sign(header, tensors).to_text()})
    return content


def card_to_write(model: nn.Module, data: Data | None) -> Card:
    """Give the network's card with what is known of the data, and with its spec only where that still holds."""
    card = card_of(model) if data is None else card_for(model, data)
    return replace(card, spec=spec_to_write(model))


def spec_to_write(model: nn.Module) -> dict[str, Any] | None:
    """Give the spec on a network's card where it, and the edits since, still make the network; None otherwise."""
    plan, spec = plan_of(model), card_of(model).spec
    if spec is None or not plan.edits:
        return spec_of(model)
    try:
        return spec if repr(rebuild(plan, build(spec))) == repr(model) else None
    except ModelError:  # the network was changed by hand between edits
        return None


def unshared(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Give tensors in main memory, dense in it, none of which overlaps another, as the format asks."""
    storages = set()
    given = {}
    for name, tensor in tensors.items():
        dense = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        storage = dense.untyped_storage().data_ptr()
        given[name] = dense.clone() if storage in storages else dense
        storages.add(storage)
    return given
