"""The numbers of Schiessler, Aydin, Linka and Cyron, Neural network surgery (Neural Networks 144, 2021), Table 3.

Means and standard deviations of 15 runs: five seeds, three runs each. Accuracies are those on the very part by which
the Surgeon chooses. Parameters change by so many per cent; those of Fashion-MNIST cannot be read in our copy.
"""

from dataclasses import dataclass

Figure = tuple[float, float]


@dataclass(frozen=True)
class Row:
    """Accuracies of the baseline and of the Surgeon, and the change of parameters in per cent."""

    baseline: Figure
    surgeon: Figure
    change: Figure | None


TABLE_3: dict[tuple[str, str], Row] = {
    ("SVHN", "small"): Row((0.20, 0.00), (0.29, 0.16), (16.48, 52.0)),
    ("SVHN", "medium"): Row((0.34, 0.12), (0.58, 0.04), (1.97, 7.13)),
    ("SVHN", "large"): Row((0.78, 0.01), (0.79, 0.01), (-7.23, 32.48)),
    ("CIFAR-10", "small"): Row((0.28, 0.01), (0.34, 0.01), (1.12, 2.85)),
    ("CIFAR-10", "medium"): Row((0.32, 0.01), (0.38, 0.06), (203.87, 417.45)),
    ("CIFAR-10", "large"): Row((0.49, 0.00), (0.51, 0.00), (2.12, 3.13)),
    ("CIFAR-100", "small"): Row((0.12, 0.01), (0.19, 0.00), (865.44, 0.00)),
    ("CIFAR-100", "medium"): Row((0.12, 0.01), (0.14, 0.01), (-0.18, 11.94)),
    ("CIFAR-100", "large"): Row((0.20, 0.00), (0.20, 0.00), (7.40, 27.69)),
    ("EuroSAT", "small"): Row((0.11, 0.00), (0.54, 0.05), (-14.31, 10.68)),
    ("EuroSAT", "medium"): Row((0.24, 0.10), (0.57, 0.03), (-12.87, 13.83)),
    ("EuroSAT", "large"): Row((0.60, 0.02), (0.66, 0.01), (3.24, 4.15)),
    ("EMNIST", "small"): Row((0.67, 0.00), (0.73, 0.00), (470.44, 0.00)),
    ("EMNIST", "medium"): Row((0.63, 0.01), (0.71, 0.01), (16.98, 47.30)),
    ("EMNIST", "large"): Row((0.83, 0.00), (0.84, 0.00), (13.02, 9.78)),
    ("Fashion-MNIST", "small"): Row((0.85, 0.01), (0.85, 0.00), None),
    ("Fashion-MNIST", "medium"): Row((0.85, 0.01), (0.85, 0.00), None),
    ("Fashion-MNIST", "large"): Row((0.89, 0.00), (0.89, 0.00), None),
}
CLASSES = {  # of EMNIST's splits only the one by class has the paper's 697,932 samples
    "SVHN": 10,
    "CIFAR-10": 10,
    "CIFAR-100": 100,
    "EuroSAT": 10,
    "EMNIST": 62,
    "Fashion-MNIST": 10,
}
