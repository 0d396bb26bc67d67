"""The numbers of Ooi, Peksi and Gan, Ensemble of pruned low-complexity models for acoustic scene classification (2020).

Macro accuracies are means and standard deviations of ten runs on the validation part of the challenge's data.
"""

from dataclasses import dataclass

Figure = tuple[float, float]

TABLE_1: dict[tuple[int, int], Figure] = {
    (32, 1024): (0.8789, 0.0070),
    (32, 2048): (0.8738, 0.0078),
    (32, 4096): (0.8693, 0.0085),
    (48, 1024): (0.8776, 0.0057),
    (48, 2048): (0.8858, 0.0052),
    (48, 4096): (0.8797, 0.0097),
    (64, 1024): (0.8846, 0.0056),
    (64, 2048): (0.8848, 0.0052),
    (64, 4096): (0.8785, 0.0056),
}
TABLE_2: dict[tuple[int, str], Figure] = {
    (2, "fine"): (0.8852, 0.0068),
    (4, "fine"): (0.8839, 0.0086),
    (5, "fine"): (0.8870, 0.0067),
    (10, "fine"): (0.8852, 0.0079),
    (2, "coarse"): (0.8887, 0.0060),
    (4, "coarse"): (0.8895, 0.0048),
    (5, "coarse"): (0.8821, 0.0057),
    (10, "coarse"): (0.8840, 0.0069),
}
TABLE_2_P = {"pieces": 0.3023, "class": 0.5453}


@dataclass(frozen=True)
class PublishedModel:
    """A row of Table 3 or 4: micro and macro accuracy with their deviations, non-zero parameters, KB."""

    micro: float
    micro_sd: float
    macro: float
    macro_sd: float
    nonzero: int
    kilobytes: float


TABLE_3: dict[tuple[int, bool], PublishedModel] = {  # by model, pruned or not
    (1, False): PublishedModel(0.8896, 0.0052, 0.8890, 0.0058, 80_839, 315.8),
    (1, True): PublishedModel(0.8798, 0.0088, 0.8797, 0.0080, 17_115, 66.9),
    (2, False): PublishedModel(0.8734, 0.0044, 0.8728, 0.0040, 167_571, 654.6),
    (2, True): PublishedModel(0.8803, 0.0070, 0.8797, 0.0069, 34_181, 133.5),
    (3, False): PublishedModel(0.9112, 0.0040, 0.9108, 0.0041, 571_768, 2233.6),
    (3, True): PublishedModel(0.9060, 0.0020, 0.9066, 0.0020, 119_758, 467.8),
    (4, False): PublishedModel(0.9132, 0.0024, 0.9130, 0.0024, 571_768, 2233.6),
    (4, True): PublishedModel(0.9086, 0.0019, 0.9090, 0.0020, 119_758, 467.8),
}
TABLE_3_P = {1: (0.0210, 0.0155), 2: (0.0140, 0.0173), 3: (0.0090, 0.0538), 4: (0.0001, 0.0025)}  # micro, macro
TABLE_4: dict[str, PublishedModel] = {
    "V(0,0,1,1)": PublishedModel(0.8616, 0.0014, 0.8624, 0.0019, 54_415, 212.6),
    "V(2,2,3,3)": PublishedModel(0.8920, 0.0045, 0.8921, 0.0040, 80_839, 315.8),
    "V(4,4,5,5)": PublishedModel(0.8797, 0.0044, 0.8794, 0.0036, 106_327, 415.3),
    "I(1,0,1)": PublishedModel(0.8891, 0.0018, 0.8890, 0.0016, 68_099, 266.0),
    "I(2,1,2)": PublishedModel(0.8758, 0.0048, 0.8743, 0.0036, 167_571, 654.6),
    "I(3,2,3)": PublishedModel(0.8801, 0.0043, 0.8789, 0.0043, 267_042, 1043.1),
}
TABLE_4_P = "< 0.001"  # of V(2,2,3,3) and of I(1,0,1) against the others of their family
BEST_DEPTH = {"V": "V(2,2,3,3)", "I": "I(1,0,1)"}
RUNS = 10
BUDGET_KB = 500.0


@dataclass(frozen=True)
class ReportedFigure:
    """A figure that the paper reports and no run here can give: whose, on which recordings."""

    system: str
    recordings: str
    macro: float
    macro_sd: float | None = None
    log_loss: float | None = None
    nonzero: int | None = None
    kilobytes: float | None = None


REPORTED = (
    ReportedFigure(
        "the challenge's baseline", "validation set", 0.873, macro_sd=0.007, nonzero=115_219, kilobytes=450.1
    ),
    ReportedFigure("Model 4, pruned", "evaluation set", 0.898, log_loss=0.257, nonzero=119_758, kilobytes=467.8),
    ReportedFigure(
        "the challenge's baseline", "evaluation set", 0.895, log_loss=0.401, nonzero=115_219, kilobytes=450.1
    ),
)
