"""Sets, points and graphs: symmetric functions of their members."""
# ruff: noqa: D102
# mypy: disable-error-code="no-any-return"

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.zoo.catalogue import Made
from benchmarks.zoo.own.collected import CATALOGUE


class DeepSet(nn.Module):
    """A sum over the members of a set (Zaheer et al., 2017), some of which are masked."""

    def __init__(self, inputs: int = 4, width: int = 32, classes: int = 3) -> None:
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(inputs, 24), nn.ReLU(), nn.Linear(24, width), nn.ReLU())
        self.rho = nn.Sequential(nn.Linear(width, 24), nn.ReLU(), nn.Linear(24, classes))

    def forward(self, members: Tensor, there: Tensor) -> Tensor:
        encoded = self.phi(members) * there.unsqueeze(-1)
        return self.rho(encoded.sum(dim=1) / there.sum(dim=1, keepdim=True))


@CATALOGUE.add
def deep_sets() -> Made:
    """Return a network of sets with a mask."""
    there = torch.ones(3, 6)
    there[0, 4:] = 0
    return DeepSet(), (torch.randn(3, 6, 4), there)


class TransformNet(nn.Module):
    """A square matrix for each cloud of points, near the identity."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.k = k
        self.conv1, self.conv2 = nn.Conv1d(k, 16, 1), nn.Conv1d(16, 32, 1)
        self.bn1, self.bn2 = nn.BatchNorm1d(16), nn.BatchNorm1d(32)
        self.fc1, self.fc2 = nn.Linear(32, 24), nn.Linear(24, k * k)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.relu(self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x))))))
        x = torch.max(x, 2, keepdim=True)[0].view(x.size(0), -1)
        x = self.fc2(functional.relu(self.fc1(x)))
        identity = torch.eye(self.k).view(1, self.k * self.k).repeat(x.size(0), 1)
        return (x + identity).view(-1, self.k, self.k)


class PointNet(nn.Module):
    """Points turned by two learned matrices, then a maximum over all of them (Qi et al., 2017)."""

    def __init__(self, classes: int = 5) -> None:
        super().__init__()
        self.turn_input, self.turn_features = TransformNet(3), TransformNet(16)
        self.conv1, self.conv2 = nn.Conv1d(3, 16, 1), nn.Conv1d(16, 48, 1)
        self.bn1, self.bn2 = nn.BatchNorm1d(16), nn.BatchNorm1d(48)
        self.fc1, self.fc2 = nn.Linear(48, 24), nn.Linear(24, classes)

    def forward(self, points: Tensor) -> Tensor:
        x = torch.bmm(points.transpose(2, 1), self.turn_input(points)).transpose(2, 1)
        x = functional.relu(self.bn1(self.conv1(x)))
        x = torch.bmm(x.transpose(2, 1), self.turn_features(x)).transpose(2, 1)
        x = self.bn2(self.conv2(x)).max(dim=2)[0]
        return functional.log_softmax(self.fc2(functional.relu(self.fc1(x))), dim=1)


@CATALOGUE.add
def pointnet() -> Made:
    """Return PointNet with both of its transforms."""
    return PointNet(), torch.randn(3, 3, 10)


class GraphConvolutions(nn.Module):
    """A graph convolutional network (Kipf and Welling, 2017) with an adjacency matrix as input."""

    def __init__(self, features: int = 7, hidden: int = 32, classes: int = 4) -> None:
        super().__init__()
        self.weight1 = nn.Parameter(torch.randn(features, hidden) * 0.3)
        self.bias1 = nn.Parameter(torch.zeros(hidden))
        self.middle = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, classes, bias=False)

    def forward(self, nodes: Tensor, adjacency: Tensor) -> Tensor:
        with_self = adjacency + torch.eye(adjacency.size(0))
        degree = with_self.sum(1).pow(-0.5)
        support = degree[:, None] * with_self * degree[None, :]
        x = functional.relu(support @ (nodes @ self.weight1) + self.bias1)
        x = x + functional.relu(support @ self.middle(x))
        return support @ self.last(x)


def random_graph(nodes: int) -> Tensor:
    """Return a symmetric adjacency matrix of zeros and ones."""
    upper = torch.triu((torch.rand(nodes, nodes) < 0.4).float(), diagonal=1)
    return upper + upper.t()


@CATALOGUE.add
def graph_convolutions() -> Made:
    """Return a graph convolutional network."""
    return GraphConvolutions(), (torch.randn(9, 7), random_graph(9))


class GraphAttention(nn.Module):
    """A graph attention network (Veličković et al., 2018) with several heads."""

    def __init__(self, features: int = 7, heads: int = 3, size: int = 8, classes: int = 4) -> None:
        super().__init__()
        self.heads, self.size = heads, size
        self.project = nn.Linear(features, heads * size, bias=False)
        self.source, self.target = nn.Parameter(torch.randn(heads, size)), nn.Parameter(torch.randn(heads, size))
        self.out = nn.Linear(heads * size, classes)

    def forward(self, nodes: Tensor, adjacency: Tensor) -> Tensor:
        h = self.project(nodes).view(-1, self.heads, self.size)
        scores = (h * self.source).sum(-1)[:, None] + (h * self.target).sum(-1)[None]
        scores = functional.leaky_relu(scores, 0.2).masked_fill(adjacency[..., None] == 0, -1e9)
        mixed = torch.einsum("ijh,jhd->ihd", scores.softmax(dim=1), h)
        return self.out(functional.elu(mixed).flatten(1))


@CATALOGUE.add
def graph_attention() -> Made:
    """Return a graph attention network."""
    return GraphAttention(), (torch.randn(9, 7), random_graph(9))


class MessagePassing(nn.Module):
    """Messages along a list of edges, summed at their targets by `index_add`."""

    def __init__(self, features: int = 5, width: int = 24, rounds: int = 2) -> None:
        super().__init__()
        self.rounds = rounds
        self.encode = nn.Linear(features, width)
        self.message = nn.Sequential(nn.Linear(2 * width, 32), nn.ReLU(), nn.Linear(32, width))
        self.update = nn.GRUCell(width, width)
        self.readout = nn.Linear(width, 2)

    def forward(self, nodes: Tensor, edges: Tensor) -> Tensor:
        x = torch.relu(self.encode(nodes))
        source, target = edges
        for _ in range(self.rounds):
            messages = self.message(torch.cat([x[source], x[target]], dim=1))
            x = self.update(torch.zeros_like(x).index_add(0, target, messages), x)
        return self.readout(x).mean(dim=0)


@CATALOGUE.add
def message_passing() -> Made:
    """Return a network of messages along edges."""
    return MessagePassing(), (torch.randn(8, 5), torch.randint(0, 8, (2, 14)))


class NeighbourConvolution(nn.Module):
    """Edges to the nearest points, found anew in feature space (Wang et al., DGCNN, 2019)."""

    def __init__(self, neighbours: int = 3, classes: int = 4) -> None:
        super().__init__()
        self.k = neighbours
        self.first = nn.Sequential(nn.Conv2d(6, 16, 1, bias=False), nn.BatchNorm2d(16), nn.LeakyReLU(0.2))
        self.second = nn.Sequential(nn.Conv2d(32, 32, 1, bias=False), nn.BatchNorm2d(32), nn.LeakyReLU(0.2))
        self.head = nn.Linear(48, classes)

    def edges(self, x: Tensor) -> Tensor:
        batch, channels, points = x.shape
        nearest = torch.cdist(x.transpose(1, 2), x.transpose(1, 2)).topk(self.k, largest=False).indices
        index = nearest.view(batch, 1, points * self.k).expand(-1, channels, -1)
        around = x.gather(2, index).view(batch, channels, points, self.k)
        centre = x.unsqueeze(-1).expand_as(around)
        return torch.cat((around - centre, centre), dim=1)

    def forward(self, points: Tensor) -> Tensor:
        x1 = self.first(self.edges(points)).max(dim=-1)[0]
        x2 = self.second(self.edges(x1)).max(dim=-1)[0]
        return self.head(torch.cat((x1, x2), dim=1).mean(dim=2))


@CATALOGUE.add
def neighbour_convolutions() -> Made:
    """Return convolutions over the nearest points."""
    return NeighbourConvolution(), torch.randn(2, 3, 10)


class SetAttention(nn.Module):
    """Heads side by side in the batch, as many as the width is parted into (Lee et al., 2019)."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.width, self.heads = width, heads
        self.queries, self.keys, self.values, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, members: Tensor) -> Tensor:
        size = self.width // self.heads
        projected = self.queries(x), self.keys(members), self.values(members)
        queries, keys, values = (torch.cat(torch.split(each, size, 2), 0) for each in projected)
        weights = torch.softmax(queries.bmm(keys.transpose(1, 2)) / math.sqrt(self.width), 2)
        h = torch.cat(torch.split(queries + weights.bmm(values), x.size(0), 0), 2)
        return h + functional.relu(self.out(h))


class SetTransformer(nn.Module):
    """A set that attends to a few learned points, which attend to it (Lee et al., 2019)."""

    def __init__(self, inputs: int = 4, width: int = 32, points: int = 5, classes: int = 3) -> None:
        super().__init__()
        self.inner = nn.Parameter(torch.randn(1, points, width))
        self.seed = nn.Parameter(torch.randn(1, 1, width))
        self.embed = nn.Linear(inputs, width)
        self.gather, self.spread, self.pool = (SetAttention(width, 4) for _ in range(3))
        self.head = nn.Linear(width, classes)

    def forward(self, members: Tensor) -> Tensor:
        x = self.embed(members)
        x = self.spread(x, self.gather(self.inner.repeat(x.size(0), 1, 1), x))
        return self.head(self.pool(self.seed.repeat(x.size(0), 1, 1), x)).squeeze(1)


@CATALOGUE.add
def set_transformer() -> Made:
    """Return attention between the members of a set."""
    return SetTransformer(), torch.randn(2, 6, 4)
