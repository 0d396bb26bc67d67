"""Whether the members of an ensemble that have one shape are better run as one computation; one core, no gradients.

Five perceptrons and five small networks after VGGNet, for one sample and for 64: the plain loop of `models.Ensemble`,
`torch.vmap` over stacked weights (convolutions become one grouped convolution), for perceptrons also `models.joined`,
one batched product a layer, and the layers of `models/stacked.py`. Stacked weights must not go stale: "watched" adds
what it costs to look whether the members' tensors are the same in place and version (which writes through `.data` do
not change); "stacked anew" stacks at each call. Times are the processor's, rounds in turn.
"""

import argparse
import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from benchmarks.paging.records import Figure, Sheet
from benchmarks.paging.timing import in_turn, milliseconds
from benchmarks.paging.writing import stamp, write_results
from topiarist import models
from topiarist.models.stacked import NetworkStack
from topiarist.models.stacked_layers import Pass
from topiarist.randomness import generator

Job = Callable[[], Tensor]
MEMBERS, SCENES = 5, (1, 48, 214)
LOOP = "one after the other"


def perceptrons() -> list[nn.Sequential]:
    """Make networks of 64 inputs, two hidden layers and ten classes."""
    return [models.mlp([64, 128, 64, 10], generator=generator(n, "weights")).eval() for n in range(MEMBERS)]


def scene_networks() -> list[nn.Sequential]:
    """Make networks for five seconds of sound as 48 mel bands."""
    made = [models.vgg(2, 2, 3, 3, input_shape=SCENES, generator=generator(n, "weights")) for n in range(MEMBERS)]
    return [model.eval() for model in made]


def mean(logits: Tensor, dim: int = 2) -> Tensor:
    """Return the logarithm of the mean of the class probabilities over the members, which come first."""
    return torch.logsumexp(torch.log_softmax(logits, dim), 0) - torch.tensor(float(len(logits))).log()


def by_vmap(members: Sequence[nn.Module], x: Tensor) -> Job:
    """Run the members over stacked weights."""
    parameters, buffers = stack_module_state(list(members))
    frame = copy.deepcopy(members[0]).to("meta")

    def one(parameters: dict[str, Tensor], buffers: dict[str, Tensor], x: Tensor) -> Any:
        return functional_call(frame, (parameters, buffers), (x,))

    together = torch.vmap(one, in_dims=(0, 0, None))
    return lambda: mean(together(parameters, buffers, x))


def by_stack(members: Sequence[nn.Sequential], x: Tensor) -> Job:
    """Run perceptrons with the layers that train many as one."""
    stack, run = NetworkStack(members), Pass(training=False)
    return lambda: mean(stack.forward(x.flatten(1).T.expand(len(members), -1, -1), run), 1).T


def watched(members: Sequence[nn.Module], job: Job) -> Job:
    """Run stacked weights only after a look at all tensors that they were made of."""
    group = nn.ModuleList(members)

    def state() -> list[tuple[int, int]]:
        tensors = (*group.parameters(), *group.buffers())
        return [(tensor.data_ptr(), tensor._version) for tensor in tensors]

    before = state()

    def run() -> Tensor:
        assert state() == before
        return job()

    return run


def compare(title: str, members: Sequence[nn.Sequential], x: Tensor, rounds: int) -> list[Figure]:
    """Return the times of all ways to run an ensemble."""
    ensemble = models.Ensemble(members)
    ways: dict[str, Job] = {"vmap over stacked weights": by_vmap(members, x)}
    if not any(isinstance(layer, nn.Conv2d) for layer in members[0]):
        together = models.joined(ensemble)
        ways |= {"models.joined": lambda: together(x), "the layers of training": by_stack(members, x)}
    for way in ways.values():
        torch.testing.assert_close(way(), ensemble(x), rtol=0, atol=1e-4)
    ways |= {f"{name}, watched": watched(members, way) for name, way in ways.items()}
    if "the layers of training" in ways:
        ways["models.joined, stacked anew"] = lambda: models.joined(ensemble)(x)
    times = in_turn({LOOP: lambda: ensemble(x), **ways}, rounds)
    case = f"{title}, {len(x)} at a time"
    return [
        Figure(case=case, contender=name, measure="milliseconds", values=milliseconds(seconds))
        for name, seconds in times.items()
    ]


def main() -> None:
    """Measure both kinds of members, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200, help="of perceptrons; of the others a twentieth")
    rounds = parser.parse_args().rounds
    torch.set_num_threads(1)
    random, figures = generator(0, "samples"), list[Figure]()
    with torch.no_grad():
        for count in (1, 64):
            flat, sounds = (torch.rand(count, *shape, generator=random) for shape in ((64,), SCENES))
            figures += compare("perceptrons", perceptrons(), flat, rounds)
            figures += compare("V(2,2,3,3)", scene_networks(), sounds, max(rounds // 20, 1))
    command = f"python -m benchmarks.ensemble --rounds {rounds}"
    print(write_results("ensemble", Sheet(**stamp(command), figures=tuple(figures))))


if __name__ == "__main__":
    main()
