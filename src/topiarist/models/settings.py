"""The settings of the networks that we build ourselves; importing them does not import torch."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from topiarist.settings import Settings

ActivationName = Literal["selu", "elu", "leaky_relu", "relu", "gelu", "silu", "tanh", "sigmoid"]
BatchNorm = Literal["before", "after"] | bool

MOST_HIDDEN = 1000  # layers: as many as the deepest networks that were published
LEAKY_SLOPE = 0.01  # torch's own; Huang (2024) leaves α of equation 12 open
EPSILON, MOMENTUM = 1e-5, 0.1  # torch's own: ε as in Huang (2024), equation 17; α of the moving average in 19
BLOCKS: Mapping[str, int] = {"vgg": 4, "inception": 3}

MLP_ARGUMENTS = {  # of `models.mlp`, beside the sizes
    *("activation", "leaky_slope", "batch_norm", "batch_norm_epsilon", "batch_norm_momentum"),
    *("dropout", "dropout_layers", "input_dropout"),
}
_FIELDS_OF: Mapping[str, set[str]] = {
    "mlp": {"family", "hidden", *MLP_ARGUMENTS},
    "vgg": {"family", "blocks", "options"},
    "inception": {"family", "blocks", "options"},
    "code": {"code", "options"},
}


class ModelSettings(Settings):
    """A network: fully connected layers as in `models.mlp`, another family, or your own code.

    Examples
    --------
    >>> ModelSettings(hidden=(64, 32), activation="selu", dropout=0.2).hidden
    (64, 32)
    >>> ModelSettings(family="vgg", blocks=(2, 2, 3, 3)).blocks
    (2, 2, 3, 3)
    """

    family: Literal["mlp", "vgg", "inception"] = Field(
        default="mlp", description="Fully connected layers (mlp), or convolutions of the family vgg or inception."
    )
    blocks: tuple[Annotated[NonNegativeInt, Field(le=MOST_HIDDEN)], ...] = Field(
        default=(), description="Layers in each block: 4 numbers for vgg, 3 for inception."
    )
    hidden: tuple[PositiveInt, ...] = Field(
        default=(100,), max_length=MOST_HIDDEN, description="Units of each hidden layer."
    )
    activation: ActivationName = Field(default="relu", description="Activation of the hidden layers.")
    leaky_slope: float = Field(default=LEAKY_SLOPE, ge=0, lt=1, description="Slope of leaky_relu below zero.")
    batch_norm: Literal[False, True, "before", "after"] = Field(
        default=False, description="Batch norm before or after each activation."
    )
    batch_norm_epsilon: float = Field(
        default=EPSILON, gt=0, description="Epsilon, added to the variance in batch norm."
    )
    batch_norm_momentum: float = Field(
        default=MOMENTUM, gt=0, le=1, description="Share of each batch in the moving averages of batch norm."
    )
    dropout: float = Field(default=0.0, ge=0, lt=1, description="Dropout on the last hidden layers.")
    dropout_layers: int = Field(default=3, ge=0, description="Number of last hidden layers that get dropout.")
    input_dropout: float = Field(default=0.0, ge=0, lt=1, description="Dropout on the inputs.")
    code: str | None = Field(
        default=None,
        description="Your own function, module:function, called with input_shape, classes (outputs) and options.",
    )
    options: Mapping[str, Any] = Field(
        default={}, description="Further arguments of the family's function, or of your own."
    )

    @model_validator(mode="after")
    def _check_kind(self) -> Self:
        kind = "code" if self.code is not None else self.family
        for name, field in type(self).model_fields.items():
            if name in _FIELDS_OF[kind] or getattr(self, name) == field.default:
                continue
            if kind == "code":
                raise ValueError(f"{name} has no effect on a network that is built by code: use options")
            owners = " and ".join(owner for owner, fields in _FIELDS_OF.items() if name in fields)
            raise ValueError(f"{name} belongs to {owners}, not to a network of the family {kind}")
        if kind in BLOCKS and len(self.blocks) != BLOCKS[kind]:
            raise ValueError(f"a network of the family {kind} has {BLOCKS[kind]} blocks; found {len(self.blocks)}")
        given = {"input_shape", "classes"} & set(self.options)
        if given:
            raise ValueError(f"{min(given)} follows from the data: leave it out of options")
        return self
