"""Training with topology optimisation against plain training, from three topologies, as published and as we do it.

After Schiessler, Aydin, Linka and Cyron, Neural network surgery: Combining training with topology optimization (2021).
The paper chooses by the part that it reports. Here a validation part is held back from training, by which the Surgeon
chooses, and the test part is never seen; the figures of both are given. Beside each Surgeon stand plain training with
SGD and with Adam, and plain training, from new weights, of the topology that the Surgeon ended with.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from topiarist.data.source import Scaling
from topiarist.errors import SettingsError
from topiarist.files import sha256
from topiarist.methods import Surgeon
from topiarist.randomness import child_seed
from topiarist.study.declaration import canonical
from topiarist.training import TrainConfig

Topology = Literal["small", "medium", "large"]
Setting = Literal["published", "ours"]
Kind = Literal["sgd", "adam", "surgeon", "final"]
TOPOLOGIES: dict[Topology, tuple[int, ...]] = {"small": (10,), "medium": (10, 10, 10), "large": (300, 100, 100)}
SETTINGS: tuple[Setting, ...] = ("published", "ours")
PLAIN: tuple[Kind, ...] = ("sgd", "adam")
KINDS: tuple[Kind, ...] = (*PLAIN, "surgeon", "final")  # "final": plain training of the Surgeon's last topology
RATES: dict[Kind, float] = {"sgd": 0.005, "adam": 0.001}  # the paper's appendix; what Adam's authors recommend
SCALINGS: dict[Setting, Scaling] = {"published": "minmax", "ours": "pixels"}  # section 4.1: pixels in [0, 1]
PAPER_DECISIONS = 10  # in a training: one every 10 of 100 epochs
PAPER_SEEDS, PAPER_REPEATS = (6, 63, 72, 77, 97), 3  # the appendix; section 4.2


@dataclass(frozen=True, kw_only=True)
class Scope:
    """How much is run; epochs are those of each setting, and samples all, unless given.

    With `paper_seeds`, seeds and runs per seed are those of the paper, and `seeds` has no effect.
    """

    seeds: int
    topologies: tuple[Topology, ...] = tuple(TOPOLOGIES)
    settings: tuple[Setting, ...] = SETTINGS
    epochs: int | None = None
    samples: int | None = None  # of the training part, at most
    paper_seeds: bool = False

    def seeds_from(self, seed: int) -> list[tuple[int, int]]:
        """Return the seed of each run with the number of the run of that seed, from 0."""
        if self.paper_seeds:
            return [(each, repeat) for each in PAPER_SEEDS for repeat in range(PAPER_REPEATS)]
        return [(seed + number, 0) for number in range(self.seeds)]


FULL = Scope(seeds=5)
QUICK = Scope(seeds=2, epochs=20, samples=1000)


def changed(scope: Scope, *, seeds: int | None, epochs: int | None, samples: int | None) -> Scope:
    """Return a scope with other numbers of seeds, epochs and samples; what is None stays."""
    return replace(
        scope,
        seeds=scope.seeds if seeds is None else seeds,
        epochs=scope.epochs if epochs is None else epochs,
        samples=scope.samples if samples is None else samples,
    )


def topologies_named(names: Sequence[str]) -> tuple[Topology, ...]:
    """Return the topologies of these names, the smallest first; all without any name."""
    strange = next((name for name in names if name not in TOPOLOGIES), None)
    if strange is not None:
        raise SettingsError(f"no topology '{strange}'; there are {', '.join(TOPOLOGIES)}")
    return tuple(name for name in TOPOLOGIES if name in (names or TOPOLOGIES))


@dataclass(frozen=True, kw_only=True)
class Run:
    """One network trained, plainly or by the Surgeon; `split_seed` draws the parts of the data."""

    data: str
    topology: Topology
    setting: Setting
    kind: Kind
    seed: int
    repeat: int = 0
    split_seed: int
    epochs: int | None
    samples: int | None

    @property
    def drawn_seed(self) -> int:
        """Return the seed of weights and batches: that of the run, or one derived from it for a further run of it."""
        return self.seed if self.repeat == 0 else child_seed(self.seed, "run", self.repeat)

    @property
    def scaling(self) -> Scaling:
        """Return how inputs are scaled: to [0, 1] as published, to z-scores with ours."""
        return SCALINGS[self.setting]

    @property
    def method(self) -> Surgeon:
        """Return the Surgeon; decisions follow the number of epochs."""
        published = self.setting == "published"
        usual = Surgeon(published=published)
        epochs = usual.course.epochs if self.epochs is None else self.epochs
        training = usual.course.model_copy(update={"epochs": epochs, "seed": self.drawn_seed})
        interval = max(1, round(epochs / PAPER_DECISIONS)) if published else None
        return Surgeon(published=published, training=training, interval=interval)

    @property
    def course(self) -> TrainConfig:
        """Return the training: the Surgeon's own, which plain training has with SGD or Adam in its place."""
        course = self.method.course
        if self.kind not in PLAIN:
            return course
        return course.model_copy(update={"optimizer": self.kind, "learning_rate": RATES[self.kind]})

    @property
    def keys(self) -> dict[str, Any]:
        """Return what tells it from other runs of one reproduction."""
        return {name: getattr(self, name) for name in ("data", "topology", "setting", "kind", "seed", "repeat")}

    def fingerprint(self, samples: str) -> str:
        """Name all that its result depends on, given the name of the samples."""
        known = [asdict(self), self.scaling, self.course.model_dump(mode="json"), self.method.model_dump(mode="json")]
        return sha256(canonical([*known, samples]).encode())


def runs_of(scope: Scope, data: Iterable[str], *, seed: int) -> list[Run]:
    """Return all that is run: plain training, the Surgeon, and then the topology that it ended with."""
    return [
        Run(
            data=name,
            topology=topology,
            setting=setting,
            kind=kind,
            seed=number,
            repeat=repeat,
            split_seed=seed,
            epochs=scope.epochs,
            samples=scope.samples,
        )
        for name in data
        for topology in scope.topologies
        for setting in scope.settings
        for number, repeat in scope.seeds_from(seed)
        for kind in KINDS
    ]
