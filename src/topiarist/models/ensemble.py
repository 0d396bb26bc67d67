"""Several networks that answer as one: the mean of their class probabilities."""

import math
from collections.abc import Sequence
from textwrap import shorten
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from topiarist.errors import ModelError
from topiarist.models.card import Bits, Card, attach, card_of
from topiarist.models.evaluation import numbers_of


class Ensemble(nn.Module):
    """Gives log Σ wₖ · softmax(zₖ) for the logits zₖ of its members, so that softmax of it is their weighted mean.

    A member is any network that gives logits (n_samples, n_classes); it is held, not copied. As far as the members'
    cards tell, they have the same classes, input and preprocessing. Without weights, all members count the same.
    """

    log_weights: Tensor

    def __init__(self, members: Sequence[nn.Module], weights: Sequence[float] | None = None) -> None:
        super().__init__()
        held = list(members)
        check(held)
        shares = normalised([1.0] * len(held) if weights is None else list(weights), len(held))
        card = joint_card(held, shares)
        self.members = nn.ModuleList(held)
        self.training = self.members.training = any(member.training for member in held)
        logarithms = torch.tensor([math.log(share) for share in shares], dtype=torch.float64)
        self.register_buffer("log_weights", logarithms.to(numbers_of(self.members)))
        attach(self, card)

    @property
    def weights(self) -> Tensor:
        """Give how much each member counts (n_members,); they sum to 1."""
        return self.log_weights.exp()

    def forward(self, x: Tensor) -> Tensor:
        """Give the logarithm of the mean of the members' class probabilities (n_samples, n_classes)."""
        scores = torch.stack([functional.log_softmax(member(x), dim=1) for member in self.members])
        return torch.logsumexp(scores + self.log_weights.view(-1, 1, 1), dim=0)


def check(members: Sequence[nn.Module]) -> None:
    """Refuse what makes no ensemble."""
    if not members:
        raise ModelError("an ensemble has at least 1 member; found none")
    for member in members:
        if not isinstance(member, nn.Module):
            raise ModelError(f"a member of an ensemble is an nn.Module; found {type(member).__name__}")
    if len(set(map(id, members))) < len(members):
        raise ModelError("a network is a member of an ensemble once: give it a larger weight")


def normalised(weights: Sequence[float], count: int) -> list[float]:
    """Give weights that sum to 1."""
    if len(weights) != count:
        raise ModelError(f"an ensemble has one weight a member; found {len(weights)} for {count}")
    try:
        numbers = [float(weight) for weight in weights]
    except (OverflowError, TypeError, ValueError) as error:
        raise ModelError(f"the weights of an ensemble are numbers: {error}") from error
    if not all(0 < number < math.inf for number in numbers) or not min(numbers) / max(numbers):
        raise ModelError(f"weights are finite and above 0, so leave out a member without any; found {numbers}")
    parts = [number / max(numbers) for number in numbers]  # the sum of the numbers may be too large for one
    return [part / math.fsum(parts) for part in parts]


def joint_card(members: Sequence[nn.Module], weights: list[float]) -> Card:
    """Give what the members' cards say as one; what they must agree in, they do, as far as it is known."""
    cards, known = [card_of(member) for member in members], [facts(member) for member in members]
    joint = {what: agreed(what, [found[what] for found in known]) for what in known[0]}
    specs = [card.spec for card in cards]
    return Card(
        spec={"family": "ensemble", "members": specs, "weights": weights} if all(specs) else None,
        classes=joint["classes"],
        input_shape=joint["input shape"],
        preprocessing=joint["preprocessing"],
        rule=cards[0].rule if all(card.rule == cards[0].rule for card in cards) else None,
        bits=joint_bits([card.bits for card in cards]),
    )


def joint_bits(found: Sequence[Bits | None]) -> Bits | None:
    """Give the bits of a weight in the file of pruned members; None where one of them is not pruned."""
    known = [bits for bits in found if bits is not None]
    return max(known) if len(known) == len(found) else None


def members_of(network: nn.Module) -> list[nn.Module]:
    """Give the members of an ensemble, or the network itself."""
    return list(network.members) if isinstance(network, Ensemble) else [network]


def facts(member: nn.Module) -> dict[str, Any]:
    """Give what is known of a member that others must have too; None for what is not."""
    card = card_of(member)
    spec = card.spec or {}
    while "members" in spec:
        spec = spec["members"][0]
    sizes = spec.get("sizes", [None])
    shape = spec.get("input_shape") if card.input_shape is None else card.input_shape
    return {
        "number of classes": spec.get("classes", sizes[-1]) if card.classes is None else len(card.classes),
        "classes": card.classes,
        "number of inputs": sizes[0] if shape is None else math.prod(shape),
        "input shape": None if shape is None else tuple(shape),
        "preprocessing": card.preprocessing,
    }


def agreed(what: str, found: Sequence[Any]) -> Any:
    """Give what all members have, None where it is known of none."""
    known = {number: value for number, value in enumerate(found) if value is not None}
    first = next(iter(known), 0)
    for number, value in known.items():
        if value != known[first]:
            texts = [f"member {at} has {shorten(str(known[at]), 60)}" for at in (first, number)]
            raise ModelError(f"the members of an ensemble must have the same {what}: {', '.join(texts)}")
    return known.get(first)
