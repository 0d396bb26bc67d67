"""Small tasks for methods: labelled samples in three parts, and networks that know something of them."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from tests.networks import NETWORKS, built
from topiarist.data import AnyPart, Data, Part
from topiarist.methods import Request
from topiarist.methods.job import Limits, make_job
from topiarist.models import mlp
from topiarist.models.evaluation import evaluating
from topiarist.randomness import generator
from topiarist.surgery import Edit, Plan, apply
from topiarist.tasks import Classification

State = dict[str, Tensor]


def drawn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return random numbers."""
    return torch.randn(*shape, generator=generator(seed, "samples"), dtype=dtype)


def answers(model: nn.Module, x: Tensor) -> Tensor:
    """Return the logits of samples."""
    with evaluating(model):
        logits: Tensor = model(x)
    return logits


def percentage(model: nn.Module, part: Part) -> float:
    """Return the percentage of right answers on a part."""
    dtype = next(model.parameters()).dtype
    right = answers(model, part.x.to(dtype)).argmax(dim=1) == part.y
    return 100 * float(right.double().mean())


def labelled(model: nn.Module, x: Tensor, *, wrong: float = 0.2, seed: int = 0) -> Part:
    """Return samples with the answers of a network as labels, some of them replaced by any."""
    logits = answers(model, x.to(next(model.parameters()).dtype))
    random = generator(seed, "labels")
    others = torch.randint(logits.shape[1], (len(x),), generator=random)
    return Part(x, torch.where(torch.rand(len(x), generator=random) < wrong, others, logits.argmax(dim=1)))


def data_of(train: Part, validation: Part, test: Part, classes: int) -> Data:
    """Return a task of three parts."""
    names = tuple(f"class {number}" for number in range(classes))
    shape = tuple(train.x.shape[1:])
    return Data(
        name="made up", task=Classification(names), input_shape=shape, train=train, validation=validation, test=test
    )


def data_for(
    model: nn.Module, *shape: int, counts: tuple[int, int, int] = (80, 60, 60), wrong: float = 0.2, seed: int = 0
) -> Data:
    """Return a task that a network half knows: the labels are its own answers, some of them replaced."""
    dtype = next(model.parameters()).dtype
    parts = [
        labelled(model, drawn(count, *shape, seed=10 * seed + number, dtype=dtype), wrong=wrong, seed=seed + number)
        for number, count in enumerate(counts)
    ]
    classes = answers(model, parts[0].x[:1]).shape[1]
    return data_of(parts[0], parts[1], parts[2], classes)


def request_for(model: nn.Module, data: Data, *, limits: Limits | None = None, seed: int = 0) -> Request:
    """Return what a method is asked, as `resize` asks it."""
    return make_job(model, data, seed=seed).request(limits=limits)


def unlabelled_request(model: nn.Module, x: Tensor) -> Request:
    """Return what a method is asked that looks at inputs alone."""
    part = labelled(model, x)
    return request_for(model, data_of(part, part, part, answers(model, x[:1]).shape[1]))


def with_parts(request: Request, **parts: AnyPart) -> Request:
    """Return the same request with other parts of its data."""
    assert request.job.data is not None
    given: dict[str, Any] = dict(parts)
    data = replace(request.job.data, **given)
    return request_for(request.model, data, limits=request.limits, seed=request.job.seed)


def training_of(request: Request) -> Part:
    """Return the labelled training samples of a request."""
    assert request.job.training is not None
    return request.job.training


def held_out_of(request: Request) -> Part:
    """Return the labelled validation samples of a request."""
    assert request.job.held_out is not None
    return request.job.held_out


NOTHING = Part(torch.zeros(0, 1), torch.zeros(0, dtype=torch.int64))


def cut(request: Request, edits: tuple[Edit, ...]) -> nn.Module:
    """Carry edits out, as `resize` does."""
    return apply(Plan(edits), request.model, request.job.example_input, calibration=request.job.calibration)


def perceptron(*sizes: int, activation: str = "tanh", seed: int = 0, double: bool = False) -> nn.Module:
    """Return a multilayer perceptron with biases that are not zero, that does not always answer the same."""
    model = mlp(sizes, activation, generator=generator(seed, "weights"))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(std=0.5, generator=generator(seed, name))
    balance(model, drawn(100, sizes[0], seed=99))
    return (model.double() if double else model).eval()


@torch.no_grad()
def balance(model: nn.Module, x: Tensor) -> None:
    """Return a network a last bias such that its logits are zero in the mean."""
    last: Any = [module for module in model.modules() if isinstance(module, nn.Linear)][-1]
    last.bias.sub_(answers(model, x).mean(dim=0))


def state_of(model: nn.Module) -> State:
    """Return a copy of the weights."""
    return deepcopy(model.state_dict())


def same_state(model: nn.Module, state: State) -> bool:
    """Return whether the weights are the same to the bit."""
    now = model.state_dict()
    return list(now) == list(state) and all(torch.equal(values, state[name]) for name, values in now.items())


def widths_of(model: nn.Module) -> dict[str, int]:
    """Return the number of outputs of each linear layer and convolution."""
    return {
        name: len(module.weight)
        for name, module in model.named_modules()
        if isinstance(module, (nn.Linear, nn.Conv1d, nn.Conv2d))
    }


def convolutional() -> nn.Module:
    """Return two convolutions and a hidden layer."""
    return nn.Sequential(
        nn.Conv2d(3, 5, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(5, 6, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(6, 4),
        nn.Tanh(),
        nn.Linear(4, 3),
    )


Case = tuple[Callable[[int], nn.Module], tuple[int, ...]]

# networks with one input and logits (n_samples, n_classes), in float64, by name, with the shape of a sample
CASES: dict[str, Case] = {
    "perceptron": (lambda seed: perceptron(5, 7, 6, 3, double=True, seed=seed), (5,)),
    "convolutions": (lambda seed: built(convolutional, (2, 3, 6, 6), seed=seed)[0], (3, 6, 6)),
    "residual": (lambda seed: NETWORKS["residual"](seed)[0], (3, 6, 6)),
    "inception": (lambda seed: NETWORKS["inception"](seed)[0], (3, 6, 6)),
    "cascade": (lambda seed: NETWORKS["cascade"](seed)[0], (3,)),
    "gated": (lambda seed: NETWORKS["gated"](seed)[0], (3, 5, 5)),
    "grouped": (lambda seed: NETWORKS["grouped"](seed)[0], (3, 5, 5)),
    "shared layer": (lambda seed: NETWORKS["shared layer"](seed)[0], (4,)),
}


def network_for(name: str, seed: int = 0) -> nn.Module:
    """Return one of them, that does not always answer the same."""
    make, shape = CASES[name]
    model = make(seed)
    balance(model, drawn(100, *shape, seed=99, dtype=torch.float64))
    return model
