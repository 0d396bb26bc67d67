"""`Study`: declare a comparison, run it, go on with it, read what it found."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import PrivateAttr

from topiarist.data import Data, Source
from topiarist.study.declaration import Declaration
from topiarist.study.engine import OnProgress, declared_in, run_study
from topiarist.study.results import Results
from topiarist.study.toml_file import read_declaration


class Study(Declaration):
    """A comparison of configurations over folds and seeds, whose results lie in a folder.

    Sections, `grid`, `variants`, `methods`, `folds` and `seeds` are those of `Declaration`.
    """

    _folder: Path = PrivateAttr(default_factory=Path.cwd)

    @classmethod
    def from_file(cls, path: Path | str) -> Self:
        """Read a study from a TOML file; relative paths of data start from the file's folder."""
        place = Path(path)
        study = cls(**read_declaration(place))
        study._folder = place.resolve().parent
        return study

    @classmethod
    def in_folder(cls, out: Path | str) -> Self:
        """Read the study whose results lie in a folder, to go on with it."""
        declared, folder = declared_in(Path(out))
        study = cls(**declared)
        study._folder = folder
        return study

    def run(
        self,
        out: Path | str,
        *,
        data: Data | Mapping[str, Data | Source] | None = None,
        workers: int | None = 1,
        cluster: str | None = None,
        retry_failed: bool = False,
        on_progress: OnProgress | None = None,
    ) -> Results:
        """Run what is left to do and give the results; the same call after an interruption goes on.

        `data`, samples in memory, take the place of what the study names; where that is more than one location, they
        are given by location. `workers` are processes on this machine, None for as many as pay; `cluster` is the
        address of a Dask scheduler. Neither changes a result.
        """
        place = Path(out)
        run_study(
            self,
            place,
            data=data,
            folder=self._folder,
            workers=workers,
            cluster=cluster,
            retry_failed=retry_failed,
            on_progress=on_progress,
        )
        return Results.read(place)
