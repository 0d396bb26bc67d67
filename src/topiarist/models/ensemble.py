"""Several networks that answer as one: the mean of their class probabilities."""

import math
from collections.abc import Sequence
from textwrap import shorten
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from topiarist.data import Preprocessing
from topiarist.errors import ModelError
from topiarist.models.card import Card, attach, card_of
from topiarist.models.evaluation import numbers_of
from topiarist.models.stacked import leaves, signature, stackable
from topiarist.tasks import Classification, Task, TaskKind


class Ensemble(nn.Module):
    """A network that returns log Σ wₖ · softmax(zₖ) for the logits zₖ of its members: softmax of it is their mean.

    Where the cards of its members say that they predict numbers, it returns their mean; where they predict labels, the
    logit of the mean of the labels' probabilities.

    Parameters
    ----------
    members : networks that return logits (n_samples, n_classes), numbers or labels; they are held, not copied. As far
        as their cards tell, they have the same task, input and preprocessing
    weights : how much each member counts; they are divided by their sum. All count the same without them
    kind : what the members predict where their cards do not say so: "classes" unless given

    Raises
    ------
    ModelError : where the members disagree or the weights are not numbers above 0

    Examples
    --------
    >>> from topiarist.models import mlp
    >>> Ensemble([mlp([4, 8, 3]), mlp([4, 5, 3])], weights=[3, 1]).weights
    tensor([0.7500, 0.2500])
    """

    log_weights: Tensor

    def __init__(
        self, members: Sequence[nn.Module], weights: Sequence[float] | None = None, kind: TaskKind | None = None
    ) -> None:
        super().__init__()
        held = list(members)
        if not held:
            raise ModelError("an ensemble has at least 1 member; found none")
        for member in held:
            if not isinstance(member, nn.Module):
                raise ModelError(f"a member of an ensemble is an nn.Module; found {type(member).__name__}")
        if len(set(map(id, held))) < len(held):
            raise ModelError("a network is a member of an ensemble once: give it a larger weight")
        shares = _normalised([1.0] * len(held) if weights is None else list(weights), len(held))
        card = _joint_card(held, shares, kind)
        self.kind = kind or ("classes" if card.task is None else card.task.kind)
        self.members = nn.ModuleList(held)
        self.training = self.members.training = any(member.training for member in held)
        logarithms = torch.tensor([math.log(share) for share in shares], dtype=torch.float64)
        self.register_buffer("log_weights", logarithms.to(numbers_of(self.members)))
        attach(self, card)

    @property
    def weights(self) -> Tensor:
        """How much each member counts (n_members,); they sum to 1."""
        return self.log_weights.exp()

    def forward(self, x: Tensor) -> Tensor:
        """Return the mean answer of the members in the form of their outputs (n_samples, n_outputs)."""
        if self.kind == "classes":
            scores = torch.stack([functional.log_softmax(member(x), dim=1) for member in self.members])
            return torch.logsumexp(scores + self.log_weights.view(-1, 1, 1), dim=0)
        outputs = torch.stack([member(x) for member in self.members])
        return mean_outputs(outputs, self.log_weights.view(-1, 1, 1), self.kind)


def mean_outputs(outputs: Tensor, log_weights: Tensor, kind: TaskKind) -> Tensor:
    """Return the outputs (n_samples, n_outputs) that stand for the mean answer of all members (n_members, …)."""
    if kind == "classes":
        return torch.logsumexp(torch.log_softmax(outputs, dim=2) + log_weights, dim=0)
    if kind == "numbers":
        return (outputs * log_weights.exp()).sum(dim=0)
    there, absent = (torch.logsumexp(functional.logsigmoid(side) + log_weights, dim=0) for side in (outputs, -outputs))
    return there - absent


def members_of(network: nn.Module) -> list[nn.Module]:
    """Return the members of an ensemble, or the network itself."""
    return list(network.members) if isinstance(network, Ensemble) else [network]


class Facts(NamedTuple):
    """What the members of an ensemble must have in common; None for what is not known."""

    number_of_classes: int | None
    classes: tuple[str, ...] | None
    task: Task | None
    number_of_inputs: int | None
    input_shape: tuple[int, ...] | None
    preprocessing: Preprocessing | None


def facts(member: nn.Module) -> Facts:
    """Return what the card of a network says of its classes and its inputs."""
    card = card_of(member)
    spec = card.spec or {}
    while "members" in spec:
        spec = spec["members"][0]
    sizes = spec.get("sizes", [None])
    shape = spec.get("input_shape") if card.input_shape is None else card.input_shape
    return Facts(
        number_of_classes=spec.get("classes", sizes[-1]) if card.task is None else card.task.outputs,
        classes=card.classes,
        task=None if card.classes is not None else card.task,
        number_of_inputs=sizes[0] if shape is None else math.prod(shape),
        input_shape=None if shape is None else tuple(shape),
        preprocessing=card.preprocessing,
    )


def _normalised(weights: Sequence[float], count: int) -> list[float]:
    if len(weights) != count:
        raise ModelError(f"an ensemble has one weight per member; found {len(weights)} for {count}")
    try:
        numbers = [float(weight) for weight in weights]
    except (OverflowError, TypeError, ValueError) as error:
        raise ModelError(f"the weights of an ensemble are numbers: {error}") from error
    if not all(0 < number < math.inf for number in numbers) or not min(numbers) / max(numbers):
        raise ModelError(f"weights are finite and above 0: leave out a member without any; found {numbers}")
    parts = [number / max(numbers) for number in numbers]  # the sum of the numbers may overflow
    return [part / math.fsum(parts) for part in parts]


def _joint_card(members: Sequence[nn.Module], weights: list[float], kind: TaskKind | None) -> Card:
    cards, known = [card_of(member) for member in members], zip(*map(facts, members), strict=True)
    joint = Facts(*(_agreed(name, found) for name, found in zip(Facts._fields, known, strict=True)))
    specs, bits = [card.spec for card in cards], [card.bits for card in cards if card.bits is not None]
    task = Classification(joint.classes) if joint.classes is not None else joint.task
    spec = {"family": "ensemble", "members": specs, "weights": weights}
    if task is not None and task.kind != "classes":
        spec["kind"] = task.kind
    elif kind not in (None, "classes"):
        spec["kind"] = kind
    return Card(
        spec=spec if all(specs) else None,
        task=task,
        input_shape=joint.input_shape,
        preprocessing=joint.preprocessing,
        rule=cards[0].rule if all(card.rule == cards[0].rule for card in cards) else None,
        bits=max(bits) if len(bits) == len(cards) else None,  # a packed file only where every member was pruned
    )


def _agreed(name: str, found: Sequence[Any]) -> Any:
    known = {number: value for number, value in enumerate(found) if value is not None}
    first = next(iter(known), 0)
    for number, value in known.items():
        if value != known[first]:
            texts = [f"member {at} has {shorten(str(known[at]), 60)}" for at in (first, number)]
            raise ModelError(
                f"the members of an ensemble must have the same {name.replace('_', ' ')}: {', '.join(texts)}"
            )
    return known.get(first)


class JoinedEnsemble(nn.Module):
    """What an ensemble computes after training, all members at once; later changes of the members are not seen."""

    log_weights: Tensor

    def __init__(self, ensemble: Ensemble) -> None:
        super().__init__()
        self.count, self.kind = len(ensemble.members), ensemble.kind
        members = [[leaf for _, leaf in leaves(member)] for member in ensemble.members]
        layers = [_joined_layer(list(layers)) for layers in zip(*members, strict=True)]
        self.layers = nn.Sequential(*(layer for layer in layers if layer is not None))
        self.register_buffer("log_weights", ensemble.log_weights.detach().reshape(-1, 1, 1).clone())

    def forward(self, x: Tensor) -> Tensor:
        """Return the mean answer of the members in the form of their outputs (n_samples, n_outputs)."""
        return mean_outputs(self.layers(x.flatten(1).expand(self.count, -1, -1)), self.log_weights, self.kind)


def joined(ensemble: Ensemble) -> JoinedEnsemble:
    """Return a network that computes what an ensemble does after training as one: a batched product per layer.

    About twice as fast as the ensemble for small perceptrons; convolutions would be slower that way.

    Parameters
    ----------
    ensemble : its members are of one shape, of linear layers, activations, dropout and batch norm; they are copied

    Raises
    ------
    ModelError : where they are not

    Examples
    --------
    >>> from topiarist.models import mlp
    >>> joined(Ensemble([mlp([4, 8, 3]), mlp([4, 8, 3])]))(torch.zeros(5, 4)).shape
    torch.Size([5, 3])
    """
    members = list(ensemble.members)
    if not all(map(stackable, members)) or len(set(map(signature, members))) > 1:
        raise ModelError(
            "only members of one shape, of linear layers, activations, dropout and batch norm, gain by being joined"
        )
    network = JoinedEnsemble(ensemble).eval()
    attach(network, card_of(ensemble))
    return network


class JoinedLinear(nn.Module):
    """One linear layer of every member: kernels (n_members, inputs, outputs), biases (n_members, 1, outputs)."""

    kernel: Tensor
    bias: Tensor

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        super().__init__()
        zeros = layers[0].weight.new_zeros(layers[0].out_features)
        biases: list[Tensor] = [zeros if layer.bias is None else layer.bias for layer in layers]
        self.register_buffer("kernel", torch.stack([layer.weight.detach().T for layer in layers]).contiguous())
        self.register_buffer("bias", torch.stack(biases).detach().unsqueeze(1))

    def forward(self, x: Tensor) -> Tensor:
        """Return (n_members, n_samples, outputs)."""
        return torch.baddbmm(self.bias, x, self.kernel)


class JoinedNorm(nn.Module):
    """One batch norm of every member, as it is after training: a scale and a shift (n_members, 1, features)."""

    scale: Tensor
    shift: Tensor

    def __init__(self, layers: Sequence[nn.BatchNorm1d]) -> None:
        super().__init__()
        scales, shifts = zip(*map(_affine_of, layers), strict=True)
        self.register_buffer("scale", torch.stack(scales).unsqueeze(1))
        self.register_buffer("shift", torch.stack(shifts).unsqueeze(1))

    def forward(self, x: Tensor) -> Tensor:
        """Return (n_members, n_samples, features)."""
        return torch.addcmul(self.shift, x, self.scale)


def _joined_layer(layers: list[nn.Module]) -> nn.Module | None:
    """Return one layer for the same layer of all members; None for one that does nothing after training."""
    match layers[0]:
        case nn.Linear():
            return JoinedLinear([layer for layer in layers if isinstance(layer, nn.Linear)])
        case nn.BatchNorm1d():
            return JoinedNorm([layer for layer in layers if isinstance(layer, nn.BatchNorm1d)])
        case nn.Flatten() | nn.Identity() | nn.Dropout() | nn.AlphaDropout():
            return None
        case activation:
            return activation


def _affine_of(norm: nn.BatchNorm1d) -> tuple[Tensor, Tensor]:
    mean, variance = norm.running_mean, norm.running_var
    assert mean is not None
    assert variance is not None
    scale = (variance + norm.eps).rsqrt() * (1 if norm.weight is None else norm.weight.detach())
    return scale, (0 if norm.bias is None else norm.bias.detach()) - mean * scale
