"""How much of the scenes is run, and with which settings: all of it checked where it is made."""

from dataclasses import dataclass, field, replace
from typing import Any

from topiarist.data.block_mixing import BlockMixing
from topiarist.errors import SettingsError
from topiarist.features.log_mel import LogMel
from topiarist.training import Pruning, TrainConfig

Overrides = dict[str, Any]
VGG, INCEPTION = (2, 2, 3, 3), (2, 1, 2)
DEPTHS = {"vgg": ((0, 0, 1, 1), (2, 2, 3, 3), (4, 4, 5, 5)), "inception": ((1, 0, 1), (2, 1, 2), (3, 2, 3))}
KINDS = ("unpruned", "pruned", "unpruned, mixed", "pruned, mixed")
SOUND = LogMel()
MIXING = BlockMixing(pieces=10, within="coarse", on="waveform")  # the paper, section 2.2
PUBLISHED: Overrides = {"epochs": 400, "batch_size": 128, "learning_rate": 0.0001, "weight_decay": 0.002}  # section 4
INITIAL_SPARSITY = 0.1  # s_i of the paper, section 4; s_f = 0.8 is the default of `Pruning`
FASTER: Overrides = {"batch_size": 16, "learning_rate": 0.001, "weight_decay": 0.002, "precise_norms": True}


@dataclass(frozen=True, kw_only=True)
class Scope:
    """How much is run: so many ensembles of some V and some I, on one split or on every fold.

    The paper prunes from a quarter of the training to three quarters. A short training prunes `early`, from a tenth of
    it to half: what has few steps needs more of them afterwards. `prune` has settings of `Pruning` that replace these.
    """

    training: Overrides
    runs: int
    folds: int | None = None
    early: bool = False
    prune: Overrides = field(default_factory=dict)
    mixing: BlockMixing = MIXING
    vgg_members: int = 5  # of an ensemble; the paper, section 3.2
    inception_members: int = 1
    inception_norms: bool = False  # batch norm in the blocks of I, which the paper leaves out
    kinds: tuple[str, ...] = KINDS
    sound: LogMel = SOUND
    clips: int | None = None  # of the training part, at most
    bands: tuple[int, ...] = (32, 48, 64)
    windows: tuple[int, ...] = (1024, 2048, 4096)
    pieces: tuple[int, ...] = (2, 4, 5, 10)
    depths: bool = True

    def __post_init__(self) -> None:
        if min(self.vgg_members, self.inception_members) < 0 or self.members < 2:
            found = f"{self.vgg_members} V and {self.inception_members} I"
            raise SettingsError(f"an ensemble has two members or more; found {found}")
        pruning = Pruning(**self.pruning)  # refused here, not after hours
        TrainConfig(**{**self.training, "pruning": pruning})

    @property
    def members(self) -> int:
        """Return how many networks an ensemble has."""
        return self.vgg_members + self.inception_members

    @property
    def vgg_trained(self) -> int:
        """Return how many V a run trains: one at least, for the rows of single networks."""
        return max(1, self.vgg_members)

    @property
    def inception_trained(self) -> int:
        """Return how many I a run trains: one at least."""
        return max(1, self.inception_members)

    @property
    def pruning(self) -> Overrides:
        """Return how networks are pruned, as settings of `Pruning`."""
        when: Overrides = {}
        if self.early:
            epochs = self.training["epochs"]
            begin, every = self.prune.get("begin", epochs // 10), self.prune.get("every", 1)
            end = epochs // 10 + epochs * 2 // 5
            when = {"begin": begin, "every": every, "times": max(0, (end - begin) // every)}
        return {"initial_sparsity": INITIAL_SPARSITY, **when, **self.prune}

    @property
    def prunings(self) -> dict[int, float]:
        """Return the sparsity after each pruning, by the number of epochs done before it."""
        return Pruning(**self.pruning).prunings(self.training["epochs"])

    @property
    def sounds(self) -> dict[str, LogMel]:
        """Return all descriptions of sound that are compared, by name; the first is that of the ensembles."""
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


def changed(
    scope: Scope,
    *,
    epochs: int | None = None,
    prune: Overrides | None = None,
    mixing: Overrides | None = None,
    **numbers: int | None,
) -> Scope:
    """Return a scope with other epochs, settings of pruning and of mixing, and other `numbers` by the name of a field.

    What is None stays.
    """
    return replace(
        scope,
        training=scope.training if epochs is None else {**scope.training, "epochs": epochs},
        prune={**scope.prune, **known(prune or {})},
        mixing=BlockMixing(**{**scope.mixing.model_dump(), **known(mixing or {})}),
        **known(numbers),
    )


def known(values: Overrides) -> Overrides:
    """Return what is not None."""
    return {name: value for name, value in values.items() if value is not None}


def sound_name(sound: LogMel) -> str:
    """Name a description of sound."""
    return f"{sound.bands} bands, window {sound.window}"
