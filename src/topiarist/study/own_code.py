"""Which code a study may run: the user's own, and that of a ledger from elsewhere only with the user's leave.

A study file names code as `module:function`, with options: in a stranger's file, a library's function that loads
something would load what the stranger chose. The function must therefore be made for studies, which shows in its
parameters `input_shape` and `classes`. A ledger remembers where it was begun, by what only this user's key makes.
"""

import hmac
import inspect
import os
import secrets
import sys
from collections.abc import Iterable
from pathlib import Path

from topiarist.data.readers.catalogue import cache_folder
from topiarist.errors import SettingsError
from topiarist.models.building import find_code
from topiarist.study.grid import Configuration

KEY_FILE = "origin.key"
KEY_BYTES = 32  # as many as HMAC-SHA256 uses
NEEDED = ("input_shape", "classes")
LEAVE = "if you trust it, add --allow-code"


def codes_of(configurations: Iterable[Configuration]) -> list[str]:
    """Return the code that configurations name, each once."""
    named = (configuration.settings.model.code for configuration in configurations)
    return sorted({code for code in named if code is not None})


def check_own(codes: Iterable[str]) -> None:
    """Raise SettingsError for code that is not made to build the networks of studies."""
    for code in codes:
        module = code.partition(":")[0].partition(".")[0]
        if module in sys.stdlib_module_names:
            raise _not_own(code, f"{module} is a part of Python")
        try:
            parameters = inspect.signature(find_code(code)).parameters
        except (TypeError, ValueError) as error:
            raise _not_own(code, "it has no parameters that can be seen") from error
        absent = [name for name in NEEDED if name not in parameters]
        if absent:
            raise _not_own(code, f"it has no parameter {absent[0]}")


def _not_own(code: str, why: str) -> SettingsError:
    said = f"the study runs code, {code}, that is not made to build networks for studies: {why}"
    return SettingsError(f"{said}; {LEAVE}", setting="model.code")


def check_origin(codes: Iterable[str], out: Path, known: object) -> None:
    """Raise SettingsError where a ledger names code and was begun by somebody else, or in another folder."""
    named = list(codes)
    if not named or (isinstance(known, str) and hmac.compare_digest(known, origin_of(out) or "")):
        return
    said = f"the study in {out} was begun elsewhere, by another user or in another folder, and runs code"
    raise SettingsError(f"{said} ({', '.join(named)}): {LEAVE}", setting="model.code")


def origin_of(out: Path) -> str | None:
    """Return a code for this folder that only this user's key makes; None where there is no place for a key."""
    key = _key_in(cache_folder() / KEY_FILE)
    return None if key is None else hmac.new(key, os.fsencode(out.resolve()), "sha256").hexdigest()


def _key_in(path: Path) -> bytes | None:
    """Return the user's key, made where there is none."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        key = secrets.token_bytes(KEY_BYTES)
        try:
            with open(path, "xb", opener=_for_its_owner) as stream:  # Path.open takes no opener
                stream.write(key)
        except FileExistsError:
            found = path.read_bytes() if path.is_file() else b""
            return found if len(found) == KEY_BYTES else None
        return key
    except OSError:
        return None


def _for_its_owner(path: str, flags: int) -> int:
    """Open a file that nobody else may read; the flags that come from Python keep Windows from changing its bytes."""
    return os.open(path, flags, 0o600)
