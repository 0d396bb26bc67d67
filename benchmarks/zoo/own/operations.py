"""Networks that do something particular with tensors: raw parameters, slices, control flow, generated weights."""
# ruff: noqa: D102
# mypy: disable-error-code="no-any-return"

from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.zoo.catalogue import Made
from benchmarks.zoo.own.collected import CATALOGUE


class RawParameters(nn.Module):
    """Convolutions and a linear map by functions, on parameters of the network's own."""

    def __init__(self) -> None:
        super().__init__()
        self.w1, self.b1 = nn.Parameter(torch.randn(16, 3, 3, 3) * 0.2), nn.Parameter(torch.randn(16))
        self.w2 = nn.Parameter(torch.randn(24, 16, 3, 3) * 0.1)
        self.scale, self.shift = nn.Parameter(torch.rand(24) + 0.5), nn.Parameter(torch.randn(24))
        self.w3 = nn.Parameter(torch.randn(4, 24) * 0.2)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(functional.conv2d(x, self.w1, self.b1))
        x = functional.conv2d(x, self.w2) * self.scale[:, None, None] + self.shift[:, None, None]
        return functional.linear(functional.relu(x).mean((2, 3)), self.w3)


@CATALOGUE.add
def raw_parameters() -> Made:
    """Return convolutions on raw parameters."""
    return RawParameters(), torch.randn(3, 3, 8, 8)


class MatrixProducts(nn.Module):
    """A perceptron with `@` on a list of matrices, as in a first lecture."""

    def __init__(self, sizes: tuple[int, ...] = (8, 32, 24, 3)) -> None:
        super().__init__()
        pairs = list(pairwise(sizes))
        self.weights = nn.ParameterList(torch.randn(before, after) / before**0.5 for before, after in pairs)
        self.biases = nn.ParameterList(torch.zeros(after) for _, after in pairs)

    def forward(self, x: Tensor) -> Tensor:
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = torch.tanh(x @ weight + bias)
        return x @ self.weights[-1] + self.biases[-1]


@CATALOGUE.add
def matrix_products() -> Made:
    """Return a perceptron of raw matrices."""
    return MatrixProducts(), torch.randn(3, 8)


class ShapeFlow(nn.Module):
    """Python that depends on shapes: branches, a loop until the image is small, assertions."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3)
        self.shrink = nn.Conv2d(16, 16, 3, stride=2, padding=1)
        self.last = nn.Conv2d(16, 24, 1)
        self.out = nn.Linear(24, 3)

    def forward(self, x: Tensor) -> Tensor:
        assert x.dim() == 4
        y = self.first(x)
        if x.shape[-1] > 4:
            y = functional.relu(y)
        while min(y.shape[-2:]) > 2:
            y = functional.relu(self.shrink(y))
        y = self.last(y)
        b, c, h, w = y.shape
        return self.out(y.view(b, c, h * w).mean(-1))


@CATALOGUE.add
def shape_control_flow() -> Made:
    """Return a network with branches and loops on shapes."""
    return ShapeFlow(), torch.randn(3, 3, 14, 14)


class Slices(nn.Module):
    """Channels taken by slices, by `index_select` and by number; steps by `gather`."""

    order: Tensor

    def __init__(self, inputs: int = 6, width: int = 24, classes: int = 3) -> None:
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.early, self.late = nn.Linear(width // 2, 16), nn.Linear(width // 2, 16)
        self.mixed = nn.Linear(width, 16)
        self.out = nn.Linear(16, classes)
        self.register_buffer("order", torch.randperm(width))

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        x = torch.relu(self.first(x))
        middle = x.shape[-1] // 2
        y = self.early(x[..., :middle]) + self.late(x[..., middle:])
        y = torch.tanh(y + self.mixed(x.index_select(-1, self.order)))
        last = (lengths - 1).view(-1, 1, 1).expand(-1, 1, y.size(-1))
        return self.out(y.gather(1, last).squeeze(1))


@CATALOGUE.add
def slices_and_gather() -> Made:
    """Return a network that takes parts of channels and steps."""
    return Slices(), (torch.randn(3, 5, 6), torch.tensor([5, 2, 3]))


class HyperNetwork(nn.Module):
    """A network whose second layer is computed by another network, for each sample."""

    def __init__(self, inputs: int = 6, hidden: int = 20, context: int = 4, classes: int = 3) -> None:
        super().__init__()
        self.hidden, self.classes = hidden, classes
        self.first = nn.Linear(inputs, hidden)
        self.generator = nn.Sequential(nn.Linear(context, 24), nn.ReLU(), nn.Linear(24, hidden * classes))

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        weights = self.generator(context).view(-1, self.classes, self.hidden)
        return torch.bmm(weights, torch.relu(self.first(x)).unsqueeze(-1)).squeeze(-1)


@CATALOGUE.add
def hypernetwork() -> Made:
    """Return a network that computes another's weights."""
    return HyperNetwork(), (torch.randn(3, 6), torch.randn(3, 4))


class FeatureWise(nn.Module):
    """A convolutional network whose channels a second input scales and shifts (Perez et al., FiLM, 2018)."""

    def __init__(self, width: int = 20, classes: int = 4) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.film = nn.Linear(5, 2 * width)
        self.bn = nn.BatchNorm2d(width, affine=False)
        self.fc = nn.Linear(width, classes)

    def forward(self, image: Tensor, condition: Tensor) -> Tensor:
        x = torch.relu(self.conv1(image))
        gamma, beta = self.film(condition)[:, :, None, None].chunk(2, dim=1)
        x = torch.relu((1 + gamma) * self.bn(self.conv2(x)) + beta)
        return self.fc(x.amax(dim=(-2, -1)))


@CATALOGUE.add
def feature_wise_modulation() -> Made:
    """Return a network with channels scaled by a condition."""
    return FeatureWise(), {"image": torch.randn(3, 3, 8, 8), "condition": torch.randn(3, 5)}


class ManyOutputs(nn.Module):
    """One trunk, three heads; a nested dictionary comes back."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 24), nn.ReLU())
        self.heads = nn.ModuleDict({"age": nn.Linear(24, 1), "sex": nn.Linear(24, 2), "mood": nn.Linear(24, 5)})

    def forward(self, x: Tensor) -> dict[str, object]:
        features = self.trunk(x)
        answers = {name: head(features) for name, head in self.heads.items()}
        return {"answers": answers, "best": answers["mood"].argmax(dim=1)}


@CATALOGUE.add
def dictionary_outputs() -> Made:
    """Return a network with several heads and a nested dictionary as its output."""
    return ManyOutputs(), torch.randn(3, 8)


class Maxout(nn.Module):
    """Units that are the maximum of three linear maps (Goodfellow et al., 2013), then a gated linear unit."""

    def __init__(self, inputs: int = 7, units: int = 20, pieces: int = 3, classes: int = 3) -> None:
        super().__init__()
        self.units, self.pieces = units, pieces
        self.linear = nn.Linear(inputs, units * pieces)
        self.gated = nn.Linear(units, 32)
        self.out = nn.Linear(16, classes)

    def forward(self, x: Tensor) -> Tensor:
        x = self.linear(x).view(-1, self.units, self.pieces).max(dim=2).values
        return self.out(functional.glu(self.gated(x), dim=-1))


@CATALOGUE.add
def maxout_and_glu() -> Made:
    """Return maxout units and a gated linear unit."""
    return Maxout(), torch.randn(3, 7)


class EarlyExits(nn.Module):
    """Blocks that run one after the other through `getattr`, with a head each; the answers are stacked."""

    def __init__(self, inputs: int = 6, width: int = 24, classes: int = 3, depth: int = 3) -> None:
        super().__init__()
        self.depth = depth
        for number in range(depth):
            setattr(self, f"layer{number}", nn.Linear(inputs if number == 0 else width, width))
            setattr(self, f"exit{number}", nn.Linear(width, classes))

    def forward(self, x: Tensor) -> Tensor:
        answers = []
        for number in range(self.depth):
            x = functional.leaky_relu(getattr(self, f"layer{number}")(x))
            answers.append(getattr(self, f"exit{number}")(x))
        return torch.stack(answers).mean(0)


@CATALOGUE.add
def early_exits() -> Made:
    """Return a network with a head after every layer."""
    return EarlyExits(), torch.randn(3, 6)
