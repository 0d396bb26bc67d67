"""What is known of parameters and buffers, and of tensors that are made of them."""

from dataclasses import dataclass, field

from torch import Tensor

from topiarist.tracing.vectors import Axes, Vector


@dataclass(frozen=True)
class Origin:
    """The parameter that a tensor is made of, and the parameter's axis that each axis of the tensor lies along."""

    name: str
    dimensions: tuple[int | None, ...]


@dataclass
class Leaf:
    """A parameter or buffer with the labels of its axes."""

    tensor: Tensor
    axes: Axes
    roles: dict[int, set[str]] = field(default_factory=dict)
    users: list[str | None] = field(default_factory=list)  # layers in which it is used; None for forward itself


@dataclass
class Renumbering:
    """A buffer of whole numbers that picks positions along an axis: its values follow a cut of that axis."""

    name: str
    vector: Vector


@dataclass(frozen=True)
class Product:
    """Multiplications: as many as there are positions along axes with units, times a number.

    `of_input` says that they are made for each sample, not once of parameters alone.
    """

    times: int
    axes: tuple[Vector, ...]
    of_input: bool
