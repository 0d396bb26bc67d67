import pytest
from sklearn.datasets import make_classification

from topiarist.data import Data


@pytest.fixture(scope="session")
def task() -> Data:
    x, y = make_classification(
        230, 6, n_informative=5, n_redundant=0, n_classes=3, n_clusters_per_class=1, class_sep=1.2, random_state=3
    )
    return Data.from_arrays(x, y, name="made up", scaling="zscore")
