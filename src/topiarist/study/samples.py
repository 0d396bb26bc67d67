"""The samples of a study: raw ones travel to the workers, the parts of each fold are made there."""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy
import pandas

from topiarist.data import Data, Source
from topiarist.data.block_mixing import with_mixtures
from topiarist.data.labels import of_classes
from topiarist.features.described import find_described
from topiarist.files import canonical_json
from topiarist.randomness import child_seed
from topiarist.study.declaration import Cell
from topiarist.study.settings import RULE, BaseSettings, CellSettings, DataSettings

KEPT = 4  # data sets whose folds are kept in memory


class StudySamples:
    """The data of cells; the folds that were made last are kept."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self.sources = dict(sources)
        self._made: dict[str, dict[int, list[Data]]] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"sources": self.sources, "_made": {}}

    def of(self, cell: Cell) -> Data:
        """Return the parts that a cell trains and is judged on."""
        return self._part(cell, cell.settings.data)

    def of_base(self, cell: Cell, base: BaseSettings) -> Data:
        """Return the parts on which the network is trained that a cell continues from."""
        return self._part(
            cell, cell.settings.data.model_copy(update={"classes": base.classes, "samples": base.samples})
        )

    def _part(self, cell: Cell, settings: DataSettings) -> Data:
        fraction = validation_fraction(cell.settings, settings, folds=cell.folds is not None)
        key = canonical_json([settings.model_dump(mode="json"), fraction, cell.folds, cell.folds_of])
        if key not in self._made:
            for stale in list(self._made)[: 1 - KEPT or None]:
                del self._made[stale]
            self._made[key] = {}
        repeats, seed = self._made[key], folds_seed(cell, settings)
        if seed not in repeats:
            repeats[seed] = self._make(settings, fraction, cell)
        return repeats[seed][0 if cell.fold is None else cell.fold]

    def _make(self, settings: DataSettings, fraction: float, cell: Cell) -> list[Data]:
        source = self.sources[source_key(settings)]
        chosen = source if settings.classes is None else of_classes(source, settings.classes)
        declared: dict[str, Any] = {
            "seed": settings.seed,
            "test_fraction": settings.test_fraction,
            "scaling": settings.scaling,
            "input_shape": settings.input_shape,
            "samples": settings.samples,
            "projection": settings.projection,
        }
        if cell.folds is None:
            made = [Data.from_source(chosen, **declared, validation_fraction=fraction)]
        else:
            data = Data.from_source(chosen, **declared, validation_fraction=0.0)
            made = data.folds(
                cell.folds,
                seed=folds_seed(cell, settings),
                validation_fraction=fraction,
                of=cell.folds_of,
                samples=settings.samples,
            )
        made = [data.with_metric(settings.metric) for data in made]
        mixing = settings.mixing
        return made if mixing is None else [with_mixtures(data, mixing, seed=settings.seed) for data in made]


def folds_seed(cell: Cell, data: DataSettings) -> int:
    """Return the seed by which samples are dealt into folds: that of the data, or another one in each repeat."""
    return child_seed(data.seed, "folds", cell.seed) % 2**32 if cell.new_folds_per_seed else data.seed


def validation_fraction(cell: CellSettings, data: DataSettings, *, folds: bool) -> float:
    """Return the fraction asked for; without one, folds have a validation part only where training watches it."""
    if data.validation_fraction is not None:
        return data.validation_fraction
    return RULE.validation_fraction if cell.training.watches or not folds else 0.0


def source_key(settings: DataSettings) -> str:
    """Return the key of what is read; how it is split comes later."""
    key = [settings.location, settings.target, settings.group]
    read = [[settings.weight, settings.task]] if settings.weight or settings.task else []
    return canonical_json([*key, *([asdict(settings.columns)] if settings.columns else []), *read])


def read_sources(cells: list[Cell], folder: Path) -> dict[str, Source]:
    """Read all that the cells need; a relative path is one from the folder."""
    found: dict[str, Source] = {}
    for cell in cells:
        settings = cell.settings.data
        if source_key(settings) not in found:
            beside = folder / settings.location
            location = beside if beside.exists() else settings.location
            found[source_key(settings)] = find_described(
                location,
                target=settings.target,
                group=settings.group,
                weight=settings.weight,
                task=settings.task,
                columns=settings.columns,
            )
    return found


def fingerprint(sources: Mapping[str, Source]) -> str:
    """Return a hash of samples, so that a study is never resumed with others."""
    digest = hashlib.sha256()
    for name in sorted(sources):
        source = sources[name]
        if isinstance(source.features, pandas.DataFrame):
            rows = pandas.util.hash_pandas_object(source.features, index=False).to_numpy()
            digest.update(canonical_json([str(column) for column in source.features.columns]).encode())
        else:
            rows = numpy.asarray(source.features)
        if source.originals is not None:
            digest.update(b"copies")
        if source.finer is not None:
            digest.update(b"finer")
        if source.weights is not None:
            digest.update(b"weights")
        known = (source.labels, source.groups, source.parts, source.originals, source.finer, source.weights)
        for values in (rows, *known):
            if values is not None:
                plain = values.astype(str) if values.dtype == object else values
                digest.update(f"{plain.dtype}{plain.shape}".encode())
                digest.update(numpy.ascontiguousarray(plain).tobytes())
    return digest.hexdigest()
