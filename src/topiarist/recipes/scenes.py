"""Pruning while training for ensembles of small networks that tell acoustic scenes apart, as three studies.

After Ooi, Peksi and Gan, Ensemble of pruned low-complexity models for acoustic scene classification (2020). Keras adds
0.001 · Σw² to the loss, whose gradient is what torch calls a weight decay of 0.002. Where the paper mixes pieces of
sound, pieces of spectrograms are mixed here: no window lies across a seam.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from topiarist.features.log_mel import LogMel
from topiarist.study.study import Study

Overrides = dict[str, Any]
VGG, INCEPTION = (2, 2, 3, 3), (2, 1, 2)
VGG_MEMBERS = 5
DEPTHS = {"vgg": ((0, 0, 1, 1), (2, 2, 3, 3), (4, 4, 5, 5)), "inception": ((1, 0, 1), (2, 1, 2), (3, 2, 3))}
MIXING: Overrides = {"pieces": 10, "within": "coarse"}
KINDS = ("unpruned", "pruned", "unpruned, mixed", "pruned, mixed")
SOUND = LogMel()
PUBLISHED: Overrides = {"epochs": 400, "batch_size": 128, "learning_rate": 0.0001, "weight_decay": 0.002}
FASTER: Overrides = {"batch_size": 16, "learning_rate": 0.001, "weight_decay": 0.002, "precise_norms": True}


@dataclass(frozen=True, kw_only=True)
class Scope:
    """How much is run: so many ensembles, each of five V and one I, on one split or on every fold.

    The paper prunes from a quarter of the training to three quarters. A short training prunes `early`, from a tenth of
    it to half: what has few steps needs more of them afterwards.
    """

    training: Overrides
    runs: int
    folds: int | None = None
    early: bool = False
    kinds: tuple[str, ...] = KINDS
    sound: LogMel = SOUND
    clips: int | None = None  # of the training part, at most
    bands: tuple[int, ...] = (32, 48, 64)
    windows: tuple[int, ...] = (1024, 2048, 4096)
    pieces: tuple[int, ...] = (2, 4, 5, 10)
    depths: bool = True

    @property
    def pruned_when(self) -> str:
        """Say from when to when networks are pruned."""
        return (
            "from a tenth of the training to half" if self.early else "from a quarter of the training to three quarters"
        )

    @property
    def pruning(self) -> Overrides:
        """Give how networks are pruned, from 10 % of the weights to 80 %."""
        epochs = self.training["epochs"]
        when = {"begin": epochs // 10, "every": 1, "times": epochs * 2 // 5} if self.early else {}
        return {"initial_sparsity": 0.1, **when}

    def kind(self, name: str) -> Overrides:
        """Give the settings of a kind of network."""
        mixed = {"data": {"mixing": MIXING}} if name.endswith("mixed") else {}
        pruned = {"training": {"pruning": self.pruning}} if name.startswith("pruned") else {}
        return {"name": name, **mixed, **pruned}

    @property
    def sounds(self) -> dict[str, LogMel]:
        """Give all descriptions of sound that are compared, by name; the first is that of the ensembles."""
        compared = [
            self.sound.model_copy(update={"bands": bands, "window": window})
            for bands in self.bands
            for window in self.windows
        ]
        return {sound_name(sound): sound for sound in (self.sound, *compared)}


FULL = Scope(training=PUBLISHED, runs=10)
QUICK = Scope(
    training={**FASTER, "epochs": 8},
    runs=2,
    early=True,
    sound=LogMel(seconds=2),
    clips=160,
    windows=(1024, 2048),
    bands=(32, 48),
    pieces=(2, 10),
)


def changed(scope: Scope, *, runs: int | None, folds: int | None, epochs: int | None) -> Scope:
    """Give a scope with other numbers of runs, folds and epochs; what is None stays."""
    training = scope.training if epochs is None else {**scope.training, "epochs": epochs}
    return replace(scope, runs=runs or scope.runs, folds=folds or scope.folds, training=training)


def sound_name(sound: LogMel) -> str:
    """Name a description of sound."""
    return f"{sound.bands} bands, window {sound.window}"


@dataclass(frozen=True)
class Plan:
    """The studies: five V of each ensemble, its I, and the tables of single networks.

    `mixed_within` are the classes within which samples are mixed for Table 2.
    """

    scope: Scope
    seed: int
    mixed_within: tuple[str, ...]
    vgg: Study
    inception: Study
    tables: Study | None

    @property
    def studies(self) -> dict[str, Study]:
        """Give the studies by name."""
        found = {"vgg": self.vgg, "inception": self.inception}
        return found if self.tables is None else {**found, "tables": self.tables}


def plan_scenes(scope: Scope, *, seed: int, finer: bool = True) -> Plan:
    """Declare all that is run; samples are mixed within fine classes only where these are known."""
    first, runs = seed, scope.runs
    mixed_within = ("fine", "coarse") if finer else ("coarse",)
    kinds = [scope.kind(name) for name in scope.kinds]
    vgg = study(scope, "vgg", kinds, seeds=range(first, first + VGG_MEMBERS * runs), seed=seed)
    inception = study(scope, "inception", kinds, seeds=range(first, first + runs), seed=seed)
    rows = list(table_rows(scope, mixed_within))
    tables = study(scope, "vgg", rows, seeds=range(first, first + runs), seed=seed, models=False) if rows else None
    return Plan(scope, seed, mixed_within, vgg, inception, tables)


def study(
    scope: Scope, family: str, variants: list[Overrides], *, seeds: range, seed: int, models: bool = True
) -> Study:
    """Declare one study of variants of a family."""
    return Study(
        name=f"scenes, {family}",
        data={"location": sound_name(scope.sound), "validation_fraction": 0.0, "test_fraction": 0.3, "seed": seed}
        | ({} if scope.clips is None else {"samples": scope.clips}),
        model=network(family, VGG if family == "vgg" else INCEPTION),
        training=scope.training,
        variants=variants,
        folds=scope.folds,
        seeds=list(seeds),
        models=models,
    )


def network(family: str, blocks: tuple[int, ...]) -> Overrides:
    """Give the settings of a network."""
    return {"family": family, "blocks": list(blocks)}


def table_rows(scope: Scope, mixed_within: tuple[str, ...]) -> Iterator[Overrides]:
    """Give the networks of Table 1 (bands and windows), Table 2 (mixing, pruned) and Table 4 (depths).

    Those of Table 1 are trained half as long as the others, as in the paper.
    """
    for bands in scope.bands:
        for window in scope.windows:
            sound = sound_name(scope.sound.model_copy(update={"bands": bands, "window": window}))
            training = {"epochs": max(1, scope.training["epochs"] // 2)}
            yield {"name": table_1_name(bands, window), "data": {"location": sound}, "training": training}
    for pieces in scope.pieces:
        for within in mixed_within:
            mixing = {"pieces": pieces, "within": within}
            training = {"pruning": scope.pruning}
            yield {"name": table_2_name(pieces, within), "data": {"mixing": mixing}, "training": training}
    for family, depths in DEPTHS.items() if scope.depths else ():
        for blocks in depths:
            yield {"name": f"table 4: {depth_name(family, blocks)}", "model": network(family, blocks)}


def table_1_name(bands: int, window: int) -> str:
    """Name a network of Table 1."""
    return f"table 1: {bands} bands, window {window}"


def table_2_name(pieces: int, within: str) -> str:
    """Name a network of Table 2."""
    return f"table 2: {pieces} pieces, {within} class"


def depth_name(family: str, blocks: tuple[int, ...]) -> str:
    """Name a network as the paper does: V(2,2,3,3)."""
    return f"{'V' if family == 'vgg' else 'I'}({','.join(map(str, blocks))})"
