"""What users do with networks, on any device; each returns what came of it: networks, tensors and numbers.

Data are on the CPU, as readers leave them, and networks are put on the device.
"""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tests.cli.conftest import invoke
from tests.conformance.test_methods import SETTINGS
from tests.methods.tasks import CASES, data_for, network_for
from tests.modern_networks import EncoderNetwork, FusedNetwork, RecurrentNetwork
from topiarist import (
    Budget,
    Data,
    RightSizedClassifier,
    Study,
    TrainConfig,
    anatomy,
    deliver,
    export_onnx,
    load,
    load_data,
    measure,
    models,
    monte_carlo,
    resize,
    reuse,
    rightsize,
    save,
    surgery,
    train,
    train_many,
)
from topiarist.data import Part
from topiarist.methods import Distinctiveness, Genetic, find_method, registered
from topiarist.methods.published import magnitude
from topiarist.methods.retraining import FineTuning
from topiarist.randomness import generator, isolated
from topiarist.rightsizing.delivery import MODEL_FILE
from topiarist.surgery import Masks, recommend, transplant
from topiarist.training import Augmentation, Distillation, Pruning, TabularConfig, train_tabular
from topiarist.training.inference import predict_logits
from topiarist.training.rescue import train_with_rescue

Result = nn.Module | Tensor | float | None
Scenario = Callable[[str], Iterator[Result]]
SCENARIOS: dict[str, dict[str, Scenario]] = {}
PRACTICES: tuple[dict[str, Any], ...] = (
    {"early_stopping": 1, "class_weights": "balanced", "clip_norm": 1.0, "loss": "focal"},
    {"optimizer": "sgd", "momentum": 0.9, "clip_value": 0.1, "schedule": "performance", "watch_training": True},
    {"epochs": 4, "pruning": Pruning(sparsity=0.5), "optimizer": "adamw", "weight_decay": 0.1},
    {"augmentation": Augmentation(mixup=0.2), "precise_norms": True, "optimizer": "rmsprop"},
)


def scenario(group: str) -> Callable[[Scenario], Scenario]:
    """Return what puts a scenario into a group, under its own name."""

    def add(function: Scenario) -> Scenario:
        SCENARIOS.setdefault(group, {})[function.__name__] = function
        return function

    return add


def perceptron(device: str, *sizes: int, seed: int = 0, **how: Any) -> nn.Module:
    return models.mlp(sizes, generator=generator(seed, "weights"), **how).to(device)


def task_for(name: str) -> Data:
    return data_for(network_for(name).float(), *CASES[name][1], counts=(48, 24, 24))


def made(make: Callable[[], nn.Module], device: str) -> tuple[nn.Module, Data]:
    """Return a network of another kind, and samples whose labels it half knows."""
    with isolated(0):
        model = make().eval()
    data = data_for(model, 6, 4, counts=(60, 24, 24))
    return model.to(device), data


@scenario("training")
def practices(device: str) -> Iterator[Result]:
    for practice in PRACTICES:
        model = perceptron(device, 4, 8, 3, batch_norm="before")
        train(model, load_data("iris"), TrainConfig(**{"epochs": 2, **practice}))
        yield model


@scenario("training")
def on_the_device_that_is_asked_for(device: str) -> Iterator[Result]:
    small = perceptron("cpu", 4, 4, 3)
    taught = TrainConfig(epochs=2, distillation=Distillation(), device=device)
    train(small, load_data("iris"), taught, teacher=perceptron("cpu", 4, 8, 3, seed=1))
    yield small


@scenario("training")
def as_one_stack(device: str) -> Iterator[Result]:
    folds = load_data("iris").folds(3, validation_fraction=0.2)
    configs = [TrainConfig(epochs=6, early_stopping=1, seed=seed, learning_rate=0.01 * 3**seed) for seed in range(3)]
    alike = [perceptron(device, 4, 8, 3, dropout=0.2, batch_norm="after", seed=seed) for seed in range(3)]
    train_many(alike, folds, configs)
    yield from alike
    narrow = [perceptron(device, 4, width, 3, seed=width) for width in (4, 6, 8)]
    common = TrainConfig(epochs=3, weight_decay=0.01, clip_norm=1, class_weights="balanced", optimizer="adamw")
    with tempfile.TemporaryDirectory() as folder:
        train_many(narrow, folds, common, padded=True, checkpoint=Path(folder) / "checkpoint")
    yield from narrow
    train_with_rescue(narrow[:1], folds[:1], [TrainConfig(epochs=2, early_stopping=2)])
    yield narrow[0]


@scenario("training")
def numbers_and_labels(device: str) -> Iterator[Result]:
    x = torch.randn(120, 4, generator=generator(0, "x"))
    numbers = Data.from_arrays(x.numpy(), (x @ torch.tensor([1.0, -1.0, 0.5, 0.0])).numpy(), task="numbers")
    labels = Data.from_arrays(x.numpy(), (x[:, :2] > 0).int().numpy(), task="labels")
    for data in (numbers, labels):
        networks = [perceptron(device, 4, 8, data.task.outputs, seed=seed) for seed in range(2)]
        train_many(networks, data, [TrainConfig(epochs=3, seed=seed, learning_rate=0.01 + seed) for seed in range(2)])
        train(networks[0], data, TrainConfig(epochs=2, augmentation=Augmentation(mixup=0.2)))
        yield from networks
        yield resize(networks[0], data, Genetic(penalty=40, population=10, generations=3)).model


@scenario("training")
def images_and_transfer(device: str) -> Iterator[Result]:
    model, data = network_for("residual").float().to(device), task_for("residual")
    train(model, data, TrainConfig(epochs=2))
    yield model
    base = perceptron(device, 4, 8, 3)
    yield reuse(base, classes=2, add=[4], generator=generator(0, "head"))


@scenario("training")
def tables(device: str) -> Iterator[Result]:
    found = train_tabular(load_data("iris"), TabularConfig(epochs=2, device=device))
    yield found.network
    yield found.validated["network"]


@scenario("surgery")
def verbs(device: str) -> Iterator[Result]:
    model, data = network_for("residual").float().to(device), task_for("residual")
    assert isinstance(data.train, Part)
    x, calibration = data.train.x[:4].to(device), data.train.x.to(device)
    found = anatomy(model, x)
    name = next(name for name, space in found.spaces.items() if space.reason is None)
    yield surgery.remove(model, x, units={name: [0]}, calibration=calibration)
    yield surgery.widen(model, x, space=name, by=2, generator=generator(0, "wider"))
    yield surgery.grow(model, x, space=name, by=2, generator=generator(0, "grown"))
    yield surgery.compact(model, x)
    optimizer = torch.optim.Adam(model.parameters())
    model(x).sum().backward()
    optimizer.step()
    cut = surgery.remove(model, x, units={name: [1]})
    moved = transplant(optimizer, model, cut)
    cut(x).sum().backward()
    moved.step()
    yield cut
    masks = Masks(
        model,
        {name: torch.rand(value.shape, generator=generator(0, name)) > 0.5 for name, value in model.named_parameters()},
    )
    masks.step()
    yield model


@scenario("surgery")
def layers(device: str) -> Iterator[Result]:
    model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 6), nn.Linear(6, 3))
    with isolated(0):
        for parameter in model.parameters():
            nn.init.normal_(parameter)
    model, x = model.to(device).eval(), torch.randn(30, 4, generator=generator(0, "x")).to(device)
    yield surgery.deepen(model, x, after="2", batch_norm=True)
    yield surgery.fold(model, x, layer="1")
    yield surgery.fold(model, x, layer="3")
    yield surgery.factorise(model, layer="3", rank=2)
    yield surgery.project(model, x, space="3", to=4)


KINDS: dict[str, Callable[[], nn.Module]] = {
    "encoder": lambda: EncoderNetwork(width=16, heads=4, hidden=24),
    "fused": lambda: FusedNetwork(width=16, heads=4, hidden=20),
    "lstm": lambda: RecurrentNetwork(nn.LSTM, hidden=12),
}


@scenario("surgery")
def attention_and_recurrence(device: str) -> Iterator[Result]:
    for make in KINDS.values():
        model, data = made(make, device)
        most = round(0.7 * sum(parameter.numel() for parameter in model.parameters()))
        yield resize(model, data, budget=Budget(parameters=most), latency=False, settling=3).model


@scenario("surgery")
def advice(device: str) -> Iterator[Result]:
    model, data = network_for("residual").float().to(device), task_for("residual")
    assert isinstance(data.train, Part)
    x, y = data.train.x.to(device), data.train.y.to(device)
    found = recommend(model, x[:2], calibration=x, labels=y)
    yield float(len(str(found)))


@scenario("measuring")
def figures(device: str) -> Iterator[Result]:
    model, data = network_for("residual").float().to(device), task_for("residual")
    assert isinstance(data.test, Part)
    measured = measure(model, data)
    assert measured.latency_ms is not None
    yield from (measured.accuracy, measured.parameters, measured.macs, measured.file_kb)
    yield predict_logits(model, data.test.x)
    assert monte_carlo(perceptron(device, 4, 8, 3, dropout=0.5), torch.zeros(5, 4), passes=3).mean.isfinite().all()


@scenario("measuring")
def files(device: str) -> Iterator[Result]:
    model, data = network_for("residual").float().to(device), task_for("residual")
    with tempfile.TemporaryDirectory() as folder:
        path = save(model, Path(folder) / "model.safetensors", data=data)
        yield load(path, into=network_for("residual", seed=1).float().to(device))
        again = perceptron(device, 4, 8, 3)
        own = load(save(again, Path(folder) / "own.safetensors", data=load_data("iris")))
        yield own.to(device)
        export_onnx(again, Path(folder) / "own.onnx", data=load_data("iris"))


@scenario("rightsizing")
def whole_runs(device: str) -> Iterator[Result]:
    result = rightsize(load_data("iris"), effort="quick", methods=("distinctiveness", "magnitude"), device=device)
    assert all(tensor.device.type == device for tensor in result.model.state_dict().values())
    with tempfile.TemporaryDirectory() as folder:
        deliver(result, Path(folder) / "out", onnx=False)
        yield load(Path(folder) / "out" / MODEL_FILE).training


@scenario("rightsizing")
def estimators(device: str) -> Iterator[Result]:
    x = torch.randn(60, 4, generator=generator(0, "x"))
    fitted = RightSizedClassifier(effort="quick", random_state=0, device=device).fit(x.numpy(), (x[:, 0] > 0).numpy())
    assert all(tensor.device.type == device for tensor in fitted.model_.state_dict().values())
    yield fitted.predict_proba(x.numpy()).shape == (60, 2)


@scenario("rightsizing")
def studies(device: str) -> Iterator[Result]:
    declared: dict[str, Any] = {"data": {"location": "iris"}, "training": {"epochs": 2}, "folds": 2, "seeds": [0]}
    methods = [{"name": "none"}, {"name": "distinctiveness", "keep_fraction": 0.5}]
    with tempfile.TemporaryDirectory() as folder:
        study = Study(name="devices", **declared, methods=methods)
        yield from study.run(Path(folder) / "study", device=device).cells["accuracy"].tolist()


@scenario("rightsizing")
def commands(device: str) -> Iterator[Result]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        whole, small, on = place / "whole.safetensors", place / "small.safetensors", ["--device", device]
        for words in (
            ["train", "iris", "--epochs", "2", "--out", str(whole), *on],
            ["resize", "distinctiveness", str(whole), "iris", "--keep", "0.5", "--out", str(small), *on],
            ["measure", str(small), "iris", *on],
            ["recommend", str(small), "iris", *on],
            ["anatomy", str(small), *on],
            ["predict", str(small), "iris", "--out", str(place / "answers.csv"), *on],
        ):
            code, _, said = invoke(*words)
            assert code == 0, f"{words}: {said}"
        yield load(small).to(device)
        yield (place / "answers.csv").read_text().count("\n")


def resized_by(name: str, case: str, network: str) -> Scenario:
    def run(device: str) -> Iterator[Result]:
        model, data = network_for(network).float().to(device), task_for(network)
        method = find_method(name)(**SETTINGS[name][case].settings)
        magnitude.TRAINING = TrainConfig(epochs=8, learning_rate=0.001)  # the paper's 400 epochs show no more
        yield resize(model, data, method, budget=SETTINGS[name][case].budget, seed=3, latency=False).model

    return run


for _name in registered():
    for _case in SETTINGS[_name]:
        SCENARIOS.setdefault("methods", {})[f"{_name} {_case}"] = resized_by(_name, _case, "residual")


@scenario("methods")
def resize_and_retrain(device: str) -> Iterator[Result]:
    model, data = network_for("residual").float().to(device), task_for("residual")
    taught = FineTuning(epochs=2, distillation=Distillation())
    yield resize(model, data, Distinctiveness(keep_fraction=0.5), retraining=taught).model


@scenario("without float64")
def as_on_an_apple(device: str) -> Iterator[Result]:
    data = load_data("iris")
    model = perceptron(device, 4, 12, 8, 3)
    train(model, data, TrainConfig(epochs=4, early_stopping=2))
    yield model
    for method in (Distinctiveness(keep_fraction=0.5), Genetic(penalty=40, population=10, generations=3)):
        small = resize(model, data, method).model
        assert all(tensor.device.type == device for tensor in small.state_dict().values())
        yield measure(small, data).parameters
    residual = network_for("residual").float().to(device)
    yield resize(residual, task_for("residual"), budget=Budget(parameters=300), latency=False).after.parameters <= 300
