"""The two LeNets that work on pruning without fine-tuning reports: a perceptron, and a small convolutional network."""

from torch import nn


def lenet_300_100() -> nn.Sequential:
    """Return the perceptron 784-300-100-10."""
    return nn.Sequential(
        nn.Flatten(), nn.Linear(784, 300), nn.ReLU(), nn.Linear(300, 100), nn.ReLU(), nn.Linear(100, 10)
    )


def lenet5() -> nn.Sequential:
    """Return the convolutional network 6-16-120-84-10 for images of 28 × 28 pixels."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, 10),
    )
