"""What is done to a trained network of a study: nothing, a plain cut, or a method with a budget and with retraining."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from topiarist.errors import SettingsError
from topiarist.measurement import Budget
from topiarist.methods import Distinctiveness, Factorisation, Genetic, GeneticFront, Magnitude, Surgeon
from topiarist.methods.retraining import Retraining
from topiarist.settings import Settings


class NoTreatment(Settings):
    """The network as it was trained."""

    name: Literal["none"] = "none"


class Cut(Settings):
    """Each space keeps a fraction of its units, those that make up best for the others; what reads them is refitted."""

    name: Literal["cut"]
    keep: float = Field(gt=0, le=1)


class Treatment(Settings):
    """What `shape` takes beside a method."""

    budget: Budget | None = None
    retraining: Retraining | None = None


class ByDistinctiveness(Distinctiveness, Treatment):
    """Distinctiveness with all its settings."""

    name: Literal["distinctiveness"]


class ByGenetic(Genetic, Treatment):
    """A genetic search with all its settings."""

    name: Literal["genetic"]


class ByGeneticFront(GeneticFront, Treatment):
    """One network of the front of accuracy against size."""

    name: Literal["genetic-front"]


class ByMagnitude(Magnitude, Treatment):
    """Pruning while the network is trained again."""

    name: Literal["magnitude"]


class ByFactorisation(Factorisation, Treatment):
    """Two thin layers for one, with all its settings."""

    name: Literal["factorisation"]


class BySurgeon(Surgeon, Treatment):
    """The surgeon with all its settings; a table of its `training` changes what it names, and the rest stays."""

    name: Literal["surgeon"]

    @field_validator("training", mode="before")
    @classmethod
    def _the_rest_stays(cls, value: Any, info: ValidationInfo) -> Any:
        if not isinstance(value, Mapping):
            return value
        if "seed" in value:
            raise ValueError("the seed of a training follows from the cell: use the study's seeds")
        return {**Surgeon(published=info.data.get("published", False)).course.model_dump(), **value}

    @model_validator(mode="after")
    def _what_belongs_to_the_study(self) -> "BySurgeon":
        if self.retraining is not None:
            raise ValueError("the surgeon trains by its own settings: give training in the place of retraining")
        if self.workers > 1:
            raise ValueError("workers belong to the run of a study, not to the surgeon in it")
        return self


AnyTreatment = Annotated[
    NoTreatment | Cut | ByDistinctiveness | ByGenetic | ByGeneticFront | ByMagnitude | ByFactorisation | BySurgeon,
    Field(discriminator="name"),
]
KINDS: Mapping[str, type[Settings]] = {
    "none": NoTreatment,
    "cut": Cut,
    "distinctiveness": ByDistinctiveness,
    "genetic": ByGenetic,
    "genetic-front": ByGeneticFront,
    "magnitude": ByMagnitude,
    "factorisation": ByFactorisation,
    "surgeon": BySurgeon,
}


def treatment(**values: Any) -> Settings:
    """Make a treatment by its name; without one, it is none."""
    name = values.get("name", "none")
    if name not in KINDS:
        raise SettingsError(f"method: name: must be one of {', '.join(KINDS)}; found {name!r}", setting="name")
    return KINDS[name](**values)
