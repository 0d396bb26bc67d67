"""Networks as people write them today: from the hub, by hand, and published families of convolutional networks.

`NETWORKS[name].make(seed)` returns a network in evaluation mode with random weights and inputs for it. Packages of the
extra `zoo` are imported when a network of theirs is made.
"""

from benchmarks.zoo import hub, own, published
from benchmarks.zoo.catalogue import Catalogue, Entry, Inputs, Made, join, use

CATALOGUES: tuple[Catalogue, ...] = (hub.CATALOGUE, own.CATALOGUE, published.CATALOGUE)
NETWORKS: dict[str, Entry] = join(CATALOGUES)

__all__ = ["CATALOGUES", "NETWORKS", "Entry", "Inputs", "Made", "use"]
