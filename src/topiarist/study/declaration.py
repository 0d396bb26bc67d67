"""A study as data: a grid of configurations, folds and seeds, and the cells that follow from it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any, Literal

import numpy
from pydantic import Field, field_validator

from topiarist.errors import SettingsError
from topiarist.files import JsonObject, canonical_json, sha256
from topiarist.randomness import child_seed
from topiarist.settings import Settings
from topiarist.study.grid import AxisChoice, Configuration, configurations, flat, grid_axes, shown
from topiarist.study.settings import EMPTY, CellSettings, Table

MOST_SEEDS = 1_000_000
MOST_FOLDS = 10_000  # leave-one-out on ten thousand samples
MOST_CELLS = 100_000  # fifty times the largest study of ours; a ledger of them has about 200 MB
FoldsOf = Literal["all", "development"]


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One training and what comes of it: a configuration on one fold (None: the declared split) with one seed."""

    label: str
    choices: Mapping[str, str]
    settings: CellSettings
    fold: int | None
    folds: int | None
    folds_of: FoldsOf
    new_folds_per_seed: bool = False
    seed: int
    latency: bool

    @cached_property
    def record(self) -> JsonObject:
        """What decides the result, as plain values, defaults left out."""
        record: JsonObject = {
            "seed": self.seed,
            "settings": self.settings.model_dump(mode="json", exclude_defaults=True),
        }
        if self.fold is not None:
            record |= {"fold": self.fold, "folds": self.folds}
            record |= {} if self.folds_of == "all" else {"folds_of": self.folds_of}
            record |= {"new_folds_per_seed": True} if self.new_folds_per_seed else {}
        return record | ({"latency": True} if self.latency else {})

    @cached_property
    def hash(self) -> str:
        """The name of the cell: the hash of what decides its result."""
        return sha256(canonical_json(self.record).encode())

    @cached_property
    def training_key(self) -> str:
        """What cells have in common that share one trained network."""
        settings = self.settings.model_dump(mode="json", exclude={"method", "prediction"})
        return canonical_json([settings, self.fold, self.seed])

    @property
    def training_seed(self) -> int:
        """The seed of initial weights, sample order and dropout: another one in each fold."""
        return child_seed(self.seed, "cell", -1 if self.fold is None else self.fold) % 2**62


class Declaration(Settings):
    """A comparison: sections that all configurations share, and a grid of what differs.

    The sections `data`, `model`, `training`, `base` and `prediction` are those of `CellSettings`. `grid` maps settings
    such as "training.learning_rate" to the values to compare; `variants` are named sets of settings; `methods` are
    what is done to a trained network. All combinations are run on every fold (or, without folds, on the declared
    split) and with every seed; with `new_folds_per_seed`, each seed deals the samples into folds anew, which makes the
    seeds repeats of a cross-validation. `stack` is the largest number of networks that are trained as one.
    """

    name: str = Field(default="study", min_length=1)
    data: Table
    model: Table = EMPTY
    training: Table = EMPTY
    base: Table | None = None
    prediction: Table = EMPTY
    grid: Table = EMPTY
    variants: tuple[Table, ...] = ()
    methods: tuple[Table, ...] = ()
    folds: int | None = Field(default=None, ge=2, le=MOST_FOLDS)
    folds_of: FoldsOf = "all"
    new_folds_per_seed: bool = False
    seeds: tuple[int, ...] = (0,)
    stack: int = Field(default=32, ge=1)
    latency: bool = False
    models: bool = True

    @field_validator("data", mode="before")
    @classmethod
    def _data_by_location(cls, value: Any) -> Any:
        return {"location": value} if isinstance(value, str) else value

    @field_validator("seeds", mode="before")
    @classmethod
    def _seeds_by_number(cls, value: Any) -> Any:
        if not isinstance(value, int) or isinstance(value, bool):
            return value
        if value > MOST_SEEDS:
            raise ValueError(f"must be at most {MOST_SEEDS} seeds")
        return tuple(range(value))

    @field_validator("seeds")
    @classmethod
    def _seeds_differ(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if not value or len(set(value)) < len(value) or min(value) < 0 or max(value) >= 2**63:
            raise ValueError("must be a number of seeds, or different numbers from 0 to 2^63 − 1")
        return value

    def __init__(self, /, **values: Any) -> None:
        """Check every configuration, so that a study that can be declared can be run."""
        super().__init__(**{name: plain(value, name) for name, value in values.items()})
        self.configurations  # noqa: B018  # checks, and is kept

    @cached_property
    def configurations(self) -> list[Configuration]:
        """All combinations of variants, grid and methods."""
        sections = {"data": self.data, "model": self.model, "training": self.training, "prediction": self.prediction}
        if self.base is not None:
            sections["base"] = self.base
        axes: dict[str, Sequence[AxisChoice]] = {}
        if self.variants:
            axes["variant"] = [variant_choice(number, variant) for number, variant in enumerate(self.variants)]
        axes |= grid_axes(self.grid)
        if self.methods:
            axes["method"] = [
                AxisChoice(shown({"name": "none", **method}), {"method": method}, f"methods.{number}")
                for number, method in enumerate(self.methods)
            ]
        counts = [len(axis) for axis in axes.values()] + [len(self.seeds), self.folds or 1]
        if math.prod(counts) > MOST_CELLS:
            asked = " × ".join(f"{count:,}" for count in counts if count > 1)
            raise SettingsError(f"{asked} are {math.prod(counts):,} cells; a study has at most {MOST_CELLS:,}")
        return configurations(sections, axes)

    @cached_property
    def cells(self) -> list[Cell]:
        """All cells: configurations, in each the seeds, in each the folds."""
        return [
            Cell(
                label=configuration.label,
                choices=configuration.choices,
                settings=configuration.settings,
                fold=fold,
                folds=self.folds,
                folds_of=self.folds_of,
                new_folds_per_seed=self.new_folds_per_seed,
                seed=seed,
                latency=self.latency,
            )
            for configuration in self.configurations
            for seed in self.seeds
            for fold in (range(self.folds) if self.folds is not None else (None,))
        ]

    def to_json(self) -> JsonObject:
        """Return the declaration as plain values, defaults left out."""
        return self.model_dump(mode="json", exclude_defaults=True)


def variant_choice(number: int, variant: Mapping[str, Any]) -> AxisChoice:
    """Read a variant: a name, and settings by section."""
    key = f"variants.{number}"
    if not isinstance(variant.get("name"), str):
        raise SettingsError(f"{key}: a variant needs a name", setting=key)
    values = dict(flat({name: value for name, value in variant.items() if name != "name"}))
    return AxisChoice(variant["name"], values, key)


def plain(value: Any, key: str) -> Any:
    """Return what a file can hold: tables, lists, texts and finite numbers; anything else is refused."""
    if isinstance(value, Mapping):
        return {str(name): plain(part, f"{key}.{name}") for name, part in value.items()}
    if isinstance(value, (list, tuple, range, numpy.ndarray)):
        return [plain(part, f"{key}.{number}") for number, part in enumerate(value)]
    if isinstance(value, numpy.generic):
        return plain(value.item(), key)
    if isinstance(value, PurePath):
        return str(value)
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise SettingsError(f"{key}: must be a table, a list, a text or a finite number; found {value!r}", setting=key)
