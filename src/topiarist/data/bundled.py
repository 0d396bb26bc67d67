"""The small sets that come with scikit-learn, known by name."""

from importlib import import_module

import numpy

from topiarist.data.source import Source

TABLES = {"breast-cancer": "load_breast_cancer", "wine": "load_wine", "iris": "load_iris"}
BUNDLED = ("digits", *TABLES)


def read_bundled(name: str) -> Source:
    """Give the bundled set `name`, its labels as the names of the classes."""
    datasets = import_module("sklearn.datasets")  # only here: it takes a second to import
    if name == "digits":
        images, labels = datasets.load_digits(return_X_y=True)
        classes = tuple(str(digit) for digit in range(10))
        return Source(name=name, features=images, labels=labels, classes=classes, scaling="pixels")
    bunch = getattr(datasets, TABLES[name])(as_frame=True)
    classes = tuple(str(label) for label in bunch.target_names)
    labels = numpy.asarray(classes)[bunch.target]
    return Source(name=name, features=bunch.data, labels=labels, classes=classes)
