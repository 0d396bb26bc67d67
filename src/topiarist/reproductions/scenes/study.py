"""Pruning while training for ensembles of small networks that tell acoustic scenes apart, as four studies.

After Ooi, Peksi and Gan, Ensemble of pruned low-complexity models for acoustic scene classification (2020). Keras adds
0.001 · Σw² to the loss, whose gradient is what torch calls a weight decay of 0.002.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from topiarist.data.block_mixing import BlockMixing
from topiarist.reproductions.scenes.scope import DEPTHS, INCEPTION, VGG, Overrides, Scope, sound_name
from topiarist.study.study import Study


@dataclass(frozen=True)
class Plan:
    """The studies: the V of each ensemble, its I, the single networks of Tables 1 and 2, and those of Table 4.

    `mixed_within` are the classes within which samples are mixed for Table 2.
    """

    scope: Scope
    seed: int
    mixed_within: tuple[str, ...]
    vgg: Study
    inception: Study
    tables: Study | None
    depths: Study | None

    @property
    def studies(self) -> dict[str, Study]:
        """Return the studies by name."""
        found = {"vgg": self.vgg, "inception": self.inception, "tables": self.tables, "depths": self.depths}
        return {name: study for name, study in found.items() if study is not None}


def plan_scenes(scope: Scope, *, seed: int, finer: bool = True) -> Plan:
    """Declare all that is run; samples are mixed within fine classes only where these are known."""
    mixed_within = ("fine", "coarse") if finer else ("coarse",)
    vgg = study(scope, "vgg", kinds_of(scope), seeds=scope.vgg_trained * scope.runs, seed=seed)
    inception = study(scope, "inception", kinds_of(scope), seeds=scope.inception_trained * scope.runs, seed=seed)
    rows, depths = list(table_rows(scope, mixed_within)), list(depth_rows(scope))
    tables = study(scope, "vgg", rows, seeds=scope.runs, seed=seed, models=False) if rows else None
    judged = study(scope, "vgg", depths, seeds=scope.runs, seed=seed) if depths else None
    return Plan(scope, seed, mixed_within, vgg, inception, tables, judged)


def study(scope: Scope, family: str, variants: list[Overrides], *, seeds: int, seed: int, models: bool = True) -> Study:
    """Declare one study of variants of a family, with so many seeds from the first on."""
    return Study(
        name=f"scenes, {family}",
        data={"location": sound_name(scope.sound), "validation_fraction": 0.0, "test_fraction": 0.3, "seed": seed}
        | ({} if scope.clips is None else {"samples": scope.clips}),
        model=network(scope, family, VGG if family == "vgg" else INCEPTION),
        training=scope.training,
        variants=variants,
        folds=scope.folds,
        seeds=list(range(seed, seed + seeds)),
        models=models,
    )


def network(scope: Scope, family: str, blocks: tuple[int, ...]) -> Overrides:
    """Return the settings of a network."""
    normed = family == "inception" and scope.inception_norms
    return {"family": family, "blocks": list(blocks), **({"options": {"batch_norm": True}} if normed else {})}


def kinds_of(scope: Scope) -> list[Overrides]:
    """Return the settings of each kind of network: unpruned or pruned, trained on mixtures too or not."""
    found = []
    for name in scope.kinds:
        mixed = {"data": {"mixing": scope.mixing.model_dump()}} if name.endswith("mixed") else {}
        pruned = {"training": {"pruning": scope.pruning}} if name.startswith("pruned") else {}
        found.append({"name": name, **mixed, **pruned})
    return found


def table_rows(scope: Scope, mixed_within: tuple[str, ...]) -> Iterator[Overrides]:
    """Yield the networks of Table 1 (bands and windows) and Table 2 (mixing, pruned).

    Those of Table 1 are trained half as long as the others, as in the paper.
    """
    for bands in scope.bands:
        for window in scope.windows:
            sound = sound_name(scope.sound.model_copy(update={"bands": bands, "window": window}))
            training = {"epochs": max(1, scope.training["epochs"] // 2)}
            yield {"name": table_1_name(bands, window), "data": {"location": sound}, "training": training}
    for pieces in scope.pieces:
        for within in mixed_within:
            mixing = BlockMixing(pieces=pieces, within=within, on=scope.mixing.on)
            yield {
                "name": table_2_name(pieces, within),
                "data": {"mixing": mixing.model_dump()},
                "training": {"pruning": scope.pruning},
            }


def depth_rows(scope: Scope) -> Iterator[Overrides]:
    """Yield the networks of Table 4, unpruned ones of several depths."""
    for family, depths in DEPTHS.items() if scope.depths else ():
        for blocks in depths:
            yield {"name": depth_name(family, blocks), "model": network(scope, family, blocks)}


def table_1_name(bands: int, window: int) -> str:
    """Name a network of Table 1."""
    return f"table 1: {bands} bands, window {window}"


def table_2_name(pieces: int, within: str) -> str:
    """Name a network of Table 2."""
    return f"table 2: {pieces} pieces, {within} class"


def depth_name(family: str, blocks: tuple[int, ...]) -> str:
    """Name a network as the paper does: V(2,2,3,3)."""
    return f"{'V' if family == 'vgg' else 'I'}({','.join(map(str, blocks))})"
