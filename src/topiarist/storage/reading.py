"""Reads a network from a file, without code where the network is one of ours; nothing is ever unpickled."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from hmac import compare_digest
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from topiarist.errors import ModelError, TopiaristError
from topiarist.files import check_readable
from topiarist.models import Card, attach, build
from topiarist.storage.header import KEY, SIGNATURE, Header, digest, parse_header, signature
from topiarist.storage.limits import check_request
from topiarist.storage.packed import PACKED, PackedHeader, parse_packed_header, unpack
from topiarist.storage.writing import named_tensors, tied_names
from topiarist.surgery import Plan, plan_of
from topiarist.surgery.replaying import rebuild
from topiarist.tracing import ExampleInput


def load(
    path: str | Path,
    *,
    into: nn.Module | None = None,
    example_input: ExampleInput | None = None,
    key: bytes | None = None,
) -> nn.Module:
    """Return the network in a file, with its card; for an example see `save`.

    Weights are exact to the type and, unless packed with fewer bits, to the bit.

    Parameters
    ----------
    path
        A `.safetensors` file.
    into
        A module that the caller built, of the class that was saved; it is loaded in place and keeps its device and
        mode. A network of `topiarist.models` needs none: it is built from its spec, on the CPU and in evaluation mode.
        With it, `.safetensors` files written by others can be read too.
    example_input
        A batch that the network reads, or a function that runs it: where the file does not say what a batch looks like,
        because the network was cut with such a function.
    key
        The secret with which the file was signed; a file that was not signed with it is refused.

    Returns
    -------
    nn.Module
        The network, which is `into` where that is given.

    Raises
    ------
    ModelError
        If the file is missing, damaged, made by a newer version, or does not fit the module, which is then left as it
        was.
    """
    place = Path(path)
    with _explained(place):
        check_readable(place)
        with safe_open(place, framework="pt") as file:
            header = _header_in(file)
            signed = (file.metadata() or {}).get(SIGNATURE)
            # copied from the mapped file to memory
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118  # no dict
        if key is not None and (
            header is None or not compare_digest((signed or "").encode(), signature(key, header.digest).encode())
        ):
            raise ModelError("it was not signed with this key, or was changed since")
        if header is None:
            if into is None:
                raise ModelError(f"not written by topiarist: build the module and call load('{place}', into=model)")
            return _fill(into, tensors)
        if header.digest != digest(header, tensors):
            raise ModelError("the file is damaged: its content does not match its digest")
        card, plan = _card_in(header), header.plan()
        if into is None and card.spec is not None:
            with _spec_read():
                check_request(card.spec, plan, tensors, packed=isinstance(header, PackedHeader))
        given = _fresh(card, place) if into is None else into
        model = _replay(plan, given, example_input)
        if isinstance(header, PackedHeader):
            tensors = unpack(header, tensors[PACKED], named_tensors(model))
        aliases = {name: tensors[kept] for name, kept in header.aliases.items() if kept in tensors}
        _fill(model, {**tensors, **aliases})
        attach(model, card)
        vars(given).update(vars(model))  # the caller's own module becomes what was saved, or stays what it was
        return given


def read_card(path: str | Path) -> Card:
    """Return the card of the network in a file; the weights are neither read nor checked.

    Parameters
    ----------
    path
        A file that `save` wrote.

    Raises
    ------
    ModelError
        If there is no such file, or it has no card.

    Examples
    --------
    >>> import tempfile
    >>> from topiarist import models, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     read_card(save(models.mlp([4, 8, 3]), f"{folder}/model.safetensors")).spec["sizes"]
    [4, 8, 3]
    """
    place = Path(path)
    with _explained(place):
        check_readable(place)
        with safe_open(place, framework="pt") as file:
            header = _header_in(file)
            if header is None:
                raise ModelError("not written by topiarist: it has no card")
            return _card_in(header)


def _header_in(file: Any) -> Header | None:
    """Return our header, None where the file has none."""
    text = (file.metadata() or {}).get(KEY)
    if text is None:
        return None
    return parse_packed_header(text, file.get_tensor(PACKED)) if file.keys() == [PACKED] else parse_header(text)


def _card_in(header: Header) -> Card:
    """Return the card of a network, with how it was packed if it was."""
    return replace(header.card(), bits=header.bits if isinstance(header, PackedHeader) else None)


def _fresh(card: Card, path: Path) -> nn.Module:
    """Build the network of a spec, in evaluation mode."""
    if card.spec is None:
        raise ModelError(f"its network is of a user's class: build the module and call load('{path}', into=model)")
    with _spec_read():
        return build(card.spec).eval()


@contextmanager
def _spec_read() -> Iterator[None]:
    """Turn whatever a spec that someone made up leads to into an error of ours."""
    try:
        yield
    except (ValueError, RuntimeError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise ModelError(f"the file is damaged: its spec makes no network ({error})") from error


def _replay(plan: Plan, model: nn.Module, example_input: ExampleInput | None) -> nn.Module:
    """Return a module of the structure that edits made before it was saved, unless it has that already."""
    if plan_of(model) == plan:
        return model
    try:
        return rebuild(plan, model, example_input)
    except Exception as error:  # whatever a plan that someone made up leads to
        raise ModelError(f"its {len(plan)} edits cannot be replayed on {type(model).__name__}: {error}") from error


def _fill(model: nn.Module, tensors: Mapping[str, Tensor]) -> nn.Module:
    """Load tensors into a module in place and return it; it takes their types and keeps its device.

    The module is left as it was where a name or a shape does not fit.
    """
    own = named_tensors(model)
    weights = _shared(tensors, tied_names(own))
    _check_fit(own, weights)
    for name, tensor in own.items():
        if tensor.dtype != weights[name].dtype:
            tensor.data = tensor.data.to(weights[name].dtype)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ModelError(f"{type(model).__name__} refuses the weights: {error}") from error
    return model


def _shared(tensors: Mapping[str, Tensor], ties: dict[str, str]) -> dict[str, Tensor]:
    """Return tensors for all names of those that are tied in the module; a file may hold one name of each."""
    known = {kept: tensors[name] for name, kept in ties.items() if name in tensors} | dict(tensors)
    shared = {name: known[kept] for name, kept in ties.items() if kept in known} | known
    for name, kept in ties.items():
        if name in shared and shared[name] is not shared[kept] and not torch.equal(shared[name], shared[kept]):
            raise ModelError(f"'{name}' and '{kept}' are tied in the module but differ in the file")
    return shared


def _check_fit(own: Mapping[str, Tensor], found: Mapping[str, Tensor]) -> None:
    """Refuse a file that lacks a tensor of the module, holds another shape or kind of number, or one tensor more."""

    def described(tensor: Tensor) -> str:
        kind = "real" if tensor.is_floating_point() else "complex" if tensor.is_complex() else "whole"
        return f"{tuple(tensor.shape)} of {kind} numbers"

    for name, tensor in own.items():
        if name not in found:
            raise ModelError(f"the module asks for '{name}', which the file does not hold")
        if described(tensor) != described(found[name]):
            raise ModelError(f"'{name}' is {described(tensor)} in the module, {described(found[name])} in the file")
    surplus = [name for name in found if name not in own]
    if surplus:
        raise ModelError(f"the file holds '{surplus[0]}', which the module does not have")


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong in reading a file into one line that begins with its path."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"cannot load {path}: {error}") from error
    except TopiaristError as error:
        raise ModelError(str(error)) from error
    except FileNotFoundError as error:
        raise ModelError(f"cannot load {path}: there is no such file") from error
    except (OSError, SafetensorError) as error:
        raise ModelError(f"cannot load {path}: {_why_unreadable(path, error)}") from error


def _why_unreadable(path: Path, error: Exception) -> str:
    """Return what a file is, given that it is not a `.safetensors` file."""
    if path.is_dir():
        return "it is a folder; name a .safetensors file"
    try:
        with path.open("rb") as stream:
            start = stream.read(9)
    except OSError as refusal:
        return f"{refusal.strerror}"
    if not start:
        return "it is empty"
    if start.startswith(b"PK") or (start.startswith(b"\x80") and start[8:] not in (b"", b"{")):
        return "it looks like a pickle (torch.save), which is never read; save its state_dict as .safetensors"
    return f"it is not a whole .safetensors file ({error})"
