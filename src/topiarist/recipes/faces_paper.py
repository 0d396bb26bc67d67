"""What the paper of the faces reports (Tanovic): accuracies in per cent, sizes in hidden units."""

TABLE_1: dict[float, dict[int, float]] = {
    0.01: {10: 21.7, 20: 22.6, 50: 21.2, 100: 21.3, 200: 21.8, 500: 20.7, 1000: 18.8},
    0.001: {10: 19.1, 20: 19.9, 50: 20.5, 100: 21.7, 200: 21.4, 500: 21.2, 1000: 21.6},
    0.0001: {10: 14.2, 20: 15.3, 50: 15.7, 100: 16.7, 200: 18.7, 500: 19.6, 1000: 20.1},
}
TABLE_3: dict[int, float] = {20: 19.98, 50: 49.96, 100: 99.66, 200: 198.56, 500: 467.68}
LEFT_AT_45_DEGREES = (20.0, 30.0)  # from every start
REMOVED_AT_45_DEGREES = 0.72  # of 100 units
REMOVED_BY_ABSOLUTE = 0.55  # by equation 6, whatever λ, above 20 units
REMOVED_AT_PENALTY_50 = 0.60  # by equation 5, more than that
SVM_ACCURACY = 19.0  # of an SVM on the same descriptors, in 2 folds (Dhall et al., 2011)
