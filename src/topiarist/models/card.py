"""What a network carries with it: its spec, its task, its input shape, its preprocessing.

We have no base class: the card is an attribute of any `nn.Module`. It survives `deepcopy`, `save` and `load`.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import nn

from topiarist.data import Data, Preprocessing, SplitRule
from topiarist.files import JsonObject
from topiarist.tasks import Classification, Task

Bits = Literal[32, 16, 8]
Spec = JsonObject  # the name of a family, and the arguments of its function as JSON

_ATTRIBUTE = "_topiarist_card"


@dataclass(frozen=True, kw_only=True)
class Card:
    """Facts about a network that are saved with it.

    Parameters
    ----------
    spec : how to build one of our own networks without code; None for a user's module
    task, input_shape, preprocessing : those of the data it was trained on
    rule : how the data was split, so that the test part can be found again
    training : the settings of its training that are not at their default, so that it can be rewound
    bits : of a weight in the packed file of a pruned network; None where its file is a plain one
    """

    spec: Spec | None = None
    task: Task | None = None
    input_shape: tuple[int, ...] | None = None
    preprocessing: Preprocessing | None = None
    rule: SplitRule | None = None
    training: JsonObject | None = None
    bits: Bits | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> "Card":
        """Return the card itself: it never changes, and copies of 2,000 columns take longer than those of weights."""
        return self

    @property
    def classes(self) -> tuple[str, ...] | None:
        """The classes of a classifier; None of any other network, and where nothing is known."""
        return self.task.classes if isinstance(self.task, Classification) else None


def card_of(model: nn.Module) -> Card:
    """Return the card of a network; an empty one where it has none."""
    card = getattr(model, _ATTRIBUTE, None)
    return card if isinstance(card, Card) else Card()


def attach(model: nn.Module, card: Card) -> None:
    """Put a card on a network, in the place of the one it had."""
    object.__setattr__(model, _ATTRIBUTE, card)


def known_task(task: Task) -> Task:
    """Return a task as it is kept with a network: without a loss, which belongs to the training, or code."""
    return replace(task, loss=None, own_loss=None, own_metric=None)


def card_for(model: nn.Module, data: Data) -> Card:
    """Return the card of a network, completed by what is known of the data it is for; it keeps its temperature."""
    card = card_of(model)
    return replace(
        card,
        task=known_task(data.task).answering_like(card.task),
        input_shape=data.input_shape,
        preprocessing=data.preprocessing,
        rule=data.rule,
    )
