"""How much the comparison of the Surgeon runs: the command line derives its options from it, without torch."""

from typing import Any, Literal

from pydantic import Field, field_validator

from topiarist.settings import Settings

Topology = Literal["small", "medium", "large"]
Setting = Literal["published", "ours"]
TOPOLOGIES: dict[Topology, tuple[int, ...]] = {"small": (10,), "medium": (10, 10, 10), "large": (300, 100, 100)}
SETTINGS: tuple[Setting, ...] = ("published", "ours")
PAPER_SEEDS, PAPER_REPEATS = (6, 63, 72, 77, 97), 3  # the appendix; section 4.2
REPEAT_STEP = 1000  # the runs of seed 6 have the seeds 6, 1006 and 2006


class SurgeonScope(Settings):
    """How much is run; with `paper_seeds`, seeds and runs per seed are those of the paper."""

    topologies: tuple[Topology, ...] = Field(
        default=tuple(TOPOLOGIES),
        description="Start from 10 (small), 10-10-10 (medium) or 300-100-100 (large) hidden units; repeatable.",
    )
    setting: Literal["published", "ours", "both"] = Field(
        default="both", description="The Surgeon of the paper, or ours, each with its own training."
    )
    seeds: int = Field(default=5, ge=1, description="Runs of each network.")
    epochs: int | None = Field(
        default=None, ge=1, description="Epochs of every training; those of each setting unless given."
    )
    samples: int | None = Field(default=None, ge=2, description="Training samples at most; all unless given.")
    paper_seeds: bool = Field(default=False, description="The paper's seeds 6, 63, 72, 77 and 97, three runs of each.")

    @field_validator("topologies", mode="before")
    @classmethod
    def _smallest_first(cls, names: Any) -> tuple[Any, ...]:
        strange = next((name for name in names if name not in TOPOLOGIES), None)
        if strange is not None:
            raise ValueError(f"no topology '{strange}'; there are {', '.join(TOPOLOGIES)}")
        return tuple(name for name in TOPOLOGIES if name in names)

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The settings that are run."""
        return SETTINGS if self.setting == "both" else (self.setting,)

    def seeds_from(self, seed: int) -> list[int]:
        """Return the seed of each run."""
        if self.paper_seeds:
            return [each + REPEAT_STEP * repeat for each in PAPER_SEEDS for repeat in range(PAPER_REPEATS)]
        return list(range(seed, seed + self.seeds))


FULL = SurgeonScope()
QUICK = SurgeonScope(seeds=2, epochs=20, samples=1000)
