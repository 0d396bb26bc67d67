"""What a network carries with it: its spec, its classes, its input shape, its preprocessing.

We have no base class: the card is an attribute of any `nn.Module`. It survives `deepcopy`, `save` and `load`.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import nn

from topiarist.data import Data, Preprocessing, SplitRule

ATTRIBUTE = "_topiarist_card"
Bits = Literal[32, 16, 8]


@dataclass(frozen=True, kw_only=True)
class Card:
    """`spec` says how to build one of our own networks without code; it is None for a user's module.

    `rule` is how the data was split, so that the test part can be found again; `training` is how the network was
    trained, the settings that are not at their default, so that it can be rewound. `bits` are those of a weight in the
    packed file of a network that was pruned; None where its file is a plain one.
    """

    spec: dict[str, Any] | None = None
    classes: tuple[str, ...] | None = None
    input_shape: tuple[int, ...] | None = None
    preprocessing: Preprocessing | None = None
    rule: SplitRule | None = None
    training: dict[str, Any] | None = None
    bits: Bits | None = None


def card_of(model: nn.Module) -> Card:
    """Give the card of a network; an empty one where it has none."""
    card = getattr(model, ATTRIBUTE, None)
    return card if isinstance(card, Card) else Card()


def attach(model: nn.Module, card: Card) -> None:
    """Give a network a card, in the place of the one it had."""
    object.__setattr__(model, ATTRIBUTE, card)


def card_for(model: nn.Module, data: Data) -> Card:
    """Give a network's card with what is known of the data it is for."""
    return replace(
        card_of(model),
        classes=data.classes,
        input_shape=data.input_shape,
        preprocessing=data.preprocessing,
        rule=data.rule,
    )
