"""`Study`: declare a comparison, run it, resume it, read its results."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import PrivateAttr

from topiarist.data import Data, Source
from topiarist.errors import SettingsError
from topiarist.files import check_readable
from topiarist.study.declaration import Declaration
from topiarist.study.engine import OnProgress, declared_in, run_study
from topiarist.study.own_code import check_origin, check_own, codes_of
from topiarist.study.results import Results

LARGEST_FILE = 2**20  # bytes: 1 MB, hundreds of times the longest study of ours; to check so much takes seconds
MOST_PARTS = 64  # of a name: tomllib takes time and memory that grow with their square
KEYS = re.compile(r"[=,{}\[\]\n]")  # what stands around names
DOT = re.compile(r"""(?<=[\w"'-])[ \t]{0,8}\.[ \t]{0,8}(?=[\w"'-])""")
HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]")
ENTRY = re.compile(r"""\s*((?:[\w\-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w\-]+|"[^"]*"|'[^']*'))*)\s*=""")
PART = re.compile(r"""[\w\-]+|"[^"]*"|'[^']*'""")
TOKEN = re.compile(r"\"\"\"|'''|\"(?:\\.|[^\"\\])*\"|'[^']*'|#.*|[\[\]{}]")


class Study(Declaration):
    """A comparison of configurations over folds and seeds, whose results are in a folder.

    Sections, `grid`, `variants`, `methods`, `folds` and `seeds` are those of `Declaration`.
    """

    _folder: Path = PrivateAttr(default_factory=Path.cwd)

    @classmethod
    def from_file(cls, path: Path | str, *, allow_code: bool = False) -> Self:
        """Read a study from a TOML file; relative paths of data start from the file's folder.

        Parameters
        ----------
        path
            The TOML file.
        allow_code
            Whether any code that the file names may be run; otherwise functions with the parameters `input_shape` and
            `classes` alone.
        """
        place = Path(path)
        study = cls(**_read_declaration(place))
        if not allow_code:
            check_own(codes_of(study.configurations))
        study._folder = place.resolve().parent
        return study

    @classmethod
    def in_folder(cls, out: Path | str, *, allow_code: bool = False) -> Self:
        """Read the study whose results are in a folder, to resume it.

        Parameters
        ----------
        out
            The folder.
        allow_code
            Whether code that the study names may be run where another user began it, or where it was copied here.

        Raises
        ------
        SettingsError
            If it was begun with a version of topiarist that knew other settings; `Results.read` reads it all the same.
            If it runs code and was begun elsewhere.
        """
        declared, folder, origin = declared_in(Path(out))
        try:
            study = cls(**declared)
        except RecursionError as error:
            raise SettingsError(f"the study in {out} is damaged: its declaration is nested too deep") from error
        except SettingsError as error:
            why = str(error).removeprefix(f"{cls.__name__}: ")
            raise SettingsError(
                f"the study in {out} was begun with another version of topiarist and cannot be resumed: {why};"
                " its results can be read, what is left needs a new folder",
                setting=error.setting,
            ) from error
        if not allow_code:
            check_origin(codes_of(study.configurations), Path(out), origin)
        study._folder = folder
        return study

    def run(
        self,
        out: Path | str,
        *,
        data: Data | Mapping[str, Data | Source] | None = None,
        workers: int | None = 1,
        cluster: str | None = None,
        device: str | None = None,
        retry_failed: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Results:
        """Run what is left to do and return the results; the same call after an interruption resumes.

        `data`, samples in memory, take the place of what the study names; where that is more than one location, they
        are given by location. `workers` are processes on this machine, None for as many as pay; `cluster` is the
        address of a Dask scheduler. Neither changes a result. What declares no device of its own
        is trained on `device`.
        """
        place = Path(out)
        run_study(
            self,
            place,
            data=data,
            folder=self._folder,
            workers=workers,
            cluster=cluster,
            device=device,
            retry_failed=retry_failed,
            on_progress=on_progress,
        )
        return Results.read(place)


def _read_declaration(path: Path) -> dict[str, Any]:
    """Read and check a declaration, down to the last configuration, and give its values."""
    check_readable(path, most=LARGEST_FILE)
    try:
        text = path.read_text(encoding="utf-8")
        if any(len(DOT.findall(piece)) > MOST_PARTS for piece in KEYS.split(text)):
            raise RecursionError
        declared = tomllib.loads(text)
    except OSError as error:
        raise SettingsError(f"cannot read the study {path}: {error.strerror or error}") from error
    except ValueError as error:  # neither UTF-8 nor TOML, or a number of thousands of digits
        raise SettingsError(f"{path} is not TOML: {error}") from error
    except RecursionError as error:
        raise SettingsError(f"{path} is not a study: its tables are nested too deep") from error
    try:
        return Declaration(**{"name": path.stem, **declared}).to_json()
    except SettingsError as error:
        line = line_of(text, error.setting)
        place = f"{path}, line {line}" if line is not None else str(path)
        raise SettingsError(f"{place}: {str(error).removeprefix('Declaration: ')}", setting=error.setting) from error
    except RecursionError as error:
        raise SettingsError(f"{path} is not a study: its tables are nested too deep") from error


def line_of(text: str, key: str) -> int | None:
    """Find the line that sets a key such as variants.1.model.hidden, or the table that holds it."""
    best: tuple[int, int] | None = None
    wanted = key.split(".")
    for number, path in _paths(text):
        if wanted[: len(path)] == path and (best is None or len(path) > best[0]):
            best = len(path), number
    return None if best is None else best[1]


def _paths(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines at which a table or an entry begins, each with its path."""
    header: list[str] = []
    counts: dict[tuple[str, ...], int] = {}
    for number, line in _beginnings(text.split("\n")):
        if table := HEADER.match(line):
            names = _split(table[2])
            if table[1] == "[[":
                counts[tuple(names)] = counts.get(tuple(names), -1) + 1
            header = []
            for place, name in enumerate(names, start=1):
                inside = counts.get(tuple(names[:place]))
                header += [name] if inside is None else [name, str(inside)]
            yield number, header
        elif entry := ENTRY.match(line):
            yield number, [*header, *(part for name in _split(entry[1]) for part in name.split("."))]


def _beginnings(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines that do not continue a list, a table or a text of the line before, numbered from 1."""
    depth, text = 0, ""
    for number, line in enumerate(lines, start=1):
        if not depth and not text:
            yield number, line
        for token in TOKEN.findall(line):
            if token in ('"""', "'''"):
                text = "" if text == token else text or token
            elif not text and token in "[{":
                depth += 1
            elif not text and token in "]}":
                depth -= 1


def _split(key: str) -> list[str]:
    """Take a dotted key apart."""
    return [part.strip("\"'") for part in PART.findall(key)]
