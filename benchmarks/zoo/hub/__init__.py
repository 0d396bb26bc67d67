"""Networks of the package `transformers`, built from small configurations; nothing is fetched from anywhere."""

from benchmarks.zoo.hub import images, text
from benchmarks.zoo.hub.building import CATALOGUE

__all__ = ["CATALOGUE", "images", "text"]
