"""A stand-in for the spreadsheet of facial expressions, whose licence does not let it be passed on.

It has the shape, the class sizes and the difficulty of the real one, and says nothing about faces. The means of the
seven classes are equally far from each other, so near that a 10–20–7 network tells about a quarter of the samples;
the classes differ a little in their spread too, and the tails are heavy. In each block the spread falls from component
to component; the two blocks have units of their own, and the leading component of each carries a mean.
"""

import math

import numpy
import pandas

from topiarist.data.source import Source
from topiarist.randomness import array_generator
from topiarist.reproductions.faces.spreadsheet import COMPONENTS, DESCRIPTORS, EXPRESSIONS

COUNTS = {"disgust": 75, "fear": 99}  # one of fear has no PHOG numbers; of the others there are 100 each
SPREAD = {"LPQ": (0.031, 0.022, 0.017, 0.014, 0.012), "PHOG": (0.105, 0.071, 0.052, 0.041, 0.034)}
MEAN = {"LPQ": 0.02, "PHOG": -0.06}
SEPARATION = 0.48  # of a class mean from the centre, in standard deviations within a class
UNEVENNESS = 0.2  # standard deviation of the logarithm of a class's spread
FREEDOM = 4  # of Student's distribution: the tails are heavy


def face_stand_in(seed: int = 0) -> Source:
    """Give 674 made-up samples of 10 features in 7 classes; every seed gives others of the same difficulty."""
    random = array_generator(seed, "face stand-in")
    counts = [COUNTS.get(name, 100) for name in EXPRESSIONS]
    directions = numpy.linalg.qr(random.normal(size=(2 * COMPONENTS, len(EXPRESSIONS))))[0].T
    numbers = random.permutation(numpy.repeat(numpy.arange(len(EXPRESSIONS)), counts))
    noise = random.standard_t(FREEDOM, size=(len(numbers), 2 * COMPONENTS)) * math.sqrt(1 - 2 / FREEDOM)
    unevenness = numpy.exp(UNEVENNESS * random.normal(size=directions.shape))
    values = SEPARATION * directions[numbers] + unevenness[numbers] * noise
    values = (values - values.mean(axis=0)) / values.std(axis=0)
    spread = numpy.concatenate([SPREAD[name] for name in DESCRIPTORS])
    mean = numpy.concatenate([[MEAN[name], *[0.0] * (COMPONENTS - 1)] for name in DESCRIPTORS])
    columns = [f"{name} {number}" for name in DESCRIPTORS for number in range(1, COMPONENTS + 1)]
    return Source(
        name="face stand-in",
        features=pandas.DataFrame(values * spread + mean, columns=columns),
        labels=numpy.array(EXPRESSIONS)[numbers],
        classes=EXPRESSIONS,
    )
