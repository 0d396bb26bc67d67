import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from sklearn.metrics import log_loss as reference_log_loss

from topiarist.training.metrics import accuracy, log_loss, macro_accuracy


@pytest.mark.slow
@given(st.integers(2, 6), st.integers(2, 60), st.integers(0, 2**20))
def test_metrics_are_those_of_scikit_learn(classes: int, samples: int, seed: int) -> None:
    random = torch.Generator().manual_seed(seed)
    logits = torch.randn(samples, classes, generator=random, dtype=torch.float64)
    y = torch.randint(classes, (samples,), generator=random)
    y[0], y[1] = 0, classes - 1
    chosen = logits.argmax(dim=1)
    present = sorted(set(y.tolist()))
    assert accuracy(logits, y) == pytest.approx(accuracy_score(y, chosen))
    recalls = [(chosen[y == label] == label).double().mean().item() for label in present]
    assert macro_accuracy(logits, y) == pytest.approx(sum(recalls) / len(recalls))
    if set(chosen.tolist()) <= set(present):
        assert macro_accuracy(logits, y) == pytest.approx(balanced_accuracy_score(y, chosen))
    expected = reference_log_loss(y, logits.softmax(dim=1), labels=list(range(classes)))
    assert log_loss(logits, y) == pytest.approx(expected)
