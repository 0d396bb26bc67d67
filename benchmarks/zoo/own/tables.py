"""Tables, users and pairs: perceptrons, recommenders, siamese networks."""
# ruff: noqa: D102
# mypy: disable-error-code="no-any-return"

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.zoo.catalogue import Made, words
from benchmarks.zoo.own.collected import CATALOGUE


@CATALOGUE.add
def perceptron() -> Made:
    """Return a perceptron with batch norm and dropout."""
    layers = [nn.Linear(12, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 32), nn.SELU()]
    return nn.Sequential(*layers, nn.Linear(32, 3)), torch.randn(3, 12)


class Filtering(nn.Module):
    """A product of embeddings beside a perceptron on other embeddings (He et al., NCF, 2017)."""

    def __init__(self, users: int = 20, items: int = 30, factors: int = 12) -> None:
        super().__init__()
        self.user_gmf, self.item_gmf = nn.Embedding(users, factors), nn.Embedding(items, factors)
        self.user_mlp, self.item_mlp = nn.Embedding(users, 16), nn.Embedding(items, 16)
        self.mlp = nn.Sequential(nn.Linear(32, 24), nn.ReLU(), nn.Linear(24, 12), nn.ReLU())
        self.predict = nn.Linear(factors + 12, 1)

    def forward(self, user: Tensor, item: Tensor) -> Tensor:
        product = self.user_gmf(user) * self.item_gmf(item)
        deep = self.mlp(torch.cat([self.user_mlp(user), self.item_mlp(item)], dim=-1))
        return self.predict(torch.cat([product, deep], dim=-1)).squeeze(-1)


@CATALOGUE.add
def collaborative_filtering() -> Made:
    """Return neural collaborative filtering."""
    return Filtering(), (torch.randint(0, 20, (4,)), torch.randint(0, 30, (4,)))


class Recommendation(nn.Module):
    """Embedding bags and dot products of all pairs of features (Naumov et al., DLRM, 2019)."""

    def __init__(self, tables: int = 3, rows: int = 20, width: int = 12) -> None:
        super().__init__()
        self.bags = nn.ModuleList(nn.EmbeddingBag(rows, width, mode="sum") for _ in range(tables))
        self.bottom = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, width), nn.ReLU())
        self.top = nn.Sequential(nn.Linear(width + 6, 24), nn.ReLU(), nn.Linear(24, 1))

    def forward(self, dense: Tensor, sparse: Tensor) -> Tensor:
        x = self.bottom(dense)
        features = torch.stack([x, *(bag(sparse[:, number]) for number, bag in enumerate(self.bags))], dim=1)
        products = torch.bmm(features, features.transpose(1, 2))
        rows, columns = torch.tril_indices(products.size(1), products.size(1), offset=-1)
        return torch.sigmoid(self.top(torch.cat([x, products[:, rows, columns]], dim=1)))


@CATALOGUE.add
def recommendation() -> Made:
    """Return a recommender with products of pairs."""
    return Recommendation(), (torch.randn(3, 6), torch.randint(0, 20, (3, 3, 2)))


class Siamese(nn.Module):
    """One network for both of two images, and a layer on the difference of what it finds."""

    def __init__(self, features: int = 32) -> None:
        super().__init__()
        self.convs = nn.Sequential(
            nn.Conv2d(1, 12, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(12, 20, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2)
        )
        self.embed = nn.Linear(80, features)
        self.same = nn.Linear(features, 1)

    def once(self, image: Tensor) -> Tensor:
        return functional.normalize(self.embed(self.convs(image).view(image.size(0), -1)), dim=1)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        return torch.sigmoid(self.same((self.once(left) - self.once(right)).abs()))


@CATALOGUE.add
def siamese() -> Made:
    """Return a siamese network."""
    return Siamese(), (torch.randn(3, 1, 12, 12), torch.randn(3, 1, 12, 12))


class TwoTowers(nn.Module):
    """Two encoders whose outputs are compared by cosine."""

    def __init__(self, vocabulary: int = 40, width: int = 16, shared: int = 24) -> None:
        super().__init__()
        self.words = nn.EmbeddingBag(vocabulary, width)
        self.query = nn.Sequential(nn.Linear(width, 32), nn.ReLU(), nn.Linear(32, shared))
        self.document = nn.Sequential(nn.Linear(9, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, shared))
        self.temperature = nn.Parameter(torch.tensor(0.5))

    def forward(self, query: Tensor, document: Tensor) -> Tensor:
        left, right = self.query(self.words(query)), self.document(document)
        return functional.cosine_similarity(left[:, None], right[None], dim=-1) / self.temperature


@CATALOGUE.add
def two_towers() -> Made:
    """Return two encoders compared by cosine."""
    return TwoTowers(), (words(3, 5, 40), torch.randn(4, 9))


class Highway(nn.Module):
    """Gates that pass on or compute (Srivastava et al., 2015)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.compute, self.gate = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        gate = torch.sigmoid(self.gate(x))
        return gate * torch.relu(self.compute(x)) + (1 - gate) * x


@CATALOGUE.add
def highway() -> Made:
    """Return a highway network."""
    return nn.Sequential(nn.Linear(8, 32), Highway(32), Highway(32), nn.Linear(32, 3)), torch.randn(3, 8)


class ColumnTransformer(nn.Module):
    """A token per column of a table, categories and numbers (Gorishniy et al., FT-Transformer, 2021)."""

    def __init__(self, numbers: int = 4, categories: tuple[int, ...] = (3, 5), width: int = 24) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(numbers, width) * 0.3)
        self.bias = nn.Parameter(torch.randn(numbers, width) * 0.3)
        self.tables = nn.ModuleList(nn.Embedding(count, width) for count in categories)
        self.token = nn.Parameter(torch.randn(width))
        layer = nn.TransformerEncoderLayer(width, 2, 40, activation="gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Sequential(nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, 1))

    def forward(self, numbers: Tensor, categories: Tensor) -> Tensor:
        tokens = numbers[..., None] * self.weight + self.bias
        looked_up = torch.stack([table(categories[:, i]) for i, table in enumerate(self.tables)], dim=1)
        first = self.token.expand(len(numbers), 1, -1)
        return self.head(self.encoder(torch.cat([first, tokens, looked_up], dim=1))[:, 0])


@CATALOGUE.add
def column_transformer() -> Made:
    """Return a transformer over the columns of a table."""
    return ColumnTransformer(), (torch.randn(3, 4), torch.randint(0, 3, (3, 2)))


class ActorCritic(nn.Module):
    """A shared trunk with a policy, a value, and a dueling advantage."""

    def __init__(self, observations: int = 9, width: int = 32, actions: int = 4) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(observations, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.policy, self.value = nn.Linear(width, actions), nn.Linear(width, 1)
        self.advantage = nn.Linear(width, actions)

    def forward(self, observation: Tensor) -> tuple[Tensor, Tensor]:
        x = self.trunk(observation)
        advantage = self.advantage(x)
        quality = self.value(x) + advantage - advantage.mean(dim=-1, keepdim=True)
        return self.policy(x).softmax(dim=-1), quality


@CATALOGUE.add
def actor_critic() -> Made:
    """Return a network that acts and judges."""
    return ActorCritic(), torch.randn(3, 9)


class Autoencoder(nn.Module):
    """An autoencoder whose decoder uses the encoder's weights, transposed."""

    def __init__(self, inputs: int = 16, hidden: int = 24, code: int = 6) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(inputs, hidden), nn.Linear(hidden, code)
        self.back, self.out = nn.Parameter(torch.zeros(hidden)), nn.Parameter(torch.zeros(inputs))

    def forward(self, x: Tensor) -> Tensor:
        code = torch.tanh(self.second(torch.tanh(self.first(x))))
        x = torch.tanh(functional.linear(code, self.second.weight.t(), self.back))
        return functional.linear(x, self.first.weight.t(), self.out)


@CATALOGUE.add
def tied_autoencoder() -> Made:
    """Return an autoencoder with tied weights."""
    return Autoencoder(), torch.randn(3, 16)
