"""What is done to a trained network of a study: nothing, a plain cut, or a method with a budget and with retraining."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from topiarist.errors import SettingsError
from topiarist.measurement import Budget
from topiarist.methods import Distinctiveness, Genetic, GeneticFront, Magnitude
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


AnyTreatment = Annotated[
    NoTreatment | Cut | ByDistinctiveness | ByGenetic | ByGeneticFront | ByMagnitude, Field(discriminator="name")
]
KINDS: Mapping[str, type[Settings]] = {
    "none": NoTreatment,
    "cut": Cut,
    "distinctiveness": ByDistinctiveness,
    "genetic": ByGenetic,
    "genetic-front": ByGeneticFront,
    "magnitude": ByMagnitude,
}


def treatment(**values: Any) -> Settings:
    """Make a treatment by its name; without one, it is none."""
    name = values.get("name", "none")
    if name not in KINDS:
        raise SettingsError(f"method: name: must be one of {', '.join(KINDS)}; found {name!r}", setting="name")
    return KINDS[name](**values)
