"""Pruning while training for ensembles of small networks that tell acoustic scenes apart: how much is run, as studies.

After Ooi, Peksi and Gan, Ensemble of pruned low-complexity models for acoustic scene classification (2020). Keras adds
0.001 · Σw² to the loss, whose gradient is what torch calls a weight decay of 0.002.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, Self

from pydantic import model_validator

from topiarist.features.log_mel import LogMel
from topiarist.reproductions.scenes.options import ScenesMixing, ScenesOptions
from topiarist.study.study import Study
from topiarist.training import Pruning, TrainConfig

Overrides = Mapping[str, Any]  # some settings of a class of settings, or of a section of a study, by name
VGG, INCEPTION = (2, 2, 3, 3), (2, 1, 2)
DEPTHS = {"vgg": ((0, 0, 1, 1), VGG, (4, 4, 5, 5)), "inception": ((1, 0, 1), INCEPTION, (3, 2, 3))}
KINDS = ("unpruned", "pruned", "unpruned, mixed", "pruned, mixed")
SOUND = LogMel()
PUBLISHED = TrainConfig(batch_size=128, learning_rate=0.0001, weight_decay=0.002)  # the paper, section 4
# For few epochs: with the moving averages of batch norm, pruned V lost 3.6 points (benchmarks/README.md).
FASTER = TrainConfig(batch_size=16, learning_rate=0.001, weight_decay=0.002, precise_norms=True)


def _table(settings: TrainConfig | Pruning) -> dict[str, Any]:
    return settings.model_dump(mode="json", exclude_unset=True)


class ScenesScope(ScenesOptions):
    """How much is run: so many ensembles of some V and some I, on one split or on every fold.

    The paper prunes from a quarter of the training to three quarters. A short training prunes `early`, from a tenth of
    it to half: what has few steps needs more of them afterwards. `recipe` is the training but for its epochs, `clips`
    how many of the training part are used at most.
    """

    recipe: TrainConfig = PUBLISHED
    early: bool = False
    kinds: tuple[str, ...] = KINDS
    sound: LogMel = SOUND
    clips: int | None = None
    bands: tuple[int, ...] = (32, 48, 64)
    windows: tuple[int, ...] = (1024, 2048, 4096)
    pieces: tuple[int, ...] = (2, 4, 5, 10)
    depths: bool = True

    @model_validator(mode="after")
    def _can_be_run(self) -> Self:
        if self.members < 2:
            found = f"{self.vgg_members} V and {self.inception_members} I"
            raise ValueError(f"an ensemble has two members or more; found {found}")
        TrainConfig(**{**_table(self.training), "pruning": self.pruning})  # refused here, not after hours
        return self

    @property
    def training(self) -> TrainConfig:
        """How networks are trained; pruning apart."""
        return self.recipe.model_copy(update={"epochs": self.epochs})

    @property
    def members(self) -> int:
        """How many networks an ensemble has."""
        return self.vgg_members + self.inception_members

    @property
    def trained(self) -> dict[str, int]:
        """How many networks of each family a run trains: one at least, for the rows of single networks."""
        return {"vgg": max(1, self.vgg_members), "inception": max(1, self.inception_members)}

    @property
    def fold_numbers(self) -> list[int | None]:
        """The folds; None alone stands for the declared split."""
        return [None] if self.folds is None else list(range(self.folds))

    @property
    def pruning(self) -> Pruning:
        """How networks are pruned."""
        given, when = self.prune.model_dump(exclude_unset=True), {}
        if self.early:
            begin, every = given.get("begin", self.epochs // 10), given.get("every", 1)
            end = self.epochs // 10 + self.epochs * 2 // 5
            when = {"begin": begin, "every": every, "times": max(0, (end - begin) // every)}
        return Pruning(**{"initial_sparsity": self.prune.initial_sparsity, **when, **given})

    @property
    def prunings(self) -> dict[int, float]:
        """The sparsity after each pruning, by the number of epochs done before it."""
        return self.pruning.prunings(self.epochs)

    @property
    def sounds(self) -> dict[str, LogMel]:
        """All descriptions of sound that are compared, by name; the first is that of the ensembles."""
        compared = [self.sound_with(*both) for both in product(self.bands, self.windows)]
        return {sound_name(sound): sound for sound in (self.sound, *compared)}

    def sound_with(self, bands: int, window: int) -> LogMel:
        """Return the description of sound with other bands and another window."""
        return self.sound.model_copy(update={"bands": bands, "window": window})


FULL = ScenesScope()
QUICK = ScenesScope(
    recipe=FASTER,
    epochs=8,
    runs=2,
    early=True,
    sound=LogMel(seconds=2),
    clips=160,
    windows=(1024, 2048),
    bands=(32, 48),
    pieces=(2, 10),
)


def sound_name(sound: LogMel) -> str:
    """Name a description of sound."""
    return f"{sound.bands} bands, window {sound.window}"


@dataclass(frozen=True)
class TableRow:
    """A row of Table 1 or 2: what tells it from the others, and the name and settings of its networks in a study."""

    by: Mapping[str, int | str]
    name: str
    settings: Overrides


@dataclass(frozen=True)
class ScenesStudies:
    """The studies by name, and the rows of Tables 1 and 2 that are run.

    "vgg" has the V of each ensemble and "inception" its I; "tables" has the single networks of Tables 1 and 2, and
    "depths" those of Table 4, where they are run.
    """

    scope: ScenesScope
    seed: int
    table_1: Sequence[TableRow]
    table_2: Sequence[TableRow]
    studies: Mapping[str, Study]


def declare_studies(scope: ScenesScope, *, seed: int, finer: bool = True) -> ScenesStudies:
    """Declare all that is run; samples are mixed within fine classes only where these are known."""
    first, second = list(_table_1(scope)), list(_table_2(scope, ("fine", "coarse") if finer else ("coarse",)))
    kinds, depths = list(_kinds(scope)), list(_depths(scope))
    studies = {
        family: _study(scope, family, kinds, runs=count * scope.runs, seed=seed)
        for family, count in scope.trained.items()
    }
    rows: list[Overrides] = [{"name": row.name, **row.settings} for row in (*first, *second)]
    if rows:
        studies["tables"] = _study(scope, "vgg", rows, runs=scope.runs, seed=seed, models=False)
    if depths:
        studies["depths"] = _study(scope, "vgg", depths, runs=scope.runs, seed=seed)
    return ScenesStudies(scope, seed, first, second, studies)


def _study(
    scope: ScenesScope, family: str, variants: list[Overrides], *, runs: int, seed: int, models: bool = True
) -> Study:
    limit = {} if scope.clips is None else {"samples": scope.clips}
    data = {"location": sound_name(scope.sound), "validation_fraction": 0.0, "test_fraction": 0.3, "seed": seed}
    return Study(
        name=f"scenes, {family}",
        data=data | limit,
        model=_network(scope, family, VGG if family == "vgg" else INCEPTION),
        training=_table(scope.training),
        variants=variants,
        folds=scope.folds,
        seeds=list(range(seed, seed + runs)),
        models=models,
    )


def _network(scope: ScenesScope, family: str, blocks: tuple[int, ...]) -> Overrides:
    normed = family == "inception" and scope.inception_norms
    return {"family": family, "blocks": list(blocks), **({"options": {"batch_norm": True}} if normed else {})}


def _kinds(scope: ScenesScope) -> Iterator[Overrides]:
    """Yield the settings of each kind of network: unpruned or pruned, trained on mixtures too or not."""
    for name in scope.kinds:
        mixed = {"data": {"mixing": scope.mixing.model_dump()}} if name.endswith("mixed") else {}
        pruned = {"training": {"pruning": _table(scope.pruning)}} if name.startswith("pruned") else {}
        yield {"name": name, **mixed, **pruned}


def _table_1(scope: ScenesScope) -> Iterator[TableRow]:
    """Yield the networks of Table 1, bands and windows; they are trained half as long as the others (the paper)."""
    half = {"epochs": max(1, scope.training.epochs // 2)}
    for bands, window in product(scope.bands, scope.windows):
        name = sound_name(scope.sound_with(bands, window))
        yield TableRow(
            {"bands": bands, "window": window}, f"table 1: {name}", {"data": {"location": name}, "training": half}
        )


def _table_2(scope: ScenesScope, mixed_within: tuple[Literal["fine", "coarse"], ...]) -> Iterator[TableRow]:
    """Yield the networks of Table 2, mixing; they are pruned."""
    pruned = {"pruning": _table(scope.pruning)}
    for pieces, within in product(scope.pieces, mixed_within):
        mixing = ScenesMixing(pieces=pieces, within=within, on=scope.mixing.on).model_dump()
        name = f"table 2: {pieces} pieces, {within} class"
        yield TableRow({"pieces": pieces, "class": within}, name, {"data": {"mixing": mixing}, "training": pruned})


def _depths(scope: ScenesScope) -> Iterator[Overrides]:
    """Yield the networks of Table 4, unpruned ones of several depths."""
    for family, depths in DEPTHS.items() if scope.depths else ():
        for blocks in depths:
            yield {"name": depth_name(family, blocks), "model": _network(scope, family, blocks)}


def depth_name(family: str, blocks: tuple[int, ...]) -> str:
    """Name a network as the paper does: V(2,2,3,3)."""
    return f"{'V' if family == 'vgg' else 'I'}({','.join(map(str, blocks))})"
