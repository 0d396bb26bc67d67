"""Training with topology optimisation against plain training, from three topologies, as published and as we do it.

After Schiessler, Aydin, Linka and Cyron, Neural network surgery: Combining training with topology optimization (2021).
The paper chooses by the part that it reports. Here a validation part is held back from training, by which the Surgeon
chooses, and the test part is never seen; the figures of both are given.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from topiarist.errors import SettingsError
from topiarist.files import sha256
from topiarist.methods import Surgeon
from topiarist.study.declaration import canonical

Topology = Literal["small", "medium", "large"]
Setting = Literal["published", "ours"]
Kind = Literal["baseline", "surgeon"]
TOPOLOGIES: dict[Topology, tuple[int, ...]] = {"small": (10,), "medium": (10, 10, 10), "large": (300, 100, 100)}
SETTINGS: tuple[Setting, ...] = ("published", "ours")
KINDS: tuple[Kind, ...] = ("baseline", "surgeon")
PAPER_DECISIONS = 10  # in a training: one every 10 of 100 epochs


@dataclass(frozen=True, kw_only=True)
class Scope:
    """How much is run; epochs are those of each setting, and samples all, unless given."""

    seeds: int
    topologies: tuple[Topology, ...] = tuple(TOPOLOGIES)
    settings: tuple[Setting, ...] = SETTINGS
    epochs: int | None = None
    samples: int | None = None  # of the training part, at most


FULL = Scope(seeds=5)
QUICK = Scope(seeds=2, epochs=20, samples=1000)


def changed(scope: Scope, *, seeds: int | None, epochs: int | None, samples: int | None) -> Scope:
    """Give a scope with other numbers of seeds, epochs and samples; what is None stays."""
    return replace(
        scope,
        seeds=scope.seeds if seeds is None else seeds,
        epochs=scope.epochs if epochs is None else epochs,
        samples=scope.samples if samples is None else samples,
    )


def topologies_named(names: Sequence[str]) -> tuple[Topology, ...]:
    """Give the topologies of these names, the smallest first; all without any name."""
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
    split_seed: int
    epochs: int | None
    samples: int | None

    @property
    def method(self) -> Surgeon:
        """Give the Surgeon, whose training is also that of the baseline; decisions follow the number of epochs."""
        published = self.setting == "published"
        usual = Surgeon(published=published)
        epochs = usual.course.epochs if self.epochs is None else self.epochs
        training = usual.course.model_copy(update={"epochs": epochs, "seed": self.seed})
        interval = max(1, round(epochs / PAPER_DECISIONS)) if published else None
        return Surgeon(published=published, training=training, interval=interval)

    @property
    def keys(self) -> dict[str, Any]:
        """Give what tells it from other runs of one reproduction."""
        return {name: getattr(self, name) for name in ("data", "topology", "setting", "kind", "seed")}

    def fingerprint(self, samples: str) -> str:
        """Name all that its result depends on, given the name of the samples."""
        return sha256(canonical([asdict(self), self.method.model_dump(mode="json"), samples]).encode())


def runs_of(scope: Scope, data: Iterable[str], *, seed: int) -> list[Run]:
    """Give all that is run, the baseline before the Surgeon."""
    return [
        Run(
            data=name,
            topology=topology,
            setting=setting,
            kind=kind,
            seed=seed + number,
            split_seed=seed,
            epochs=scope.epochs,
            samples=scope.samples,
        )
        for name in data
        for topology in scope.topologies
        for setting in scope.settings
        for number in range(scope.seeds)
        for kind in KINDS
    ]
