"""Training on centred inputs, and the same network on the inputs as they are.

Where a linear layer W reads (x − μ) / σ, a layer with the weights W / σ and the bias b − (W / σ) · μ reads x and gives
the same. So a network can learn from centred inputs, where units do not die, and be used on those that are not.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor, nn

from topiarist.data import AnyPart, Data, Part
from topiarist.models.evaluation import evaluating, numbers_of, placed

SAMPLES = 1024  # of training, evenly spread: 14 % right of ten classes differ from chance (binomial, 1e-6)
# Of large images, as many as take 64 MB in float32: 20 % right of 256 differ from chance as surely.
SAMPLE_BYTES, FEWEST_SAMPLES = 2**26, 256
RARE = 0.1  # of the median deviation: the least that an input is divided by, so that a pixel rarely lit stays small
CENTRED = 0.1  # of the deviation: inputs whose mean is nearer to 0 than that on average are centred already


@dataclass(frozen=True)
class Centring:
    """The mean and the deviation of each input (n_inputs,), and the linear layers that read the inputs."""

    shift: Tensor
    scale: Tensor
    layers: Sequence[str]

    def centred(self, x: Tensor) -> Tensor:
        """Return centred samples (n_samples, *input_shape)."""
        return ((x.flatten(1) - self.shift) / self.scale).reshape(x.shape).to(x.dtype)

    def of(self, data: Data) -> Data:
        """Return data whose training and validation parts are centred."""
        return replace(data, train=self._part(data.train), validation=self._part(data.validation))

    def _part(self, part: AnyPart) -> AnyPart:
        if not isinstance(part, Part) or not len(part):
            return part
        samples = part.samples
        centred = self.centred(samples) if isinstance(samples, Tensor) else replace(samples, then=self.centred)
        return replace(part, samples=centred, effects=None)

    def folded(self, state: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return the weights that give, for inputs as they are, what the network gives for centred ones."""
        found = dict(state)
        for layer in self.layers:
            weight = state[f"{layer}.weight"] / self.scale.to(state[f"{layer}.weight"])
            found[f"{layer}.weight"] = weight
            found[f"{layer}.bias"] = state[f"{layer}.bias"] - weight @ self.shift.to(weight)
        return found

    def folds_exactly(self, model: nn.Module, x: Tensor) -> bool:
        """Return whether the folded network gives for some samples what the network gives for the centred ones."""
        state = {name: value.clone() for name, value in model.state_dict().items()}
        like = numbers_of(model)
        with evaluating(model):
            wanted = model(placed(self.centred(x), like))
            model.load_state_dict(self.folded(state))
            found = model(placed(x, like))
            model.load_state_dict(state)
        return torch.allclose(found, wanted, rtol=1e-3, atol=1e-3 * float(wanted.abs().max()))


def centring_for(model: nn.Module, part: AnyPart) -> Centring | None:
    """Return how to centre a network's inputs; None where they are centred, or other than linear layers read them."""
    some = some_samples(part)
    if some is None or not some.x.is_floating_point():
        return None
    flat = some.x.flatten(1)
    shift, spread = flat.mean(dim=0), flat.std(dim=0)
    varying = spread[spread > 0]
    if not len(varying) or float((shift.abs() / spread.clamp(min=float(varying.min()))).mean()) < CENTRED:
        return None
    scale = spread.clamp(min=RARE * float(varying.median()))
    found = Centring(shift, scale, layers_reading(model, placed(some.x[:2], numbers_of(model))))
    return found if found.layers and found.folds_exactly(model, some.x[:2]) else None


def layers_reading(model: nn.Module, x: Tensor) -> list[str]:
    """Return the linear layers with a bias whose input is the sample itself, flattened."""
    flat, found = x.flatten(1), dict[str, None]()

    def look(name: str, module: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if inputs[0].shape == flat.shape and torch.equal(inputs[0], flat):
            found[name] = None

    linear = [(name, each) for name, each in model.named_modules() if isinstance(each, nn.Linear)]
    handles = [each.register_forward_pre_hook(partial(look, name)) for name, each in linear if each.bias is not None]
    try:
        with evaluating(model):
            model(x)
    finally:
        for handle in handles:
            handle.remove()
    return list(found)


def some_samples(part: AnyPart) -> Part | None:
    """Return some samples in memory, evenly spread; None for a part that is read batch by batch."""
    if not isinstance(part, Part) or len(part) < 2:
        return None
    held = SAMPLE_BYTES // (4 * max(1, math.prod(part.samples.shape[1:])))
    count = min(SAMPLES, len(part), max(FEWEST_SAMPLES, held))
    rows = torch.linspace(0, len(part) - 1, count).round().long()
    return part.take(rows)
