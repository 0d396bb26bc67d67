import subprocess
import sys

import numpy
import pytest
import torch
from hypothesis import given, strategies

from topiarist.models import mlp
from topiarist.randomness import array_generator, child_seed, generator, isolated

SEEDS = strategies.integers(0, 2**63 - 1)


@given(SEEDS, strategies.lists(strategies.one_of(strategies.text(), strategies.integers()), max_size=3))
def test_a_child_seed_follows_from_seed_and_name(seed: int, names: list[str | int]) -> None:
    assert child_seed(seed, *names) == child_seed(seed, *names)
    assert 0 <= child_seed(seed, *names) < 2**63
    assert child_seed(seed, *names) != child_seed(seed + 1, *names)
    assert child_seed(seed, *names) != child_seed(seed, *names, "more")


def test_child_seeds_never_change() -> None:
    """They decide every published number: a change here is a change of all results."""
    assert child_seed(0, "test") == 6343639018140002960


def test_names_give_generators_of_their_own() -> None:
    draws = {
        name: (torch.rand(3, generator=generator(0, name)).tolist(), array_generator(0, name).random(3).tolist())
        for name in ("order", "dropout")
    }
    assert draws["order"] != draws["dropout"]
    assert torch.rand(3, generator=generator(0, "order")).tolist() == draws["order"][0]
    assert array_generator(0, "order").random(3).tolist() == draws["order"][1]


def test_isolated_draws_follow_from_the_seed() -> None:
    draws = []
    for seed in (5, 5, 6):
        with isolated(seed):
            draws.append(torch.rand(4))
    assert draws[0].equal(draws[1]) and not draws[0].equal(draws[2])


def test_nothing_touches_the_global_generators() -> None:
    before, numpy_before = torch.get_rng_state(), str(numpy.random.get_state())  # noqa: NPY002  # to look only
    with isolated(3):
        torch.rand(10)
    with pytest.raises(ValueError, match="stop"), isolated(3):
        torch.rand(10)
        raise ValueError("stop")
    source = generator(0, "x")
    torch.rand(10, generator=source)
    array_generator(0, "x").random(10)
    mlp([4, 8, 3], "selu", True, 0.5, input_dropout=0.1)
    mlp([4, 8, 3], generator=generator(1, "weights"))
    assert torch.get_rng_state().equal(before)
    assert str(numpy.random.get_state()) == numpy_before  # noqa: NPY002  # to look only


def test_importing_the_package_does_not_import_torch() -> None:
    heavy = "{'torch', 'numpy', 'pandas', 'sklearn', 'pydantic', 'rich'}"
    code = f"import sys, topiarist; dir(topiarist); topiarist.TopiaristError; sys.exit(len({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
