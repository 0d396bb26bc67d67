"""Reads a network from a file, without code where the network is one of ours; nothing is ever unpickled."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from topiarist.errors import ModelError
from topiarist.models import Card, attach, build
from topiarist.storage.filling import fill
from topiarist.storage.header import KEY, Header, card_in, digest, parse_header, plan_in
from topiarist.storage.packed_header import PACKED, PackedHeader, parse_packed_header
from topiarist.storage.state import named_tensors
from topiarist.storage.unpacking import unpack
from topiarist.surgery import Plan, plan_of
from topiarist.surgery.applying import rebuild


def load(path: str | Path, *, into: nn.Module | None = None) -> nn.Module:
    """Give the network in a file, with its card, its weights exact to the type and, unless packed in less, to the bit.

    One of ours is built from its spec, on the CPU and in evaluation mode. Any other is loaded in place into a module
    that the caller built, which keeps its device and mode: `load(path, into=model)`. That way, `.safetensors` files
    written by others can be read too.
    """
    place = Path(path)
    with explained(place):
        header, tensors = read(place)
        if header is None:
            if into is None:
                raise ModelError(f"not written by topiarist: build the module and call load('{place}', into=model)")
            return fill(into, tensors)
        if header.digest != digest(header, tensors):
            raise ModelError("the file is damaged: its content does not match its digest")
        card, plan = whole_card_in(header), plan_in(header)
        given = fresh(card, place) if into is None else into
        model = replay(plan, given)
        if isinstance(header, PackedHeader):
            tensors = unpack(header, tensors[PACKED], named_tensors(model))
        aliases = {name: tensors[kept] for name, kept in header.aliases.items() if kept in tensors}
        fill(model, {**tensors, **aliases})
        attach(model, card)
        vars(given).update(vars(model))  # the caller's own module becomes what was saved, or stays what it was
        return given


def replay(plan: Plan, model: nn.Module) -> nn.Module:
    """Give a module the structure that edits made of it before it was saved, unless it has that already."""
    if plan_of(model) == plan:
        return model
    try:
        return rebuild(plan, model)
    except Exception as error:  # whatever a plan that someone made up leads to
        raise ModelError(f"its {len(plan)} edits cannot be replayed on {type(model).__name__}: {error}") from error


def read_card(path: str | Path) -> Card:
    """Give the card of the network in a file; the weights are neither read nor checked."""
    place = Path(path)
    with explained(place), safe_open(place, framework="pt") as file:
        header = header_in(file)
        if header is None:
            raise ModelError("not written by topiarist: it has no card")
        return whole_card_in(header)


def whole_card_in(header: Header) -> Card:
    """Give the card of a network, with how it was packed if it was."""
    return replace(card_in(header), bits=header.bits if isinstance(header, PackedHeader) else None)


def read(path: Path) -> tuple[Header | None, dict[str, Tensor]]:
    """Give the header, None in a file written by others, and the tensors, copied from the mapped file to memory."""
    with safe_open(path, framework="pt") as file:
        return header_in(file), {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118  # no dict


def header_in(file: Any) -> Header | None:
    """Give our header, None where the file has none."""
    text = (file.metadata() or {}).get(KEY)
    if text is None:
        return None
    return parse_packed_header(text, file.get_tensor(PACKED)) if file.keys() == [PACKED] else parse_header(text)


def fresh(card: Card, path: Path) -> nn.Module:
    """Build the network of a spec, in evaluation mode."""
    if card.spec is None:
        raise ModelError(f"its network is of a user's class: build the module and call load('{path}', into=model)")
    try:
        return build(card.spec).eval()
    except (ValueError, RuntimeError) as error:
        raise ModelError(f"the file is damaged: its spec makes no network ({error})") from error


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn whatever goes wrong in reading a file into one line that begins with its path."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"cannot load {path}: {error}") from error
    except FileNotFoundError as error:
        raise ModelError(f"cannot load {path}: there is no such file") from error
    except (OSError, SafetensorError) as error:
        raise ModelError(f"cannot load {path}: {why_unreadable(path, error)}") from error


def why_unreadable(path: Path, error: Exception) -> str:
    """Say what a file is, given that it is not a `.safetensors` file."""
    if path.is_dir():
        return "it is a folder; a .safetensors file was asked"
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
