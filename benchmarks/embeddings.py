"""Do learned embeddings of categories pay over one-hot inputs, in a network of at most 100 KB?

Tables that are generated: one column of many categories beside five numbers. In the world `effects`, each category adds
a number of its own to the logit; in `factors`, each has three hidden factors that weigh three of the numbers, as towns
or products have. One-hot inputs are what `load_data` makes, at most 1,000 per column, and `models.tabular` reads them
with as many units as 20,000 weights allow; embeddings have 4 or 8 numbers per category, followed by 64-32. Both learn
at the best of three rates by the validation part.

    python -m benchmarks.embeddings [--splits 3]

takes about 3 minutes of one core.
"""

import argparse
import copy
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy
import pandas
import torch
from torch import Tensor, nn

from benchmarks.paging.records import Figure, Sheet
from benchmarks.paging.writing import stamp, write_results
from topiarist import Data, TrainConfig, models, train_many
from topiarist.data import Part
from topiarist.randomness import array_generator, child_seed, isolated
from topiarist.threads import torch_threads
from topiarist.training.inference import part_logits
from topiarist.training.rescue import validation_loss

ROWS, NUMBERS, FACTORS = 6_000, 5, 3
WORLDS, CARDINALITIES, DIMENSIONS = ("effects", "factors"), (300, 1_500), (4, 8)
RATES = (0.003, 0.01, 0.03)
TRAINING = TrainConfig(
    epochs=20, batch_size=64, schedule="cosine", optimizer="adamw", weight_decay=0.01, early_stopping=20, threads=1
)


class EmbeddedTable(nn.Module):
    """The first input is the number of a category; the others are numbers."""

    def __init__(self, categories: int, dimensions: int, numbers: int, outputs: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(categories, dimensions)
        nn.init.normal_(self.embedding.weight, std=1 / math.sqrt(dimensions))
        self.layers = models.tabular(dimensions + numbers, outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return logits."""
        outputs: Tensor = self.layers(torch.cat([self.embedding(x[:, 0].long()), x[:, 1:]], dim=1))
        return outputs


def make_world(world: str, cardinality: int, seed: int) -> tuple[pandas.DataFrame, numpy.typing.NDArray[numpy.str_]]:
    """Return a table and its classes; few categories are frequent and many are rare, as Zipf found of words."""
    random = array_generator(seed, world, cardinality)
    shares = 1 / numpy.arange(1, cardinality + 1) ** 0.7
    place = random.choice(cardinality, ROWS, p=shares / shares.sum())
    x = random.normal(size=(ROWS, NUMBERS))
    if world == "effects":
        logit = 2 * random.normal(size=cardinality)[place] + x[:, 0] + x[:, 1] * x[:, 2]
    else:
        logit = 1.5 * (random.normal(size=(cardinality, FACTORS))[place] * x[:, :FACTORS]).sum(axis=1)
    y = numpy.where(random.random(ROWS) < 1 / (1 + numpy.exp(-2 * logit)), "yes", "no")
    table = pandas.DataFrame(x, columns=[f"x{number}" for number in range(NUMBERS)])
    table.insert(0, "place", [f"place {number}" for number in place])
    return table, y


def one_hot(table: pandas.DataFrame, y: Sequence[str], seed: int) -> Data:
    """Return the table as it is read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # notes on rare categories
        return Data.from_arrays(table, y, scaling="auto", seed=seed)


def with_indices(data: Data, table: pandas.DataFrame) -> tuple[Data, int]:
    """Return the same parts with the number of the category as first input, 0 for one that training does not show."""
    assert data.split is not None
    shown = {text: place + 1 for place, text in enumerate(sorted(set(table["place"].iloc[data.split.train])))}
    index = torch.tensor([shown.get(text, 0) for text in table["place"]], dtype=torch.float32)

    def changed(part: object, rows: numpy.typing.NDArray[numpy.intp]) -> Part:
        assert isinstance(part, Part)
        return replace(part, samples=torch.cat([index[rows][:, None], part.x[:, -NUMBERS:]], dim=1))

    made = replace(
        data,
        input_shape=(1 + NUMBERS,),
        preprocessing=None,
        train=changed(data.train, data.split.train),
        validation=changed(data.validation, data.split.validation),
        test=changed(data.test, data.split.test),
    )
    return made, len(shown) + 1


def best_accuracy(network: nn.Module, data: Data) -> tuple[float, float]:
    """Return the accuracy on the test part at the best rate, and the size of the weights in KB."""
    networks = [copy.deepcopy(network) for _ in RATES]
    train_many(networks, data, [TRAINING.changed(learning_rate=rate) for rate in RATES])
    best = min(networks, key=lambda each: validation_loss(each, data))
    outputs, y = part_logits(best, data.test)
    size = sum(value.numel() for value in best.parameters()) * 4 / 1024
    return float((outputs.argmax(dim=1) == y).float().mean()), size


def main() -> None:
    """Measure every world and cardinality, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", type=int, default=3)
    splits = range(parser.parse_args().splits)
    figures = []
    for world in WORLDS:
        for cardinality in CARDINALITIES:
            found: dict[str, list[tuple[float, float]]] = {}
            for split in splits:
                table, y = make_world(world, cardinality, split)
                data = one_hot(table, y.tolist(), split)
                found.setdefault("one-hot", []).append(best_accuracy(models.tabular(data.input_shape[0], 2), data))
                indexed, categories = with_indices(data, table)
                for dimensions in DIMENSIONS:
                    with isolated(child_seed(split, "embedding")):
                        network = EmbeddedTable(categories, dimensions, NUMBERS, 2)
                    found.setdefault(f"embedding of {dimensions}", []).append(best_accuracy(network, indexed))
            case = f"{world}, {cardinality:,} categories"
            for name, pairs in found.items():
                accuracies, sizes = zip(*pairs, strict=True)
                percent = tuple(100 * each for each in accuracies)
                figures += [
                    Figure(case=case, contender=name, measure="accuracy, %", values=percent),
                    Figure(case=case, contender=name, measure="KB", values=sizes),
                ]
    command = f"python -m benchmarks.embeddings --splits {len(splits)}"
    print(write_results("embeddings", Sheet(**stamp(command), figures=tuple(figures))))


if __name__ == "__main__":
    with torch_threads(1):
        main()
