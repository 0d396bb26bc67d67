"""How the network for a table is found. Importing these settings does not import torch."""

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt, model_validator

from topiarist.settings import Settings

TeacherName = Literal["ensemble", "boosting", "both"]
TableTeacherName = Literal["baselines", "ensemble", "boosting", "both"]  # of a rightsizing, which has baselines
Dropout = Annotated[float, Field(ge=0, lt=1)]


class TabularConfig(Settings):
    """How `train_tabular` finds a network; the defaults suit tables of a hundred to some hundred thousand rows.

    Examples
    --------
    >>> TabularConfig(teacher="ensemble").folds
    5
    """

    hidden: tuple[PositiveInt, ...] | None = Field(
        default=None, description="Units of each hidden layer; by default 64-32, narrower where inputs are many."
    )
    teacher: TeacherName = Field(
        default="both",
        description="Who teaches the network: an ensemble of networks, gradient boosting, or both, as a blend.",
    )
    folds: int = Field(default=5, ge=2, description="Folds of the training part; each setting has a member for each.")
    rates: tuple[PositiveFloat, ...] = Field(
        default=(0.01, 0.03), min_length=1, description="Learning rates of members to choose from."
    )
    dropouts: tuple[Dropout, ...] = Field(
        default=(0.0, 0.2), min_length=1, description="Dropout in the hidden layers of members, to choose from."
    )
    weight_decays: tuple[NonNegativeFloat, ...] = Field(
        default=(0.01, 0.3),  # benchmarks/README.md: of twelve tables with few rows, the large one fits ten better
        min_length=1,
        description="Weight decays of members, decoupled as AdamW's, to choose from.",
    )
    epochs: int = Field(default=50, ge=1, description="Most passes over the rows.")
    fewest_epochs: int = Field(default=4, ge=1, description="Passes that are made over any number of rows.")
    member_samples: int = Field(
        default=100_000, ge=1, description="Samples that a member sees: of more rows it makes fewer passes."
    )
    network_samples: int = Field(default=400_000, ge=1, description="Samples that the distilled network sees.")
    search_rows: int = Field(
        default=2_000, ge=10, description="Rows on which members are compared; of more, the best is trained on all."
    )
    filled_to: int = Field(
        default=10_000, ge=0, description="Samples that a table is filled up to with mixed ones, for the teacher."
    )
    least_boosting: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of the blend of the first fold below which boosting is not fitted on the others.",
    )
    forest_rows: int = Field(
        default=400,  # benchmarks/README.md: five points of Glass, and nothing of tables with more rows
        ge=0,
        description="Most rows of several classes with which randomised trees are in the blend of both.",
    )
    device: str | None = Field(default=None, description="Device to train networks on, such as cuda; default the CPU.")
    seed: int = Field(default=0, ge=0, description="Seed of folds, weights, order and mixed samples.")

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        tried = {"rates": self.rates, "dropouts": self.dropouts, "weight_decays": self.weight_decays}
        for name, values in tried.items():
            if len(set(values)) < len(values):
                raise ValueError(f"{name} are tried once each; found {', '.join(f'{value:g}' for value in values)}")
        return self

    def epochs_of(self, rows: int, samples: int) -> int:
        """Return how many passes over so many rows show about so many samples.

        Examples
        --------
        >>> [TabularConfig().epochs_of(rows, 200_000) for rows in (150, 5_000, 200_000)]
        [50, 40, 4]
        """
        return max(min(self.fewest_epochs, self.epochs), min(self.epochs, round(samples / max(rows, 1))))
