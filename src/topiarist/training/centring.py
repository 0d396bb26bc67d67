"""Training on centred inputs, and the same network on the inputs as they are.

Where a linear layer W reads (x − μ) / σ, a layer with the weights W / σ and the bias b − (W / σ) · μ reads x and gives
the same. So a network can learn from centred inputs, where units do not die, and be used on those that are not.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from topiarist.data import AnyPart, Data, Part
from topiarist.models.evaluation import evaluating, numbers_of, placed

LOOKED_AT = 1024  # training samples, evenly spread: 14 % right of ten classes are told from chance (binomial, 1e-6)
RARE = 0.1  # of the median deviation: the least that an input is divided by, so that a pixel rarely lit stays small
CENTRED = 0.1  # of the deviation: inputs whose mean is nearer to 0 than that on average are centred already


@dataclass(frozen=True)
class Centring:
    """The mean and the deviation of each input (n_inputs,), and the linear layers that read the inputs."""

    shift: Tensor
    scale: Tensor
    layers: Sequence[str]

    def of(self, data: Data) -> Data:
        """Return data whose training and validation parts are centred."""
        return replace(data, train=self._part(data.train), validation=self._part(data.validation))

    def _part(self, part: AnyPart) -> AnyPart:
        if not isinstance(part, Part) or not len(part):
            return part
        flat = (part.x.flatten(1) - self.shift) / self.scale
        return replace(part, x=flat.reshape(part.x.shape).to(part.x.dtype))

    def folded(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the weights that give, for inputs as they are, what the network gives for centred ones."""
        found = dict(state)
        for layer in self.layers:
            weight = state[f"{layer}.weight"] / self.scale.to(state[f"{layer}.weight"])
            found[f"{layer}.weight"] = weight
            found[f"{layer}.bias"] = state[f"{layer}.bias"] - weight @ self.shift.to(weight)
        return found


def centring_for(model: nn.Module, part: AnyPart) -> Centring | None:
    """Return how to centre a network's inputs; None where they are centred, or other than linear layers read them."""
    some = sample_of(part)
    if some is None or not some.x.is_floating_point():
        return None
    flat = some.x.flatten(1)
    shift, spread = flat.mean(dim=0), flat.std(dim=0)
    varying = spread[spread > 0]
    if not len(varying) or float((shift.abs() / spread.clamp(min=float(varying.min()))).mean()) < CENTRED:
        return None
    scale = spread.clamp(min=RARE * float(varying.median()))
    found = Centring(shift, scale, layers_reading(model, placed(some.x[:2], numbers_of(model))))
    return found if found.layers and folds_exactly(model, found, some.x[:2]) else None


def folds_exactly(model: nn.Module, centring: Centring, x: Tensor) -> bool:
    """Return whether the folded network gives for some samples what the network gives for the centred ones."""
    state = {name: value.clone() for name, value in model.state_dict().items()}
    flat = ((x.flatten(1) - centring.shift) / centring.scale).reshape(x.shape)
    like = numbers_of(model)
    with evaluating(model):
        wanted = model(placed(flat, like))
        model.load_state_dict(centring.folded(state))
        given = model(placed(x, like))
        model.load_state_dict(state)
    return torch.allclose(given, wanted, rtol=1e-3, atol=1e-3 * float(wanted.abs().max()))


def layers_reading(model: nn.Module, x: Tensor) -> list[str]:
    """Return the linear layers with a bias whose input is the sample itself, flattened."""
    found: list[str] = []

    def look(name: str) -> Callable[[nn.Module, tuple[Tensor, ...]], None]:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
            if inputs[0].shape == x.flatten(1).shape and torch.equal(inputs[0], x.flatten(1)) and name not in found:
                found.append(name)

        return hook

    linear = [(name, each) for name, each in model.named_modules() if isinstance(each, nn.Linear)]
    handles = [each.register_forward_pre_hook(look(name)) for name, each in linear if each.bias is not None]
    try:
        with evaluating(model):
            model(x)
    finally:
        for handle in handles:
            handle.remove()
    return found


def sample_of(part: AnyPart) -> Part | None:
    """Return some samples in memory, evenly spread; None of a part that is read batch by batch."""
    if not isinstance(part, Part) or len(part) < 2:
        return None
    rows = torch.linspace(0, len(part) - 1, min(LOOKED_AT, len(part))).round().long()
    return Part(part.x[rows], part.y[rows])
