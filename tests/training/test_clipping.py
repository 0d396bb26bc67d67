import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from topiarist.training.engines.steps import clip_norm, clip_value

PAPER = [0.9, 100.0]


def test_the_papers_example_by_value() -> None:
    gradient = torch.tensor(PAPER)
    clip_value([gradient], 1.0)
    assert gradient.tolist() == pytest.approx([0.9, 1.0])


def test_the_papers_example_by_norm() -> None:
    gradient = torch.tensor(PAPER, dtype=torch.float64)
    clip_norm([gradient], 1.0, over="all")
    assert gradient.tolist() == pytest.approx([0.00899964, 0.9999595], abs=5e-9)


@given(st.lists(st.floats(0.1, 50), min_size=2, max_size=8), st.floats(0.01, 100))
def test_the_norm_over_all_is_that_of_torch(values: list[float], limit: float) -> None:
    ours = [torch.tensor(values[:1], dtype=torch.float64), torch.tensor(values[1:], dtype=torch.float64)]
    theirs = [torch.zeros_like(value, requires_grad=True) for value in ours]
    for parameter, gradient in zip(theirs, ours, strict=True):
        parameter.grad = gradient.clone()
    torch.nn.utils.clip_grad_norm_(theirs, limit)
    clip_norm(ours, limit, over="all")
    for parameter, gradient in zip(theirs, ours, strict=True):
        assert parameter.grad is not None
        # torch adds 1e-6 to the norm that it divides by
        torch.testing.assert_close(gradient, parameter.grad, rtol=2e-5, atol=0)


def test_the_norm_of_each_tensor_leaves_small_ones_alone() -> None:
    small, large = torch.tensor([0.3, 0.4]), torch.tensor([30.0, 40.0])
    clip_norm([small, large], 1.0, over="tensor")
    assert small.tolist() == pytest.approx([0.3, 0.4])
    assert large.tolist() == pytest.approx([0.6, 0.8])


@pytest.mark.parametrize("over", ["all", "tensor"])
def test_members_are_clipped_by_themselves(over: str) -> None:
    members = [torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(1)) * 5, torch.ones(3, 4)]
    alone = [[tensor[member].clone() for tensor in members] for member in range(3)]
    clip_norm(members, 2.0, over=over, members=True)  # type: ignore[arg-type]
    for member, tensors in enumerate(alone):
        clip_norm(tensors, 2.0, over=over)  # type: ignore[arg-type]
        for tensor, stacked in zip(tensors, members, strict=True):
            torch.testing.assert_close(stacked[member], tensor)


def test_a_zero_gradient_stays_zero() -> None:
    gradient = torch.zeros(3)
    clip_norm([gradient], 1.0, over="tensor")
    assert gradient.tolist() == [0.0, 0.0, 0.0]
