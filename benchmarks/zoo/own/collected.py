"""Where the files of this folder add their networks."""

from benchmarks.zoo.catalogue import Catalogue

CATALOGUE = Catalogue("own", "written by hand")
