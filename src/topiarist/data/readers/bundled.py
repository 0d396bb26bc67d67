"""The small data sets whose files come with scikit-learn, read without importing it: that would take a second."""

from importlib.util import find_spec
from pathlib import Path

import numpy

from topiarist.data.source import Source

_NUCLEUS = (
    *("radius", "texture", "perimeter", "area", "smoothness", "compactness", "concavity", "concave points"),
    *("symmetry", "fractal dimension"),
)
_TABLES = {  # the file, and the names of its columns, which stand in scikit-learn's code and not in the file
    "breast-cancer": (
        "breast_cancer.csv",
        tuple(form.format(part) for form in ("mean {}", "{} error", "worst {}") for part in _NUCLEUS),
    ),
    "wine": (
        "wine_data.csv",
        (
            *("alcohol", "malic_acid", "ash", "alcalinity_of_ash", "magnesium", "total_phenols", "flavanoids"),
            *("nonflavanoid_phenols", "proanthocyanins", "color_intensity", "hue", "od280/od315_of_diluted_wines"),
            "proline",
        ),
    ),
    "iris": ("iris.csv", ("sepal length (cm)", "sepal width (cm)", "petal length (cm)", "petal width (cm)")),
}
BUNDLED = ("digits", *_TABLES)


def read_bundled(name: str) -> Source:
    """Read the bundled set `name`, its labels as the names of the classes."""
    found = find_spec("sklearn")
    assert found is not None and found.origin is not None  # a dependency of ours
    folder = Path(found.origin).parent / "datasets" / "data"
    if name == "digits":
        numbers = numpy.loadtxt(folder / "digits.csv.gz", delimiter=",")
        classes = tuple(str(digit) for digit in range(10))
        labels = numbers[:, -1].astype(numpy.int64)
        return Source(name=name, features=numbers[:, :-1], labels=labels, classes=classes, scaling="pixels")
    import pandas  # noqa: PLC0415  # digits are read without it

    file, columns = _TABLES[name]
    with (folder / file).open(encoding="utf-8") as stream:
        _, _, *classes_found = stream.readline().strip().split(",")  # 150,4,setosa,versicolor,virginica
        numbers = numpy.loadtxt(stream, delimiter=",")
    return Source(
        name=name,
        features=pandas.DataFrame(numbers[:, :-1], columns=list(columns)),
        labels=numpy.asarray(classes_found)[numbers[:, -1].astype(numpy.int64)],
        classes=tuple(classes_found),
    )
