"""The numbers of Ooi, Peksi and Gan, Ensemble of pruned low-complexity models for acoustic scene classification (2020).

Macro accuracies are means and standard deviations of ten runs on the validation part of the challenge's data.
"""

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
TABLE_2: dict[tuple[int, str], float] = {
    (2, "fine"): 0.8852,
    (4, "fine"): 0.8839,
    (5, "fine"): 0.8870,
    (10, "fine"): 0.8852,
    (2, "coarse"): 0.8887,
    (4, "coarse"): 0.8895,
    (5, "coarse"): 0.8821,
    (10, "coarse"): 0.8840,
}
TABLE_2_P = {"pieces": 0.3023, "class": 0.5453}
TABLE_3: dict[tuple[int, bool], tuple[float, float, float, int, float]] = {
    # model, pruned: micro accuracy, macro accuracy, its SD, non-zero parameters, KB
    (1, False): (0.8896, 0.8890, 0.0058, 80_839, 315.8),
    (1, True): (0.8798, 0.8797, 0.0080, 17_115, 66.9),
    (2, False): (0.8734, 0.8728, 0.0040, 167_571, 654.6),
    (2, True): (0.8803, 0.8797, 0.0069, 34_181, 133.5),
    (3, False): (0.9112, 0.9108, 0.0041, 571_768, 2233.6),
    (3, True): (0.9060, 0.9066, 0.0020, 119_758, 467.8),
    (4, False): (0.9132, 0.9130, 0.0024, 571_768, 2233.6),
    (4, True): (0.9086, 0.9090, 0.0020, 119_758, 467.8),
}
TABLE_3_P = {1: (0.0210, 0.0155), 2: (0.0140, 0.0173), 3: (0.0090, 0.0538), 4: (0.0001, 0.0025)}  # micro, macro
TABLE_4: dict[str, Figure] = {
    "V(0,0,1,1)": (0.8624, 0.0019),
    "V(2,2,3,3)": (0.8921, 0.0040),
    "V(4,4,5,5)": (0.8794, 0.0036),
    "I(1,0,1)": (0.8890, 0.0016),
    "I(2,1,2)": (0.8743, 0.0036),
    "I(3,2,3)": (0.8789, 0.0043),
}
BUDGET_KB = 500.0
