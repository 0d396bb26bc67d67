"""The numbers of Schiessler, Aydin, Linka and Cyron, Neural network surgery (Neural Networks 144, 2021), Table 3.

Means and standard deviations of 15 runs: five seeds, three runs each. Accuracies are those on the very part by which
the Surgeon chooses. Parameters change by so many per cent; those of Fashion-MNIST cannot be read in our copy, nor can
its relative gain from the medium topology. That of EuroSAT, medium, does not follow from its rounded accuracies.
"""

from dataclasses import dataclass

Figure = tuple[float, float]


@dataclass(frozen=True)
class PublishedRow:
    """Accuracies of the baseline and of the Surgeon, the change of parameters and the relative gain in per cent."""

    baseline: Figure
    surgeon: Figure
    change: Figure | None
    gain: float | None


TABLE_3: dict[tuple[str, str], PublishedRow] = {
    ("SVHN", "small"): PublishedRow((0.20, 0.00), (0.29, 0.16), (16.48, 52.0), 45.00),
    ("SVHN", "medium"): PublishedRow((0.34, 0.12), (0.58, 0.04), (1.97, 7.13), 70.59),
    ("SVHN", "large"): PublishedRow((0.78, 0.01), (0.79, 0.01), (-7.23, 32.48), 1.28),
    ("CIFAR-10", "small"): PublishedRow((0.28, 0.01), (0.34, 0.01), (1.12, 2.85), 21.43),
    ("CIFAR-10", "medium"): PublishedRow((0.32, 0.01), (0.38, 0.06), (203.87, 417.45), 18.75),
    ("CIFAR-10", "large"): PublishedRow((0.49, 0.00), (0.51, 0.00), (2.12, 3.13), 4.08),
    ("CIFAR-100", "small"): PublishedRow((0.12, 0.01), (0.19, 0.00), (865.44, 0.00), 58.29),
    ("CIFAR-100", "medium"): PublishedRow((0.12, 0.01), (0.14, 0.01), (-0.18, 11.94), 17.74),
    ("CIFAR-100", "large"): PublishedRow((0.20, 0.00), (0.20, 0.00), (7.40, 27.69), 2.89),
    ("EuroSAT", "small"): PublishedRow((0.11, 0.00), (0.54, 0.05), (-14.31, 10.68), 383.09),
    ("EuroSAT", "medium"): PublishedRow((0.24, 0.10), (0.57, 0.03), (-12.87, 13.83), 215.00),
    ("EuroSAT", "large"): PublishedRow((0.60, 0.02), (0.66, 0.01), (3.24, 4.15), 10.37),
    ("EMNIST", "small"): PublishedRow((0.67, 0.00), (0.73, 0.00), (470.44, 0.00), 8.13),
    ("EMNIST", "medium"): PublishedRow((0.63, 0.01), (0.71, 0.01), (16.98, 47.30), 12.10),
    ("EMNIST", "large"): PublishedRow((0.83, 0.00), (0.84, 0.00), (13.02, 9.78), 1.54),
    ("Fashion-MNIST", "small"): PublishedRow((0.85, 0.01), (0.85, 0.00), None, 0.47),
    ("Fashion-MNIST", "medium"): PublishedRow((0.85, 0.01), (0.85, 0.00), None, None),
    ("Fashion-MNIST", "large"): PublishedRow((0.89, 0.00), (0.89, 0.00), None, 0.00),
}
CLASSES = {  # of EMNIST's splits only the one by class has the paper's 697,932 samples
    "SVHN": 10,
    "CIFAR-10": 10,
    "CIFAR-100": 100,
    "EuroSAT": 10,
    "EMNIST": 62,
    "Fashion-MNIST": 10,
}
RUNS = 15  # five seeds, three runs each
EPOCHS, TRAINED_EPOCHS, REDRAWS = 100, 290, 0.56  # section 4.2, computational costs: averages over all runs
REDUCTION = -14.0  # per cent of the parameters: section 4.2 and Figure 4, Fashion-MNIST, large, a single run
