"""What masks cost: a step of training with 80 % of the weights held at zero, against the same step without masks.

`python -m benchmarks.masked_training`: one thread, processor time, rounds in turn. The rounds of the small network
are short and many: the speed of a shared machine changes within a second.
"""

import time

import numpy

from benchmarks.paging.records import Figure, Sheet
from benchmarks.paging.timing import MILLISECONDS
from benchmarks.paging.writing import stamp, write_results
from topiarist import Data, TrainConfig, models
from topiarist.randomness import array_generator
from topiarist.threads import torch_threads
from topiarist.training import Pruning, train_many

KINDS: dict[str, Pruning | None] = {
    "without masks": None,
    "with masks": Pruning(schedule="constant", score="magnitude"),
    "with masks and Taylor scores": Pruning(schedule="constant", score="taylor"),
}


def samples(shape: tuple[int, ...], count: int, classes: int) -> Data:
    """Return random samples: only the time counts."""
    random = array_generator(0, "masked training", *shape)
    x = random.normal(size=(count, *shape)).astype(numpy.float32)
    return Data.from_arrays(x, numpy.arange(count) % classes, validation_fraction=0.0, scaling="zscore")


def seconds(network: str, data: Data, epochs: int, pruning: Pruning | None) -> float:
    """Train a fresh network for some epochs, and give the time of a step."""
    shape, classes = data.input_shape, len(data.classes)
    model = models.vgg(2, 2, 3, 3, input_shape=shape) if network == "V(2,2,3,3)" else models.mlp([64, 128, 64, classes])
    config = TrainConfig(epochs=epochs, batch_size=32, pruning=pruning)
    began = time.process_time()
    train_many([model], data, config, stacked=False)
    return (time.process_time() - began) / (epochs * -(-len(data.train) // 32))


def main() -> None:
    """Compare, and write what was found."""
    tasks = {
        "V(2,2,3,3)": (samples((1, 48, 214), 160, 3), 2, 7),
        "64-128-64-10": (samples((64,), 1600, 10), 4, 60),
    }
    figures = []
    with torch_threads(1):
        for network, (data, epochs, rounds) in tasks.items():
            times = [
                {name: seconds(network, data, epochs, kind) for name, kind in KINDS.items()} for _ in range(rounds)
            ]
            for name in KINDS:
                values = tuple(MILLISECONDS * found[name] for found in times)
                figures.append(Figure(case=network, contender=name, measure="milliseconds", values=values))
    command = "python -m benchmarks.masked_training"
    print(write_results("masked_training", Sheet(**stamp(command), figures=tuple(figures))))


if __name__ == "__main__":
    main()
