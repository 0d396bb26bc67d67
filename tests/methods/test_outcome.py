"""What an outcome tells of itself."""

from tests.methods.tasks import drawn, perceptron
from topiarist import load_data, models
from topiarist.methods import Distinctiveness, resize


def test_an_outcome_tells_in_one_line_what_changed() -> None:
    outcome = resize(models.mlp([4, 12, 3]), load_data("iris"), Distinctiveness(keep_fraction=0.5))
    before, after = outcome.before, outcome.after
    assert str(outcome).startswith(f"parameters {before.parameters} → {after.parameters}, multiply-accumulates ")
    assert " ms, accuracy " in str(outcome) and str(outcome).endswith(" of 30 test samples")


def test_what_was_not_measured_is_not_told() -> None:
    outcome = resize(perceptron(6, 20, 12, 3), calibration=drawn(90, 6), latency=False)
    assert "accuracy" not in str(outcome) and "latency" not in str(outcome)
