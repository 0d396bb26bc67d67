"""Writes a network to a file; the same network always makes the same bytes."""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import torch
from safetensors.torch import save as write
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from topiarist.data import Data
from topiarist.errors import ModelError, TopiaristWarning
from topiarist.files import JsonObject, write_atomically
from topiarist.models import Card, build, card_for, card_of, spec_of
from topiarist.models.evaluation import QUANTISED, first_of_kind, kernels_of
from topiarist.storage.header import KEY, SIGNATURE, make_header, sign, signature
from topiarist.storage.packed import Packing, pack
from topiarist.storage.quantising import is_rounded
from topiarist.surgery import plan_of
from topiarist.surgery.replaying import replay

SUFFIX = ".safetensors"
NOT_IN_THE_FORMAT = (torch.complex32, torch.complex128)


def save(
    model: nn.Module,
    path: str | Path,
    *,
    data: Data | None = None,
    packing: Packing | None = None,
    key: bytes | None = None,
) -> Path:
    """Write a network to a `.safetensors` file, in the place of one that is there.

    Parameters
    ----------
    model
        Any module whose state holds tensors only.
    path
        The file, which ends in `.safetensors`.
    data
        Where classes, input shape and preprocessing come from; without it, they are those on the network's card.
    packing
        What is zero then takes next to no room. A network that was pruned, or loaded from a packed file, is packed
        unless told otherwise: with as few bits as then, or with 32 where its weights have changed since.
    key
        A secret of 16 bytes or more with which the file is signed (HMAC-SHA256), for `load` with the same key.

    Returns
    -------
    Path
        The path of the file.

    Raises
    ------
    ModelError
        If the path has another ending, or the network holds what a file cannot.
    TopiaristError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from topiarist import load, models, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     load(save(models.mlp([4, 8, 3]), f"{folder}/model.safetensors")).output
    Linear(in_features=8, out_features=3, bias=True)
    """
    place = Path(path)
    if place.suffix != SUFFIX:
        raise ModelError(f"a model file must end in {SUFFIX}; found '{place.name}'")
    card = _card_to_write(model, data)
    if card.spec is None and card_of(model).spec is not None:
        note = f"the network is no longer what its spec describes: load it with load('{place}', into=model)"
        warnings.warn(note, TopiaristWarning, stacklevel=2)
    write_atomically(place, _content_of(model, card, packing, key))
    return place


def serialise(model: nn.Module, *, data: Data | None = None, packing: Packing | None = None) -> bytes:
    """Return the content of the file that `save` writes; parameters and errors are those of `save`.

    Examples
    --------
    >>> from topiarist.models import mlp
    >>> serialise(mlp([4, 8, 3])) == serialise(mlp([4, 8, 3]))
    True
    """
    return _content_of(model, _card_to_write(model, data), packing)


def _content_of(model: nn.Module, card: Card, packing: Packing | None, key: bytes | None = None) -> bytes:
    """Return weights and card in the file's format."""
    state = named_tensors(model)
    aliases = tied_names(state)
    tensors = _unshared({name: tensor for name, tensor in state.items() if name not in aliases})
    header = make_header(card, plan_of(model), aliases)
    if packing is None and card.bits is not None:
        packing = Packing(bits=card.bits if is_rounded(model, card.bits) else 32)
    if packing is not None:
        header, tensors = pack(header, tensors, kernels_of(model), packing)
    whole = sign(header, tensors)
    signed = {} if key is None else {SIGNATURE: signature(key, whole.digest)}
    content: bytes = write(tensors, metadata={KEY: whole.to_text(), **signed})
    return content


def _card_to_write(model: nn.Module, data: Data | None) -> Card:
    """Return the network's card with what is known of the data, and with its spec only where that still holds."""
    card = card_of(model) if data is None else card_for(model, data)
    return replace(card, spec=_spec_to_write(model))


def _spec_to_write(model: nn.Module) -> JsonObject | None:
    """Return the spec on a network's card where it, and the edits since, still make the network; None otherwise."""
    plan, spec = plan_of(model), card_of(model).spec
    if spec is None or not plan.edits:
        return spec_of(model)
    try:
        fresh = build(spec)
        replay(plan, [fresh])
        return spec if repr(fresh) == repr(model) else None
    except ModelError:  # the network was changed by hand between edits
        return None


def _unshared(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """Return tensors in main memory, dense in it, none of which overlaps another, as the format asks."""
    storages = set()
    given = {}
    for name, tensor in tensors.items():
        dense = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        storage = dense.untyped_storage().data_ptr()
        given[name] = dense.clone() if storage in storages else dense
        storages.add(storage)
    return given


def named_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Return the live entries of a network's `state_dict`, each a tensor that a model file can hold."""
    if (quantised := first_of_kind(model, QUANTISED)) is not None:
        raise ModelError(
            f"a model file holds no quantised network, such as '{quantised}' is: save it before it is quantised;"
            " export_int8 writes 8 bits"
        )
    state = model.state_dict(keep_vars=True)
    for name, value in state.items():
        if not isinstance(value, Tensor):
            raise ModelError(f"a model file holds tensors only; '{name}' of the network is a {type(value).__name__}")
        if is_lazy(value) or value.is_meta:
            raise ModelError(f"'{name}' of the network has no values yet: run the network on a batch first")
        if value.layout != torch.strided or value.is_quantized or value.dtype in NOT_IN_THE_FORMAT:
            raise ModelError(f"a model file cannot hold '{name}': {value.dtype} in layout {value.layout}")
    return dict(state)


def tied_names(tensors: Mapping[str, Tensor]) -> dict[str, str]:
    """Return, for each name whose tensor an earlier name already has, that earlier name."""
    first: dict[tuple[object, ...], str] = {}
    ties = {}
    for name, tensor in tensors.items():
        place = (tensor.device, tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride())
        if tensor.numel() and first.setdefault(place, name) != name:
            ties[name] = first[place]
    return ties
