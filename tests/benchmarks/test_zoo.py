"""The networks of the zoo that need no other package: they run, and equal seeds give equal networks."""

import pytest
import torch

from benchmarks.zoo import own, use
from benchmarks.zoo.catalogue import Catalogue, join


def test_a_name_is_given_once() -> None:
    one, other = Catalogue("one", "first"), Catalogue("other", "second")
    factory = own.CATALOGUE.entries["perceptron"].factory
    one.add(factory)
    other.add(factory)
    with pytest.raises(ValueError, match="two networks are called 'perceptron'"):
        join([one, other])
    with pytest.raises(ValueError, match="two networks are called 'perceptron'"):
        one.add(factory)


@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
@pytest.mark.parametrize("name", own.CATALOGUE.entries)
def test_a_network_runs_and_follows_its_seed(name: str) -> None:
    entry = own.CATALOGUE.entries[name]
    (model, inputs), (again, _), (other, _) = entry.make(), entry.make(), entry.make(seed=1)
    assert not model.training
    with torch.no_grad():
        assert use(model, inputs) is not None
    weights, same, different = (list(each.parameters()) for each in (model, again, other))
    assert all(torch.equal(one, two) for one, two in zip(weights, same, strict=True))
    assert not any(torch.equal(one, two) for one, two in zip(weights, different, strict=True))


@pytest.mark.parametrize("name", own.CATALOGUE.entries)
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_nothing_is_left_at_a_constant(name: str) -> None:
    model, _ = own.CATALOGUE.entries[name].make()
    constant = [name for name, each in model.named_parameters() if each.numel() > 1 and bool(each.max() == each.min())]
    assert constant == []
